"""The decision for one topic: each rule by name, and the laws all decisions keep."""

from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.balance.allocation import Average, AverageByCircle, ConsistentHash
from pocketmq.balance.consumer.facts import Allocator, GroupMember, OwnedQueue, RebalanceFacts
from pocketmq.balance.consumer.instructions import (
    AcquireQueue,
    AssignQueues,
    BumpSubscription,
    Instruction,
    LockQueue,
    NotifyListener,
    RevokeQueue,
    RevokeReason,
    SendHeartbeats,
    SetQueueLimits,
)
from pocketmq.balance.consumer.limits import PullLimits
from pocketmq.balance.consumer.rebalance import KeepReason, MemberWarning, decide, unsubscribed
from pocketmq.balance.profile import V4, V5, Profile
from pocketmq.model import ConsumeType, MessageModel, MessageQueue, MessageRequestMode
from tests.balance.consumer.shapes import Fails, RoundRobin, Shares, q, queues

NOT_MINE, EXPIRED = RevokeReason.NOT_MINE, RevokeReason.PULL_EXPIRED
BROADCASTING = MessageModel.BROADCASTING
LITE = ConsumeType.CONSUME_ACTIVELY
ALL = queues(4)
RETRY = queues(1, topic="%RETRY%g")


def member(profile: Profile = V5, **changes: object) -> GroupMember:
    me = GroupMember(profile=profile, group="g", client_id="me", strategy=RoundRobin())
    return msgspec.structs.replace(me, **changes)


def held(*numbers: int, last_pull: float = 1000.0) -> tuple[OwnedQueue, ...]:
    return tuple(OwnedQueue(q(number), last_pull) for number in numbers)


def facts(
    me: GroupMember,
    *owned: OwnedQueue,
    route: tuple[MessageQueue, ...] | None = ALL,
    members: tuple[str, ...] | None = ("me", "other"),
    topic: str = "T",
    now: float = 1000.0,
) -> RebalanceFacts:
    return RebalanceFacts(
        member=me, topic=topic, route=route, members=members, owned=owned, now=now
    )


class Row(NamedTuple):
    rule: str
    facts: RebalanceFacts
    instructions: list[Instruction]
    balanced: bool
    keep: KeepReason | None = None


def both(rule: str, make: object, instructions: list[Instruction], balanced: bool) -> list[Row]:
    assert callable(make)
    return [Row(f"{rule} ({p.line})", make(p), instructions, balanced) for p in (V4, V5)]


ROWS = [
    *both(
        "a new member takes its share in order",
        lambda p: facts(member(p)),
        [AcquireQueue(q(0)), AcquireQueue(q(2))],
        False,
    ),
    *both(
        "an orderly member locks its share first",
        lambda p: facts(member(p, orderly=True)),
        [LockQueue(q(0)), LockQueue(q(2))],
        False,
    ),
    *both(
        "a member that holds its share does nothing",
        lambda p: facts(member(p), *held(0, 2)),
        [],
        True,
    ),
    *both(
        "what belongs to another now is revoked before anything is taken",
        lambda p: facts(member(p), *held(1, 2, 3)),
        [RevokeQueue(q(1), NOT_MINE), RevokeQueue(q(3), NOT_MINE), AcquireQueue(q(0))],
        False,
    ),
    *both(
        "a queue pulled 120 s ago is kept",
        lambda p: facts(member(p), *held(0, 2, last_pull=880.0)),
        [],
        True,
    ),
    *both(
        "a queue not pulled for over 120 s is revoked and taken anew",
        lambda p: facts(member(p), *held(0), *held(2, last_pull=879.9)),
        [RevokeQueue(q(2), EXPIRED), AcquireQueue(q(2))],
        True,
    ),
    *both(
        "a pull consumer's queues do not expire",
        lambda p: facts(member(p, consume_type=LITE), *held(0, 2, last_pull=0.0)),
        [],
        True,
    ),
    *both(
        "queues of other topics are left alone",
        lambda p: facts(member(p), *held(0, 2), OwnedQueue(q(7, topic="other"), 0.0)),
        [],
        True,
    ),
    *both(
        "a topic without queues any more loses all",
        lambda p: facts(member(p), *held(0), route=()),
        [RevokeQueue(q(0), NOT_MINE)],
        False,
    ),
    *both(
        "a member the brokers do not list loses all",
        lambda p: facts(member(p), *held(0), members=("other",)),
        [RevokeQueue(q(0), NOT_MINE)],
        False,
    ),
    *both(
        "a dropped queue that is mine again stays until it expires",
        lambda p: facts(member(p), *held(0), OwnedQueue(q(2), 1000.0, dropped=True)),
        [],
        False,
    ),
    *both(
        "a dropped queue that is still not mine is revoked again",
        lambda p: facts(member(p), *held(0, 2), OwnedQueue(q(1), 1000.0, dropped=True)),
        [RevokeQueue(q(1), NOT_MINE)],
        True,
    ),
    *both(
        "a broadcasting member takes every queue",
        lambda p: facts(member(p, model=BROADCASTING), members=None),
        [AcquireQueue(queue) for queue in ALL],
        False,
    ),
    *both(
        "a retry topic is shared as any other",
        lambda p: facts(member(p), topic="%RETRY%g", route=RETRY),
        [AcquireQueue(RETRY[0])],
        False,
    ),
    *both(
        "a strategy without an answer drops all",
        lambda p: facts(member(p, strategy=Shares()), *held(0)),
        [RevokeQueue(q(0), NOT_MINE)],
        False,
    ),
    Row(
        "broadcasting orderly locks (4.x)",
        facts(member(V4, model=BROADCASTING, orderly=True), route=queues(1)),
        [LockQueue(q(0))],
        False,
    ),
    Row(
        "broadcasting orderly does not lock (5.x)",
        facts(member(V5, model=BROADCASTING, orderly=True), route=queues(1)),
        [AcquireQueue(q(0))],
        False,
    ),
    Row(
        "no route says nothing (4.x)", facts(member(V4), route=None), [], True, KeepReason.NO_ROUTE
    ),
    Row(
        "no route tells the listener of nothing (5.x)",
        facts(member(V5), route=None),
        [BumpSubscription("T", 1_000_000), SendHeartbeats(), NotifyListener("T", (), ())],
        True,
        KeepReason.NO_ROUTE,
    ),
    Row(
        "no route, topic limits: thresholds are shared among what is held (5.x)",
        facts(member(V5, limits=PullLimits(topic_count=900)), *held(0, 1), route=None),
        [
            BumpSubscription("T", 1_000_000),
            SetQueueLimits(450, None),
            SendHeartbeats(),
            NotifyListener("T", (), ()),
        ],
        True,
        KeepReason.NO_ROUTE,
    ),
    Row(
        "no route empties a pull consumer's assignment (5.x)",
        facts(member(V5, consume_type=LITE), route=None),
        [AssignQueues("T", ()), NotifyListener("T", (), ())],
        True,
        KeepReason.NO_ROUTE,
    ),
    Row(
        "no route of a retry topic says nothing (5.x)",
        facts(member(V5), route=None, topic="%RETRY%g"),
        [],
        True,
        KeepReason.NO_ROUTE,
    ),
    Row(
        "no route, broadcasting, tells the listener too (5.x)",
        facts(member(V5, model=BROADCASTING), route=None, members=None),
        [BumpSubscription("T", 1_000_000), SendHeartbeats(), NotifyListener("T", (), ())],
        True,
        KeepReason.NO_ROUTE,
    ),
    Row(
        "no members known keeps all",
        facts(member(V5), *held(0, 3), members=None),
        [],
        True,
        KeepReason.NO_MEMBERS,
    ),
    Row(
        "neither route nor members counts as no route",
        facts(member(V4), route=None, members=None),
        [],
        True,
        KeepReason.NO_ROUTE,
    ),
    Row(
        "a strategy that raises keeps all, unbalanced",
        facts(member(V5, strategy=Fails()), *held(0, 3)),
        [],
        False,
        KeepReason.STRATEGY_FAILED,
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=[row.rule for row in ROWS])
def test_rule(row: Row) -> None:
    decision = decide(row.facts)
    assert list(decision.instructions) == row.instructions
    assert decision.balanced is row.balanced
    assert decision.keep_reason is row.keep
    if row.keep is not None:
        assert decision.kept == tuple(item.queue for item in row.facts.owned)
        assert (decision.assigned, decision.revoked) == ((), ())


def test_a_failing_strategy_is_named() -> None:
    assert decide(facts(member(strategy=Fails()))).error == "RuntimeError: no idea"


def test_the_kept_but_dropped_are_pointed_out() -> None:
    lost = OwnedQueue(q(2), 1000.0, dropped=True)
    decision = decide(facts(member(), *held(0), lost))
    assert (decision.kept, decision.lingering) == ((q(0), q(2)), (q(2),))


@pytest.mark.parametrize(
    ("members", "warnings"),
    [
        (("me", "other"), ()),
        (("other",), (MemberWarning.NOT_A_MEMBER,)),
        ((), (MemberWarning.NOT_A_MEMBER,)),
        (("me", "other", "me"), (MemberWarning.DUPLICATE_MEMBER,)),
        (("x", "x"), (MemberWarning.NOT_A_MEMBER, MemberWarning.DUPLICATE_MEMBER)),
    ],
)
def test_odd_members_are_warned_of(
    members: tuple[str, ...], warnings: tuple[MemberWarning, ...]
) -> None:
    assert decide(facts(member(), members=members)).warnings == warnings


def test_strategies_see_queues_and_members_in_javas_order() -> None:
    """Beyond the basic plane Java orders by UTF-16 unit, which Python does not."""
    seen: list[object] = []

    class Looks(RoundRobin):
        def allocate(self, group, member, queues, members, /):  # type: ignore[no-untyped-def]
            seen.append((group, member, list(queues), list(members)))
            return ()

    route = (q(10), q(2, "b"), q(2), q(2), q(1, "\uffff"), q(1, "\U0001f600"))
    decide(
        facts(member(strategy=Looks()), route=route, members=("me", "Z", "\uffff", "\U0001f600"))
    )
    in_order = [q(2), q(10), q(2, "b"), q(1, "\U0001f600"), q(1, "\uffff")]
    assert seen == [("g", "me", in_order, ["Z", "me", "\U0001f600", "\uffff"])]


def test_a_configured_share_may_name_queues_of_other_topics() -> None:
    """Java's CONFIG strategy is not filtered; what is held of another topic is not taken twice."""
    foreign = q(0, topic="U")
    share = Shares(q(0), foreign, q(0))
    assert decide(facts(member(strategy=share))).assigned == (q(0), foreign)
    again = decide(facts(member(strategy=share), *held(0), OwnedQueue(foreign, 1000.0)))
    assert (again.assigned, again.revoked, again.balanced) == ((), (), False)


def test_queues_of_topics_left_are_found_after_the_round() -> None:
    owned = (*held(0), OwnedQueue(q(1, topic="U"), 0.0), OwnedQueue(q(2, topic="V"), 0.0))
    assert unsubscribed(owned, {"T", "V"}) == (
        RevokeQueue(q(1, topic="U"), RevokeReason.UNSUBSCRIBED),
    )


@pytest.mark.parametrize(
    ("changes", "asks"),
    [
        ({}, False),
        ({"client_rebalance": False}, True),
        ({"client_rebalance": False, "orderly": True}, False),
        ({"client_rebalance": False, "model": BROADCASTING}, False),
        ({"client_rebalance": False, "consume_type": LITE}, False),
        ({"client_rebalance": False, "profile": V4}, False),
    ],
)
def test_only_a_concurrent_clustering_push_consumer_of_5x_asks_brokers(
    changes: dict[str, object], asks: bool
) -> None:
    assert msgspec.structs.replace(member(), **changes).asks_broker is asks


profiles = st.sampled_from([V4, V5])
owned_queues = st.builds(
    OwnedQueue,
    st.builds(q, st.integers(0, 9), st.sampled_from("ab"), st.sampled_from(["T", "U"])),
    st.floats(800, 1000),
    st.booleans(),
)
any_facts = st.builds(
    lambda profile, orderly, lite, model, route, members, owned: facts(
        member(
            profile,
            orderly=orderly and not lite,
            consume_type=LITE if lite else ConsumeType.CONSUME_PASSIVELY,
            model=model,
        ),
        *{item.queue: item for item in owned}.values(),
        route=None if route is None else tuple(route),
        members=None if members is None else tuple(members),
    ),
    profiles,
    st.booleans(),
    st.booleans(),
    st.sampled_from(MessageModel),
    st.none() | st.lists(st.builds(q, st.integers(0, 9), st.sampled_from("ab")), max_size=12),
    st.none() | st.lists(st.sampled_from(["me", "x", "y", "z"]), max_size=5),
    st.lists(owned_queues, max_size=10),
)


@given(any_facts)
@settings(max_examples=200, deadline=None)
def test_held_is_kept_and_revoked_and_the_target_is_kept_and_assigned(
    known: RebalanceFacts,
) -> None:
    decision = decide(known)
    mine = [item.queue for item in known.owned if item.queue.topic == "T"]
    revoked = [item.queue for item in decision.revoked]
    assert sorted(mine, key=str) == sorted([*decision.kept, *revoked], key=str)
    if decision.keep_reason is None:
        target = sorted(decision.target, key=str)
        assert sorted([*decision.kept, *decision.assigned], key=str) == target
    else:
        assert revoked == []


@given(any_facts)
@settings(max_examples=200, deadline=None)
def test_carrying_a_decision_out_leaves_nothing_to_do(known: RebalanceFacts) -> None:
    decision = decide(known)
    if decision.keep_reason is not None:
        return
    gone = {item.queue for item in decision.revoked}
    owned = [item for item in known.owned if item.queue not in gone]
    owned += [OwnedQueue(queue, known.now) for queue in decision.assigned]
    after = decide(msgspec.structs.replace(known, owned=tuple(owned)))
    assert after.instructions == ()
    assert after.balanced is (after.lingering == ())


@given(
    st.sampled_from([Average(), AverageByCircle(), ConsistentHash(), RoundRobin()]),
    st.lists(st.builds(q, st.integers(0, 9), st.sampled_from("ab")), min_size=1, max_size=16),
    st.sets(st.text("abc\U0001f600\uffff", min_size=1, max_size=3), min_size=1, max_size=6),
    st.data(),
)
@settings(max_examples=100, deadline=None)
def test_members_with_one_view_never_share_a_queue_and_leave_none(
    strategy: Allocator, route: list[MessageQueue], ids: set[str], data: st.DataObject
) -> None:
    """Each member gets the view in another order, as brokers may give it."""
    taken: list[MessageQueue] = []
    for client_id in ids:
        view = facts(
            member(client_id=client_id, strategy=strategy),
            route=tuple(data.draw(st.permutations(route))),
            members=tuple(data.draw(st.permutations(sorted(ids)))),
        )
        taken += decide(view).target
    assert sorted(taken, key=str) == sorted(set(route), key=str)


def test_pop_queues_do_not_count_as_pulled() -> None:
    popped = OwnedQueue(q(0), 1000.0, mode=MessageRequestMode.POP)
    decision = decide(facts(member(), popped))
    assert decision.assigned == (q(0), q(2))
