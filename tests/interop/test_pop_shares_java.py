"""Java's push consumer in POP mode and our POP consumer in one group: each gets its share."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pocketmq.client.pop.consumer import PopConsumer
from pocketmq.embedded import Cluster
from pocketmq.model import ConsumeFromWhere
from tests.client.pop.turns import Turns
from tests.interop.groups import Member
from tests.interop.java_broker import JavaBroker, java_brokers
from tests.interop.jvm import Jars, wait_until

pytestmark = [pytest.mark.java, pytest.mark.line("5.x"), pytest.mark.timeout(600)]

NAME = "shared"
TURNS = 24
"""Messages sent to each of two brokers."""
PATIENCE = 20.0


@contextmanager
def _own_brokers(home: Path) -> Iterator[JavaBroker]:
    with Cluster(brokers=2, data=home / "data", in_process=False) as cluster:
        yield JavaBroker(
            cluster.address, {name: each.address for name, each in cluster.brokers.items()}
        )


@pytest.mark.parametrize("make", ["java", "ours"])
def test_a_pop_consumer_of_two_brokers_gets_its_share_beside_javas_push_consumer(
    jars: Jars, tmp_path: Path, make: str
) -> None:
    two = java_brokers(jars, tmp_path, "b-0", "b-1") if make == "java" else _own_brokers(tmp_path)
    with two as brokers:
        brokers.create_topic(NAME, 1)
        turns = Turns(NAME, brokers.brokers, PATIENCE)
        turns.push_consumers_pop()
        words = [brokers.address, NAME, NAME, "*", "a", "1"]
        with Member(jars.compiled(tmp_path, "PopMember", *words), tmp_path) as theirs:
            wait_until(lambda: "started" in theirs.lines, "the member")
            wait_until(turns.held, "its pops to be held")
            ours, sent = asyncio.run(_story(turns, brokers, theirs))
            bodies = ours + Counter(body for _, body in theirs.got)
    assert set(bodies.values()) == {1}
    assert bodies.total() == sent
    assert sent / 4 <= ours.total() <= sent * 3 / 4, ours.total()


async def _story(turns: Turns, brokers: JavaBroker, theirs: Member) -> tuple[Counter[str], int]:
    first = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    consumer = PopConsumer(brokers.address, group=NAME, consume_from=first)
    ours: Counter[str] = Counter()

    async def work() -> None:
        while True:
            messages = await consumer.receive(timeout=1)
            ours.update(message.body.decode() for message in messages)
            await consumer.ack(messages)

    turns.members = 2
    async with consumer.subscribe(NAME):
        working = asyncio.ensure_future(work())
        try:
            sent = await turns.send(brokers.address, TURNS, lambda: ours.total() + len(theirs.got))
        finally:
            working.cancel()
            await asyncio.wait({working})
    return ours, sent
