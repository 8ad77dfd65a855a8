"""Everything at once on two broker processes, with faults, for as long as one likes.

Plain, timed and transactional producers, push and POP consumers and retention, while one broker is
killed and started again and the other's connections are cut and slowed down. At the end nothing
acknowledged is lost, nothing rolled back was seen, nothing came early, and the broker that lived
through all of it holds no more than before. `POCKETMQ_SOAK_SECONDS` says for how long (8).
"""

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path

import pytest

from pocketmq import (
    ClientOptions,
    Cluster,
    Message,
    MQError,
    PopConsumer,
    Producer,
    PushConsumer,
    ReceivedMessage,
    TransactionState,
)
from tests.cluster.test_overload import memory

SECONDS = float(os.environ.get("POCKETMQ_SOAK_SECONDS", "8"))
PATIENCE = 120.0
PLAIN, TIMED, PAID, NOISE = "plain", "timed", "paid", "noise"
MIB = 1024 * 1024
KEPT = 16 * MIB
SETTINGS = {
    "mappedFileSizeCommitLog": MIB,
    "fileReservedBytes": KEPT,
    "transactionTimeOut": 1000,
    "transactionCheckInterval": 1000,
}
RANDOM = random.Random(3).randbytes(256 * 1024)  # what could be compressed would fill nothing
BEATS = ClientOptions(heartbeat_interval=1.0, request_timeout=2.0, start_wait=60.0)


class Ledger:
    """What was promised to producers, and what consumers saw. Any thread may write."""

    def __init__(self) -> None:
        self.promised: dict[str, set[str]] = {PLAIN: set(), TIMED: set(), PAID: set()}
        self.rolled_back: set[str] = set()
        self.pushed: Counter[str] = Counter()
        self.popped: Counter[str] = Counter()
        self.early: list[str] = []
        self.refused: Counter[str] = Counter()
        self.failures: list[BaseException] = []

    def missing(self) -> dict[str, set[str]]:
        """Return what was promised and has not been seen, by who should have."""
        every = set().union(*self.promised.values())
        return {"push": every - set(self.pushed), "pop": self.promised[PLAIN] - set(self.popped)}

    def least(self) -> int:
        """Return how many there are of what there is least of: what says something needs some."""
        return min(len(self.rolled_back), *map(len, self.promised.values()))

    def behind(self) -> int:
        return sum(map(len, self.missing().values()))

    def took(self, message: ReceivedMessage, seen: Counter[str]) -> None:
        """Note a message that a consumer got."""
        key = message.keys[0]
        if message.topic == TIMED:
            due = int(message.body)
            if message.store_timestamp_ms < due or time.time() * 1000 < due:
                self.early.append(key)
        seen[key] += 1


def fate(number: int) -> TransactionState:
    """Return how a transaction ends; a third is not known until the broker asks."""
    return (TransactionState.COMMIT, TransactionState.ROLLBACK)[number % 2]


def asked(message: ReceivedMessage) -> TransactionState:
    return fate(int(message.keys[0].partition("-")[2]))


class Works:
    """What the threads of a soak do, one turn each."""

    def __init__(self, address: str, ledger: Ledger, stack: ExitStack) -> None:
        self.ledger = ledger
        self._plain = stack.enter_context(Producer(address, group="plain", options=BEATS))
        self._timed = stack.enter_context(Producer(address, group="timed", options=BEATS))
        self._noise = stack.enter_context(Producer(address, group="noise", options=BEATS))
        self._paying = stack.enter_context(
            Producer(address, group="paid", check=asked, options=BEATS)
        )
        self._popping = PopConsumer(address, group="pop", consume_from="first", options=BEATS)
        stack.enter_context(self._popping.subscribe(PLAIN))

    def plain(self, number: int) -> None:
        key = f"{PLAIN}-{number}"
        if number % 10:
            self._plain.send(Message(PLAIN, b"x" * 200, keys=[key]))
            self.ledger.promised[PLAIN].add(key)
        else:
            keys = [f"{key}.{each}" for each in range(20)]
            self._plain.send_batch([Message(PLAIN, b"y", keys=[each]) for each in keys])
            self.ledger.promised[PLAIN].update(keys)

    def timed(self, number: int) -> None:
        key, moment = f"{TIMED}-{number}", time.time() + (0.3, 1.0, 2.5)[number % 3]
        body = b"%d" % int(moment * 1000)
        self._timed.send(Message(TIMED, body, keys=[key]), deliver_at=moment)
        self.ledger.promised[TIMED].add(key)

    def paid(self, number: int) -> None:
        key, end = f"{PAID}-{number}", fate(number)

        def local(_: Message, __: str) -> TransactionState:
            if end is TransactionState.ROLLBACK:
                self.ledger.rolled_back.add(key)
            return TransactionState.UNKNOWN if number % 3 == 0 else end

        self._paying.send_in_transaction(Message(PAID, b"z", keys=[key]), local)
        if end is TransactionState.COMMIT:
            self.ledger.promised[PAID].add(key)

    def noise(self, _: int) -> None:
        """Fill the log, so that its oldest files go; never faster than consumers follow."""
        if self.ledger.behind() < 300:
            self._noise.send(Message(NOISE, RANDOM[: 16 * 1024]))

    def pop(self, _: int) -> None:
        messages = self._popping.receive(32, invisible=5.0, timeout=0.5)
        for message in messages:
            self.ledger.took(message, self.ledger.popped)
        self._popping.ack(messages)

    def fill(self) -> None:
        """Bring both logs to the size at which their oldest files go."""
        queues = self._noise.queues(NOISE, timeout=60.0)
        for number in range(2 * (KEPT + 4 * MIB) // (256 * 1024)):
            queue = queues[number % len(queues)]
            for _ in range(10):  # a disk that has much to write may need longer than a request has
                with suppress(MQError):
                    self._noise.send(Message(NOISE, RANDOM), queue=queue)
                    break


def repeat(
    work: Callable[[int], None], ledger: Ledger, pause: float, stop: threading.Event
) -> None:
    """Work until told to stop; what a fault costs is counted, not promised."""
    try:
        for number in count(1):
            if stop.wait(pause):
                return
            try:
                work(number)
            except MQError as error:
                ledger.refused[type(error).__name__] += 1
    except BaseException as error:  # noqa: BLE001 - shown by the test
        ledger.failures.append(error)


@contextmanager
def working(ledger: Ledger, *works: tuple[Callable[[int], None], float]) -> Iterator[None]:
    stop = threading.Event()
    threads = [
        threading.Thread(target=repeat, args=(work, ledger, pause, stop)) for work, pause in works
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(PATIENCE)


def wait_for(condition: Callable[[], object], what: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain: {what()}"
        time.sleep(0.02)


def cut_connections(cluster: Cluster, broker: str) -> None:
    """Reset all that clients have with a broker."""

    async def cut() -> None:
        cluster._cluster._supervisor.network(broker)._front.cut(reset=True)

    cluster._running.call(cut())


class Figures:
    """What a broker's process holds."""

    def __init__(self, cluster: Cluster, broker: str, data: Path) -> None:
        pid = cluster.brokers[broker].pid
        assert pid is not None
        self.memory = memory(pid)
        self.files = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        self.log = sum(each.stat().st_size for each in (data / broker).glob("commitlog/*"))

    def __repr__(self) -> str:
        return f"{self.memory / MIB:.1f} MiB, {self.files} files, {self.log / MIB:.1f} MiB of log"


def torment(cluster: Cluster, seconds: float) -> int:
    """Kill, cut and slow down at random moments; give how often."""
    chance, until, rounds = random.Random(5), time.monotonic() + seconds, 0
    pause = threading.Event().wait  # random moments, not waits for something
    while time.monotonic() < until:
        rounds += 1
        pause(chance.random())
        cluster.kill("broker-1")
        pause(chance.random())
        cut_connections(cluster, "broker-0")
        pause(chance.random() / 2)
        cluster.restart("broker-1")
        pause(chance.random())
        cluster.slow("broker-0", 0.02)
        pause(chance.random())
        cluster.heal("broker-0")
        cut_connections(cluster, "broker-1")
    return rounds


@pytest.mark.timeout(SECONDS + 240)
@pytest.mark.xdist_group("soak")
def test_everything_at_once_with_faults_loses_nothing_and_grows_nowhere(tmp_path: Path) -> None:
    ledger = Ledger()
    with (
        Cluster(
            brokers=2, data=tmp_path, in_process=False, faults=True, config=SETTINGS
        ) as cluster,
        ExitStack() as stack,
    ):
        for topic in (PLAIN, TIMED, PAID, NOISE):
            cluster.create_topic(topic, 4)
        works = Works(cluster.address, ledger, stack)
        for _ in range(2):
            member = PushConsumer(
                cluster.address, group="push", consume_from="first", options=BEATS
            )
            for topic in (PLAIN, TIMED, PAID):
                member.subscribe(topic, "*", lambda message: ledger.took(message, ledger.pushed))
            stack.enter_context(member)
        works.fill()
        producing = (
            (works.plain, 0.005),
            (works.timed, 0.02),
            (works.paid, 0.02),
            (works.noise, 0.02),
        )
        with working(ledger, (works.pop, 0.0)):
            with working(ledger, *producing):
                rounds = torment(cluster, SECONDS / 3)
                early = Figures(cluster, "broker-0", tmp_path)
                rounds += torment(cluster, SECONDS * 2 / 3)
                wait_for(lambda: ledger.least() > 50, ledger.least)
            wait_for(lambda: ledger.behind() == 0, ledger.missing)
        late = Figures(cluster, "broker-0", tmp_path)
    print(f"{rounds} rounds of faults, {dict(ledger.refused)} refused; {early!r}, then {late!r}")
    print({topic: len(keys) for topic, keys in ledger.promised.items()}, len(ledger.rolled_back))
    assert ledger.failures == []
    assert ledger.rolled_back & set(ledger.pushed) == set()
    assert ledger.early == []
    assert late.memory < early.memory + 16 * MIB
    assert late.files < early.files + 16
    assert late.log <= KEPT + 8 * MIB
