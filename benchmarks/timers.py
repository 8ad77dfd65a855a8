"""What timed messages cost: taking them in, letting a million of them wait, delivering, starting.

The broker runs in a process of its own with its data on disk; cost is its processor time. A plain
send in the same run stands beside each message.

python -m benchmarks.timers [how many]
"""

import random
import sys
import tempfile
import time
from collections.abc import Iterator

from benchmarks import broker
from pocketmq.protocol import Command

MANY = 1_000_000
FEW = 10
DUE = 20_000
WINDOW, MEASURED = 2.0, 10.0
"""Seconds in which a broker is seen to be at rest, and over which rest is measured."""
DAYS_MS = 3 * 24 * 3_600_000 - 3_600_000


def frames_of(dues_ms: Iterator[int], count: int) -> Iterator[bytes]:
    """Yield one send after another, each for its own moment."""
    mark = "9" * 13
    for number in range(count):
        if number < broker.QUEUES:
            text = f"{broker.PROPERTIES}TIMER_DELIVER_MS\1{mark}\2"
            fields = broker.FIELDS | {"e": str(number), "m": "false", "i": text}
            _TEMPLATES.append(
                Command.request(310, number, fields, broker.BODY).encode().split(mark.encode())
            )
        start, end = _TEMPLATES[number % broker.QUEUES]
        yield b"%b%d%b" % (start, next(dues_ms), end)


_TEMPLATES: list[list[bytes]] = []


def load(process: broker.Process, dues_ms: Iterator[int], count: int) -> tuple[float, float]:
    """Send timed messages; give messages a second, and CPU µs for each."""
    client = broker.Client(process.port)
    cpu, started = process.cpu(), time.perf_counter()
    frames = frames_of(dues_ms, count)
    sent = done = 0
    while done < count:
        batch = [next(frames) for _ in range(min(256 - (sent - done), count - sent))]
        if batch:
            client.socket.sendall(b"".join(batch))
            sent += len(batch)
        done += client.receive()
    client.socket.close()
    seconds = time.perf_counter() - started
    return count / seconds, (process.cpu() - cpu) / count * 1e6


def settle(process: broker.Process) -> None:
    """Wait until keys are indexed and everything is saved: the broker takes no time any more."""
    deadline = time.perf_counter() + 120.0
    while time.perf_counter() < deadline:
        cpu = process.cpu()
        time.sleep(WINDOW)  # what is looked at: processor time within this much
        if process.cpu() - cpu < 0.01 * WINDOW:
            return
    raise AssertionError("the broker does not come to rest")


def idle(process: broker.Process) -> float:
    """Return the part of a core, in per cent, that a broker takes while nothing happens."""
    settle(process)
    cpu, started = process.cpu(), time.perf_counter()
    time.sleep(MEASURED)  # the measurement itself
    return (process.cpu() - cpu) / (time.perf_counter() - started) * 100


def later(chance: random.Random) -> Iterator[int]:
    start = int(time.time() * 1000) + 3_600_000
    while True:
        yield start + chance.randrange(DAYS_MS)


def soon(first_ms: int, chance: random.Random) -> Iterator[int]:
    while True:
        yield first_ms + chance.randrange(2000)


def delivered(port: int) -> int:
    """Return how many messages have come to their topic."""
    client = broker.Client(port)
    total = 0
    for queue in range(broker.QUEUES):
        fields = {"topic": "orders", "queueId": str(queue)}
        total += int(client.ask(Command.request(30, queue, fields).encode()).ext["offset"])
    client.socket.close()
    return total


def deliver(process: broker.Process, chance: random.Random) -> tuple[float, float]:
    """Deliver messages; return how many per second at best, and CPU µs for each."""
    before = delivered(process.port)
    first_ms = int(time.time() * 1000) + 8000
    load(process, soon(first_ms, chance), DUE)
    # Measured from just before the first is due, so that nothing but deliveries is in it.
    time.sleep(max(0.0, first_ms / 1000 - time.time() - 0.2))
    cpu = process.cpu()
    while delivered(process.port) - before < DUE:
        time.sleep(0.2)  # each look costs the broker, too: few of them
    took = max(2.0, time.time() - first_ms / 1000)
    return DUE / took, (process.cpu() - cpu) / DUE * 1e6


def row(name: str, *parts: str) -> None:
    print(f"{name:44}" + "".join(f"{part:>16}" for part in parts), flush=True)


def main() -> None:
    many = int(sys.argv[1]) if len(sys.argv) > 1 else MANY
    chance = random.Random(5)
    with tempfile.TemporaryDirectory() as directory:
        process = broker.Process("broker", directory)
        try:
            _, plain = broker.measure(process, broker.send_frames(), 64)
            row("a plain send", f"{plain:.1f} µs CPU")
            load(process, later(chance), FEW)
            memory = process.anonymous()
            row(f"{FEW} wait", f"{idle(process):.2f} % core", f"{memory:.1f} MB")
            rate, cost = load(process, later(chance), many)
            row(
                "a timed send",
                f"{cost:.1f} µs CPU",
                f"{rate:,.0f}/s",
                f"{cost / plain:.2f} × plain",
            )
            settle(process)
            grown = process.anonymous()
            share = (grown - memory) * 1024 * 1024 / many
            row(
                f"{many:,} wait",
                f"{idle(process):.2f} % core",
                f"{grown:.1f} MB",
                f"{share:.1f} B each",
            )
            rate, cost = deliver(process, chance)
            row(f"{DUE:,} of them due in 2 s", f"{cost:.1f} µs CPU", f"{rate:,.0f}/s")
        finally:
            process.stop()
        for how in ("stopped", "killed"):
            process = broker.Process("broker", directory)
            row(f"start after it was {how}", f"{time.perf_counter() - process.started:.2f} s")
            client = broker.Client(process.port)
            assert client.ask(broker.send_frames()[0]).code == 0
            client.socket.close()
            process.child.kill() if how == "stopped" else process.stop()
            process.child.wait(30)


if __name__ == "__main__":
    main()
