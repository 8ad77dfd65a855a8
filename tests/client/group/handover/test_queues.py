"""What instructions do to a member's queues: the parts that a running group rarely shows."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from pocketmq.balance.handover import events
from pocketmq.balance.handover import instructions as do
from pocketmq.client.group.handover.queues import HandoverQueues
from pocketmq.client.group.held_queue import HeldQueue, HoldState
from pocketmq.client.producer.producer import Producer
from pocketmq.client.push.member import PushMember
from pocketmq.client.questions.offsets import commit
from pocketmq.client.session_questions import ask_session
from pocketmq.embedded.aio import Cluster
from pocketmq.model import Message, MessageQueue
from tests.client.group.groups import Member, cluster
from tests.client.group.handover.sticky import even, sticky
from tests.loops import until

QUEUE = MessageQueue("orders", "broker-0", 0)


class Shell:
    """The queues of a running member, instructed by the test; what they report is kept."""

    def __init__(self, running: Cluster, one: Member) -> None:
        self.running, self.one = running, one
        found = one.consumer._life.member
        assert isinstance(found, PushMember)
        sticky = found.sticky
        assert sticky is not None
        self.sticky = sticky
        self.parts = sticky._parts
        self.reports: list[events.HandoverEvent] = []
        made = sticky._queues
        self.holdings: Any = made._holdings
        self.handled: Any = made._handled
        self.queues: HandoverQueues[HeldQueue] = HandoverQueues(
            self.parts, self.holdings, self.handled, self.reports.append
        )
        self.commits = made.commits

    @property
    def held(self) -> HeldQueue:
        return self.parts.queues.pulled[QUEUE]

    async def send(self, count: int) -> None:
        async with Producer(self.running.address, group="shop") as producer:
            for number in range(count):
                await producer.send(Message("orders", b"%d" % number), queue=QUEUE)

    async def commit(self, offset: int) -> None:
        """Commit as another member would."""
        await ask_session(self.parts.session, commit(self.parts.group, QUEUE, offset))

    async def reported(self, what: Callable[[events.HandoverEvent], bool]) -> None:
        await until(lambda: any(what(each) for each in self.reports), "a report")


@asynccontextmanager
async def shell(**settings: Any) -> AsyncIterator[Shell]:
    async with (
        cluster(1, 1) as running,
        sticky(running.address, "a", stop_wait=0.5, **settings) as one,
    ):
        await even(one, queues=1)
        made = Shell(running, one)
        yield made
        for event in made.reports:  # so that the member can leave
            made.sticky._post(event)


async def test_a_queue_that_another_member_had_meanwhile_stays_fenced() -> None:
    async with shell() as a:
        a.queues.fence(QUEUE)
        await a.commit(1_000_000)
        a.queues.resume(QUEUE)
        assert a.held.state is HoldState.FENCED
        await until(lambda: a.reports == [events.Overtaken(QUEUE)], "the report")
        assert a.held.state is HoldState.FENCED


async def test_a_fenced_queue_goes_on_once_the_stored_offset_is_read() -> None:
    async with shell() as a:
        a.queues.fence(QUEUE)
        a.queues.resume(QUEUE)
        assert a.held.state is HoldState.FENCED
        await until(lambda: a.held.state is HoldState.OWNED, "the queue to go on")
        assert a.reports == []


async def test_a_second_fence_ends_the_resume_before_it() -> None:
    async with shell() as a:
        a.queues.fence(QUEUE)
        a.queues.resume(QUEUE)
        a.queues.fence(QUEUE)
        assert await a.commits.recheck(QUEUE) is False  # as long as the resume would have taken
        assert await a.commits.recheck(QUEUE) is False
        assert a.held.state is HoldState.FENCED
        a.queues.resume(QUEUE)
        await until(lambda: a.held.state is HoldState.OWNED, "the queue to go on")


async def test_a_stop_does_not_lift_a_fence() -> None:
    async with shell() as a:
        a.queues.fence(QUEUE)
        a.queues.stop_starting(do.StopStarting(QUEUE))
        assert a.held.state is HoldState.FENCED
        await a.commit(1_000_000)
        a.queues.resume(QUEUE)
        await until(lambda: events.Overtaken(QUEUE) in a.reports, "the report")
