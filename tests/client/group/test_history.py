"""Rebalance events: what they say, how many are kept, and how they are published."""

import msgspec
import pytest

from pocketmq.balance.allocation import Average
from pocketmq.balance.story.whole_events import whole_events
from pocketmq.client.group.history import EVENT_TAG, RebalanceHistory
from pocketmq.errors import NameInvalid
from pocketmq.model import MessageQueue
from pocketmq.model.rebalance_event import (
    EVENT_VERSION,
    RebalanceChange,
    RebalanceEvent,
    read_event,
)
from tests.client.group.groups import cluster, member, queues_of, shared
from tests.loops import until

AVG = Average()
QUEUE = MessageQueue("orders", "broker-0", 1)


def event(topic: str = "orders", **fields: object) -> RebalanceEvent:
    told = {"group": "billing", "client_id": "a", "strategy": "AVG", "trigger": "timer"}
    return msgspec.convert({**told, "topic": topic, "started": 1.5, **fields}, RebalanceEvent)


def test_the_form_of_an_event_is_fixed() -> None:
    """Pipelines read these: a change that is not an addition needs a new version."""
    told = event(members=("a", "b"), before=(QUEUE,), assigned={"broker-0:2": 17}, runs=3)
    assert EVENT_VERSION == 2
    assert msgspec.json.decode(told.to_json()) == {
        "version": 2,
        "group": "billing",
        "client_id": "a",
        "topic": "orders",
        "strategy": "AVG",
        "trigger": "timer",
        "started": 1.5,
        "asked": 0.0,
        "carried_out": 0.0,
        "members": ["a", "b"],
        "queues": None,
        "before": [{"topic": "orders", "brokerName": "broker-0", "queueId": 1}],
        "after": [],
        "revoked": [],
        "assigned": {"broker-0:2": 17},
        "skipped": {},
        "balanced": True,
        "kept_because": None,
        "mode": "java",
        "handovers": [],
        "moved": None,
        "minimum": None,
        "runs": 3,
    }
    assert RebalanceEvent.from_json(told.to_json()) == told


def test_an_event_of_a_later_version_can_be_read() -> None:
    text = event().to_json().replace(b'"version":2', b'"version":3,"weather":"fine"')
    assert RebalanceEvent.from_json(text).version == 3


def test_the_history_forgets_the_oldest_and_counts_what_repeats() -> None:
    history = RebalanceHistory(3)
    heard: list[RebalanceEvent] = []
    history.listen(heard.append)
    for number in range(3):
        history.record(event(assigned={"broker-0:0": number}, after=(QUEUE,)))
    for _ in range(5):
        history.record(event(before=(QUEUE,), after=(QUEUE,)))
    assert [(e.assigned, e.runs) for e in history.events] == [
        ({"broker-0:0": 0}, 1),
        ({"broker-0:0": 1}, 1),
        ({"broker-0:0": 2}, 6),
    ]
    history.record(event("refunds"))
    assert [e.topic for e in history.events] == ["orders", "orders", "refunds"]
    assert len(heard) == 4


async def test_a_change_is_described_from_both_sides() -> None:
    async with cluster(1, 4) as running, member(running.address, "a") as a:
        await shared([a], queues_of(1, 4), AVG)
        async with member(running.address, "b") as b:
            await shared([a, b], queues_of(1, 4), AVG)
            lost = next(e for e in reversed(a.consumer.history) if e.revoked)
            won = next(
                e for e in reversed(b.consumer.history) if e.assigned and e.topic == "orders"
            )
        first, last = tuple(queues_of(1, 4)[:2]), tuple(queues_of(1, 4)[2:])
        assert (lost.before, lost.after, lost.revoked) == ((*first, *last), first, last)
        assert (won.before, won.after) == ((), last)
        assert won.assigned == {"broker-0:2": 0, "broker-0:3": 0}
        assert lost.members == won.members == (a.client_id, b.client_id)
        assert (won.strategy, won.group, won.balanced) == ("AVG", "billing", True)
        assert b.consumer.history[-1].trigger == "stop"
        assert b.consumer.history[-1].after == ()


async def test_events_are_published_to_a_topic_on_request() -> None:
    async with (
        cluster(1, 4, "orders", "rebalances") as running,
        member(running.address, "reader", group="pipeline", topics=("rebalances",)) as r,
    ):
        async with member(running.address, "a") as a:
            await shared([a], queues_of(1, 4), AVG)  # before another takes half of them
            async with member(running.address, "b") as b:
                a.consumer.publish_history("rebalances")
                await shared([a, b], queues_of(1, 4), AVG)
        await until(lambda: len(r.bodies) == len(a.consumer.history), "all events, in any order")
        told = [RebalanceEvent.from_json(body) for body in r.bodies]
        orders = sorted((e for e in told if e.topic == "orders"), key=lambda e: e.started)
        assert orders[0].assigned.keys() == {f"broker-0:{each}" for each in range(4)}
        assert orders[-1].trigger == "stop"
        assert {e.client_id for e in told} == {a.client_id}
        assert {(m.tag, tuple(m.keys)) for m in r.got} == {(EVENT_TAG, ("billing",))}
        with pytest.raises(NameInvalid):
            r.consumer.publish_history("not a topic")


async def test_events_are_published_as_changes_on_request() -> None:
    async with (
        cluster(1, 4, "orders", "rebalances") as running,
        member(running.address, "reader", group="pipeline", topics=("rebalances",)) as r,
    ):
        async with member(running.address, "a") as a:
            a.consumer.publish_history("rebalances", changes=True)
            await shared([a], queues_of(1, 4), AVG)
            async with member(running.address, "b") as b:
                await shared([a, b], queues_of(1, 4), AVG)
            await shared([a], queues_of(1, 4), AVG)
        await until(lambda: len(r.bodies) == len(a.consumer.history), "all events, in any order")
        told = [read_event(body) for body in r.bodies]
        assert any(isinstance(each, RebalanceChange) and each.lost for each in told)
        whole, alone = whole_events(told)
        assert not alone
        by_time = sorted(a.consumer.history, key=lambda event: event.started)
        # An event that repeats is counted in memory only.
        assert whole == [msgspec.structs.replace(event, runs=1) for event in by_time]
