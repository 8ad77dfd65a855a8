"""The adaptive producer before two Java brokers, one of which is sick for a while."""

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

import pocketmq as mq
from tests.interop.jvm import Jars
from tests.interop.rows import Row

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]

SICK, WELL = "broker-a", "broker-b"
WINDOW = 100
FAIR = 0.3
"""The least part of the messages that each of two brokers gets which are equally well."""
PATIENCE = 60.0
"""Seconds; how soon it is on a quiet machine, `benchmarks.adaptive` measures."""


@pytest.fixture(scope="module")
def row(jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Row]:
    """Yield two brokers that are both well at the end of each test."""
    with ExitStack() as stack:
        yield Row(jars, tmp_path_factory.mktemp("row"), stack, ("ours", "java"), SICK, WELL)


class Sending:
    """A caller that sends one message after another; an error ends the test."""

    def __init__(self, producer: mq.Producer, topic: str) -> None:
        self._producer = producer
        self._topic = topic
        self.places: list[str] = []
        """The broker of each message."""

    def until(self, reached: Callable[[], bool], what: str) -> None:
        """Send until something is reached."""
        began = time.monotonic()
        while not reached():
            assert time.monotonic() < began + PATIENCE, f"sent in vain for {what}"
            receipt = self._producer.send(mq.Message(self._topic, b"x"))
            self.places.append(receipt.queue.broker_name)

    def for_messages(self, count: int) -> Counter[str]:
        """Send so many; return how many each broker got."""
        first = len(self.places)
        self.until(lambda: len(self.places) == first + count, f"{count} messages")
        return Counter(self.places[first:])

    def is_fair(self, first: int) -> bool:
        """Return whether both brokers got their part of the last messages since `first`."""
        last = self.places[first:][-WINDOW:]
        least = min(last.count(SICK), last.count(WELL))
        return len(last) == WINDOW and least >= FAIR * WINDOW


@contextmanager
def four_fifths_stopped(row: Row, broker: str) -> Iterator[None]:
    """Let a broker's process run for 10 ms of every 50."""
    over = threading.Event()

    def hold() -> None:
        while not over.wait(0.010):
            row.signal(broker, signal.SIGSTOP)
            over.wait(0.040)
            row.signal(broker, signal.SIGCONT)

    holding = threading.Thread(target=hold)
    holding.start()
    try:
        yield
    finally:
        over.set()
        holding.join()
        row.signal(broker, signal.SIGCONT)


@pytest.mark.line("5.x")  # how long a stopped process takes does not depend on its release
def test_a_broker_that_stops_costs_no_message_and_is_back_when_it_goes_on(row: Row) -> None:
    row.create_topic("stopping", 4)
    with mq.Producer(row.address, group="shop", queue_choice="adaptive") as producer:
        sending = Sending(producer, "stopping")
        sending.until(lambda: sending.is_fair(0), "equal parts")
        row.signal(SICK, signal.SIGSTOP)
        try:
            stopped = sending.for_messages(300)
        finally:
            row.signal(SICK, signal.SIGCONT)
        assert stopped[SICK] <= 5, "what it had taken in when it stopped"
        again = len(sending.places)
        sending.until(lambda: sending.is_fair(again), "equal parts again")


def test_a_broker_that_is_killed_costs_no_message_and_is_back_when_it_runs_again(row: Row) -> None:
    row.create_topic("killed", 4)
    with mq.Producer(row.address, group="shop", queue_choice="adaptive") as producer:
        sending = Sending(producer, "killed")
        sending.until(lambda: sending.is_fair(0), "equal parts")
        row.kill(SICK)
        assert sending.for_messages(300)[SICK] == 0
        row.restart(SICK)
        again = len(sending.places)
        sending.until(lambda: sending.is_fair(again), "equal parts again")


@pytest.mark.line("5.x")  # how long a stopped process takes does not depend on its release
def test_a_slow_broker_gets_few_messages_and_its_part_when_it_is_well(row: Row) -> None:
    row.create_topic("slow", 4)
    with mq.Producer(row.address, group="shop", queue_choice="adaptive") as producer:
        sending = Sending(producer, "slow")
        sending.until(lambda: sending.is_fair(0), "equal parts")
        with four_fifths_stopped(row, SICK):
            sending.for_messages(100)
            slow = sending.for_messages(400)
        assert slow[SICK] < 400 * FAIR / 2
        again = len(sending.places)
        sending.until(lambda: sending.is_fair(again), "equal parts again")
