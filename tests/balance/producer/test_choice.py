"""Choosing a queue with and without a fault table."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.balance.producer.choice import choose_queue, queue_for
from pocketmq.balance.producer.fault_table import FaultTable
from pocketmq.balance.producer.plan import Aim, Send
from pocketmq.balance.producer.selectors import RoundRobin
from pocketmq.balance.profile import V4, V5, Profile
from pocketmq.errors import InvalidInput
from pocketmq.model import MessageQueue
from tests.balance.producer.test_selectors import brokers, indexes
from tests.balance.producer.vectors import TOPIC, named, queues_of

TWO_EACH = queues_of([("a", 2), ("b", 2), ("c", 2)])


def table(profile: Profile, *, bad: str = "", unreachable: str = "") -> FaultTable:
    made = FaultTable(profile, worst_index=-1)
    for broker in bad:
        reachable = broker not in unreachable
        made.update(broker, 0.001, isolate=True, reachable=reachable, now=0.0)
    return made


@pytest.mark.parametrize(
    ("profile", "bad", "unreachable", "avoid", "picked", "index"),
    [
        # start is 0, so the first turn is a1; pauses last until 600 (4.x) and 10 (5.x)
        (V4, "", "", None, ["a", 1], 1),
        (V4, "a", "", None, ["b", 0], 1),  # the scan does not move the turn on
        (V4, "ab", "", None, ["c", 0], 1),
        (V4, "", "", "a", ["a", 1], 1),  # the broker to avoid is not avoided
        (V4, "a", "", "b", ["b", 0], 1),
        (V4, "abc", "", None, ["a", 1], 3),  # the least bad broker, two more turns
        (V5, "", "", None, ["a", 1], 1),
        (V5, "a", "", None, ["b", 0], 2),
        (V5, "", "", "a", ["b", 0], 2),
        (V5, "b", "", "a", ["c", 0], 4),
        (V5, "bc", "", "a", ["b", 0], 8),  # nobody available: the first reachable other
        (V5, "bc", "b", "a", ["c", 0], 10),
        (V5, "bc", "bc", "a", ["a", 1], 13),  # nobody else at all: whoever has the turn
        (V5, "abc", "abc", None, ["a", 1], 13),
    ],
)
def test_the_fault_table_has_its_say_line_by_line(
    profile: Profile,
    bad: str,
    unreachable: str,
    avoid: str | None,
    picked: list[object],
    index: int,
) -> None:
    robin = RoundRobin(0)
    faults = table(profile, bad=bad, unreachable=unreachable)
    assert named(choose_queue(TWO_EACH, robin, faults, now=1.0, avoid=avoid)) == picked
    assert robin.index == index


def test_a_pause_that_is_over_counts_no_more() -> None:
    faults = table(V5, bad="a")
    assert named(choose_queue(TWO_EACH, RoundRobin(0), faults, now=10.0)) == ["a", 1]


@pytest.mark.parametrize(
    ("profile", "faults", "index"),
    [(V4, None, 1), (V5, None, 1), (V4, table(V4), 1), (V5, table(V5), 500)],
)
def test_only_5x_with_a_fault_table_restarts_the_turn(
    profile: Profile, faults: FaultTable | None, index: int
) -> None:
    robin = RoundRobin(0)
    choose_queue(TWO_EACH, robin, faults, restart=lambda _: 499)
    assert robin.index == index


def test_4x_forgets_a_least_bad_broker_that_serves_other_topics_only() -> None:
    faults = table(V4, bad="ab")
    faults.update("elsewhere", 0.0, isolate=True, now=0.0)
    queues = queues_of([("a", 2), ("b", 2)])
    robin = RoundRobin(0)
    assert named(choose_queue(queues, robin, faults, now=1.0)) == ["b", 0]
    assert [health.broker for health in faults.snapshot(1.0)] == ["a", "b"]


def test_4x_leaves_the_list_of_queues_as_it_is() -> None:
    queues = queues_of([("a", 2), ("b", 1)])
    before = list(queues)
    faults = table(V4, bad="ab")
    for _ in range(20):
        choose_queue(queues, RoundRobin(3), faults, now=1.0)
    assert queues == before


def test_without_queues_there_is_nothing_to_choose() -> None:
    with pytest.raises(InvalidInput, match="no queues"):
        choose_queue([], RoundRobin(0))


def test_a_pinned_send_keeps_the_chosen_queue() -> None:
    chosen = MessageQueue(TOPIC, "b", 1)
    send = Send(Aim.CHOSEN_QUEUE, 1.0)
    robin = RoundRobin(0)
    kept = queue_for(send, TWO_EACH, robin, None, now=0, chance=lambda _: 0, chosen=chosen)
    assert kept is chosen
    assert robin.index == 0
    with pytest.raises(InvalidInput, match="pinned to a queue needs that queue"):
        queue_for(send, TWO_EACH, robin, None, now=0, chance=lambda _: 0)


bad_brokers = st.sets(st.sampled_from("abcdef")).map(sorted).map("".join)


@given(
    st.sampled_from([V4, V5]), brokers, indexes, bad_brokers, bad_brokers, st.sampled_from("abcde-")
)
def test_a_chosen_queue_is_always_one_of_the_routes(
    profile: Profile,
    brokers: list[tuple[str, int]],
    at: int,
    bad: str,
    unreachable: str,
    avoid: str,
) -> None:
    queues = queues_of(brokers)
    faults = table(profile, bad=bad, unreachable=unreachable)
    robin = RoundRobin(at)
    for _ in range(4):
        assert choose_queue(queues, robin, faults, now=1.0, avoid=avoid) in queues


@given(brokers, indexes, st.integers(0, 9), st.sampled_from("abcde"))
def test_a_kept_queue_id_never_leads_out_of_the_route(
    brokers: list[tuple[str, int]], at: int, queue_id: int, avoid: str
) -> None:
    queues = queues_of(brokers)
    send = Send(Aim.SAME_QUEUE_ID, 1.0, avoid, queue_id=queue_id)
    picked = queue_for(send, queues, RoundRobin(at), None, now=0.0, chance=lambda _: 0)
    assert picked in queues
    if (picked.broker_name, queue_id) in {(q.broker_name, q.queue_id) for q in queues}:
        assert picked.queue_id == queue_id


@given(brokers, bad_brokers, st.sampled_from("abcde"), st.integers(0, 10**6))
def test_5x_takes_an_available_broker_other_than_the_last_whenever_there_is_one(
    brokers: list[tuple[str, int]], bad: str, avoid: str, at: int
) -> None:
    queues = queues_of(brokers)
    picked = choose_queue(queues, RoundRobin(at), table(V5, bad=bad), now=1.0, avoid=avoid)
    good = {broker for broker, _ in brokers} - set(bad) - {avoid}
    if good:
        assert picked.broker_name in good
    elif {broker for broker, _ in brokers} != {avoid}:
        assert picked.broker_name != avoid  # all are reachable here


@given(brokers, bad_brokers, st.integers(0, 10**6))
def test_4x_takes_an_available_broker_whenever_there_is_one(
    brokers: list[tuple[str, int]], bad: str, at: int
) -> None:
    picked = choose_queue(queues_of(brokers), RoundRobin(at), table(V4, bad=bad), now=1.0)
    good = {broker for broker, _ in brokers} - set(bad)
    assert not good or picked.broker_name in good
