"""A running push consumer: its modules put together, as its session and its work see it.

Lives from start to stop; applications hold a `PushConsumer`. Belongs to one event loop.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

import msgspec

from pocketmq.balance.consumer import lifecycle as life
from pocketmq.balance.consumer import schedule as when
from pocketmq.balance.consumer.facts import GroupMember
from pocketmq.balance.consumer.instructions import Instruction
from pocketmq.balance.consumer.limits import spread_topic_limits
from pocketmq.client.consumer_options import PushConsumerOptions
from pocketmq.client.group import member as shared
from pocketmq.client.group.confirmed_offsets import ConfirmedOffsets
from pocketmq.client.group.connections import GroupConnections
from pocketmq.client.group.held_queue import HeldQueue
from pocketmq.client.group.history import HistoryTopic
from pocketmq.client.group.listeners import QueueListeners
from pocketmq.client.group.offsets import persist_periodically
from pocketmq.client.group.parts import (
    QueueTable,
    member_profile,
    member_tasks,
    offset_store,
    start_rule,
)
from pocketmq.client.group.rebalancing import Rebalancing
from pocketmq.client.group.warnings import GroupChecks, MembershipWatch
from pocketmq.client.push.handing import PushHandled
from pocketmq.client.push.handlers import HandledSubscriptions, TopicHandler
from pocketmq.client.push.holdings import RESTART_PATIENCE, OffsetResets, PushHoldings
from pocketmq.client.push.locks import BrokerLocks
from pocketmq.client.push.pulling import PushPullLoop
from pocketmq.client.push.trace import open_trace
from pocketmq.client.push.work import Consuming, PushParts, Work
from pocketmq.client.session import Session
from pocketmq.model import ConsumerData, ConsumeType, MessageModel, MessageQueue, Subscription
from pocketmq.model.names import is_retry_topic, wrap_namespace
from pocketmq.protocol import ReceivedMessage
from pocketmq.protocol.requests.client_calls import DirectConsumeResult, RunningInfo

if TYPE_CHECKING:
    from pocketmq.client.group.handover.driver import StickyBalancing

MakeWork = Callable[[Consuming], Work]


class PushMember(shared.SharingMember[HeldQueue]):
    """A push consumer at work: a `ConsumerMember` of its session, `Consuming` to its work.

    The methods of both are documented there.
    """

    kind = "push"
    parts: PushParts

    def __init__(
        self,
        session: Session,
        options: PushConsumerOptions,
        subscriptions: HandledSubscriptions,
        listeners: QueueListeners,
        make_work: MakeWork,
        *,
        reason: str = "",
    ) -> None:
        group = wrap_namespace(session.options.namespace, options.group)
        parts = PushParts(
            session=session,
            options=options,
            profile=member_profile(session),
            group=group,
            subscriptions=subscriptions,
            offsets=offset_store(session, options, group),
            tasks=member_tasks(session, options),
            start=start_rule(options, session.clock.now_ms(), ConsumeType.CONSUME_PASSIVELY),
            queues=QueueTable(),
            limits=options.limits.in_force(),
        )
        super().__init__(parts, listeners, reason)
        self.options = options
        self.model = options.model
        self.profile = parts.profile
        self._handled = subscriptions
        self._loop = asyncio.get_running_loop()
        parts.work = make_work(self)
        self.watch = MembershipWatch(group, options.model)
        self._connections = GroupConnections(session, group)
        self._checks = GroupChecks(
            self.watch, session, subscriptions, self.tasks, self._connections
        )
        self.locks = BrokerLocks(session, group, self.tasks)
        self.pulling = PushPullLoop(parts)
        self.holdings = PushHoldings(parts, self.locks, self.pulling)
        self.rebalancing = self._make_rebalancing(parts)
        self._resets = OffsetResets(parts, self.holdings, self._suspend, self._resume)
        self._publishers: list[HistoryTopic] = []
        self.tracer = open_trace(session, options, parts.work, self.tasks)

    def _make_rebalancing(
        self, parts: PushParts
    ) -> "Rebalancing[HeldQueue] | StickyBalancing[HeldQueue]":
        if isinstance(parts.offsets, ConfirmedOffsets):
            parts.offsets.held = parts.queues.pulled
            from pocketmq.client.group.handover.driver import StickyBalancing  # few use it

            return StickyBalancing(
                parts,
                self.holdings,
                PushHandled(parts, self.holdings, self.pulling),
                orderly=self.options.orderly,
                changed=self._sticky_changed,
            )
        return Rebalancing(
            parts,
            self.holdings,
            self._facts(),
            changed=self._queues_changed,
            ran=self._checks.check_soon,
            connections=self._connections,
        )

    def _facts(self) -> GroupMember:
        options = self.options
        return GroupMember(
            profile=self.profile,
            group=self.group,
            client_id=self.session.client_id,
            strategy=options.allocation(),
            model=options.model,
            orderly=options.orderly,
            limits=options.limits,
            start=self.parts.start,
            client_rebalance=options.client_rebalance,
        )

    # Start and stop

    def _life(self) -> life.LifecycleSettings:
        return life.LifecycleSettings(
            profile=self.profile,
            group=self.group,
            model=self.model,
            orderly=self.options.orderly,
            expression_types={
                topic: each.expression_type for topic, each in self.subscriptions.own().items()
            },
        )

    def start_steps(self) -> tuple[Instruction, ...]:
        """Return the steps of a start, in Java's order."""
        return life.start_steps(self._life())

    def stop_steps(self, wait: float) -> tuple[Instruction, ...]:
        """Return the steps of a stop, in Java's order."""
        return life.stop_steps(self._life(), wait)

    async def start_step(self, step: Instruction) -> None:
        """Take a step."""
        match step:
            case life.SubscribeRetryTopic(topic):
                self.subscriptions.add_own(topic, self.session.clock.now_ms())
            case life.StartConsuming():
                self._begin_work()
            case life.RebalanceNow():
                self.rebalancing.begin(heartbeat_sent=self.announced)
            case _:
                await super().start_step(step)

    def _begin_work(self) -> None:
        parts, client, profile = self.parts, self.session.options, self.profile
        parts.running = True
        parts.work.start()
        if self.sticky is not None:
            return  # it renews locks and stores offsets itself
        persist_periodically(self.tasks, parts.offsets.table, client, self.persist_offsets)
        if self.options.orderly and self.model is MessageModel.CLUSTERING:
            self.tasks.every(
                profile.lock_interval,
                self.renew_locks,
                "locks",
                first_after=profile.lock_first_after,
            )

    async def stop_step(self, step: Instruction) -> None:
        """Take a step: handlers finish first, then offsets, locks and brokers, then the rest."""
        parts, patience = self.parts, shared.STOP_PATIENCE
        match step:
            case life.StopConsuming(wait):
                if self.sticky is not None:  # first: queues run on until others have taken them
                    await self.sticky.leave(wait)
                parts.running = False
                await self.rebalancing.stop(patience)
                for held in parts.queues.pulled.values():
                    self.pulling.end(held)
                await parts.work.stop(wait)
            case life.UnlockAll() if self.sticky is None:
                self.holdings.perform(await self.locks.unlock_all(self.holdings.owned()))
            case life.StopSession():
                self._report_end()
                await self.listeners.finish(patience)
                for publisher in self._publishers:
                    await publisher.finish(patience)
                if self.tracer is not None:
                    await self.tracer.close(patience)
                await self.tasks.stop()
            case life.DropAllQueues():
                self.holdings.drop_all()
            case _:
                await super().stop_step(step)

    def _report_end(self) -> None:
        """Report to listeners and history that no queue is owned any more."""
        for topic in self.topics():
            before = self.parts.queues.working(topic)
            if before:
                self.rebalancing.history.record(
                    msgspec.structs.replace(
                        self.rebalancing.new_event(topic, "stop"), before=before, revoked=before
                    )
                )
        self._queues_changed(tuple(self.parts.queues.pulled), ())

    async def announce(self) -> bool:
        """Send brokers the subscriptions; return whether one took them."""
        own = dict(self.subscriptions.own())
        taken = await super().announce()
        if taken:
            self.watch.announced(own)
            self._checks.announced()
            self._connections.forget()
        return taken

    async def renew_locks(self) -> None:
        """Renew the locks of all queues."""
        self.holdings.perform(await self.locks.renew(self.holdings.owned()))

    def publish_history(self, topic: str, *, past: bool, changes: bool) -> None:
        """Send rebalance events to a topic from now on, first those in memory if asked for."""
        publisher = HistoryTopic(topic, self.session, self.tasks, changes=changes)
        history = self.rebalancing.history
        for event in history.events if past else ():
            publisher.publish(event)
        history.listen(publisher.publish)
        self._publishers.append(publisher)

    def _queues_changed(
        self, released: tuple[MessageQueue, ...], acquired: tuple[MessageQueue, ...]
    ) -> None:
        self.queues_changed(_own(released), _own(acquired))

    def _sticky_changed(
        self, released: tuple[MessageQueue, ...], acquired: tuple[MessageQueue, ...]
    ) -> None:
        count = sum(held.mine for held in self.parts.queues)
        if (limits := spread_topic_limits(self.options.limits, count)) is not None:
            self.holdings.perform((limits,))
        self._checks.check_soon()
        self._queues_changed(released, acquired)

    def _suspend(self) -> None:
        self.parts.suspended = True
        self.rebalancing.tell(when.Paused())

    def _resume(self) -> None:
        self.parts.suspended = False
        self.rebalancing.tell(when.Resumed())

    # For the session

    def consumer_data(self) -> ConsumerData:  # noqa: D102
        return ConsumerData(
            group_name=self.group,
            consume_type=ConsumeType.CONSUME_PASSIVELY,
            message_model=self.model,
            consume_from_where=self.options.consume_from,
            subscription_data_set=list(self.subscriptions.all()),
            unit_mode=self.options.unit_mode,
        )

    async def reset_offsets(self, topic: str, offsets: dict[MessageQueue, int]) -> None:  # noqa: D102
        if self.sticky is None:
            await self._resets.reset(topic, offsets)
            return
        # No wait for handlers, and no release: what they return for the old stay is ignored.
        for queue, offset in offsets.items():
            held = self.parts.queues.pulled.get(queue)
            if queue.topic == topic and held is not None and offset >= 0:
                await self.holdings.restart(held, offset, RESTART_PATIENCE)

    async def running_info(self, *, with_stacks: bool) -> RunningInfo:  # noqa: D102
        info = await self.parts.work.running_info(with_stacks=with_stacks)
        return msgspec.structs.replace(
            info, properties={**info.properties, **self.balance_properties()}
        )

    async def consume_directly(  # noqa: D102
        self, message: ReceivedMessage, broker_name: str | None
    ) -> DirectConsumeResult:
        return await self.parts.work.consume_directly(message, broker_name)

    # For the work

    def now(self) -> float:  # noqa: D102
        return self._loop.time()

    def handler_for(self, topic: str) -> TopicHandler | None:  # noqa: D102
        return self._handled.handler_for(topic)

    def wire_topic(self, topic: str) -> str:  # noqa: D102
        return self.subscriptions.wire(topic)

    def held(self) -> Mapping[MessageQueue, HeldQueue]:  # noqa: D102
        return self.parts.queues.pulled

    def subscribed(self) -> Collection[Subscription]:  # noqa: D102
        return self.subscriptions.all()

    def note_offset(self, queue: MessageQueue, offset: int, *, increase_only: bool) -> None:  # noqa: D102
        self.parts.offsets.table.advance(queue, offset, increase_only=increase_only)

    def noted_offset(self, queue: MessageQueue) -> int:  # noqa: D102
        return self.parts.offsets.table.read(queue)

    async def lock(self, held: HeldQueue) -> bool:  # noqa: D102
        if not self.parts.running or self.sticky is not None:
            return False
        granted = await self.locks.lock_one(held.queue)
        if granted:
            held.process.lock_granted(self.now())
        return granted

    def request_rebalance(self) -> None:  # noqa: D102
        self.rebalancing.tell(when.RebalanceRequested())


def _own(queues: tuple[MessageQueue, ...]) -> tuple[MessageQueue, ...]:
    """Return the queues of the application's own topics."""
    return tuple(queue for queue in queues if not is_retry_topic(queue.topic))
