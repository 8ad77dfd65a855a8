"""Events that name only what changed are made whole again, whatever order they come in."""

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.balance.story.whole_events import Told, whole_events
from pocketmq.model import MessageQueue, sort_queues
from pocketmq.model.java_strings import java_sorted
from pocketmq.model.rebalance_event import (
    EventWriter,
    Handover,
    RebalanceChange,
    RebalanceEvent,
    read_event,
)

QUEUES = [
    MessageQueue("orders", broker, n) for broker in ("a", "é", "\U0001f40d") for n in range(4)
]
MEMBERS = ["a@1", "b@1", "é@2", "\U0001f40d@3"]
some_queues = st.sets(st.sampled_from(QUEUES)).map(lambda found: tuple(sort_queues(found)))
some_members = st.sets(st.sampled_from(MEMBERS)).map(lambda found: tuple(java_sorted(found)))


@st.composite
def histories(draw: st.DrawFn) -> list[RebalanceEvent]:
    """Events of two members and two topics; mostly each starts with what the last one left."""
    owned: dict[tuple[str, str], tuple[MessageQueue, ...]] = {}
    events = []
    for number in range(draw(st.integers(1, 20))):
        whose = draw(st.sampled_from(MEMBERS[:2])), draw(st.sampled_from(["orders", "bills"]))
        after = draw(some_queues)
        queue = draw(st.sampled_from(QUEUES))
        events.append(
            RebalanceEvent(
                group="shop",
                client_id=whose[0],
                topic=whose[1],
                strategy="AVG",
                trigger="timer",
                started=draw(st.sampled_from([float(number), number + 0.1])),
                members=draw(st.none() | some_members),
                queues=draw(st.none() | some_queues),
                before=draw(st.sampled_from([owned.get(whose, ())] * 5 + [(queue,)])),
                after=after,
                handovers=(Handover(queue=queue, kind="drain"),),
                moved=number,
            )
        )
        owned[whose] = after
    return events


def written(events: list[RebalanceEvent], whole_every: int = 4) -> list[bytes]:
    writers = {member: EventWriter(whole_every) for member in MEMBERS}
    return [writers[event.client_id].written(event) for event in events]


def in_order(events: list[RebalanceEvent]) -> list[RebalanceEvent]:
    return sorted(events, key=lambda event: (event.started, event.client_id, event.topic))


@given(history=histories(), chance=st.randoms(use_true_random=False))
def test_changes_in_any_order_and_twice_lead_to_the_events(
    history: list[RebalanceEvent], chance: random.Random
) -> None:
    told: list[Told] = [read_event(line) for line in written(history)]
    told += [each for each in told if isinstance(each, RebalanceChange) and chance.random() < 0.3]
    chance.shuffle(told)
    whole, alone = whole_events(told)
    assert (in_order(whole), alone) == (in_order(history), [])


@given(history=histories(), missing=st.sets(st.integers(0, 19)))
def test_a_reader_that_misses_some_is_right_about_all_that_it_returns(
    history: list[RebalanceEvent], missing: set[int]
) -> None:
    told = [read_event(line) for n, line in enumerate(written(history)) if n not in missing]
    whole, alone = whole_events(told)
    assert all(event in history for event in whole)
    assert len(whole) + len(alone) == len(told)
    assert all(each in whole for each in told if isinstance(each, RebalanceEvent))


def rebalances(queues: int, count: int) -> list[RebalanceEvent]:
    """One queue changes hands in each event."""
    every = tuple(MessageQueue("orders", f"broker-{n % 4}", n // 4) for n in range(queues))
    every = tuple(sort_queues(every))
    return [
        RebalanceEvent(
            group="shop", client_id="a@1", topic="orders", strategy="AVG", trigger="timer",
            started=float(n), members=("a@1", "b@1"), queues=every,
            before=tuple(q for q in every if q != every[n - 1]),
            after=tuple(q for q in every if q != every[n]),
            revoked=(every[n],), assigned={"broker-0:0": 0},
        )
        for n in range(count)
    ]  # fmt: skip


def test_a_change_is_as_long_as_what_changed() -> None:
    few, many = (written(rebalances(queues, 9), 32) for queues in (10, 2_000))
    assert len(many[0]) > 100 * len(few[0])
    assert max(map(len, many[1:])) <= max(map(len, few[1:])) + 20  # digits of queue numbers


def test_a_reader_that_starts_late_is_right_from_the_next_whole_event_on() -> None:
    history = rebalances(8, 8)
    lines = written(history, whole_every=4)
    assert [isinstance(read_event(line), RebalanceEvent) for line in lines] == [n % 4 == 0 for n in range(8)]  # fmt: skip
    whole, alone = whole_events(read_event(line) for line in lines[2:])
    assert whole == history[4:]
    assert [change.started for change in alone] == [2.0, 3.0]


def test_a_gap_is_never_bridged() -> None:
    history = rebalances(8, 7)
    told = [read_event(line) for line in written(history, whole_every=5)]
    whole, alone = whole_events([told[0], *told[2:]])
    assert whole == [history[0], *history[5:]]
    assert [change.started for change in alone] == [2.0, 3.0, 4.0]


def test_the_event_after_one_that_got_lost_is_whole() -> None:
    history = rebalances(8, 3)
    writer = EventWriter(32)
    writer.written(history[0])
    writer.written(history[1])
    writer.lost(history[1])
    assert read_event(writer.written(history[2])) == history[2]


def test_lists_that_are_equal_are_kept_once() -> None:
    whole, _ = whole_events(read_event(line) for line in written(rebalances(8, 8)))
    assert len({id(event.queues) for event in whole}) == 1
    assert len({id(event.members) for event in whole}) == 1


def test_a_change_is_never_taken_for_a_whole_event() -> None:
    """Readers of before it existed report it; they must not see a member without queues."""
    change = written(rebalances(8, 2))[1]
    with pytest.raises(msgspec.ValidationError, match="missing required field"):
        RebalanceEvent.from_json(change)


def test_the_form_of_a_change_is_fixed() -> None:
    event = rebalances(2, 2)[1]
    change = msgspec.json.decode(written(rebalances(2, 2))[1])
    told = change.pop("event")
    assert told == msgspec.json.decode(
        msgspec.structs.replace(event, members=None, queues=None, before=(), after=()).to_json()
    )
    one, two = ({"topic": "orders", "brokerName": f"broker-{n}", "queueId": 0} for n in range(2))
    assert change == {"follows": 0.0, "gained": [one], "lost": [two]}
