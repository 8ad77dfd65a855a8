"""What a giver's shell is told about the next owner."""

import pytest

from pocketmq.balance.handover.giving import claimed, release
from pocketmq.balance.handover.instructions import BOTH, HandoverKind, StopStarting
from pocketmq.balance.handover.stay import Phase, Stay
from pocketmq.model import MessageQueue

QUEUE = MessageQueue("orders", "a", 0)


def running(kind: HandoverKind) -> Stay:
    return Stay(queue=QUEUE, phase=Phase.RUNNING, locks=BOTH, kind=kind)


@pytest.mark.parametrize("kind", HandoverKind)
def test_a_release_to_a_foreign_member_says_so(kind: HandoverKind) -> None:
    step = release(running(HandoverKind.OVERLAP), kind, 1.0)
    assert step.instructions == (StopStarting(QUEUE, foreign=kind is HandoverKind.FOREIGN),)


def test_a_queue_that_came_from_a_foreign_member_is_given_to_one_of_ours_as_any_other() -> None:
    step = claimed(running(HandoverKind.FOREIGN), "you@pm1", 1, 1.0)
    assert step.instructions == (StopStarting(QUEUE, foreign=False),)
