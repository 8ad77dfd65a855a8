"""A running push consumer: its rooms put together, as its session and its work room see it.

Lives from start to stop; `push` is what applications hold, `life` starts and stops it. Belongs to
one event loop.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping

import msgspec

from pocketmq.balance.consumer import schedule as when
from pocketmq.balance.consumer.locks import after_lock_batch, lock_plan
from pocketmq.balance.consumer.pulling import offset_correction
from pocketmq.balance.consumer.rebalance import Member
from pocketmq.balance.consumer.start_offset import StartRule
from pocketmq.balance.profile import Profile
from pocketmq.client.consumer_options import PushConsumerOptions
from pocketmq.client.group.calls import group_connections
from pocketmq.client.group.held_queue import HeldQueue
from pocketmq.client.group.history_topic import HistoryTopic
from pocketmq.client.group.holdings import Holdings
from pocketmq.client.group.listeners import QueueListeners
from pocketmq.client.group.local_offsets import LocalOffsets, offsets_file
from pocketmq.client.group.offsets import OffsetStore, RemoteOffsets
from pocketmq.client.group.parts import Parts
from pocketmq.client.group.rebalancing import Rebalancing
from pocketmq.client.group.subscriptions import Subscriptions
from pocketmq.client.group.warnings import MembershipWatch
from pocketmq.client.push.locks import QueueLocks
from pocketmq.client.push.pulling import Puller
from pocketmq.client.push.resetting import Resetting
from pocketmq.client.push.trace import open_trace
from pocketmq.client.push.work import Consuming, TopicHandler, Work
from pocketmq.client.routes import KnownRoute
from pocketmq.client.session import Session
from pocketmq.client.tasks import Tasks
from pocketmq.model.kinds import ConsumeType, MessageModel
from pocketmq.model.members import ConsumerData
from pocketmq.model.names import is_retry_topic, wrap_namespace
from pocketmq.model.queue import MessageQueue
from pocketmq.model.subscription import Subscription
from pocketmq.protocol.bodies.running import DirectConsumeResult, RunningInfo
from pocketmq.protocol.received import ReceivedMessage

logger = logging.getLogger("pocketmq.client")

MakeWork = Callable[[Consuming], Work]

HALF_AN_HOUR_MS = 30 * 60 * 1000


class Engine:
    """One member of a group, at work: a `ConsumerMember` of its session, `Consuming` to its work.

    The methods of both are documented there.
    """

    def __init__(
        self,
        session: Session,
        options: PushConsumerOptions,
        subscriptions: Subscriptions,
        listeners: QueueListeners,
        make_work: MakeWork,
    ) -> None:
        self.session = session
        self.options = options
        self.model = options.model
        self.group = wrap_namespace(session.options.namespace, options.group)
        # Java waits for its timer when a route changes; nobody needs that pause.
        self.profile: Profile = msgspec.structs.replace(
            session.options.profile, rebalance_on_route_change=True
        )
        self.tasks = Tasks(f"{session.client_id}: consumer {options.group}")
        self.started_at_ms = session.clock.now_ms()
        self.listeners = listeners
        self.watch = MembershipWatch(self.group, options.model)
        self._subscriptions = subscriptions
        self._loop = asyncio.get_running_loop()
        self._looking = False
        self.parts = Parts(
            session=session,
            options=options,
            profile=self.profile,
            group=self.group,
            subscriptions=subscriptions,
            offsets=self._offset_store(),
            tasks=self.tasks,
            held={},
            popped={},
            limits=options.limits.in_force(),
            work=make_work(self),
        )
        member = self._member()
        self.locks = QueueLocks(session, self.group, self.tasks)
        self.puller = Puller(self.parts, member.start, self._correct)
        self.holdings = Holdings(self.parts, self.locks, self.puller)
        self.rebalancing = Rebalancing(
            self.parts,
            self.holdings,
            member,
            options.allocation(),
            changed=self.queues_changed,
            looked=self._look_at_group,
        )
        self._resetting = Resetting(self.parts, self.holdings, self._suspend, self._resume)
        self._publishers: list[HistoryTopic] = []
        self.tracer = open_trace(session, options, self.parts.work, self.tasks)

    def _offset_store(self) -> OffsetStore:
        options, session = self.options, self.session
        if options.model is MessageModel.BROADCASTING:
            return LocalOffsets(offsets_file(options.offsets_dir, session.client_id, self.group))
        return RemoteOffsets(session, self.group, self.profile)

    def _member(self) -> Member:
        options = self.options
        start_ms = self.started_at_ms - HALF_AN_HOUR_MS
        if options.start_at is not None:
            start_ms = int(options.start_at * 1000)
        return Member(
            profile=self.profile,
            group=self.group,
            client_id=self.session.client_id,
            strategy=options.allocation(),
            model=options.model,
            orderly=options.orderly,
            limits=options.limits,
            start=StartRule(options.consume_from, start_ms),
            client_rebalance=options.client_rebalance,
        )

    # What happens by itself

    async def announce(self) -> bool:
        """Tell brokers what is subscribed; True if one took note."""
        own = dict(self._subscriptions.own())
        taken = await self.session.heartbeats.beat(in_full=True)
        if taken:
            self.watch.announced(own)
        return taken

    async def persist_offsets(self) -> None:
        """Store the offsets of all held queues now."""
        await self.parts.offsets.persist_all(tuple(self.parts.held))

    async def renew_locks(self) -> None:
        """Ask all brokers for the locks of the held queues again, side by side."""
        plan = lock_plan(self.holdings.owned())
        answers = await asyncio.gather(*(self.locks.lock(batch) for batch in plan))
        for batch, granted in zip(plan, answers, strict=True):
            self.holdings.perform(after_lock_batch(batch, granted))

    def publish_history(self, topic: str, *, past: bool) -> None:
        """Send rebalance events to a topic from now on, those remembered first if asked for."""
        publisher = HistoryTopic(topic, self.session, self.tasks)
        history = self.rebalancing.history
        for event in history.events if past else ():
            publisher.publish(event)
        history.listen(publisher.publish)
        self._publishers.append(publisher)

    async def finish_history(self, patience: float) -> None:
        """Wait for events that are being published, but not longer than `patience`."""
        for publisher in self._publishers:
            await publisher.finish(patience)

    def queues_changed(
        self, released: tuple[MessageQueue, ...], acquired: tuple[MessageQueue, ...]
    ) -> None:
        """Tell the application's listeners what went and what came."""
        self.listeners.revoked([self.shown(queue) for queue in _own(released)], self.tasks)
        self.listeners.assigned([self.shown(queue) for queue in _own(acquired)], self.tasks)

    def _correct(self, held: HeldQueue, offset: int, after: float) -> None:
        """Set a queue right that was pulled outside what its broker holds."""
        logger.warning("%s: offset %s is not there; the broker says %s",
            held.queue, held.next_offset, offset)  # fmt: skip
        self.holdings.drop(held)
        self.tasks.spawn(self._correct_later(held, offset, after), f"correct {held.queue}")

    async def _correct_later(self, held: HeldQueue, offset: int, after: float) -> None:
        await asyncio.sleep(after)
        if self.parts.held.get(held.queue) is held:
            await self.holdings.correct(held, offset_correction(self.profile, held.queue, offset))

    def _suspend(self) -> None:
        self.parts.suspended = True
        self.rebalancing.tell(when.Paused())

    def _resume(self) -> None:
        self.parts.suspended = False
        self.rebalancing.tell(when.Resumed())

    def _look_at_group(self) -> None:
        if not self._looking:
            self._looking = True
            self.tasks.spawn(self._look(), "look at the group")

    async def _look(self) -> None:
        try:
            own = self._subscriptions.own()
            topic = next((t for t in own if self.session.routes.cached(t) is not None), None)
            if topic is None:
                return
            seen = await group_connections(self.session, topic, self.group)
            if seen is not None:
                self.watch.look(seen, self._subscriptions.own(), self.session.clock.now())
        finally:
            self._looking = False

    # For the session

    def topics(self) -> Collection[str]:  # noqa: D102
        return self._subscriptions.topics()

    def consumer_data(self) -> ConsumerData:  # noqa: D102
        return ConsumerData(
            group_name=self.group,
            consume_type=ConsumeType.CONSUME_PASSIVELY,
            message_model=self.model,
            consume_from_where=self.options.consume_from,
            subscription_data_set=list(self._subscriptions.all()),
            unit_mode=self.options.unit_mode,
        )

    def on_ids_changed(self) -> None:  # noqa: D102
        self.rebalancing.tell(when.IdsChanged())

    def on_route_changed(self, known: KnownRoute) -> None:  # noqa: D102
        self.rebalancing.route_changed(known)

    def on_broker_active(self, address: str) -> None:  # noqa: D102
        self.rebalancing.tell(when.BrokerChannelActive(address))

    async def reset_offsets(self, topic: str, offsets: dict[MessageQueue, int]) -> None:  # noqa: D102
        await self._resetting.reset(topic, offsets)

    async def offsets_reached(self, topic: str) -> dict[MessageQueue, int]:  # noqa: D102
        return self.parts.offsets.table.of_topic(topic)

    async def running_info(self, *, with_stacks: bool) -> RunningInfo:  # noqa: D102
        return await self.parts.work.running_info(with_stacks=with_stacks)

    async def consume_directly(  # noqa: D102
        self, message: ReceivedMessage, broker_name: str | None
    ) -> DirectConsumeResult:
        return await self.parts.work.consume_directly(message, broker_name)

    # For the work room

    def now(self) -> float:  # noqa: D102
        return self._loop.time()

    def handler_for(self, topic: str) -> TopicHandler | None:  # noqa: D102
        return self._subscriptions.handler_for(topic)

    def wire_topic(self, topic: str) -> str:  # noqa: D102
        return self._subscriptions.wire(topic)

    def held(self) -> Mapping[MessageQueue, HeldQueue]:  # noqa: D102
        return self.parts.held

    def subscriptions(self) -> Collection[Subscription]:  # noqa: D102
        return self._subscriptions.all()

    def note_offset(self, queue: MessageQueue, offset: int, *, increase_only: bool) -> None:  # noqa: D102
        self.parts.offsets.table.advance(queue, offset, increase_only=increase_only)

    def noted_offset(self, queue: MessageQueue) -> int:  # noqa: D102
        return self.parts.offsets.table.read(queue)

    async def lock(self, held: HeldQueue) -> bool:  # noqa: D102
        if not self.parts.running:
            return False
        granted = await self.locks.lock_one(held.queue)
        if granted:
            held.process.lock_granted(self.now())
        return granted

    def request_rebalance(self) -> None:  # noqa: D102
        self.rebalancing.tell(when.RebalanceRequested())

    # Names

    def shown(self, queue: MessageQueue) -> MessageQueue:
        """Give a queue as the application calls it."""
        topic = self._subscriptions.shown(queue.topic)
        return queue if topic == queue.topic else msgspec.structs.replace(queue, topic=topic)

    def wire(self, queue: MessageQueue) -> MessageQueue:
        """Give a queue as the wire has it."""
        return msgspec.structs.replace(queue, topic=self._subscriptions.wire(queue.topic))


def _own(queues: tuple[MessageQueue, ...]) -> list[MessageQueue]:
    """Give the queues of the application's own topics."""
    return [queue for queue in queues if not is_retry_topic(queue.topic)]
