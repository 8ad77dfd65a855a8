"""What a send costs client and broker: CPU µs per message, on asyncio's loop and on uvloop.

python -m benchmarks.sends [seconds for each round] [rounds]

Cluster and client are two processes, both on the loop of the row; the cluster's children count
with it. Loops take turns, round by round; the least cost of a row counts. CPU time holds on a busy
machine, the rates do not.
"""

import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pocketmq as mq
from benchmarks.producer import BODY, TOPIC, worker
from pocketmq import native
from pocketmq.client.producer.producer import Producer
from pocketmq.net import loops

TICKS = os.sysconf("SC_CLK_TCK")
Cost = tuple[float, float, float]
"""CPU µs of the client and of the cluster per message, and messages per second."""


@contextmanager
def cluster(
    loop: str, data: str | None = None, more: Sequence[str] = ()
) -> Iterator[tuple[str, int]]:
    """Run a cluster of one broker on a loop; yield the name server's address and its process."""
    store = ["--memory"] if data is None else ["--data", data]
    command = [sys.executable, "-m", "pocketmq", "up", *store, "--port", "0", "--no-grpc"]
    command += more
    environment = os.environ | {loops.CHOICE: loop}
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert child.stdout is not None
    try:
        words = child.stdout.readline().split()
        yield (
            next(word for word in words if word.startswith("namesrv=")).partition("=")[2],
            child.pid,
        )
    finally:
        child.terminate()
        child.wait(30)


def cpu(process: int) -> float:
    """Return the seconds of CPU that a process and its children have used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return (int(fields[11]) + int(fields[12])) / TICKS + sum(cpu(int(each)) for each in children)


def blocking(address: str, until: float) -> int:
    """Send one at a time from a thread."""
    with mq.Producer(address, group="bench-blocking") as producer:
        done = 0
        while time.perf_counter() < until:
            producer.send(mq.Message(TOPIC, BODY))
            done += 1
        return done


def in_flight(depth: int) -> Callable[[str, float], int]:
    """Keep `depth` callers of the asyncio producer busy."""

    def run(address: str, until: float) -> int:
        async def send() -> int:
            async with Producer(address, group="bench-asyncio") as producer:
                return await worker(depth)(producer, until)

        return loops.run(send())

    return run


ROWS: dict[str, Callable[[str, float], int]] = {
    "blocking, one at a time": blocking,
    "asyncio, one at a time": in_flight(1),
    "asyncio, 64 in flight": in_flight(64),
}


def measure(story: Callable[[str, float], int], address: str, server: int, seconds: float) -> Cost:
    story(address, time.perf_counter() + seconds / 4)
    own, theirs, started = time.process_time(), cpu(server), time.perf_counter()
    done = story(address, started + seconds)
    took = time.perf_counter() - started
    own, theirs = time.process_time() - own, cpu(server) - theirs
    return own / done * 1e6, theirs / done * 1e6, done / took


def best(rounds: list[Cost]) -> Cost:
    clients, servers, rates = zip(*rounds, strict=True)
    return min(clients), min(servers), max(rates)


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    kinds = ["asyncio", *(["uvloop"] if importlib.util.find_spec("uvloop") else [])]
    found: dict[tuple[str, str], list[Cost]] = {}
    with ExitStack() as stack:
        servers = {kind: stack.enter_context(cluster(kind)) for kind in kinds}
        for _ in range(rounds):
            for row, story in ROWS.items():
                for kind, (address, process) in servers.items():
                    os.environ[loops.CHOICE] = kind
                    cost = measure(story, address, process, seconds)
                    found.setdefault((row, kind), []).append(cost)
    print(native.description)
    print(f"{'CPU µs per message':28}{'loop':>10}{'client':>10}{'cluster':>10}{'messages/s':>14}")
    for (row, kind), costs in found.items():
        client, server, rate = best(costs)
        print(f"{row:28}{kind:>10}{client:10.2f}{server:10.2f}{rate:14,.0f}")


if __name__ == "__main__":
    main()
