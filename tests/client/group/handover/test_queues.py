"""What instructions do to a member's queues: the parts that a running group rarely shows."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from pocketmq.balance.handover import events
from pocketmq.balance.handover import instructions as do
from pocketmq.client.group.handover.queues import HandoverQueues
from pocketmq.client.group.held_queue import HeldQueue, HoldState
from pocketmq.client.group.pulling import PullResult
from pocketmq.client.producer.producer import Producer
from pocketmq.client.push.handing import PushHandled
from pocketmq.client.push.member import PushMember
from pocketmq.client.questions.offsets import commit
from pocketmq.client.session import ask_session
from pocketmq.embedded.aio import Cluster
from pocketmq.model import Message, MessageQueue
from pocketmq.protocol import ReceivedMessage
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


async def test_messages_of_a_hole_that_are_not_delivered_are_not_skipped() -> None:
    """As from a master that was promoted, and has less than the one before."""
    asked: list[int] = []

    async with shell() as a:

        class Watched(PushHandled):
            async def pull(self, held: HeldQueue, offset: int) -> PullResult:
                pulled = await super().pull(held, offset)
                asked.append(offset)
                return pulled

        a.queues._handled = Watched(a.handled._parts, a.holdings, a.handled._pulling)
        a.queues.fill_hole(do.FillHole(QUEUE, 5, 8))
        await until(lambda: len(asked) == 2, "two pulls")
        assert asked == [5, 5]
        assert a.reports == []
        await a.send(8)
        await until(lambda: a.reports == [events.HoleFilled(QUEUE)], "the hole to be filled")
        assert {5, 6, 7} <= {message.queue_offset for message in a.one.got}


async def test_the_next_owner_starts_after_a_message_that_becomes_a_dead_letter() -> None:
    running, end = asyncio.Event(), asyncio.Event()

    async def handle(_: ReceivedMessage) -> None:
        running.set()
        await end.wait()
        raise ValueError("never works")

    async with shell(orderly=True, max_reconsume_times=0, handler=handle) as a:
        await a.send(1)
        await running.wait()
        a.queues.stop_starting(do.StopStarting(QUEUE))
        end.set()
        await until(lambda: len(a.reports) == 1, "the answer")
        assert a.reports == [events.StartingStopped(QUEUE, 1)]


async def test_batches_turned_away_by_a_fence_begin_in_order() -> None:
    begun: list[int] = []
    end = asyncio.Event()

    async def handle(messages: Sequence[ReceivedMessage]) -> None:
        begun.append(messages[0].queue_offset)
        await end.wait()

    async with shell(handler=handle, batch=True, handler_batch=2) as a:
        a.queues.fence(QUEUE)
        a.holdings.end_loop(a.held)
        await a.send(4)
        pulled = await a.handled.pull(a.held, 0)
        a.held.next_offset = pulled.next_offset
        a.handled.arrived(a.held, pulled.messages)
        await until(lambda: len(a.held.parked) == 4, "all to be turned away")
        a.held.parked.reverse()  # as threads may give them back
        a.queues.resume(QUEUE)
        await until(lambda: len(begun) == 2, "both calls to begin")
        a.queues.stop_starting(do.StopStarting(QUEUE))
        assert begun == [0, 2]
        assert a.reports == [events.StartingStopped(QUEUE, 4)]
        end.set()


async def test_a_message_without_a_handler_waits_at_the_fence() -> None:
    async with shell() as a:
        await until(lambda: len(a.parts.queues.pulled) == 2, "the retry topic's queue")
        retry = next(queue for queue in a.parts.queues.pulled if queue != QUEUE)
        held = a.parts.queues.pulled[retry]
        await until(lambda: held.template is not None, "the first pull: a fenced queue has none")
        a.queues.fence(retry)
        async with Producer(a.running.address, group="shop") as producer:
            await producer.send(Message(retry.topic, b"x"), queue=retry)
        await until(lambda: len(held.parked) == 1, "the message to be turned away")
        assert len(held.process) == 1
        a.queues.resume(retry)
        await until(lambda: len(held.process) == 0, "the message to be requeued")


async def test_a_queue_released_to_a_foreign_member_is_not_taken_back_by_its_last_offset() -> None:
    """That member starts at once, and has committed more before the last handler ends."""
    running, end = asyncio.Event(), asyncio.Event()

    async def handle(_: ReceivedMessage) -> None:
        running.set()
        await end.wait()

    async with shell(handler=handle, threads=2, commit_interval=0.01) as a:
        await a.send(4)
        await running.wait()
        a.queues.stop_starting(do.StopStarting(QUEUE, foreign=True))
        assert a.reports == [events.StartingStopped(QUEUE, 2)]
        await a.commit(200)
        end.set()
        a.queues.drain(do.Drain(QUEUE))
        await until(lambda: a.reports[1:] == [events.Drained(QUEUE)], "the end")
        assert await a.commits.read(QUEUE) == 200


async def test_a_fence_in_the_midst_of_the_last_commit_puts_it_off() -> None:
    async with shell(commit_interval=60.0) as a:
        await a.send(2)
        await until(lambda: len(a.one.got) == 2 and not len(a.held.process), "all messages")
        a.queues.stop_starting(do.StopStarting(QUEUE))
        a.commits.persist(QUEUE)  # `settle` waits for it
        a.queues.drain(do.Drain(QUEUE))
        await asyncio.sleep(0)
        a.queues.fence(QUEUE)
        await until(lambda: a.commits._lines[QUEUE].busy is None, "the commit to be called back")
        await a.commit(1)  # as the owner since: it must not be passed
        for _ in range(20):
            await asyncio.sleep(0)
        assert await a.commits.read(QUEUE) == 1
        assert a.reports == [events.StartingStopped(QUEUE, 2)]
        a.queues.resume(QUEUE)
        await until(lambda: a.reports[1:] == [events.Drained(QUEUE)], "the end")
        assert await a.commits.read(QUEUE) == 2


async def test_a_hole_is_filled_whatever_goes_wrong_and_beside_damage_elsewhere() -> None:
    async with shell() as a:
        await a.send(4)
        await until(lambda: len(a.one.got) == 4, "all messages")
        suspicion, failed = a.held.suspicion, asyncio.Event()
        suspicion._tries = 2  # the queue's own loop has a damaged record before it
        own = a.handled._pulling.pull

        async def pull(held: HeldQueue, *asked: Any) -> PullResult:
            if not failed.is_set():
                failed.set()
                raise RuntimeError("nobody expected this")
            result: PullResult = await own(held, *asked)
            return result

        a.handled._pulling.pull = pull
        a.holdings.end_loop(a.held)
        a.queues.fill_hole(do.FillHole(QUEUE, 1, 3))
        await until(lambda: a.reports == [events.HoleFilled(QUEUE)], "the hole to be filled")
        assert failed.is_set()
        assert suspicion._tries == 2
        assert a.commits._lines[QUEUE].hole is None
        del a.handled._pulling.pull


async def test_a_fence_calls_the_commit_in_flight_back() -> None:
    """It may wait for a connection; sent later, it would pass over what the next owner stored."""
    async with shell(commit_interval=60.0) as a:
        before = await a.commits.read(QUEUE)
        a.commits.table.update(QUEUE, 5, increase_only=False)
        a.commits.persist(QUEUE)
        a.queues.fence(QUEUE)
        await until(lambda: a.commits._lines[QUEUE].busy is None, "the commit to end")
        assert await a.commits.read(QUEUE) == before
