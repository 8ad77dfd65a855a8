"""A whole rebalance of one topic as exact instruction lists, rule by rule."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.balance.consumer import instructions
from pocketmq.balance.consumer.facts import GroupMember, OwnedQueue, RebalanceFacts
from pocketmq.balance.consumer.limits import PullLimits
from pocketmq.balance.consumer.offsets import NO_OFFSET, OFFSET_UNKNOWN, StartRule
from pocketmq.balance.consumer.rebalance import BrokerAssignedQueue, decide, decide_assigned
from pocketmq.balance.consumer.round import (
    LockAnswered,
    OffsetAnswered,
    OffsetRead,
    QueueIdled,
    RebalanceRound,
)
from pocketmq.balance.profile import V4, V5, Profile
from pocketmq.model.kinds import ConsumeFromWhere, ConsumeType, MessageModel, MessageRequestMode
from pocketmq.model.queue import MessageQueue
from tests.balance.consumer.shapes import Shares, World, drive, q

LITE = ConsumeType.CONSUME_ACTIVELY
POP = MessageRequestMode.POP
A, B, C = q(0), q(1), q(2)
ALL = (A, B, C)


def facts(
    profile: Profile, *mine: MessageQueue, owned: Sequence[OwnedQueue] = (), **changes: object
) -> RebalanceFacts:
    me = GroupMember(profile=profile, group="g", client_id="me", strategy=Shares(*mine))
    return RebalanceFacts(
        member=msgspec.structs.replace(me, **changes),
        topic="T",
        route=ALL,
        members=("me",),
        owned=tuple(owned),
        now=1000.0,
    )


def own(*queues: MessageQueue, last_lock: float = 1000.0, cached: bool = False) -> list[OwnedQueue]:
    return [OwnedQueue(queue, 1000.0, cached=cached, last_lock=last_lock) for queue in queues]


def notify_5x(*mine: MessageQueue) -> list[instructions.Instruction]:
    return [
        instructions.BumpSubscription("T", 1_000_000),
        instructions.SendHeartbeats(),
        instructions.NotifyListener("T", ALL, mine),
    ]


NOTIFY_4X: list[instructions.Instruction] = [
    instructions.BumpSubscription("T", 1_000_000),
    instructions.SendHeartbeats(),
]


class Row(NamedTuple):
    rule: str
    facts: RebalanceFacts
    world: World
    steps: list[instructions.Instruction]
    balanced: bool


ROWS = [
    Row(
        "nothing to do (5.x)",
        facts(V5, A, owned=own(A)),
        World(),
        [],
        True,
    ),
    Row(
        "concurrent take: forget, read, add; pull at once; no listener (4.x)",
        facts(V4, A, B),
        World(),
        [
            *(
                instructions.ForgetOffset(A),
                instructions.ReadOffset(A),
                instructions.ForgetOffset(B),
                instructions.ReadOffset(B),
            ),
            *(instructions.AddQueue(A), instructions.AddQueue(B)),
            *(instructions.StartPulling(A, 100, 0.0), instructions.StartPulling(B, 100, 0.0)),
            *NOTIFY_4X,
        ],
        True,
    ),
    Row(
        "concurrent take: pull in half a second, then tell the listener (5.x)",
        facts(V5, A),
        World(),
        [
            instructions.ForgetOffset(A),
            instructions.ReadOffset(A),
            instructions.AddQueue(A),
            instructions.StartPulling(A, 100, 0.5),
            *notify_5x(A),
        ],
        True,
    ),
    Row(
        "no offset stored: ask where the queue ends",
        facts(V5, A),
        World(stored=NO_OFFSET),
        [
            *(
                instructions.ForgetOffset(A),
                instructions.ReadOffset(A),
                instructions.AskMaxOffset(A),
            ),
            *(instructions.AddQueue(A), instructions.StartPulling(A, 500, 0.5), *notify_5x(A)),
        ],
        True,
    ),
    Row(
        "the offset is unknown: leave the queue to the next round",
        facts(V5, A, B),
        World(stored={A: OFFSET_UNKNOWN, B: 7}),
        [
            *(
                instructions.ForgetOffset(A),
                instructions.ReadOffset(A),
                instructions.ForgetOffset(B),
                instructions.ReadOffset(B),
            ),
            *(
                instructions.SkipQueue(A, instructions.SkipReason.OFFSET_UNKNOWN),
                instructions.AddQueue(B),
            ),
            *(instructions.StartPulling(B, 7, 0.5), *notify_5x(A, B)),
        ],
        False,
    ),
    Row(
        "nobody tells the queue's end: nothing changed, nobody is notified",
        facts(V5, A),
        World(stored=NO_OFFSET, answer=None),
        [
            *(
                instructions.ForgetOffset(A),
                instructions.ReadOffset(A),
                instructions.AskMaxOffset(A),
            ),
            instructions.SkipQueue(A, instructions.SkipReason.OFFSET_ANSWER_FAILED),
        ],
        False,
    ),
    Row(
        "orderly take: the lock comes first",
        facts(V5, A, orderly=True),
        World(),
        [
            *(instructions.LockQueue(A), instructions.ForgetOffset(A), instructions.ReadOffset(A)),
            *(instructions.AddQueue(A), instructions.StartPulling(A, 100, 0.5), *notify_5x(A)),
        ],
        True,
    ),
    Row(
        "a refused lock waits for the timer (4.x)",
        facts(V4, A, B, orderly=True),
        World(denied=frozenset({A})),
        [
            *(
                instructions.LockQueue(A),
                instructions.LockQueue(B),
                instructions.SkipQueue(A, instructions.SkipReason.LOCK_DENIED),
            ),
            *(
                instructions.ForgetOffset(B),
                instructions.ReadOffset(B),
                instructions.AddQueue(B),
                instructions.StartPulling(B, 100, 0.0),
                *NOTIFY_4X,
            ),
        ],
        False,
    ),
    Row(
        "a refused lock is tried again in half a second (5.x)",
        facts(V5, A, B, orderly=True),
        World(denied=frozenset({A})),
        [
            *(
                instructions.LockQueue(A),
                instructions.LockQueue(B),
                instructions.SkipQueue(A, instructions.SkipReason.LOCK_DENIED),
            ),
            *(instructions.ForgetOffset(B), instructions.ReadOffset(B), instructions.AddQueue(B)),
            *(
                instructions.RebalanceAgain(0.5),
                instructions.StartPulling(B, 100, 0.5),
                *notify_5x(A, B),
            ),
        ],
        False,
    ),
    Row(
        "concurrent loss: one queue after the other (4.x)",
        facts(V4, owned=own(A, B)),
        World(),
        [
            *(
                instructions.DropQueue(A),
                instructions.PersistOffset(A),
                instructions.ForgetOffset(A),
                instructions.RemoveQueue(A),
            ),
            *(
                instructions.DropQueue(B),
                instructions.PersistOffset(B),
                instructions.ForgetOffset(B),
                instructions.RemoveQueue(B),
            ),
            *NOTIFY_4X,
        ],
        True,
    ),
    Row(
        "concurrent loss: all are dropped first (5.x)",
        facts(V5, owned=own(A, B)),
        World(),
        [
            *(instructions.DropQueue(A), instructions.DropQueue(B)),
            *(
                instructions.PersistOffset(A),
                instructions.ForgetOffset(A),
                instructions.RemoveQueue(A),
            ),
            *(
                instructions.PersistOffset(B),
                instructions.ForgetOffset(B),
                instructions.RemoveQueue(B),
            ),
            *notify_5x(),
        ],
        True,
    ),
    Row(
        "orderly loss: quiet first, then unlock (4.x)",
        facts(V4, owned=own(A), orderly=True),
        World(),
        [
            *(
                instructions.DropQueue(A),
                instructions.PersistOffset(A),
                instructions.ForgetOffset(A),
                instructions.AwaitIdle(A, 1.0),
            ),
            *(instructions.UnlockQueue(A, after=0.0), instructions.RemoveQueue(A), *NOTIFY_4X),
        ],
        True,
    ),
    Row(
        "orderly loss with cached messages: the lock stays 20 s (4.x)",
        facts(V4, owned=own(A, cached=True), orderly=True),
        World(),
        [
            *(
                instructions.DropQueue(A),
                instructions.PersistOffset(A),
                instructions.ForgetOffset(A),
                instructions.AwaitIdle(A, 1.0),
            ),
            *(instructions.UnlockQueue(A, after=20.0), instructions.RemoveQueue(A), *NOTIFY_4X),
        ],
        True,
    ),
    Row(
        "orderly loss while a handler runs: kept for now (4.x)",
        facts(V4, owned=own(A), orderly=True),
        World(busy=frozenset({A})),
        [
            *(
                instructions.DropQueue(A),
                instructions.PersistOffset(A),
                instructions.ForgetOffset(A),
                instructions.AwaitIdle(A, 1.0),
            ),
            instructions.CountUnlockTry(A),
        ],
        True,
    ),
    Row(
        "orderly loss: quiet first, then persist again and unlock (5.x)",
        facts(V5, owned=own(A), orderly=True),
        World(),
        [
            *(
                instructions.DropQueue(A),
                instructions.PersistOffset(A),
                instructions.AwaitIdle(A, 0.5),
            ),
            *(
                instructions.PersistOffset(A),
                instructions.ForgetOffset(A),
                instructions.MarkUnlocked(A),
                instructions.UnlockQueue(A),
                instructions.RemoveQueue(A),
            ),
            *notify_5x(),
        ],
        True,
    ),
    Row(
        "orderly loss while a handler runs: kept for now (5.x)",
        facts(V5, owned=own(A), orderly=True),
        World(busy=frozenset({A})),
        [
            instructions.DropQueue(A),
            instructions.PersistOffset(A),
            instructions.AwaitIdle(A, 0.5),
            instructions.CountUnlockTry(A),
        ],
        True,
    ),
    Row(
        "orderly loss 20 s after the last lock: by force (5.x)",
        facts(V5, owned=own(A, last_lock=979.9), orderly=True),
        World(busy=frozenset({A})),
        [
            *(instructions.DropQueue(A), instructions.PersistOffset(A)),
            *(
                instructions.PersistOffset(A),
                instructions.ForgetOffset(A),
                instructions.MarkUnlocked(A),
                instructions.UnlockQueue(A),
                instructions.RemoveQueue(A),
            ),
            *notify_5x(),
        ],
        True,
    ),
    Row(
        "an expired queue is released and taken anew",
        facts(V5, A, owned=[OwnedQueue(A, 0.0)]),
        World(),
        [
            *(
                instructions.DropQueue(A),
                instructions.PersistOffset(A),
                instructions.ForgetOffset(A),
                instructions.RemoveQueue(A),
            ),
            *(
                instructions.ForgetOffset(A),
                instructions.ReadOffset(A),
                instructions.AddQueue(A),
                instructions.StartPulling(A, 100, 0.5),
            ),
            *notify_5x(A),
        ],
        True,
    ),
    Row(
        "an expired queue whose handler runs is not taken anew",
        facts(V5, A, owned=[OwnedQueue(A, 0.0, last_lock=1000.0)], orderly=True),
        World(busy=frozenset({A})),
        [
            instructions.DropQueue(A),
            instructions.PersistOffset(A),
            instructions.AwaitIdle(A, 0.5),
            instructions.CountUnlockTry(A),
        ],
        False,
    ),
    Row(
        "topic limits are shared among all held queues",
        facts(
            V4,
            A,
            owned=own(q(0, topic="U")),
            limits=PullLimits(topic_count=1001, topic_size_mib=1),
        ),
        World(),
        [
            *(
                instructions.ForgetOffset(A),
                instructions.ReadOffset(A),
                instructions.AddQueue(A),
                instructions.StartPulling(A, 100, 0.0),
            ),
            *(
                instructions.BumpSubscription("T", 1_000_000),
                instructions.SetQueueLimits(500, 1),
                instructions.SendHeartbeats(),
            ),
        ],
        True,
    ),
    Row(
        "giving up the last queue leaves the limits as they are",
        facts(V4, owned=own(A), limits=PullLimits(topic_count=1000)),
        World(),
        [
            instructions.DropQueue(A),
            instructions.PersistOffset(A),
            instructions.ForgetOffset(A),
            instructions.RemoveQueue(A),
            *NOTIFY_4X,
        ],
        True,
    ),
    Row(
        "a pull consumer reads its memory first and starts pull tasks, not pulls",
        facts(V4, B, owned=own(A), consume_type=LITE, start=StartRule(consume_type=LITE)),
        World(),
        [
            *(
                instructions.DropQueue(A),
                instructions.PersistOffset(A),
                instructions.ForgetOffset(A),
                instructions.RemoveQueue(A),
            ),
            *(
                instructions.ForgetOffset(B),
                instructions.ReadOffset(B, memory_first=True),
                instructions.AddQueue(B),
            ),
            *(instructions.AssignQueues("T", (B,)), instructions.NotifyListener("T", ALL, (B,))),
        ],
        True,
    ),
    Row(
        "orderly broadcasting gives up without unlocking (4.x)",
        msgspec.structs.replace(
            facts(V4, owned=own(A), orderly=True, model=MessageModel.BROADCASTING), route=()
        ),
        World(),
        [
            instructions.DropQueue(A),
            instructions.PersistOffset(A),
            instructions.ForgetOffset(A),
            instructions.RemoveQueue(A),
            *NOTIFY_4X,
        ],
        True,
    ),
]


@pytest.mark.parametrize(
    ("profile", "prompt", "delay"),
    [(V5, False, 0.5), (V5, True, 0.02), (V4, False, 0.0), (V4, True, 0.0)],
)
def test_the_first_pull_waits_less_where_all_members_are_prompt(
    profile: Profile, prompt: bool, delay: float
) -> None:
    known = msgspec.structs.replace(facts(profile, A), prompt=prompt)
    steps, _ = drive(known)
    assert [step for step in steps if isinstance(step, instructions.StartPulling)] == [
        instructions.StartPulling(A, 100, delay)
    ]


@pytest.mark.parametrize(("prompt", "delay"), [(False, 0.0), (True, 0.02)])
def test_a_pull_consumer_waits_where_it_did_not_wait_before_its_first_run(
    prompt: bool, delay: float
) -> None:
    known = facts(V5, A, consume_type=LITE, start=StartRule(consume_type=LITE))
    steps, _ = drive(msgspec.structs.replace(known, prompt=prompt))
    assert instructions.AssignQueues("T", (A,), delay) in steps


@pytest.mark.parametrize("row", ROWS, ids=[row.rule for row in ROWS])
def test_rule(row: Row) -> None:
    steps, outcome = drive(row.facts, world=row.world)
    assert steps == row.steps
    assert outcome.balanced is row.balanced
    assert outcome.changed is any(
        isinstance(step, instructions.BumpSubscription | instructions.AssignQueues)
        for step in steps
    )


def test_a_decision_to_keep_ends_the_round_at_once() -> None:
    known = msgspec.structs.replace(facts(V5, A, owned=own(B)), members=None)
    steps, outcome = drive(known)
    assert (steps, outcome.changed, outcome.balanced) == ([], False, True)


def test_an_expired_but_busy_queue_is_reported_as_still_held() -> None:
    known = facts(V5, A, owned=[OwnedQueue(A, 0.0, last_lock=1000.0)], orderly=True)
    _, outcome = drive(known, world=World(busy=frozenset({A})))
    assert outcome.skipped == {A: instructions.SkipReason.STILL_OWNED}
    assert (outcome.acquired, outcome.released) == ({}, ())


def test_a_broker_made_assignment_takes_pops_and_pulls() -> None:
    known = facts(V5, owned=[*own(A), OwnedQueue(B, 1000.0, mode=POP)])
    decision = decide_assigned(
        known, (BrokerAssignedQueue(C, POP), BrokerAssignedQueue(B), BrokerAssignedQueue(None))
    )
    steps, outcome = drive(known, decision)
    assert steps == [
        *(
            instructions.DropQueue(A),
            instructions.DropQueue(B, POP),
            instructions.PersistOffset(A),
            instructions.ForgetOffset(A),
            instructions.RemoveQueue(A),
        ),
        *(
            instructions.RemoveQueue(B, POP),
            instructions.ForgetOffset(B),
            instructions.ReadOffset(B),
            instructions.AddQueue(B),
        ),
        *(
            instructions.StartPulling(B, 100, 0.5),
            instructions.AddQueue(C, POP),
            instructions.StartPopping(C, False, 0.5),
        ),
        *(
            instructions.BumpSubscription("T", 1_000_000),
            instructions.SendHeartbeats(),
            instructions.NotifyListener("T", None, (B, C)),
        ),
    ]
    assert (outcome.changed, outcome.balanced) == (True, True)


def test_events_may_come_in_any_order() -> None:
    """The shell may ask all brokers at once; the conclusion follows the last answer."""
    known = facts(V5, A, B, owned=own(C), orderly=True)
    rebalance = RebalanceRound(known, decide(known))
    assert rebalance.begin() == [
        instructions.DropQueue(C),
        instructions.PersistOffset(C),
        instructions.AwaitIdle(C, 0.5),
    ]
    assert rebalance.handle(LockAnswered(A, True)) == [], "not asked yet"
    assert rebalance.handle(QueueIdled(C, False)) == [
        instructions.CountUnlockTry(C),
        instructions.LockQueue(A),
        instructions.LockQueue(B),
    ]
    assert rebalance.handle(LockAnswered(B, True)) == [
        instructions.ForgetOffset(B),
        instructions.ReadOffset(B),
    ]
    assert rebalance.handle(LockAnswered(A, True)) == [
        instructions.ForgetOffset(A),
        instructions.ReadOffset(A),
    ]
    assert rebalance.handle(OffsetRead(A, NO_OFFSET)) == [instructions.AskMaxOffset(A)]
    assert rebalance.handle(OffsetRead(B, 5)) == [instructions.AddQueue(B)]
    assert rebalance.handle(OffsetRead(B, 9)) == [], "settled already"
    assert not rebalance.finished
    assert rebalance.handle(OffsetAnswered(A, 77)) == [
        instructions.AddQueue(A),
        instructions.StartPulling(A, 77, 0.5),
        instructions.StartPulling(B, 5, 0.5),
        *notify_5x(A, B),
    ]
    assert rebalance.outcome is not None
    assert rebalance.outcome.balanced
    assert rebalance.handle(QueueIdled(C, True)) == []


@pytest.mark.parametrize(
    ("answer", "mode_steps"),
    [
        ((BrokerAssignedQueue(A),), [instructions.SubscribePopRetry("%RETRY%g_T")]),
        ((BrokerAssignedQueue(A, POP),), [instructions.UnsubscribePopRetry("%RETRY%g_T")]),
        ((BrokerAssignedQueue(A), BrokerAssignedQueue(B, POP)), []),
        ((), []),
    ],
)
def test_a_topic_that_changes_its_mode_brings_or_takes_the_pop_retry_topic(
    answer: tuple[BrokerAssignedQueue, ...], mode_steps: list[instructions.Instruction]
) -> None:
    known = facts(V5)
    steps, _ = drive(known, decide_assigned(known, answer))
    found = [
        s
        for s in steps
        if isinstance(s, instructions.SubscribePopRetry | instructions.UnsubscribePopRetry)
    ]
    assert found == mode_steps
    assert steps[: len(mode_steps)] == mode_steps


def test_a_null_assignment_keeps_all_and_is_not_balanced() -> None:
    known = facts(V5, owned=own(A))
    steps, outcome = drive(known, decide_assigned(known, None))
    assert (steps, outcome.changed, outcome.balanced) == ([], False, False)


def test_an_empty_assignment_drops_all() -> None:
    known = facts(V5, owned=own(A))
    steps, outcome = drive(known, decide_assigned(known, ()))
    assert steps[:4] == [
        instructions.DropQueue(A),
        instructions.PersistOffset(A),
        instructions.ForgetOffset(A),
        instructions.RemoveQueue(A),
    ]
    assert outcome.balanced


def test_a_group_that_begins_at_the_first_message_says_so_when_popping() -> None:
    first = StartRule(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
    known = facts(V5, start=first)
    steps, _ = drive(known, decide_assigned(known, (BrokerAssignedQueue(A, POP),)))
    assert instructions.StartPopping(A, True, 0.5) in steps


@given(
    st.sampled_from([V4, V5]),
    st.booleans(),
    st.sets(st.sampled_from(ALL)),
    st.sets(st.sampled_from(ALL)),
    st.frozensets(st.sampled_from(ALL)),
    st.frozensets(st.sampled_from(ALL)),
    st.sampled_from([100, NO_OFFSET, OFFSET_UNKNOWN]),
)
@settings(max_examples=150, deadline=None)
def test_a_round_holds_what_it_says_and_is_balanced_only_at_its_target(
    profile: Profile,
    orderly: bool,
    mine: set[MessageQueue],
    owned: set[MessageQueue],
    busy: frozenset[MessageQueue],
    denied: frozenset[MessageQueue],
    stored: int,
) -> None:
    known = facts(
        profile, *sorted(mine, key=str), owned=own(*sorted(owned, key=str)), orderly=orderly
    )
    world = World(busy, denied, stored)
    steps, outcome = drive(known, world=world)
    table = set(owned)
    dropped: set[MessageQueue] = set()
    for step in steps:
        if isinstance(step, instructions.DropQueue):
            dropped.add(step.queue)
        elif isinstance(step, instructions.RemoveQueue):
            table.remove(step.queue)
            dropped.discard(step.queue)
        elif isinstance(step, instructions.AddQueue):
            assert step.queue not in table
            table.add(step.queue)
    assert outcome.balanced is (table - dropped == mine)
    assert outcome.changed is (bool(outcome.released) or bool(outcome.acquired))
    started = [step.queue for step in steps if isinstance(step, instructions.StartPulling)]
    assert started == list(outcome.acquired)


def test_the_pause_of_prompt_members_grows_with_the_group() -> None:
    """So that the requests of all members together are bounded when many join at once."""
    members = tuple(f"c{number}" for number in range(400))
    known = msgspec.structs.replace(facts(V5, A), members=members, prompt=True)
    assert known.pause == known.start_delay == pytest.approx(0.2)
    crowd = msgspec.structs.replace(known, members=members * 10)
    assert crowd.start_delay == V5.pull_start_delay
    assert msgspec.structs.replace(known, prompt=False).pause is None


@pytest.mark.parametrize(
    ("prompt", "denied", "after"),
    [
        (False, (), 0.5),
        (True, (), 0.02),
        (True, (B,), 0.02),
        (True, (A,), 0.5),
        (True, (A, B), 0.5),
    ],
)
def test_a_denied_lock_is_tried_once_more_soon_where_all_members_are_prompt(
    prompt: bool, denied: tuple[MessageQueue, ...], after: float
) -> None:
    known = msgspec.structs.replace(
        facts(V5, A, orderly=True), prompt=prompt, denied=frozenset(denied)
    )
    steps, _ = drive(known, world=World(denied=frozenset({A})))
    assert [step for step in steps if isinstance(step, instructions.RebalanceAgain)] == [
        instructions.RebalanceAgain(after)
    ]
