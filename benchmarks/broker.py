"""What a message costs the broker's process, and what the broker costs while nothing happens.

The broker runs in a process of its own with its data on disk; a lean client drives it over a
socket. Cost is the processor time of the broker's process for each message. Beside it stands what
a plain asyncio server needs to answer as many frames, in the same run.

python -m benchmarks.broker
"""

import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks._paths import note
from pocketmq.protocol import Command
from pocketmq.protocol.batch import BatchEntry, encode_batch
from pocketmq.protocol.command import read_command
from pocketmq.protocol.frame import FrameReader

QUEUES = 8
BODY = b"x" * 100
ROUNDS = 4
SECONDS = 0.7
"""The best of several short rounds counts, so that other work on the machine counts least."""
PROPERTIES = "UNIQ_KEY\1FD000000000000000000000000000000230CE5FFD2B27487\2WAIT\1true\2TAGS\1paid\2"
FIELDS = {
    "a": "shop", "b": "orders", "c": "TBW102", "d": "8", "f": "0", "g": "1794707172145", "h": "0",
    "i": PROPERTIES, "j": "0", "k": "false", "n": "broker-a",
}  # fmt: skip


def send_frames(batch: int = 0, more: str = "") -> list[bytes]:
    """Return one request for each queue; `more` is behind the usual properties."""
    fields = FIELDS | {"i": PROPERTIES + more}
    body = encode_batch([BatchEntry(BODY, PROPERTIES.encode())] * batch) if batch else BODY
    code, flag = (320, "true") if batch else (310, "false")
    return [
        Command.request(code, queue, fields | {"e": str(queue), "m": flag}, body).encode()
        for queue in range(QUEUES)
    ]


def pull_frame(
    queue: int, offset: int, count: int, *, group: str = "billing", commit: bool = False
) -> bytes:
    """Return a request for messages; `commit`: with the offset as the group's own."""
    fields = {
        "consumerGroup": group, "topic": "orders", "queueId": str(queue),
        "queueOffset": str(offset), "maxMsgNums": str(count), "sysFlag": "5" if commit else "4",
        "commitOffset": str(offset) if commit else "0",
        "suspendTimeoutMillis": "0", "subscription": "*", "subVersion": "0",
        "expressionType": "TAG", "maxMsgBytes": str(8 << 20),
    }  # fmt: skip
    return Command.request(11, queue, fields).encode()


class Process:
    """A child process that serves a port."""

    def __init__(self, *arguments: str) -> None:
        self.started = time.perf_counter()
        command = [sys.executable, "-m", "benchmarks._broker_process", *arguments]
        self.child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.child.stdout is not None
        word, port = self.child.stdout.readline().split()
        assert word == "ready"
        self.port = int(port)

    def cpu(self) -> float:
        """Return the seconds of processor time used so far, by all threads."""
        used = 0
        for task in Path(f"/proc/{self.child.pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
                used += int((task / "schedstat").read_text().split()[0])
        return used / 1e9

    def anonymous(self) -> float:
        """Return the MB of memory that is the process's own."""
        for line in Path(f"/proc/{self.child.pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Anonymous:"):
                return int(line.split()[1]) / 1024
        return 0.0

    def stop(self) -> None:
        with self.child:  # waits for its end, and closes the pipe
            self.child.terminate()


class Client:
    """Counts answers by their lengths; looks into none unless asked."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._held = b""

    def receive(self) -> int:
        """Wait for answers and give how many came whole."""
        data = self._held + self.socket.recv(1 << 20)
        at = frames = 0
        while len(data) - at >= 4:
            end = at + 4 + struct.unpack_from(">I", data, at)[0]
            if end > len(data):
                break
            at, frames = end, frames + 1
        self._held = data[at:]
        return frames

    def ask(self, frame: bytes) -> Command:
        reader = FrameReader()
        self.socket.sendall(frame)
        while True:
            data = self.socket.recv(1 << 20)
            assert data, "the broker closed the connection"
            for found in reader.feed(data):
                return read_command(found)

    def drive(self, frames: list[bytes], depth: int, seconds: float) -> int:
        """Keep `depth` requests under way for a while; give the number answered, at least one."""
        end = time.perf_counter() + seconds
        sent = done = 0
        while True:
            room = depth - (sent - done)
            if sent and time.perf_counter() >= end:
                room = 0
                if done == sent:
                    return done
            if room:
                self.socket.sendall(
                    b"".join([frames[(sent + n) % len(frames)] for n in range(room)])
                )
                sent += room
            done += self.receive()


class Table:
    """Rows of what was measured."""

    def __init__(self) -> None:
        print(f"{'':34}{'messages/s':>12}{'CPU µs':>9}{'target':>9}{'× plain':>9}", flush=True)

    def row(self, name: str, rate: float, cost: float, target: float, plain: float) -> None:
        times = f"{cost / plain:9.2f}" if plain else f"{'':9}"
        print(f"{name:34}{rate:12,.0f}{cost:9.2f}{target:9.2f}{times}", flush=True)
        note(name, cost)


def measure(
    process: Process, frames: list[bytes], depth: int, each: int = 1
) -> tuple[float, float]:
    """Return messages a second, and CPU µs a message, for frames of `each` messages."""
    client = Client(process.port)
    client.drive(frames, depth, 0.3)
    rates, costs = [], []
    for _ in range(ROUNDS):
        cpu, started = process.cpu(), time.perf_counter()
        messages = client.drive(frames, depth, SECONDS) * each
        costs.append((process.cpu() - cpu) / messages * 1e6)
        rates.append(messages / (time.perf_counter() - started))
    client.socket.close()
    return max(rates), min(costs)


def measure_pulls(process: Process, count: int) -> tuple[float, float]:
    """Pull the backlog of each queue; the cheapest one counts."""
    client = Client(process.port)
    rates, costs = [], []
    for queue in range(QUEUES):
        cpu, started, offset = process.cpu(), time.perf_counter(), 0
        while time.perf_counter() - started < SECONDS:
            answer = client.ask(pull_frame(queue, offset, count))
            if answer.code:
                break
            offset = int(answer.ext["nextBeginOffset"])
        costs.append((process.cpu() - cpu) / offset * 1e6)
        rates.append(offset / (time.perf_counter() - started))
    client.socket.close()
    return max(rates), min(costs)


@contextmanager
def broker(*settings: str) -> Iterator[Process]:
    with tempfile.TemporaryDirectory() as directory:
        process = Process("broker", directory, *settings)
        try:
            yield process
        finally:
            process.stop()


def plain_costs(depths: list[int]) -> dict[int, float]:
    process = Process("plain")
    try:
        return {depth: measure(process, send_frames(), depth)[1] for depth in depths}
    finally:
        process.stop()


def start_and_idle() -> None:
    with broker() as process:
        client = Client(process.port)
        assert client.ask(send_frames()[0]).code == 0
        ready = time.perf_counter() - process.started
        used = process.cpu()
        print(f"{'exec to first accepted send':34}{ready:12.2f} s{used:9.2f} CPU s")
        time.sleep(1.0)
        cpu, started = process.cpu(), time.perf_counter()
        time.sleep(5.0)
        idle = (process.cpu() - cpu) / (time.perf_counter() - started) * 100
        print(f"{'idle: memory of its own, MB':34}{process.anonymous():12.1f}")
        print(f"{'idle: % of a core':34}{idle:12.2f}{'target 0.50':>14}")
        client.socket.close()


def main() -> None:
    os.environ.setdefault("PYTHONHASHSEED", "0")
    plain = plain_costs([1, 16, 64])
    table = Table()
    with broker() as process:
        for depth, target in ((1, 60.0), (16, 20.0), (64, 13.0)):
            rate, cost = measure(process, send_frames(), depth)
            table.row(f"send, {depth} under way", rate, cost, target, plain[depth])
    with broker() as process:
        for size, depth, target in ((32, 16, 3.0), (256, 4, 1.5)):
            rate, cost = measure(process, send_frames(size), depth, size)
            table.row(f"send, batches of {size}", rate, cost, target, 0)
    with broker() as process:
        for depth, target in ((1, 60.0), (64, 13.0)):
            rate, cost = measure(process, send_frames(more="DELAY\00118\2"), depth)
            table.row(f"delayed send, {depth} under way", rate, cost, target, plain[depth])
    with broker("flushDiskType=SYNC_FLUSH") as process:
        rate, cost = measure(process, send_frames(), 64)
        table.row("send, 64 under way, synced", rate, cost, 25.0, plain[64])
    with broker() as process:
        measure(process, send_frames(), 64)
        for count, target in ((32, 3.0), (1024, 0.7)):
            rate, cost = measure_pulls(process, count)
            table.row(f"pull, {count} at a time", rate, cost, target, 0)
    start_and_idle()


if __name__ == "__main__":
    main()
