"""Where a queue starts, row by row; offsets in memory, and what a reset does to them."""

import pytest

from pocketmq.balance.consumer import instructions
from pocketmq.balance.consumer.offsets import (
    NO_OFFSET,
    OFFSET_UNKNOWN,
    SETTLE_TIME,
    NotedOffsets,
    PauseConsumer,
    ResumeConsumer,
    StartRule,
    StartStep,
    after_answer,
    begin_reset,
    finish_reset,
    offset_after_refusal,
    read_step,
    start_step,
)
from pocketmq.balance.profile import V4, V5, Profile
from pocketmq.model import ConsumeFromWhere, ConsumeType
from tests.balance.consumer.shapes import q

PUSH, LITE = ConsumeType.CONSUME_PASSIVELY, ConsumeType.CONSUME_ACTIVELY
NORMAL, RETRY = q(0), q(0, topic="%RETRY%g")
LAST = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
TIME = ConsumeFromWhere.CONSUME_FROM_TIMESTAMP
DEPRECATED = [
    ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST,
    ConsumeFromWhere.CONSUME_FROM_MIN_OFFSET,
    ConsumeFromWhere.CONSUME_FROM_MAX_OFFSET,
]
T = 1_700_000_000_000
TABLE = [
    (LAST, instructions.AskMaxOffset(NORMAL)),
    (LAST, instructions.UseOffset(RETRY, 0)),
    (FIRST, instructions.UseOffset(NORMAL, 0)),
    (FIRST, instructions.UseOffset(RETRY, 0)),
    (TIME, instructions.SearchOffset(NORMAL, T)),
    (TIME, instructions.AskMaxOffset(RETRY)),
]


@pytest.mark.parametrize("kind", [PUSH, LITE])
@pytest.mark.parametrize(("where", "unstored"), TABLE)
def test_table(kind: ConsumeType, where: ConsumeFromWhere, unstored: StartStep) -> None:
    rule = StartRule(where, T, kind)
    queue = unstored.queue
    assert start_step(queue, 42, rule) == instructions.UseOffset(queue, 42)
    assert start_step(queue, 0, rule) == instructions.UseOffset(queue, 0)
    assert start_step(queue, NO_OFFSET, rule) == unstored
    unknown = instructions.SkipQueue(queue, instructions.SkipReason.OFFSET_UNKNOWN)
    assert start_step(queue, OFFSET_UNKNOWN, rule) == unknown
    assert start_step(queue, -3, rule) == unknown


@pytest.mark.parametrize("where", DEPRECATED)
def test_deprecated_values_mean_last_offset_to_a_push_consumer(where: ConsumeFromWhere) -> None:
    for queue in (NORMAL, RETRY):
        for stored in (7, NO_OFFSET, OFFSET_UNKNOWN):
            expected = start_step(queue, stored, StartRule(LAST))
            assert start_step(queue, stored, StartRule(where)) == expected


@pytest.mark.parametrize("where", DEPRECATED)
def test_deprecated_values_never_start_a_pull_consumer(where: ConsumeFromWhere) -> None:
    step = start_step(NORMAL, 7, StartRule(where, consume_type=LITE))
    assert step == instructions.SkipQueue(NORMAL, instructions.SkipReason.OFFSET_UNKNOWN)


def test_only_pull_consumers_trust_their_memory() -> None:
    assert read_step(NORMAL, StartRule()) == instructions.ReadOffset(NORMAL, memory_first=False)
    assert read_step(NORMAL, StartRule(consume_type=LITE)) == instructions.ReadOffset(
        NORMAL, memory_first=True
    )


@pytest.mark.parametrize(
    ("answer", "step"),
    [
        (9, instructions.UseOffset(NORMAL, 9)),
        (0, instructions.UseOffset(NORMAL, 0)),
        (-1, instructions.SkipQueue(NORMAL, instructions.SkipReason.OFFSET_ANSWER_FAILED)),
        (None, instructions.SkipQueue(NORMAL, instructions.SkipReason.OFFSET_ANSWER_FAILED)),
    ],
)
def test_a_brokers_answer_is_used_if_it_is_an_offset(answer: int | None, step: StartStep) -> None:
    assert after_answer(NORMAL, answer) == step


@pytest.mark.parametrize(
    ("profile", "code", "meaning"),
    [(V4, 22, NO_OFFSET), (V4, 1, NO_OFFSET), (V5, 22, NO_OFFSET), (V5, 1, OFFSET_UNKNOWN)],
)
def test_4x_takes_every_refusal_as_no_offset(profile: Profile, code: int, meaning: int) -> None:
    assert offset_after_refusal(profile, code) == meaning


A, B, U = q(0), q(1), q(0, topic="U")


def test_an_offset_not_noted_is_minus_one() -> None:
    assert NotedOffsets().read(A) == -1


def test_handlers_that_finish_late_do_not_go_back() -> None:
    table = NotedOffsets()
    table.update(A, 5, increase_only=True)
    table.update(A, 3, increase_only=True)
    assert table.read(A) == 5
    table.update(A, 3, increase_only=False)
    assert table.read(A) == 3


def test_a_frozen_offset_stays_until_it_is_forgotten() -> None:
    table = NotedOffsets()
    table.update(A, 5, increase_only=True)
    table.freeze(A, 2)
    table.update(A, 9, increase_only=True)
    table.update(A, 9, increase_only=False)
    assert table.read(A) == 2
    table.forget(A)
    table.update(A, 9, increase_only=True)
    assert table.read(A) == 9


def test_persisting_sends_held_queues_and_forgets_the_others() -> None:
    table = NotedOffsets()
    for number, queue in enumerate((A, B, U)):
        table.update(queue, number, increase_only=True)
    table.freeze(B, 7)
    assert table.to_persist([A, U, q(9)]) == {A: 0, U: 2}
    assert (len(table), table.read(B)) == (2, -1)
    table.update(B, 1, increase_only=True)
    assert table.read(B) == 1


def test_holding_nothing_sends_and_forgets_nothing() -> None:
    table = NotedOffsets()
    table.update(A, 1, increase_only=True)
    assert table.to_persist(()) == {}
    assert table.read(A) == 1


def test_offsets_are_told_by_topic_or_all() -> None:
    table = NotedOffsets()
    table.update(A, 1, increase_only=True)
    table.update(U, 2, increase_only=True)
    assert table.of_topic("U") == {U: 2}
    assert table.of_topic(" ") == table.of_topic(None) == {A: 1, U: 2}


def test_a_reset_pauses_clears_waits_commits_and_resumes() -> None:
    offsets = {A: 10, q(5): 50, U: 3}
    held = (A, B, U)
    assert SETTLE_TIME == 10.0
    assert begin_reset("T", offsets, held) == (
        PauseConsumer(),
        instructions.DropQueue(A),
        instructions.ClearQueue(A),
    )
    assert finish_reset("T", offsets, held) == (
        instructions.UpdateOffset(A, 10, increase_only=False),
        instructions.ReleaseQueue(A),
        instructions.RemoveQueue(A),
        ResumeConsumer(),
    )


def test_a_reset_of_nothing_held_still_resumes() -> None:
    assert begin_reset("T", {A: 1}, ()) == (PauseConsumer(),)
    assert finish_reset("T", {A: 1}, ()) == (ResumeConsumer(),)
