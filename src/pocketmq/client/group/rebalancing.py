"""Rebalancing: one round after another for each subscribed topic.

When it runs is decided in `balance.consumer.schedule`, what a round does in
`balance.consumer.round`, and which queues a member owns in `balance.allocation`. This module runs
those rules, gathers their facts from name servers and brokers, and lets `Holdings` carry them out.
Belongs to one event loop. At most one run is in flight, and a run takes topic after topic: two
rounds at the same time would decide on each other's half-taken queues.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from pocketmq.balance.consumer import instructions, rebalance
from pocketmq.balance.consumer import schedule as when
from pocketmq.balance.consumer.facts import GroupMember, RebalanceFacts
from pocketmq.balance.consumer.round import RebalanceRound
from pocketmq.client.group import calls
from pocketmq.client.group.connections import GroupConnections
from pocketmq.client.group.fellows import Fellows
from pocketmq.client.group.held_queue import HeldQueue
from pocketmq.client.group.history import RebalanceHistory, described
from pocketmq.client.group.holdings import Holdings
from pocketmq.client.group.no_messages import MissingRoutes
from pocketmq.client.group.parts import MemberParts
from pocketmq.client.routes import KnownRoute
from pocketmq.errors import MQError
from pocketmq.model import MessageModel, MessageQueue, MessageRequestMode, sort_queues
from pocketmq.model.java_strings import java_sorted
from pocketmq.model.names import is_retry_topic
from pocketmq.model.rebalance_event import RebalanceEvent

logger = logging.getLogger("pocketmq.client")

Q = TypeVar("Q", bound=HeldQueue)

QueuesChanged = Callable[[tuple[MessageQueue, ...], tuple[MessageQueue, ...]], None]
"""Takes the queues released and acquired by a round."""

_TRIGGERS: dict[type, str] = {
    when.ConsumerStarted: "start",
    when.IdsChanged: "members changed",
    when.RouteChanged: "route changed",
    when.SubscriptionChanged: "subscription changed",
    when.ChannelHeartbeatSent: "broker connected",
    when.RebalanceRequested: "asked for",
    when.Resumed: "resumed",
}
TIMER = "timer"


class Rebalancing(Generic[Q]):
    """Keeps the queues of one member as the group's allocation wants them."""

    def __init__(
        self,
        parts: MemberParts[Q],
        holdings: Holdings[Q],
        member: GroupMember,
        *,
        changed: QueuesChanged,
        ran: Callable[[], None],
        connections: GroupConnections | None = None,
    ) -> None:
        self._parts = parts
        self._holdings = holdings
        self._member = member
        self._strategy = parts.options.allocation()
        self._changed = changed
        self._ran = ran
        self._loop = asyncio.get_running_loop()
        self._schedule = when.new_schedule(member.profile, self._loop.time())
        self._timer: asyncio.TimerHandle | None = None
        self._run_task: asyncio.Task[None] | None = None
        self._started = False
        self._triggers: dict[str, None] = {}
        self._seen: dict[str, frozenset[MessageQueue]] = {}  # by topic, in its last round
        self._asking: str | None = None
        shared = connections or GroupConnections(parts.session, parts.group)
        self._fellows = Fellows(parts.session, member, shared)
        self._missing = MissingRoutes(parts.session, parts.tasks)
        self._denied: dict[str, frozenset[MessageQueue]] = {}  # locks, by topic, in its last round
        self._pauses: list[float | None] = []  # of the topics in the run in flight
        self.history = RebalanceHistory(parts.options.history_size)
        holdings.rebalance_in = lambda after: self.tell(when.RebalanceRequested(after))

    # When

    def begin(self, *, heartbeat_sent: bool) -> None:
        """Start to rebalance, right after the heartbeat of a start where members are prompt."""
        self._parts.tasks.spawn(self._begin(heartbeat_sent), "first rebalance")

    async def _begin(self, heartbeat_sent: bool) -> None:  # noqa: FBT001 - private
        self._missing.watch(self._parts.subscriptions.topics())
        pause = await self._fellows.first_pause() if heartbeat_sent else None
        self.tell(when.ConsumerStarted(heartbeat_sent, pause))

    def tell(self, event: when.ScheduleEvent) -> None:
        """Report an event that may call for a rebalance."""
        if isinstance(event, when.ConsumerStarted):
            self._started = True
        elif not self._started:
            return
        if (trigger := _TRIGGERS.get(type(event))) is not None:
            self._triggers[trigger] = None
        following = when.advance(self._schedule, event, self._loop.time())
        self._schedule = following.schedule
        for step in following.instructions:
            self._do(step)

    def route_changed(self, known: KnownRoute) -> None:
        """Report a route; it calls for a rebalance if its queues differ from the last round's."""
        # A round that fetches the route itself decides with it; it needs no other round for that.
        if known.topic == self._asking or known.subscribe_queues == self._seen.get(known.topic):
            return
        if known.topic in self._missing:
            self._parts.tasks.spawn(self._topic_appeared(), f"first route of {known.topic}")
        else:
            self.tell(when.RouteChanged())

    async def _topic_appeared(self) -> None:
        # Brokers that no route had before know nothing of this member, and list no group for it.
        sent = await self._parts.session.heartbeats.beat(in_full=True)
        self.tell(when.RouteChanged(await self._fellows.first_pause() if sent else None))

    async def stop(self, patience: float) -> None:
        """Start no more runs, and wait at most `patience` seconds for the one in flight."""
        self.tell(when.Stopped())
        self._started = False
        if self._timer is not None:
            self._timer.cancel()
        if self._run_task is not None:
            await asyncio.wait({self._run_task}, timeout=patience)
            self._run_task.cancel()

    def _do(self, step: instructions.Instruction) -> None:
        parts = self._parts
        if isinstance(step, when.RunRebalance):
            self._run_task = parts.tasks.spawn(self._run(), "rebalance")
        elif isinstance(step, when.SetRebalanceTimer):
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(step.when, self.tell, when.RebalanceTimerElapsed())
        elif isinstance(step, instructions.SendHeartbeats):
            parts.session.heartbeats.beat_soon(in_full=True)
        elif isinstance(step, instructions.SendHeartbeatTo):
            parts.tasks.spawn(self._greet(step.address), f"heartbeat to {step.address}")

    async def _greet(self, address: str) -> None:
        if await self._parts.session.heartbeats.beat_to(address):
            self.tell(when.ChannelHeartbeatSent())

    # What

    async def _run(self) -> None:
        trigger = ", ".join(self._triggers) or TIMER
        self._triggers.clear()
        balanced = True
        self._pauses.clear()
        try:
            for topic in self._parts.subscriptions.topics():
                try:
                    balanced &= await self._rebalance(topic, trigger)
                except Exception:
                    logger.exception(
                        "rebalance failed: group=%s topic=%s; retrying", self._parts.group, topic
                    )
                    balanced &= is_retry_topic(topic)
            self._leave_topics()
            self._missing.watch(self._parts.subscriptions.topics())
            self._ran()
        finally:
            prompt = bool(self._pauses) and None not in self._pauses
            pause = max(each or 0.0 for each in self._pauses) if prompt else None
            self.tell(when.RunFinished(balanced, pause))

    async def _rebalance(self, topic: str, trigger: str) -> bool:
        loop = self._loop
        event = self.new_event(topic, trigger)
        began = loop.time()
        facts, decision, unasked = await self._decide(topic)
        asked = loop.time()
        round_ = RebalanceRound(facts, decision)
        await self._holdings.carry_out(round_)
        outcome = round_.outcome
        assert outcome is not None
        self._denied[topic] = frozenset(
            queue
            for queue, why in outcome.skipped.items()
            if why is instructions.SkipReason.LOCK_DENIED
        )
        members = None if facts.members is None else tuple(java_sorted(facts.members))
        event = msgspec.structs.replace(
            described(event, decision, outcome),
            asked=asked - began,
            carried_out=loop.time() - asked,
            members=members,
            after=self._parts.queues.working(topic),
        )
        self.history.record(event)
        self._report(event, decision)
        if outcome.released or outcome.acquired:
            self._changed(outcome.released, tuple(outcome.acquired))
        if facts.route is not None:
            prompt = facts.prompt or await self._fellows.are_prompt(topic, unasked)
            self._pauses.append(msgspec.structs.replace(facts, prompt=prompt).pause)
        return outcome.balanced

    def new_event(self, topic: str, trigger: str) -> RebalanceEvent:
        """Return the event of a rebalance that starts now, to be completed."""
        parts = self._parts
        return RebalanceEvent(
            group=parts.group,
            client_id=parts.session.client_id,
            topic=topic,
            strategy=self._strategy.name,
            trigger=trigger,
            started=parts.session.clock.now(),
            before=parts.queues.working(topic),
        )

    async def _decide(
        self, topic: str
    ) -> tuple[RebalanceFacts, rebalance.RebalanceDecision, calls.ListedMembers | None]:
        """Decide a topic; return its members, too, if it is not known whether all are prompt."""
        parts, member = self._parts, self._member
        session = parts.session
        if member.asks_broker:
            query = calls.assignment_query(
                session, topic, parts.group, self._strategy.name, parts.options.model
            )
            answer = await calls.broker_assignment(session, query)
            facts = self._facts(topic, None, None)
            return facts, rebalance.decide_assigned(facts, answer), None
        route = await self._route(topic)
        listed = None
        if route is not None and parts.options.model is MessageModel.CLUSTERING:
            listed = await calls.group_members(session, topic, parts.group)
        facts = self._facts(topic, route, None if listed is None else listed.members)
        decision = rebalance.decide(facts)
        if decision.assigned:  # a member that only releases must not let new owners wait for this
            prompt = await self._fellows.are_prompt(topic, listed)
            # Decided again: a seek or a reset may have changed queues in the meantime.
            facts = self._facts(topic, route, facts.members, prompt=prompt)
            return facts, rebalance.decide(facts), None
        return facts, decision, listed

    async def _route(self, topic: str) -> tuple[MessageQueue, ...] | None:
        self._asking = topic
        try:
            known = await self._parts.session.routes.get(topic)
        except MQError as error:
            logger.debug('no route: group=%s topic=%s error="%s"', self._parts.group, topic, error)
            return None
        finally:
            self._asking = None
        self._seen[topic] = known.subscribe_queues
        return tuple(sort_queues(set(known.subscribe_queues)))

    def _facts(
        self,
        topic: str,
        route: tuple[MessageQueue, ...] | None,
        members: tuple[str, ...] | None,
        *,
        prompt: bool = False,
    ) -> RebalanceFacts:
        return RebalanceFacts(
            member=self._member,
            topic=topic,
            route=route,
            members=members,
            owned=self._holdings.owned(),
            now=self._loop.time(),
            prompt=prompt,
            denied=self._denied.get(topic, frozenset()),
        )

    def _leave_topics(self) -> None:
        """Release queues whose topics are not subscribed any more."""
        parts, holdings = self._parts, self._holdings
        gone: list[instructions.RevokeQueue] = list(
            rebalance.unsubscribed(holdings.owned(), frozenset(parts.subscriptions.topics()))
        )
        for step in gone:
            # Java stores no offset here; the next owner would get what was consumed since again.
            if step.mode is MessageRequestMode.PULL:
                parts.offsets.persist(step.queue)
            holdings.perform(
                (
                    instructions.DropQueue(step.queue, step.mode),
                    instructions.RemoveQueue(step.queue, step.mode),
                )
            )
            self._seen.pop(step.queue.topic, None)
            self._fellows.forget(step.queue.topic)
        if gone:
            self._changed(tuple(step.queue for step in gone), ())

    def _report(self, event: RebalanceEvent, decision: rebalance.RebalanceDecision) -> None:
        for warning in decision.warnings:
            logger.debug(
                "rebalance: group=%s topic=%s: %s", event.group, event.topic, warning.value
            )
        if decision.error is not None:
            logger.error(
                "rebalance kept the assignment: group=%s topic=%s reason=%s",
                event.group, event.topic, event.kept_because,
            )  # fmt: skip
        if event.changed:
            logger.info(
                "rebalanced: group=%s topic=%s client=%s queues=%d/%d assigned=%d revoked=%d "
                'trigger="%s"',
                event.group, event.topic, event.client_id, len(event.after),
                len(event.queues or ()), len(event.assigned), len(event.revoked), event.trigger,
            )  # fmt: skip
