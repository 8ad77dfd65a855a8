"""A running pull consumer: the rooms put together, with their timers, from start to stop.

`consumer` is what applications hold. Belongs to one event loop.
"""

import logging
from collections.abc import Iterable

import msgspec

from pocketmq.balance.consumer import lifecycle as life
from pocketmq.balance.consumer import schedule as when
from pocketmq.balance.consumer.instructions import Instruction
from pocketmq.balance.consumer.rebalance import Member
from pocketmq.balance.consumer.start_offset import StartRule
from pocketmq.client.consumer_options import PullConsumerOptions
from pocketmq.client.group.calls import check_filter
from pocketmq.client.group.local_offsets import LocalOffsets, offsets_file
from pocketmq.client.group.offsets import OffsetStore, RemoteOffsets
from pocketmq.client.group.persisting import persist_by_and_by
from pocketmq.client.group.rebalancing import Rebalancing
from pocketmq.client.pull.assigned import Assignment
from pocketmq.client.pull.cache import Cache
from pocketmq.client.pull.holdings import PullHoldings
from pocketmq.client.pull.member import PullMember
from pocketmq.client.pull.parts import PullParts
from pocketmq.client.pull.positions import Positions
from pocketmq.client.pull.pulling import Pulling
from pocketmq.client.pull.watching import FIRST_LOOK
from pocketmq.client.pull.wishes import Wishes
from pocketmq.client.session import Session
from pocketmq.client.tasks import Tasks
from pocketmq.errors import NameServersUnreachable
from pocketmq.model.kinds import ConsumeType, MessageModel
from pocketmq.model.names import wrap_namespace
from pocketmq.model.queue import MessageQueue

logger = logging.getLogger("pocketmq.client")

HALF_AN_HOUR_MS = 30 * 60 * 1000
STOP_PATIENCE = 3.0


class PullRunning:
    """One member of a group, at work."""

    def __init__(self, session: Session, options: PullConsumerOptions, wishes: Wishes) -> None:
        self.session = session
        self._options = options
        self._wishes = wishes
        group = wrap_namespace(session.options.namespace, options.group)
        # Java waits for its timer when a route changes; nobody needs that pause.
        profile = msgspec.structs.replace(session.options.profile, rebalance_on_route_change=True)
        member = self._facts_of_member(group)
        self._member = msgspec.structs.replace(member, profile=profile)
        self.parts = PullParts(
            session=session,
            options=options,
            profile=profile,
            group=group,
            subscriptions=wishes.subscriptions,
            offsets=self._offset_store(group),
            tasks=Tasks(f"{session.client_id}: consumer {options.group}"),
            start=member.start,
            assignment=Assignment(),
            cache=Cache(),
            pauses=wishes.pauses,
            by_hand=wishes.by_hand,
        )
        pulling = Pulling(self.parts)
        self.positions = Positions(self.parts, pulling)
        self.holdings = PullHoldings(self.parts, pulling)
        self.rebalancing = Rebalancing(
            self.parts,
            self.holdings,
            self._member,
            options.allocation(),
            changed=self._queues_changed,
            looked=lambda: None,
        )
        self._sharing = False
        self.member = PullMember(self.parts, self.positions, self.rebalancing)

    def _offset_store(self, group: str) -> OffsetStore:
        options, session = self._options, self.session
        if options.model is MessageModel.BROADCASTING:
            return LocalOffsets(offsets_file(options.offsets_dir, session.client_id, group))
        return RemoteOffsets(session, group, session.options.profile)

    def _facts_of_member(self, group: str) -> Member:
        options, session = self._options, self.session
        start_ms = session.clock.now_ms() - HALF_AN_HOUR_MS
        if options.start_at is not None:
            start_ms = int(options.start_at * 1000)
        return Member(
            profile=session.options.profile,
            group=group,
            client_id=session.client_id,
            strategy=options.allocation(),
            model=options.model,
            consume_type=ConsumeType.CONSUME_ACTIVELY,
            start=StartRule(options.consume_from, start_ms, ConsumeType.CONSUME_ACTIVELY),
        )

    # Start and stop

    async def start(self) -> None:
        """Begin to pull; whoever calls this stops it if it raises."""
        for step in life.start_steps(self._facts()):
            await self._start_step(step)
        await self._announce()

    async def stop(self, *, commit: bool) -> None:
        """Stop in order; a step that fails does not keep the others from being taken."""
        await self.rebalancing.stop(STOP_PATIENCE)
        if commit:
            self.positions.note_polled()
        else:
            for assigned in self.parts.assignment:
                self.parts.note_done(assigned)
        for step in life.stop_steps(self._facts()):
            try:
                await self._stop_step(step)
            except Exception:
                logger.exception("group %s: %s failed", self.parts.group, type(step).__name__)

    def assign(self, queues: Iterable[MessageQueue]) -> None:
        """Pull exactly these queues."""
        self.holdings.assign(queues)

    def subscribed(self) -> None:
        """Tell brokers of another subscription, and share out anew."""
        if self._sharing:
            self.rebalancing.tell(when.SubscriptionChanged(pull_consumer=True))
            self.rebalancing.tell(when.RebalanceRequested())
        else:
            self.parts.tasks.spawn(self._announce(), "first subscription")

    def apply_pauses(self) -> None:
        """Pull what is not paused, and nothing else."""
        for assigned in self.parts.assignment:
            assigned.change(paused=assigned.queue in self.parts.pauses)
            assigned.held.wake()

    def look_soon(self) -> None:
        """See which queues watched topics have."""
        self.parts.tasks.spawn(self._look(), "queues of topics")

    def leave(self, topic: str) -> None:
        """Give a topic's queues up that was unsubscribed, by the wire's name."""
        parts = self.parts
        for assigned in parts.assignment:
            if assigned.queue.topic == topic:
                parts.note_done(assigned)
        parts.assignment.remove_topic(topic)
        for queue in [queue for queue in parts.held if queue.topic == topic]:
            parts.offsets.persist(queue)
            parts.offsets.table.forget(queue)
            del parts.held[queue]
        self.session.heartbeats.beat_soon(in_full=True)

    def _facts(self) -> life.Consumer:
        parts = self.parts
        return life.Consumer(
            profile=parts.profile,
            group=parts.group,
            model=parts.options.model,
            consume_type=ConsumeType.CONSUME_ACTIVELY,
            expression_types={
                each.topic: each.expression_type for each in parts.subscriptions.all()
            },
            assigned_by_hand=self._wishes.assigned is not None,
        )

    async def _start_step(self, step: Instruction) -> None:
        parts, options = self.parts, self.session.options
        match step:
            case life.RegisterGroup():
                self.session.add_consumer(self.member)
            case life.LoadOffsets():
                parts.offsets.load()
            case life.StartSession():
                persist_by_and_by(parts.tasks, parts.offsets.table, options, self._persist)
                parts.tasks.every(
                    parts.options.topic_check_interval,
                    self._look,
                    "queues of topics",
                    first_after=min(FIRST_LOOK, parts.options.topic_check_interval),
                )
            case life.StartPullTasks():
                await self._fetch_routes({queue.topic for queue in self._wishes.assigned or ()})
                self.assign(self._wishes.assigned or ())
            case when.FetchRoutes():
                await self._fetch_routes(parts.subscriptions.topics())
            case life.CheckClientConfig(topics):
                for each in parts.subscriptions.all():
                    if each.topic in topics:
                        await check_filter(self.session, parts.group, each)
            case _:
                pass  # settings are checked, and the session was joined, before

    async def _stop_step(self, step: Instruction) -> None:
        parts = self.parts
        match step:
            case life.PersistAllOffsets():
                parts.cache.close()
                await parts.offsets.persist_last(self._noted())
            case life.Unregister():
                if self.session.running:
                    await self.session.remove_consumer(self.member)
            case life.StopPullTasks():
                parts.assignment.clear()
                await self._wishes.listeners.finish(STOP_PATIENCE)
                await parts.tasks.stop()
            case _:
                pass  # the session is stopped by the last who uses it

    async def _announce(self) -> None:
        """Tell brokers about the member; from the first subscription on, queues are shared out."""
        # Java leaves the first heartbeat to a timer, and the group to find out by it.
        sent = await self.session.heartbeats.beat(in_full=True)
        if self.parts.subscriptions.topics() and not self._sharing:
            self._sharing = True
            self.rebalancing.tell(when.Started(sent))

    async def _fetch_routes(self, topics: Iterable[str]) -> None:
        try:
            await self.session.fetch_routes(topics)
        except NameServersUnreachable:
            if self.session.options.start_wait is not None:
                raise

    # What happens by itself

    async def _persist(self) -> None:
        await self.parts.offsets.persist_all(self._noted())

    def _noted(self) -> set[MessageQueue]:
        return {*self.parts.held, *self.parts.assignment.queues()}

    async def _look(self) -> None:
        await self._wishes.watch.look(self.session.routes, self.session.options.request_timeout)

    def _queues_changed(
        self, released: tuple[MessageQueue, ...], acquired: tuple[MessageQueue, ...]
    ) -> None:
        listeners, tasks = self._wishes.listeners, self.parts.tasks
        listeners.revoked([self._wishes.shown(queue) for queue in released], tasks)
        listeners.assigned([self._wishes.shown(queue) for queue in acquired], tasks)
