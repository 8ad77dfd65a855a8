"""What a member tells of its hand-overs, in whatever order it learns about them."""

from pocketmq.balance.handover.instructions import HandoverKind, ReportChange
from pocketmq.client.group.handover.story import HandoverStory
from pocketmq.model import MessageQueue
from pocketmq.model.rebalance_event import Handover
from tests.client.group.handover.test_queues import shell

QUEUE = MessageQueue("orders", "broker-0", 0)
HEIR = "10.0.0.1@heir@pm1"


def told(story: HandoverStory) -> list[Handover]:
    """Report what was not reported yet, and return all hand-overs of the queue."""
    story.finish()
    events = story.history.events
    return [each for event in events for each in event.handovers if each.queue == QUEUE]


async def test_a_queue_that_is_drained_before_its_heir_is_known_keeps_its_times() -> None:
    """Else it would count as owned twice until the giver told of its other queues."""
    async with shell() as a:
        story, me = a.sticky.story, a.parts.session.client_id
        before = told(story)
        story.released(QUEUE)
        story.drained(QUEUE)
        assert told(story) == before
        story.reported(ReportChange(QUEUE, HandoverKind.OVERLAP, me, HEIR, 7))
        one = told(story)[-1]
        assert (one.giver, one.heir, one.offset) == (me, HEIR, 7)
        assert one.stopped is not None
        assert one.drained is not None
        assert one.stopped <= one.drained


async def test_times_of_an_earlier_owner_are_not_those_of_the_next_hand_over() -> None:
    async with shell() as a:
        story, me = a.sticky.story, a.parts.session.client_id
        story.released(QUEUE)
        story.drained(QUEUE)
        told(story)
        story.reported(ReportChange(QUEUE, HandoverKind.ORPHAN, None, me, 7))
        one = told(story)[-1]
        assert (one.heir, one.stopped, one.drained) == (me, None, None)


async def test_a_queue_that_turns_round_is_told_as_two_hand_overs() -> None:
    """Else the member would count as its owner while another one was."""
    async with shell() as a:
        story, me = a.sticky.story, a.parts.session.client_id
        told(story)
        story.released(QUEUE)
        story.reported(ReportChange(QUEUE, HandoverKind.OVERLAP, me, HEIR, 7))
        story.drained(QUEUE)
        story.taken(QUEUE, 9)
        story.reported(ReportChange(QUEUE, HandoverKind.OVERLAP, HEIR, me, 9))
        story.released(QUEUE)
        story.drained(QUEUE)
        story.reported(ReportChange(QUEUE, HandoverKind.OVERLAP, me, HEIR, 11))
        gave, took, again = told(story)[-3:]
        assert (gave.giver, gave.heir, gave.offset, gave.started) == (me, HEIR, 7, None)
        assert (took.giver, took.heir, took.offset, took.stopped) == (HEIR, me, 9, None)
        assert (again.giver, again.heir, again.offset, again.started) == (me, HEIR, 11, None)
        assert gave.stopped is not None
        assert took.started is not None
        assert again.stopped is not None
        assert gave.stopped <= took.started <= again.stopped
