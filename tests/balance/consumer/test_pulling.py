"""The pull loop of a push consumer, row by row."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pocketmq.balance.consumer import instructions, pulling
from pocketmq.balance.consumer.limits import MIB, PullLimits
from pocketmq.balance.profile import V4, V5, Profile
from pocketmq.model import MessageModel
from tests.balance.consumer.shapes import q

A = q(0)
IDLE = pulling.PullFacts(queue=A, limits=PullLimits().in_force())

BEFORE: list[tuple[str, dict[str, object], pulling.BeforePull]] = [
    ("an idle queue is pulled", {}, pulling.PullNow()),
    (
        "a dropped queue ends, whatever else",
        {"dropped": True, "running": False},
        pulling.StopPulling(),
    ),
    (
        "not running",
        {"running": False, "paused": True},
        pulling.PullLater(1.0, pulling.WaitReason.NOT_RUNNING),
    ),
    ("paused", {"paused": True, "count": 9999}, pulling.PullLater(1.0, pulling.WaitReason.PAUSED)),
    ("1000 messages are allowed", {"count": 1000}, pulling.PullNow()),
    (
        "1001 are not",
        {"count": 1001},
        pulling.PullLater(0.05, pulling.WaitReason.TOO_MANY_MESSAGES),
    ),
    ("less than 101 MiB are allowed", {"size": 101 * MIB - 1}, pulling.PullNow()),
    (
        "101 MiB are not",
        {"size": 101 * MIB},
        pulling.PullLater(0.05, pulling.WaitReason.TOO_MANY_BYTES),
    ),
    (
        "messages are counted before bytes",
        {"count": 1001, "size": 101 * MIB},
        pulling.PullLater(0.05, pulling.WaitReason.TOO_MANY_MESSAGES),
    ),
    ("a span of 2000 is allowed", {"span": 2000}, pulling.PullNow()),
    ("2001 is not", {"span": 2001}, pulling.PullLater(0.05, pulling.WaitReason.SPAN_TOO_LONG)),
    (
        "orderly: the span does not matter, the lock does",
        {"orderly": True, "span": 2001},
        pulling.PullLater(1.0, pulling.WaitReason.NOT_LOCKED),
    ),
    (
        "orderly: the first pull under the lock reads the offset again",
        {"orderly": True, "locked": True, "subscribed": False},
        instructions.ReadOffset(A),
    ),
    (
        "orderly: later pulls do not",
        {"orderly": True, "locked": True, "start_checked": True},
        pulling.PullNow(),
    ),
    ("the offset is read again after a start delay", {"delayed": True}, instructions.ReadOffset(A)),
    (
        "but not while pulls are put off",
        {"delayed": True, "paused": True},
        pulling.PullLater(1.0, pulling.WaitReason.PAUSED),
    ),
    (
        "no subscription",
        {"subscribed": False},
        pulling.PullLater(1.0, pulling.WaitReason.NOT_SUBSCRIBED),
    ),
    (
        "the delay after errors can be set",
        {"running": False, "retry_after_error": 3.0},
        pulling.PullLater(3.0, pulling.WaitReason.NOT_RUNNING),
    ),
]


@pytest.mark.parametrize(
    ("batch", "waiting", "room", "asked"),
    [
        (None, 0, 1000, 32),
        (None, 33, 1000, 33),
        (None, 100_000, 1000, 512),
        (None, 100_000, 100, 100),
        (None, 100_000, 0, 32),
        (8, 100_000, 1000, 8),
        (1024, 0, 0, 1024),
    ],
)
def test_a_pull_asks_for_more_while_a_backlog_waits_unless_told_how_many(
    batch: int | None, waiting: int, room: int, asked: int
) -> None:
    assert pulling.pull_size(batch, waiting, room) == asked


@pytest.mark.parametrize(("rule", "changes", "step"), BEFORE, ids=[row[0] for row in BEFORE])
def test_before_a_pull(rule: str, changes: dict[str, object], step: pulling.BeforePull) -> None:
    assert pulling.before_pull(replace(IDLE, **changes)) == step


def test_a_start_offset_that_cannot_be_read_waits_a_second() -> None:
    assert pulling.start_check_failed(IDLE) == pulling.PullLater(
        1.0, pulling.WaitReason.OFFSET_UNKNOWN
    )


def test_topic_limits_replace_those_of_the_queue() -> None:
    limits = PullLimits(topic_count=100).in_force(instructions.SetQueueLimits(25, None))
    assert pulling.before_pull(replace(IDLE, limits=limits, count=26)) == pulling.PullLater(
        0.05, pulling.WaitReason.TOO_MANY_MESSAGES
    )
    assert (limits.count, limits.size_mib, limits.span) == (25, 100, 2000)


FOUND = pulling.PullAnswer(
    queue=A, status=pulling.PullStatus.FOUND, asked=10, next_offset=42, first_offset=10
)
NOTHING = pulling.PullAnswer(
    queue=A, status=pulling.PullStatus.NO_NEW_MSG, asked=10, next_offset=42
)
ILLEGAL = pulling.PullAnswer(
    queue=A, status=pulling.PullStatus.OFFSET_ILLEGAL, asked=10, next_offset=42
)
AGAIN = pulling.PullAgain(A, 42, 0.0)

AFTER: list[tuple[str, Profile, pulling.PullAnswer, list[instructions.Instruction]]] = [
    ("found: cache and pull on", V5, FOUND, [pulling.CacheMessages(A), AGAIN]),
    (
        "found: with an interval pull later",
        V5,
        replace(FOUND, pull_interval=0.2),
        [pulling.CacheMessages(A), pulling.PullAgain(A, 42, 0.2)],
    ),
    ("found, all of other tags: pull on at once", V5, replace(FOUND, first_offset=None), [AGAIN]),
    (
        "found, but below what was asked for",
        V5,
        replace(FOUND, first_offset=9),
        [pulling.CacheMessages(A), AGAIN, pulling.ReportOddOffsets(A, 10, 42, 9)],
    ),
    (
        "found, but going back",
        V5,
        replace(FOUND, next_offset=9),
        [pulling.CacheMessages(A), pulling.PullAgain(A, 9), pulling.ReportOddOffsets(A, 10, 9, 10)],
    ),
    (
        "nothing new, nothing cached: what was skipped is done",
        V4,
        NOTHING,
        [instructions.UpdateOffset(A, 42, increase_only=True), AGAIN],
    ),
    ("nothing new, something cached", V4, replace(NOTHING, cached_count=1), [AGAIN]),
    (
        "nothing matched is as nothing new",
        V5,
        replace(NOTHING, status=pulling.PullStatus.NO_MATCHED_MSG),
        [instructions.UpdateOffset(A, 42, increase_only=True), AGAIN],
    ),
    (
        "illegal offset: 4.x waits 10 s",
        V4,
        ILLEGAL,
        [instructions.DropQueue(A), pulling.CorrectOffset(A, 42, 10.0)],
    ),
    (
        "illegal offset: 5.x acts at once",
        V5,
        ILLEGAL,
        [instructions.DropQueue(A), pulling.CorrectOffset(A, 42, 0.0)],
    ),
]


@pytest.mark.parametrize(
    ("rule", "profile", "answer", "steps"), AFTER, ids=[row[0] for row in AFTER]
)
def test_after_a_pull(
    rule: str, profile: Profile, answer: pulling.PullAnswer, steps: list[instructions.Instruction]
) -> None:
    assert list(pulling.after_pull(profile, answer)) == steps


@given(st.integers(998, 1003), st.integers(99, 103), st.integers(-1, 1), st.integers(1998, 2003))
def test_what_has_capacity_is_what_may_be_pulled(count: int, mib: int, odd: int, span: int) -> None:
    size = mib * MIB + odd
    facts = replace(IDLE, count=count, size=size, span=span)
    free = pulling.before_pull(facts) == pulling.PullNow()
    assert pulling.has_capacity(facts.limits, count, size, span) is free


def test_correcting_an_offset_gives_the_queue_up() -> None:
    given_up = (
        instructions.PersistOffset(A),
        instructions.RemoveQueue(A),
        instructions.DropQueue(A),
        instructions.ReleaseQueue(A),
    )
    note = instructions.UpdateOffset(A, 42, increase_only=False)
    assert pulling.offset_correction(V4, A, 42) == (note, *given_up)
    assert pulling.offset_correction(V5, A, 42) == (
        instructions.FreezeOffset(A, 42),
        *given_up,
        instructions.RebalanceAgain(0.0),
    )


@pytest.mark.parametrize(
    ("code", "after"), [(215, 0.02), (24, 1.0), (25, 1.0), (1, 1.0), (None, 1.0)]
)
def test_errors_are_tried_again_with_the_same_offset(code: int | None, after: float) -> None:
    assert pulling.after_pull_error(A, 10, code) == pulling.PullAgain(A, 10, after)


@pytest.mark.parametrize(
    ("model", "noted", "to_slave", "commit"),
    [
        (MessageModel.CLUSTERING, 5, False, pulling.CommitWithPull(True, 5)),
        (MessageModel.CLUSTERING, 5, True, pulling.CommitWithPull(False, 5)),
        (MessageModel.CLUSTERING, 0, False, pulling.CommitWithPull(False, 0)),
        (MessageModel.CLUSTERING, -1, False, pulling.CommitWithPull(False, -1)),
        (MessageModel.BROADCASTING, 5, False, pulling.CommitWithPull(False, 0)),
    ],
)
def test_a_pull_carries_the_offset_to_a_master(
    model: MessageModel, noted: int, to_slave: bool, commit: pulling.CommitWithPull
) -> None:
    assert pulling.commit_with_pull(model, noted, to_slave=to_slave) == commit
