"""Apache's own Python client, unmodified, on an embedded cluster."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.proxy.peers import PATIENCE, QUICK, Served, serving

rocketmq: Any = pytest.importorskip("rocketmq")

logging.getLogger("rocketmq").setLevel(logging.CRITICAL)


def configuration(served: Served) -> Any:
    return rocketmq.ClientConfiguration(served.proxy.address, rocketmq.Credentials("ak", "sk"))


def message(topic: str, body: bytes, **fields: Any) -> Any:
    made = rocketmq.Message()
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
            assert self._changed.wait_for(lambda: len(self.bodies) >= count, 2 * PATIENCE)
            return list(self.bodies)


class Commits(rocketmq.TransactionChecker):  # type: ignore[misc]
    def check(self, _: Any) -> Any:
        return rocketmq.TransactionResolution.COMMIT


@contextmanager
def started(client: Any) -> Iterator[Any]:
    client.startup()
    try:
        yield client
    finally:
        client.shutdown()


async def run(story: Callable[[Served], None], **settings: Any) -> None:
    """Run a blocking story in a thread, while the cluster serves on this loop."""
    async with serving(**settings) as served:
        await served.group("ordered", consume_message_orderly=True, retry_max_times=1)
        await asyncio.to_thread(story, served)


def test_a_simple_consumer_receives_what_a_producer_sends() -> None:
    def story(served: Served) -> None:
        own = configuration(served)
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
            assert sorted(got.values()) == [b"0", b"1", b"2", b"3", b"4"]
            assert set(got) == {each.message_id for each in sent}

    asyncio.run(run(story, limits=QUICK))


def test_a_push_consumer_gets_delayed_and_transactional_messages() -> None:
    def story(served: Served) -> None:
        own, heard = configuration(served), Heard()
        topics = {name: rocketmq.FilterExpression() for name in ("normal", "delay", "tx")}
        with (
            started(rocketmq.PushConsumer(own, "g", heard, topics)),
            started(rocketmq.Producer(own, topics, checker=Commits())) as producer,
        ):
            polled(served, "g", *topics)
            producer.send(message("normal", b"now"))
            due = int(time.time()) + 2
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

    asyncio.run(run(story, transactionCheckInterval=500, transactionTimeOut=500))


def test_a_message_group_keeps_its_order_through_retries_and_dead_letters() -> None:
    def story(served: Served) -> None:
        own, heard = configuration(served), Heard(b"0")
        topics = {"fifo": rocketmq.FilterExpression()}
        with (
            started(rocketmq.PushConsumer(own, "ordered", heard, topics)),
            started(rocketmq.Producer(own, topics)) as producer,
        ):
            polled(served, "ordered", "fifo")
            for number in range(4):
                producer.send(message("fifo", b"%d" % number, message_group="customer-7"))
            assert heard.wait(5) == [b"0", b"0", b"1", b"2", b"3"]
        dead = asyncio.run_coroutine_threadsafe(
            served.admin.messages.dead_letters("ordered"), served.loop
        ).result(PATIENCE)
        assert [each.body for each in dead.messages] == [b"0"]

    asyncio.run(run(story))


def polled(served: Served, group: str, *topics: str) -> None:
    """Wait until a push consumer receives from its topics."""
    for topic in topics:
        asyncio.run_coroutine_threadsafe(served.polled(topic, group), served.loop).result(PATIENCE)
