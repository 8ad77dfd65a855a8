"""What a new user waits for: the first message of each consumer, a command, a hundred tests.

python -m benchmarks.first_hour

Times are the medians of several rounds on a warm local cluster, each beside something that cannot
be avoided: one message sent and acknowledged, or an empty Python program. A message waits in the
topic before the consumer starts.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tests.server_process import POCKETMQ

from benchmarks.startup import empty_program
from pocketmq import Cluster, Message, Producer, PullConsumer, PushConsumer

ROUNDS = 11
TESTS = 100
TEST = """
import threading
import pytest
from pocketmq import Message, Producer, PushConsumer

@pytest.mark.parametrize("number", range({tests}))
def test_an_order_is_billed(rocketmq, rocketmq_topic, number):
    billed = threading.Event()
    consumer = PushConsumer(rocketmq.address, group=f"billing-{{number}}", consume_from="first")
    consumer.subscribe(rocketmq_topic, "*", lambda message: billed.set())
    with consumer, Producer(rocketmq.address, group="shop") as producer:
        producer.send(Message(rocketmq_topic, b"42 EUR"))
        assert billed.wait(30)
"""
_numbers = count()


def pushed(address: str) -> float:
    """Return the seconds from a push consumer's start to its first message."""
    came = threading.Event()
    consumer = PushConsumer(address, group=f"push-{next(_numbers)}", consume_from="first")
    consumer.subscribe("orders", "*", lambda _: came.set())
    began = time.monotonic()
    with consumer:
        came.wait()
        return time.monotonic() - began


def polled(address: str) -> float:
    """Return the seconds from a pull consumer's start to its first message."""
    consumer = PullConsumer(address, group=f"pull-{next(_numbers)}", consume_from="first")
    consumer.subscribe("orders", "*")
    began = time.monotonic()
    with consumer:
        while not consumer.poll():
            pass
        return time.monotonic() - began


def sent(address: str) -> float:
    """Return the seconds of one message on a connection that is open."""
    with Producer(address, group="shop") as producer:
        producer.send(Message("orders", b"42 EUR"))
        began = time.monotonic()
        producer.send(Message("orders", b"42 EUR"))
        return time.monotonic() - began


def printed(address: str) -> float:
    """Return the seconds from the command's start to its first line."""
    group = f"command-{next(_numbers)}"
    words = ["consume", "-n", address, "-t", "orders", "-g", group, "--from", "first"]
    began = time.monotonic()
    done = subprocess.run([str(POCKETMQ), *words, "--count", "1"], check=True, capture_output=True)
    assert done.stdout
    return time.monotonic() - began


def a_hundred_tests(address: str) -> float:
    """Return the seconds of pytest with tests that each send and consume with a new group."""
    del address  # they have a cluster of their own
    with TemporaryDirectory() as folder:
        file = Path(folder) / "test_shop.py"
        file.write_text(TEST.format(tests=TESTS))
        began = time.monotonic()
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file)],
            cwd=folder, check=True, capture_output=True,
        )  # fmt: skip
        return time.monotonic() - began


def _median(measure: Callable[[str], float], address: str, rounds: int = ROUNDS) -> float:
    return median(measure(address) for _ in range(rounds))


def main() -> None:
    with Cluster(in_process=False) as cluster:
        cluster.create_topic("orders", 8)
        one = _median(sent, cluster.address)
        plain = median(empty_program() for _ in range(ROUNDS))
        print(f"{'':<44}{'ms':>10}{'ratio':>10}")
        print(f"{'one message sent':<44}{1000 * one:>10.2f}{1:>10}")
        for title, measure in (
            ("push consumer, start to first message", pushed),
            ("pull consumer, start to first message", polled),
        ):
            took = _median(measure, cluster.address)
            print(f"{title:<44}{1000 * took:>10.2f}{took / one:>10.1f}")
        print(f"{'an empty Python program':<44}{1000 * plain:>10.2f}{1:>10}")
        for title, measure, rounds in (
            ("pocketmq consume, command to first message", printed, ROUNDS),
            (f"pytest, {TESTS} tests that send and consume", a_hundred_tests, 3),
        ):
            took = _median(measure, cluster.address, rounds)
            print(f"{title:<44}{1000 * took:>10.2f}{took / plain:>10.1f}")


if __name__ == "__main__":
    main()
