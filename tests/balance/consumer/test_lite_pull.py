"""The pull tasks of a pull consumer, row by row."""

import pytest
from msgspec.structs import replace

from pocketmq.balance.consumer import lite_pull, pulling
from pocketmq.balance.consumer.instructions import Instruction, ReadOffset, UpdateOffset
from pocketmq.balance.consumer.limits import MIB
from pocketmq.balance.consumer.offsets import NO_OFFSET, OFFSET_UNKNOWN
from pocketmq.errors import InvalidInput
from tests.balance.consumer.shapes import q

A = q(0)
STATE = lite_pull.AssignedState(pull_offset=7, consume_offset=5)
IDLE = lite_pull.LitePullFacts(queue=A, state=STATE)
FULL = pulling.PullLater(0.05, pulling.WaitReason.TOO_MANY_MESSAGES)

BEFORE: list[tuple[str, dict[str, object], lite_pull.BeforeLitePull]] = [
    ("pulls on where it was", {}, lite_pull.PullFrom(A, 7, STATE)),
    ("a cancelled task ends", {"cancelled": True, "state": None}, pulling.StopPulling()),
    (
        "a paused queue waits a second",
        {"state": lite_pull.AssignedState(paused=True), "dropped": True},
        pulling.PullLater(1.0, pulling.WaitReason.PAUSED),
    ),
    (
        "so does one that is not assigned",
        {"state": None},
        pulling.PullLater(1.0, pulling.WaitReason.PAUSED),
    ),
    ("a dropped queue ends", {"dropped": True}, pulling.StopPulling()),
    (
        "1000 cached batches of 10 are allowed",
        {"cached_batches": 1000},
        lite_pull.PullFrom(A, 7, STATE),
    ),
    ("1001 are not", {"cached_batches": 1001}, FULL),
    ("1001 messages of a queue are not", {"count": 1001}, FULL),
    (
        "101 MiB are not",
        {"size": 101 * MIB},
        pulling.PullLater(0.05, pulling.WaitReason.TOO_MANY_BYTES),
    ),
    (
        "a span over 2000 is not",
        {"span": 2001},
        pulling.PullLater(0.05, pulling.WaitReason.SPAN_TOO_LONG),
    ),
    (
        "a seek goes first and moves what is committed",
        {"state": replace(STATE, seek_offset=3)},
        lite_pull.PullFrom(A, 3, lite_pull.AssignedState(pull_offset=7, consume_offset=3)),
    ),
    (
        "a seek to 0 is a seek",
        {"state": replace(STATE, seek_offset=0)},
        lite_pull.PullFrom(A, 0, lite_pull.AssignedState(pull_offset=7, consume_offset=0)),
    ),
    (
        "a new queue reads its offset",
        {"state": lite_pull.AssignedState()},
        ReadOffset(A, memory_first=True),
    ),
]


@pytest.mark.parametrize(("rule", "changes", "step"), BEFORE, ids=[row[0] for row in BEFORE])
def test_before_a_pull(
    rule: str, changes: dict[str, object], step: lite_pull.BeforeLitePull
) -> None:
    assert lite_pull.before_lite_pull(replace(IDLE, **changes)) == step


FOUND = lite_pull.LitePullAnswer(queue=A, status=pulling.PullStatus.FOUND, next_offset=9, found=2)
NEXT = [lite_pull.SetPullOffset(A, 9), lite_pull.ScheduleTask(A)]
AFTER: list[tuple[str, lite_pull.LitePullAnswer, list[Instruction]]] = [
    ("found: cache and go on", FOUND, [pulling.CacheMessages(A), *NEXT]),
    ("found, all of other tags", replace(FOUND, found=0), NEXT),
    ("nothing new", replace(FOUND, status=pulling.PullStatus.NO_NEW_MSG, found=0), NEXT),
    (
        "an illegal offset moves on",
        replace(FOUND, status=pulling.PullStatus.OFFSET_ILLEGAL, found=0),
        NEXT,
    ),
    (
        "a seek meanwhile makes the answer void",
        replace(FOUND, seek_offset=0),
        [lite_pull.ScheduleTask(A)],
    ),
    ("cancelled meanwhile", replace(FOUND, cancelled=True), [pulling.StopPulling()]),
    ("dropped meanwhile", replace(FOUND, dropped=True), [pulling.StopPulling()]),
]


@pytest.mark.parametrize(("rule", "answer", "steps"), AFTER, ids=[row[0] for row in AFTER])
def test_after_a_pull(
    rule: str, answer: lite_pull.LitePullAnswer, steps: list[Instruction]
) -> None:
    assert list(lite_pull.after_lite_pull(answer)) == steps


@pytest.mark.parametrize(("code", "after"), [(215, 0.02), (24, 1.0), (None, 1.0)])
def test_errors_are_tried_again(code: int | None, after: float) -> None:
    assert lite_pull.after_lite_pull_error(A, code) == lite_pull.ScheduleTask(A, after)


def test_a_start_that_is_not_known_is_tried_again() -> None:
    assert lite_pull.lite_start_failed(A, OFFSET_UNKNOWN) == lite_pull.ScheduleTask(A, 1.0)
    assert lite_pull.lite_start_failed(A, NO_OFFSET) == lite_pull.ScheduleTask(A, 3.0)


def test_polling_commits_every_five_seconds() -> None:
    assert lite_pull.auto_commit(deadline=10.0, now=9.9) == lite_pull.AutoCommit(False, 10.0)
    assert lite_pull.auto_commit(deadline=10.0, now=10.0) == lite_pull.AutoCommit(True, 15.0)


@pytest.mark.parametrize(
    ("state", "dropped", "step"),
    [
        (STATE, False, UpdateOffset(A, 5, increase_only=False)),
        (STATE, True, None),
        (lite_pull.AssignedState(pull_offset=7), False, None),
        (None, False, None),
    ],
)
def test_a_commit_notes_what_was_polled(
    state: lite_pull.AssignedState | None, dropped: bool, step: UpdateOffset | None
) -> None:
    assert lite_pull.commit_step(A, state, dropped=dropped) == step


def test_a_seek_stays_inside_the_queue() -> None:
    lite_pull.check_seek(3, 3, 9)
    lite_pull.check_seek(9, 3, 9)
    for offset in (2, 10):
        with pytest.raises(InvalidInput, match=f"offset {offset}; the queue has offsets 3 to 9"):
            lite_pull.check_seek(offset, 3, 9)
