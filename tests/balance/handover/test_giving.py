"""What a giver tells its shell and the next owner, and how soon the next owner can start."""

import pytest
from msgspec.structs import replace

from pocketmq.balance.handover.events import LockPart
from pocketmq.balance.handover.giving import claimed, release, starting_stopped, unlocked
from pocketmq.balance.handover.instructions import (
    BOTH,
    RUN,
    TAIL,
    FillHole,
    HandoverKind,
    LiftBarrier,
    Lock,
    ReadStart,
    Run,
    StopStarting,
    Tell,
    Unlock,
)
from pocketmq.balance.handover.messages import Give
from pocketmq.balance.handover.queue import poll
from pocketmq.balance.handover.settings import HandoverSettings
from pocketmq.balance.handover.stay import NONE, Pending, Phase, Stay, Step
from pocketmq.balance.handover.steps import drop
from pocketmq.balance.handover.tail import Others, watch_tail
from pocketmq.balance.handover.taking import claim, given, locked, offset_read
from pocketmq.model import MessageQueue

QUEUE = MessageQueue("orders", "a", 0)
SETTINGS = HandoverSettings(group="g", client_id="me@pm1", boot="1")


def running(kind: HandoverKind) -> Stay:
    return Stay(queue=QUEUE, phase=Phase.RUNNING, locks=BOTH, kind=kind)


@pytest.mark.parametrize("kind", HandoverKind)
def test_a_release_to_a_foreign_member_says_so(kind: HandoverKind) -> None:
    step = release(running(HandoverKind.OVERLAP), kind, 1.0)
    assert step.instructions == (StopStarting(QUEUE, foreign=kind is HandoverKind.FOREIGN),)


def test_a_queue_that_came_from_a_foreign_member_is_given_to_one_of_ours_as_any_other() -> None:
    step = claimed(running(HandoverKind.FOREIGN), "you@pm1", 1, 1.0)
    assert step.instructions == (StopStarting(QUEUE, foreign=False),)


def stopping() -> Stay:
    stay = claimed(running(HandoverKind.OVERLAP), "you@pm1", 7, 1.0).stay
    assert stay is not None
    return stay


def test_the_give_travels_beside_the_unlock_and_not_again_after_it() -> None:
    step = starting_stopped(stopping(), 41, SETTINGS, 1.0)
    give = Tell("a", Give("you@pm1", QUEUE, 41, 7))
    assert step.instructions == (Unlock(QUEUE, RUN, SETTINGS.owner), give)
    assert step.stay is not None
    assert give not in unlocked(step.stay, RUN, SETTINGS, 1.1, done=True).instructions


@pytest.mark.parametrize("number", [8, 7, 0], ids=["next", "of an heir that started again", "none"])
def test_a_claim_that_comes_during_the_unlock_is_answered_after_it(number: int) -> None:
    step = starting_stopped(stopping(), 41, SETTINGS, 1.0)
    assert step.stay is not None
    again = claimed(step.stay, "you@pm1", number, 1.1)
    assert again.instructions == ()
    assert again.stay is not None
    told = unlocked(again.stay, RUN, SETTINGS, 1.2, done=True).instructions
    assert Tell("a", Give("you@pm1", QUEUE, 41, number)) in told


def test_a_queue_that_is_dropped_during_the_unlock_gives_both_locks_back() -> None:
    step = starting_stopped(stopping(), 41, SETTINGS, 1.0)
    assert step.stay is not None
    dropped = drop(step.stay, SETTINGS, 1.1, HandoverKind.LOST)
    assert dropped.stay is not None
    rest = unlocked(dropped.stay, RUN, SETTINGS, 1.2, done=True)
    assert rest.instructions == (Unlock(QUEUE, TAIL, SETTINGS.owner),)


def test_no_give_leaves_before_its_unlock() -> None:
    """A renewal that is under way could take the lock again after an unlock."""
    step = starting_stopped(replace(stopping(), renewing=True), 41, SETTINGS, 1.0)
    assert step.instructions == ()


def heir(granted: frozenset[LockPart]) -> Step:
    waiting = claim(Stay(queue=QUEUE), "you@pm1", 7, 1.0)
    asked = given(waiting, "you@pm1", Give("me@pm1", QUEUE, 41, 7), SETTINGS, 1.1)
    assert asked.instructions == (Lock(QUEUE, BOTH),)
    assert asked.stay is not None
    step = locked(asked.stay, granted, SETTINGS, 1.2)
    assert step.instructions == (ReadStart(QUEUE),)
    return step


def test_an_heir_of_a_giver_that_has_finished_asks_for_locks_once() -> None:
    stay = heir(BOTH).stay
    assert stay is not None
    assert Run(QUEUE, 41, None) in offset_read(stay, 41, SETTINGS, 1.3, stored=True).instructions


@pytest.mark.parametrize("granted", [RUN, BOTH], ids=["tail with the giver", "tail free"])
def test_an_heir_leaves_the_messages_of_a_giver_that_is_there_alone(
    granted: frozenset[LockPart],
) -> None:
    """A broker that was started anew grants the tail, though the giver is still at work."""
    stay = heir(granted).stay
    assert stay is not None
    step = offset_read(stay, 39, SETTINGS, 1.3, stored=True)
    assert Run(QUEUE, 41, 41) in step.instructions
    assert step.stay is not None
    step = watch_tail(step.stay, Others(peer_away=False), SETTINGS, 1.5)
    assert step.instructions == (ReadStart(QUEUE),)
    assert step.stay is not None
    assert offset_read(step.stay, 39, SETTINGS, 1.6, stored=True).instructions == ()
    assert offset_read(step.stay, 99, SETTINGS, 1.6, stored=False).instructions == ()
    finished = offset_read(step.stay, 41, SETTINGS, 1.6, stored=True)
    assert finished.instructions == (LiftBarrier(QUEUE),)


def test_an_heir_that_is_quicker_than_the_unlock_asks_again_at_once() -> None:
    waiting = claim(Stay(queue=QUEUE), "you@pm1", 7, 1.0)
    step = given(waiting, "you@pm1", Give("me@pm1", QUEUE, 41, 7), SETTINGS, 1.1)
    assert step.stay is not None
    refused = locked(step.stay, NONE, SETTINGS, 1.102).stay
    assert refused is not None
    assert refused.retry_at == pytest.approx(1.112)
    step = poll(refused, Others(), SETTINGS, 1.112)
    assert step.instructions == (Lock(QUEUE, BOTH),)
    assert step.stay is not None
    late = locked(step.stay, NONE, SETTINGS, 1.31).stay
    assert late is not None
    assert late.phase is Phase.WANTED


def test_an_heir_that_gets_the_tail_alone_gives_it_back() -> None:
    waiting = claim(Stay(queue=QUEUE), "you@pm1", 7, 1.0)
    asked = given(waiting, "you@pm1", Give("me@pm1", QUEUE, 41, 7), SETTINGS, 1.1).stay
    assert asked is not None
    assert locked(asked, TAIL, SETTINGS, 1.102).instructions == (
        Unlock(QUEUE, TAIL, SETTINGS.owner),
    )


def test_an_heir_that_has_the_tail_handles_what_a_giver_that_is_gone_left() -> None:
    stay = heir(BOTH).stay
    assert stay is not None
    running_on = offset_read(stay, 39, SETTINGS, 1.3, stored=True).stay
    assert running_on is not None
    step = watch_tail(running_on, Others(peer_away=True), SETTINGS, 1.5)
    assert step.stay is not None
    assert Pending.READ in step.stay.pending
    filled = offset_read(step.stay, 39, SETTINGS, 1.6, stored=True)
    assert filled.instructions == (FillHole(QUEUE, 39, 41),)
