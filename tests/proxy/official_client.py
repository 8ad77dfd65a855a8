"""Stories of Apache's own Python client, unmodified, each in a process of its own.

That client keeps an event loop and threads for the whole process, so it shares none with pytest. A
story prints `polls` when its consumer was started, and continues with a line on its input.

python -m tests.proxy.official_client STORY ADDRESS
"""

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import rocketmq

PATIENCE = 40.0
_UNKNOWN = rocketmq.TransactionResolution.TRANSACTION_RESOLUTION_UNSPECIFIED


def message(topic: str, body: bytes, **fields: Any) -> Any:
    made: Any = rocketmq.Message()
    made.topic, made.body = topic, body
    for name, value in fields.items():
        setattr(made, name, value)
    return made


class Heard(rocketmq.MessageListener):  # type: ignore[misc]
    """Remembers what it is given, and fails for some bodies."""

    def __init__(self, *failing: bytes) -> None:
        self.bodies: list[bytes] = []
        self._failing = failing
        self._changed = threading.Condition()

    def consume(self, received: Any) -> Any:
        with self._changed:
            self.bodies.append(received.body)
            self._changed.notify_all()
        failed = received.body in self._failing
        return rocketmq.ConsumeResult.FAILURE if failed else rocketmq.ConsumeResult.SUCCESS

    def wait(self, count: int) -> list[bytes]:
        """Return what came, when it is so much."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.bodies) >= count, PATIENCE), self.bodies
            return list(self.bodies)


class Commits(rocketmq.TransactionChecker):  # type: ignore[misc]
    """Commits what nobody ends; the broker may also ask about what is about to be ended."""

    def check(self, asked: Any) -> Any:
        return rocketmq.TransactionResolution.COMMIT if asked.body == b"orphan" else _UNKNOWN


@contextmanager
def started(client: Any) -> Iterator[Any]:
    client.startup()
    try:
        yield client
    finally:
        client.shutdown()


def polls() -> None:
    """Wait until the test has seen that a consumer receives."""
    print("polls", flush=True)
    assert sys.stdin.readline()


def simple(own: Any) -> None:
    """A simple consumer receives what a producer sends."""
    with (
        started(rocketmq.Producer(own, ("normal",))) as producer,
        started(rocketmq.SimpleConsumer(own, "g")) as consumer,
    ):
        consumer.subscribe("normal")
        sent = [producer.send(message("normal", b"%d" % n, tag="t")) for n in range(5)]
        got: dict[str, bytes] = {}
        deadline = time.monotonic() + PATIENCE
        while len(got) < 5 and time.monotonic() < deadline:
            for each in consumer.receive(32, 10):
                got[each.message_id] = each.body
                consumer.ack(each)
        assert sorted(got.values()) == [b"0", b"1", b"2", b"3", b"4"], got
        assert set(got) == {each.message_id for each in sent}


def push(own: Any) -> None:
    """A push consumer gets delayed and transactional messages."""
    heard = Heard()
    topics = {name: rocketmq.FilterExpression() for name in ("normal", "delay", "tx")}
    with (
        started(rocketmq.PushConsumer(own, "g", heard, topics)),
        started(rocketmq.Producer(own, topics, checker=Commits())) as producer,
    ):
        polls()
        producer.send(message("normal", b"now"))
        due = int(time.time()) + 4  # as late as that, so that it can be recalled before
        producer.send(message("delay", b"late", delivery_timestamp=due))
        recalled = producer.send(message("delay", b"recalled", delivery_timestamp=due))
        producer.recall_message("delay", recalled.recall_handle)
        for body in (b"commit", b"rollback", b"orphan"):
            transaction = producer.begin_transaction()
            producer.send(message("tx", body), transaction)
            if body == b"commit":
                transaction.commit()
            elif body == b"rollback":
                transaction.rollback()
        assert sorted(heard.wait(4)) == [b"commit", b"late", b"now", b"orphan"]
        assert time.time() >= due


def ordered(own: Any) -> None:
    """A message group keeps its order through retries."""
    heard = Heard(b"0")
    topics = {"fifo": rocketmq.FilterExpression()}
    with (
        started(rocketmq.PushConsumer(own, "ordered", heard, topics)),
        started(rocketmq.Producer(own, topics)) as producer,
    ):
        polls()
        for number in range(4):
            producer.send(message("fifo", b"%d" % number, message_group="customer-7"))
        assert heard.wait(5) == [b"0", b"0", b"1", b"2", b"3"]


STORIES: dict[str, Callable[[Any], None]] = {"simple": simple, "push": push, "ordered": ordered}


def main() -> None:
    logging.getLogger("rocketmq").setLevel(logging.CRITICAL)
    name, address = sys.argv[1:]
    STORIES[name](rocketmq.ClientConfiguration(address, rocketmq.Credentials("ak", "sk")))


if __name__ == "__main__":
    main()
