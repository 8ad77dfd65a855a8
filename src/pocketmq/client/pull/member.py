"""A running pull consumer: its modules put together, as its session and brokers see it.

Lives from start to stop; applications hold a `PullConsumer`. Names are those of the wire. Belongs
to one event loop.
"""

import asyncio
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from pocketmq.balance.consumer import lifecycle as life
from pocketmq.balance.consumer import schedule as when
from pocketmq.balance.consumer.facts import GroupMember
from pocketmq.balance.consumer.instructions import Instruction
from pocketmq.client.consumer_options import PullConsumerOptions
from pocketmq.client.group.confirmed_offsets import ConfirmedOffsets
from pocketmq.client.group.listeners import FIRST_LOOK
from pocketmq.client.group.member import STOP_PATIENCE, SharingMember
from pocketmq.client.group.offsets import persist_periodically
from pocketmq.client.group.parts import (
    QueueTable,
    member_profile,
    member_tasks,
    offset_store,
    start_rule,
)
from pocketmq.client.group.rebalancing import Rebalancing
from pocketmq.client.pull.cache import PollCache, PullQueue
from pocketmq.client.pull.positions import Positions
from pocketmq.client.pull.pulling import LitePullLoop, PullHandled
from pocketmq.client.pull.queues import PullHoldings, PullParts, PullSetup
from pocketmq.client.session import Session
from pocketmq.model import ConsumeFromWhere, ConsumerData, ConsumeType, MessageQueue
from pocketmq.model.names import wrap_namespace
from pocketmq.protocol.requests import client_calls

if TYPE_CHECKING:
    from pocketmq.client.group.handover.driver import StickyBalancing

ACTIVELY = ConsumeType.CONSUME_ACTIVELY


class PullMember(SharingMember[PullQueue]):
    """A pull consumer at work: a `ConsumerMember` of its session, documented there."""

    kind = "pull"
    parts: PullParts

    def __init__(
        self, session: Session, options: PullConsumerOptions, setup: PullSetup, reason: str = ""
    ) -> None:
        group = wrap_namespace(session.options.namespace, options.group)
        parts = PullParts(
            session=session,
            options=options,
            profile=member_profile(session),
            group=group,
            subscriptions=setup.subscriptions,
            offsets=offset_store(session, options, group),
            tasks=member_tasks(session, options),
            start=start_rule(options, session.clock.now_ms(), ACTIVELY),
            queues=QueueTable(),
            cache=PollCache(),
            setup=setup,
        )
        super().__init__(parts, setup.listeners, reason)
        self._setup = setup
        pulling = LitePullLoop(parts)
        self.positions = Positions(parts, pulling)
        self.holdings = PullHoldings(parts, pulling)
        self._handled: PullHandled | None = None
        self.rebalancing = self._make_rebalancing(parts, pulling)
        self._sharing = False

    def _make_rebalancing(
        self, parts: PullParts, pulling: LitePullLoop
    ) -> "Rebalancing[PullQueue] | StickyBalancing[PullQueue]":
        if isinstance(parts.offsets, ConfirmedOffsets):
            parts.offsets.held = parts.queues.pulled
            self._handled = PullHandled(parts, pulling, self.listeners)
            from pocketmq.client.group.handover.driver import StickyBalancing  # few use it

            return StickyBalancing(
                parts, self.holdings, self._handled, orderly=False, changed=self._sticky_changed
            )
        member = GroupMember(
            profile=parts.profile,
            group=parts.group,
            client_id=parts.session.client_id,
            strategy=parts.options.allocation(),
            model=parts.options.model,
            consume_type=ACTIVELY,
            start=parts.start,
        )
        return Rebalancing(
            parts, self.holdings, member, changed=self.queues_changed, ran=lambda: None
        )

    def _sticky_changed(
        self, released: tuple[MessageQueue, ...], acquired: tuple[MessageQueue, ...]
    ) -> None:
        # The listener of a queue that is given away was called, and awaited, by `PullHandled`.
        told = set[MessageQueue]() if self._handled is None else self._handled.told
        lost = tuple(queue for queue in released if queue not in told)
        told.difference_update(released)
        self.queues_changed(lost, acquired)

    # Start and stop

    def _life(self) -> life.LifecycleSettings:
        parts = self.parts
        return life.LifecycleSettings(
            profile=parts.profile,
            group=parts.group,
            model=parts.options.model,
            consume_type=ACTIVELY,
            expression_types={
                each.topic: each.expression_type for each in parts.subscriptions.all()
            },
            assigned_by_hand=self.assigned_by_hand(),
        )

    def start_steps(self) -> tuple[Instruction, ...]:
        """Return the steps of a start, in Java's order."""
        return life.start_steps(self._life())

    def stop_steps(self, wait: float) -> tuple[Instruction, ...]:
        """Return the steps of a stop, in Java's order."""
        return life.stop_steps(self._life(), wait)

    async def start(self) -> None:
        """Join the group; see `RunningMember`."""
        await super().start()
        await self._announce_first()

    async def stop(self, wait: float = 0.0, *, commit: bool = False) -> None:
        """Leave the group gracefully; `commit` is whether what was polled last counts as done."""
        if self.sticky is None:
            await self.rebalancing.stop(STOP_PATIENCE)
        if commit:
            self.positions.note_polled()
        else:
            for held in self.parts.assigned():
                self.parts.note_done(held)
        if self.sticky is not None and self._handled is not None:
            self.parts.cache.close()
            self._handled.closing = True
            await self.sticky.leave(STOP_PATIENCE)
            await self.sticky.stop(STOP_PATIENCE)
        await super().stop(wait)

    async def start_step(self, step: Instruction) -> None:
        """Take a step."""
        parts = self.parts
        match step:
            case life.StartSession():
                table, client = parts.offsets.table, self.session.options
                if self.sticky is None:
                    persist_periodically(parts.tasks, table, client, self.persist_offsets)
                interval = parts.options.topic_check_interval
                parts.tasks.every(
                    interval, self._look, "queues of topics", first_after=min(FIRST_LOOK, interval)
                )
            case life.StartPullTasks():
                queues = self._setup.assigned or ()
                await self.fetch_routes({queue.topic for queue in queues})
                self.assign(queues)
            case _:
                await super().start_step(step)

    async def stop_step(self, step: Instruction) -> None:
        """Take a step."""
        match step:
            case life.PersistAllOffsets():
                self.parts.cache.close()  # first: a poll from now on would move the offsets
                await super().stop_step(step)
            case life.StopPullTasks():
                self.holdings.drop_all()
                await self.listeners.finish(STOP_PATIENCE)
                await self.tasks.stop()
            case _:
                await super().stop_step(step)

    async def _announce_first(self) -> None:
        """Announce the member; from the first subscription on, queues are shared out."""
        if self.sticky is not None:
            await self.sticky.listen()
        # Java leaves the first heartbeat to a timer, and the group to find out by it.
        sent = await self.announce()
        if self.subscriptions.topics() and not self._sharing:
            self._sharing = True
            self.rebalancing.begin(heartbeat_sent=sent)

    # What the application asks for

    def assigned_by_hand(self) -> bool:  # noqa: D102
        return self._setup.assigned is not None

    def assign(self, queues: Iterable[MessageQueue]) -> None:
        """Pull exactly these queues."""
        self.holdings.assign(queues)

    def subscribed(self) -> None:
        """Announce another subscription, and rebalance."""
        self._no_messages.look_soon()
        if self._sharing:
            self.rebalancing.tell(when.SubscriptionChanged(pull_consumer=True))
            self.rebalancing.tell(when.RebalanceRequested())
        else:
            self.tasks.spawn(self._announce_first(), "first subscription")

    def leave(self, topic: str) -> None:
        """Release the queues of a topic that was unsubscribed."""
        if self.sticky is not None:
            self.sticky.tell(when.SubscriptionChanged(pull_consumer=True))
            return
        self.holdings.leave(topic)
        self.session.heartbeats.beat_soon(in_full=True)

    def apply_pauses(self) -> None:
        """Pull what is not paused, and nothing else."""
        for held in self.parts.assigned():
            held.change(paused=held.queue in self._setup.pauses)
            held.wake()

    def look_soon(self) -> None:
        """Check which queues watched topics have."""
        self.tasks.spawn(self._look(), "queues of topics")

    async def _look(self) -> None:
        await self._setup.watch.look(self.session.routes, self.session.options.request_timeout)

    # For the session

    def topics(self) -> Collection[str]:  # noqa: D102
        return {*super().topics(), *(queue.topic for queue in self.parts.queues.pulled)}

    def consumer_data(self) -> ConsumerData:  # noqa: D102
        parts = self.parts
        return ConsumerData(
            group_name=parts.group,
            consume_type=ACTIVELY,
            message_model=parts.options.model,
            # Where it starts is its own business, as in Java.
            consume_from_where=ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
            subscription_data_set=list(parts.subscriptions.all()),
            unit_mode=parts.options.unit_mode,
        )

    async def reset_offsets(self, topic: str, offsets: dict[MessageQueue, int]) -> None:
        """Continue from these offsets. Java's pull consumer ignores the request."""
        for queue, offset in offsets.items():
            held = self.parts.queues.pulled.get(queue)
            if queue.topic != topic or held is None or held.given:
                continue
            if held.assigned and offset >= 0:
                self.positions.go_to(held, offset)
                self.parts.offsets.table.update(queue, offset, increase_only=False)

    async def running_info(self, *, with_stacks: bool) -> client_calls.RunningInfo:  # noqa: ARG002, D102
        return client_calls.RunningInfo(
            properties={
                client_calls.PROP_CONSUME_TYPE: ACTIVELY.value,
                client_calls.PROP_ORDERLY: "false",
                client_calls.PROP_START_TIMESTAMP: str(self.started_at_ms),
                **self.balance_properties(),
            },
            subscription_set=list(self.subscriptions.all()),
            mq_table={held.queue: self._queue_info(held) for held in self.parts.assigned()},
        )

    def _queue_info(self, held: PullQueue) -> client_calls.ProcessQueueBody:
        info = held.process.info()
        wall, now = self.session.clock.now(), asyncio.get_running_loop().time()
        return client_calls.ProcessQueueBody(
            commit_offset=self.parts.offsets.table.read(held.queue),
            cached_msg_min_offset=info.cached_min_offset,
            cached_msg_max_offset=info.cached_max_offset,
            cached_msg_count=info.cached_count,
            cached_msg_size_in_mib=info.cached_size_mib,
            locked=info.locked,
            last_lock_timestamp=int((wall - now + info.last_lock) * 1000),
            dropped=info.dropped,
            last_pull_timestamp=int((wall - now + info.last_pull) * 1000),
            last_consume_timestamp=int((wall - now + info.last_consume) * 1000),
        )
