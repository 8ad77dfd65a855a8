"""What one request costs over loopback: our transport against a bare asyncio streams echo.

python -m benchmarks.transport [seconds for each row]

Each server runs in a process of its own and tells its own CPU time. A blocking socket sends bursts
of `depth` requests and waits for all their answers; the last rows ask through `Connection.request`.
The bare echo only cuts the stream by its length prefix and sends the same bytes back: no command
is read or written.
"""

import asyncio
import importlib.util
import multiprocessing
import socket
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection as Pipe
from typing import NamedTuple

from pocketmq.net import Connection, Dialer, Limits, Server
from pocketmq.protocol import Command

DEPTHS = (1, 16, 64)
FIELDS = {"a": "shop", "b": "orders", "c": "TBW102", "d": "4", "e": "3", "f": "0"}
REQUEST = Command.request(310, 1, FIELDS, b"x" * 100)


class Echo:
    """Answers every request with its own body."""

    def connection_opened(self, connection: Connection) -> None:
        pass

    def requests_received(self, connection: Connection, requests: list[Command]) -> None:
        connection.write(*[request.reply(0, body=request.body).encode() for request in requests])

    def connection_closed(self, connection: Connection, cause: Exception | None) -> None:
        pass


async def serve_ours(pipe: Pipe) -> None:
    server = Server(Echo(), Limits())
    pipe.send((await server.listen("127.0.0.1", 0)).port)
    await tell_cpu(pipe)
    await server.close()


async def serve_bare(pipe: Pipe) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                prefix = await reader.readexactly(4)
                rest = await reader.readexactly(int.from_bytes(prefix, "big"))
                writer.write(prefix + rest)
        except asyncio.IncompleteReadError:
            writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    pipe.send(server.sockets[0].getsockname()[1])
    await tell_cpu(pipe)
    server.close()


async def tell_cpu(pipe: Pipe) -> None:
    """Answer each sign of life with the CPU time used so far, until the other end is closed."""
    loop = asyncio.get_running_loop()
    ended = loop.create_future()

    def asked() -> None:
        if pipe.recv():
            pipe.send(time.process_time())
        else:
            loop.remove_reader(pipe.fileno())
            ended.set_result(None)

    loop.add_reader(pipe.fileno(), asked)
    await ended


def run_child(serve: Callable[[Pipe], object], pipe: Pipe, loop: str) -> None:
    with asyncio.Runner(loop_factory=loop_factory(loop)) as runner:
        runner.run(serve(pipe))  # type: ignore[arg-type]


def loop_factory(name: str) -> Callable[[], asyncio.AbstractEventLoop] | None:
    if name == "uvloop":
        factory: Callable[[], asyncio.AbstractEventLoop]
        factory = importlib.import_module("uvloop").new_event_loop
        return factory
    return None


class Served:
    """A server in a child process."""

    def __init__(self, serve: Callable[[Pipe], object], loop: str) -> None:
        self.pipe, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        self.process = context.Process(target=run_child, args=(serve, theirs, loop))
        self.process.start()
        theirs.close()
        self.port: int = self.pipe.recv()

    def cpu(self) -> float:
        self.pipe.send(True)
        used: float = self.pipe.recv()
        return used

    def stop(self) -> None:
        self.pipe.send(False)
        self.process.join()


class Row(NamedTuple):
    per_second: float
    server_cpu: float  # µs for each request


def burst(server: Served, depth: int, seconds: float, answer: int) -> Row:
    """Send bursts over one blocking socket."""
    data = REQUEST.encode() * depth
    expected = answer * depth
    buffer = bytearray(expected)
    with socket.create_connection(("127.0.0.1", server.port)) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def once() -> None:
            peer.sendall(data)
            got = 0
            while got < expected:
                got += peer.recv_into(buffer)

        for _ in range(200):
            once()
        return measure(server, once, depth, seconds)


def measure(server: Served, once: Callable[[], None], depth: int, seconds: float) -> Row:
    rounds = 0
    cpu = server.cpu()
    start = now = time.perf_counter()
    while now - start < seconds:
        once()
        rounds += 1
        now = time.perf_counter()
    cpu = server.cpu() - cpu
    return Row(rounds * depth / (now - start), cpu / (rounds * depth) * 1e6)


async def ask(server: Served, depth: int, seconds: float) -> tuple[Row, float]:
    """Keep `depth` callers asking through one shared connection; give the client's CPU, too."""
    dialer = Dialer(Echo(), Limits())
    connection = await dialer.connect(f"127.0.0.1:{server.port}")
    done = 0

    async def caller(until: float) -> None:
        nonlocal done
        while time.perf_counter() < until:
            await connection.request(REQUEST, 5.0)
            done += 1

    async def run(length: float) -> float:
        start = time.perf_counter()
        await asyncio.gather(*[caller(start + length) for _ in range(depth)])
        return time.perf_counter() - start

    await run(seconds / 10)
    done, cpu, own = 0, server.cpu(), time.process_time()
    spent = await run(seconds)
    own = time.process_time() - own
    cpu = server.cpu() - cpu
    await dialer.close()
    return Row(done / spent, cpu / done * 1e6), own / done * 1e6


def compare(loop: str, seconds: float) -> None:
    answer = len(REQUEST.reply(0, body=REQUEST.body).encode())
    ours, bare = Served(serve_ours, loop), Served(serve_bare, loop)
    print(f"{loop}: request of {len(REQUEST.encode())} bytes, answer of {answer}")
    print(
        f"{'depth':>7}{'ours/s':>10}{'CPU µs':>9}{'bare/s':>10}{'CPU µs':>9}{'CPU ours ÷ bare':>17}"
    )
    try:
        for depth in DEPTHS:
            mine = burst(ours, depth, seconds, answer)
            theirs = burst(bare, depth, seconds, len(REQUEST.encode()))
            ratio = mine.server_cpu / theirs.server_cpu
            print(
                f"{depth:7}{mine.per_second:10.0f}{mine.server_cpu:9.1f}"
                f"{theirs.per_second:10.0f}{theirs.server_cpu:9.1f}{ratio:17.2f}"
            )
        print(f"{'depth':>7}{'asked/s':>10}{'server':>9}{'client':>10} CPU µs, Connection.request")
        with asyncio.Runner(loop_factory=loop_factory(loop)) as runner:
            for depth in DEPTHS:
                row, own = runner.run(ask(ours, depth, seconds))
                print(f"{depth:7}{row.per_second:10.0f}{row.server_cpu:9.1f}{own:10.1f}")
    finally:
        ours.stop()
        bare.stop()


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    compare("asyncio", seconds)
    if importlib.util.find_spec("uvloop"):
        compare("uvloop", seconds)


if __name__ == "__main__":
    main()
