"""Offsets in memory, and what a reset does to them."""

from pocketmq.balance.consumer.instructions import (
    ClearQueue,
    DropQueue,
    ReleaseQueue,
    RemoveQueue,
    UpdateOffset,
)
from pocketmq.balance.consumer.offset_table import OffsetTable
from pocketmq.balance.consumer.reset import (
    SETTLE_TIME,
    PauseConsumer,
    ResumeConsumer,
    begin_reset,
    finish_reset,
)
from tests.balance.consumer.shapes import q

A, B, U = q(0), q(1), q(0, topic="U")


def test_an_offset_not_noted_is_minus_one() -> None:
    assert OffsetTable().read(A) == -1


def test_handlers_that_finish_late_do_not_go_back() -> None:
    table = OffsetTable()
    table.update(A, 5, increase_only=True)
    table.update(A, 3, increase_only=True)
    assert table.read(A) == 5
    table.update(A, 3, increase_only=False)
    assert table.read(A) == 3


def test_a_frozen_offset_stays_until_it_is_forgotten() -> None:
    table = OffsetTable()
    table.update(A, 5, increase_only=True)
    table.freeze(A, 2)
    table.update(A, 9, increase_only=True)
    table.update(A, 9, increase_only=False)
    assert table.read(A) == 2
    table.forget(A)
    table.update(A, 9, increase_only=True)
    assert table.read(A) == 9


def test_persisting_sends_held_queues_and_forgets_the_others() -> None:
    table = OffsetTable()
    for number, queue in enumerate((A, B, U)):
        table.update(queue, number, increase_only=True)
    table.freeze(B, 7)
    assert table.to_persist([A, U, q(9)]) == {A: 0, U: 2}
    assert (len(table), table.read(B)) == (2, -1)
    table.update(B, 1, increase_only=True)
    assert table.read(B) == 1


def test_holding_nothing_sends_and_forgets_nothing() -> None:
    table = OffsetTable()
    table.update(A, 1, increase_only=True)
    assert table.to_persist(()) == {}
    assert table.read(A) == 1


def test_offsets_are_told_by_topic_or_all() -> None:
    table = OffsetTable()
    table.update(A, 1, increase_only=True)
    table.update(U, 2, increase_only=True)
    assert table.of_topic("U") == {U: 2}
    assert table.of_topic(" ") == table.of_topic(None) == {A: 1, U: 2}


def test_a_reset_pauses_clears_waits_commits_and_resumes() -> None:
    offsets = {A: 10, q(5): 50, U: 3}
    held = (A, B, U)
    assert SETTLE_TIME == 10.0
    assert begin_reset("T", offsets, held) == (PauseConsumer(), DropQueue(A), ClearQueue(A))
    assert finish_reset("T", offsets, held) == (
        UpdateOffset(A, 10, increase_only=False),
        ReleaseQueue(A),
        RemoveQueue(A),
        ResumeConsumer(),
    )


def test_a_reset_of_nothing_held_still_resumes() -> None:
    assert begin_reset("T", {A: 1}, ()) == (PauseConsumer(),)
    assert finish_reset("T", {A: 1}, ()) == (ResumeConsumer(),)
