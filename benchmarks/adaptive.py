"""Sick brokers: what callers of a producer notice, with Java's choice of queues and the adaptive.

python -m benchmarks.adaptive [faults, such as killed,stopped] [brokers, such as 2,8]

Brokers are processes, each behind a proxy that adds 2 ms to every response. Four producers send
with 100 messages/s each: both choices, blocking (8 threads) and asyncio. All see the same fault of
broker 0 at the same time, for 5 s. "Healthy" is the p99 before the fault. "Share" is broker 0's
part of the messages that were stored: while it is sick, and from 5 s after it is well again
("fair": what it should be then). "Twice" are messages that brokers have stored more than once.
"""

import asyncio
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pocketmq as mq
from benchmarks._adaptive_process import Row
from benchmarks._fault_proxy import SlowProxy
from pocketmq import aio
from pocketmq.model import TopicConfig

RATE = 100.0
DELAY = 0.002
WARM, HEALTHY, SICK, AFTER, REST = 1.5, 3.0, 5.0, 5.0, 3.0
"""Seconds: until it counts, until the fault, of the fault, until shares are fair, and from then."""
HERE, SEEN = "127.0.0.1", "127.0.1.1"  # brokers listen here; clients see the proxies there


class SickBroker:
    """A broker process, and the proxy in front of it."""

    def __init__(self, name: str, namesrv: str, directory: Path) -> None:
        self._name, self._namesrv, self._directory = name, namesrv, directory
        self._port = 0

    async def start(self) -> None:
        self._run()
        self.proxy = SlowProxy(SEEN, self._port, DELAY)
        await self.proxy.start()

    def _run(self) -> None:
        settings = {
            "brokerName": self._name, "namesrvAddr": self._namesrv, "listenPort": str(self._port),
            "bindAddress": HERE, "brokerIP1": SEEN, "diskSpaceWarningLevelRatio": "99",
            "mappedFileSizeCommitLog": str(1 << 24),
        }  # fmt: skip
        command = [sys.executable, "-m", "benchmarks._broker_process", "broker"]
        command += [str(self._directory), *(f"{key}={value}" for key, value in settings.items())]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self._port = int(self.process.stdout.readline().split()[1])

    # Faults: each returns when the broker is well again.

    async def killed(self) -> None:
        self.process.kill()
        self.process.wait()
        await asyncio.sleep(SICK)
        await asyncio.to_thread(self._run)

    async def stopped(self) -> None:
        await self._stop_for(SICK)

    async def _stop_for(self, seconds: float) -> None:
        self.process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(seconds)
        self.process.send_signal(signal.SIGCONT)

    async def slow5(self) -> None:
        await self._slower(5)

    async def slow20(self) -> None:
        await self._slower(20)

    async def _slower(self, times: int) -> None:
        self.proxy.delay = DELAY * times
        await asyncio.sleep(SICK)
        self.proxy.delay = DELAY

    async def gray(self) -> None:
        self.proxy.refused = 0.5
        await asyncio.sleep(SICK)
        self.proxy.refused = 0.0

    async def flapping(self) -> None:
        for _ in range(3):
            await self._stop_for(SICK / 6)
            await asyncio.sleep(SICK / 6)

    async def close(self) -> None:
        await self.proxy.stop()
        self.process.terminate()
        self.process.wait(30)


FAULTS: dict[str, Callable[[SickBroker], Awaitable[None]]] = {
    "killed": SickBroker.killed, "stopped": SickBroker.stopped, "5 x slow": SickBroker.slow5,
    "20 x slow": SickBroker.slow20, "gray": SickBroker.gray, "flapping": SickBroker.flapping,
}  # fmt: skip


@asynccontextmanager
async def brokers(count: int) -> AsyncIterator[tuple[str, list[SickBroker]]]:
    command = [sys.executable, "-m", "pocketmq", "namesrv", "--port", "0"]
    server = await asyncio.create_subprocess_exec(
        *command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert server.stdout is not None
    namesrv = (await server.stdout.readline()).decode().split("namesrv=")[1].strip()
    fleet: list[SickBroker] = []
    try:
        with tempfile.TemporaryDirectory() as directory:
            for number in range(count):
                name = f"broker-{number}"
                fleet.append(SickBroker(name, namesrv, Path(directory) / name))
                await fleet[-1].start()
            yield namesrv, fleet
            for each in fleet:
                await each.close()
            fleet.clear()
    finally:
        for each in fleet:
            each.process.kill()
        server.terminate()
        await server.wait()


async def create(namesrv: str, topics: list[str], count: int) -> None:
    """Create topics on all brokers, and wait until the routes have them."""
    async with aio.Admin(namesrv) as admin:
        while len(places := await admin.brokers.masters()) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        for topic in topics:
            config = TopicConfig(topic_name=topic, read_queue_nums=4, write_queue_nums=4)
            for place in places:
                (await admin.topics.create(config, address=place.address)).some()
        for topic in topics:
            while len((await admin.topics.route(topic)).broker_datas) < count:  # noqa: ASYNC110
                await asyncio.sleep(0.1)


async def story(
    namesrv: str, sick: SickBroker, fault: str, kinds: dict[str, tuple[str, str]]
) -> tuple[dict[str, list[Row]], float, float]:
    """Run all producers while one broker is sick; return their rows, and when it was sick."""
    made = {}
    for topic, (choice, shell) in kinds.items():
        command = [sys.executable, "-m", "benchmarks._adaptive_process", namesrv, choice, shell]
        made[topic] = await asyncio.create_subprocess_exec(
            *command, topic, str(RATE), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, limit=1 << 26,
        )  # fmt: skip
    outputs = []
    for each in made.values():
        assert each.stdout is not None
        await each.stdout.readline()  # it is ready
        outputs.append(asyncio.create_task(each.stdout.read()))
    tell(made.values(), b"begin\n")
    await asyncio.sleep(WARM + HEALTHY)
    began = time.monotonic()
    await FAULTS[fault](sick)
    ended = time.monotonic()
    await asyncio.sleep(AFTER + REST)
    tell(made.values(), b"end\n")
    found = [json.loads(await each) for each in outputs]
    for each in made.values():
        await each.wait()
    return dict(zip(made, found, strict=True)), began, ended


def tell(processes: Iterable[asyncio.subprocess.Process], line: bytes) -> None:
    for each in processes:
        assert each.stdin is not None
        each.stdin.write(line)


def stored_twice(namesrv: str, topic: str) -> int:
    """Read a topic from its start; count the bodies that are in it more than once."""
    counts: Counter[bytes] = Counter()
    with mq.PullConsumer(
        namesrv, group=f"read-{topic}", consume_from="first", poll_timeout=1.0, pull_batch=1024
    ) as consumer:
        consumer.assign(consumer.queues(topic))
        while found := consumer.poll():
            counts.update(message.body for message in found)
    return sum(count > 1 for count in counts.values())


def percentile(rows: list[Row], part: float) -> float:
    took = sorted(each[1] for each in rows)
    return took[int(part * (len(took) - 1))] * 1e3 if took else float("nan")


def share(rows: list[Row]) -> float:
    stored = [each[2] for each in rows if each[2] is not None]
    return stored.count("broker-0") / max(1, len(stored))


def show(label: str, rows: list[Row], began: float, ended: float, twice: int, fair: float) -> None:
    healthy = [each for each in rows if began - HEALTHY <= each[0] < began]
    sick = [each for each in rows if began <= each[0] < ended]
    after = [each for each in rows if each[0] >= ended + AFTER]
    errors = sum(each[2] is None for each in rows)
    usual, now = percentile(healthy, 0.99), percentile(sick, 0.99)
    print(
        f"{label:40}{errors:7}{percentile(sick, 0.5):8.1f}{now:9.1f}{percentile(sick, 1.0):9.0f}"
        f"{usual:9.1f}{now / usual:8.1f}{share(sick):8.0%}{share(after):8.0%}{fair:6.0%}{twice:7}",
        flush=True,
    )


async def compare(count: int, faults: list[str]) -> None:
    kinds = {
        (choice, shell): f"{choice}-{shell}"
        for shell in ("blocking", "asyncio")
        for choice in ("java", "adaptive")
    }
    async with brokers(count) as (namesrv, fleet):
        names = [f"{name}-{number}" for number in range(len(faults)) for name in kinds.values()]
        await create(namesrv, names, count)
        for number, fault in enumerate(faults):
            topics = {f"{name}-{number}": kind for kind, name in kinds.items()}
            rows, began, ended = await story(namesrv, fleet[0], fault, topics)
            reads = [asyncio.to_thread(stored_twice, namesrv, topic) for topic in topics]
            stored = await asyncio.gather(*reads)
            for (topic, (choice, shell)), twice in zip(topics.items(), stored, strict=True):
                label = f"{count} brokers, {fault}, {shell}, {choice}"
                show(label, rows[topic], began, ended, twice, 1 / count)


def main() -> None:
    faults, counts = [*sys.argv[1:], "", ""][:2]
    chosen = [name for name in FAULTS if not faults or name in faults.split(",")]
    print(f"{'':40}{'errors':>7}{'p50 ms':>8}{'p99 ms':>9}{'max ms':>9}{'healthy':>9}"
          f"{'× p99':>8}{'share':>8}{'after':>8}{'fair':>6}{'twice':>7}", flush=True)  # fmt: skip
    for count in [int(each) for each in (counts or "2,8").split(",")]:
        asyncio.run(compare(count, chosen))


if __name__ == "__main__":
    main()
