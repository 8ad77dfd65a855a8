"""Rebalancing: when, and one round after another for each subscribed topic.

Runs the schedule and the decisions of `balance.consumer`, gathers their facts from name servers and
brokers, and lets `holdings` carry out what they say. Belongs to one event loop.
"""

import asyncio
import logging
from collections.abc import Callable

import msgspec

from pocketmq.balance.allocation import Strategy
from pocketmq.balance.consumer import schedule as when
from pocketmq.balance.consumer.assignment import decide_assigned
from pocketmq.balance.consumer.instructions import (
    DropQueue,
    Instruction,
    RemoveQueue,
    RevokeQueue,
    SendHeartbeats,
    SendHeartbeatTo,
)
from pocketmq.balance.consumer.rebalance import (
    Member,
    RebalanceDecision,
    RebalanceFacts,
    decide,
    unsubscribed,
)
from pocketmq.balance.consumer.round import RebalanceRound
from pocketmq.client.group.calls import assignment_query, broker_assignment, group_members
from pocketmq.client.group.history import History, described
from pocketmq.client.group.sharing import QueueHolder, Sharing
from pocketmq.client.routes import KnownRoute
from pocketmq.errors import MQError
from pocketmq.model.java_strings import java_sorted
from pocketmq.model.kinds import MessageModel, MessageRequestMode
from pocketmq.model.names import is_retry_topic
from pocketmq.model.queue import MessageQueue, sort_queues
from pocketmq.model.rebalance_event import RebalanceEvent

logger = logging.getLogger("pocketmq.client")

QueuesChanged = Callable[[tuple[MessageQueue, ...], tuple[MessageQueue, ...]], None]
"""Told the queues released and acquired by a round."""

_TRIGGERS: dict[type, str] = {
    when.Started: "start",
    when.IdsChanged: "members changed",
    when.RouteChanged: "route changed",
    when.SubscriptionChanged: "subscription changed",
    when.ChannelHeartbeatSent: "broker connected",
    when.RebalanceRequested: "asked for",
    when.Resumed: "resumed",
}
TIMER = "timer"


class Rebalancing:
    """Keeps one member's queues what they shall be."""

    def __init__(
        self,
        parts: Sharing,
        holdings: QueueHolder,
        member: Member,
        strategy: Strategy,
        *,
        changed: QueuesChanged,
        looked: Callable[[], None],
    ) -> None:
        self._parts = parts
        self._holdings = holdings
        self._member = member
        self._strategy = strategy
        self._changed = changed
        self._looked = looked
        self._loop = asyncio.get_running_loop()
        self._schedule = when.new_schedule(member.profile, self._loop.time())
        self._timer: asyncio.TimerHandle | None = None
        self._run_task: asyncio.Task[None] | None = None
        self._started = False
        self._triggers: dict[str, None] = {}
        self._seen: dict[str, frozenset[MessageQueue]] = {}  # by topic, in its last round
        self._asking: str | None = None
        self.history = History(parts.options.history_size)
        holdings.rebalance_in = lambda after: self.tell(when.RebalanceRequested(after))

    # When

    def tell(self, event: when.ScheduleEvent) -> None:
        """Take note of something that may call for a rebalance."""
        if isinstance(event, when.Started):
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
        """Take note of a route; only other queues than the last round saw call for another."""
        if known.topic != self._asking and known.subscribe_queues != self._seen.get(known.topic):
            self.tell(when.RouteChanged())

    async def stop(self, patience: float) -> None:
        """Begin no more runs, and wait so long for the one under way."""
        self.tell(when.Stopped())
        self._started = False
        if self._timer is not None:
            self._timer.cancel()
        if self._run_task is not None:
            await asyncio.wait({self._run_task}, timeout=patience)
            self._run_task.cancel()

    def _do(self, step: Instruction) -> None:
        parts = self._parts
        if isinstance(step, when.RunRebalance):
            self._run_task = parts.tasks.spawn(self._run(), "rebalance")
        elif isinstance(step, when.WakeAt):
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(step.when, self.tell, when.TimerElapsed())
        elif isinstance(step, SendHeartbeats):
            parts.session.heartbeats.beat_soon(in_full=True)
        elif isinstance(step, SendHeartbeatTo):
            parts.tasks.spawn(self._greet(step.address), f"heartbeat to {step.address}")

    async def _greet(self, address: str) -> None:
        if await self._parts.session.heartbeats.beat_to(address):
            self.tell(when.ChannelHeartbeatSent())

    # What

    async def _run(self) -> None:
        trigger = ", ".join(self._triggers) or TIMER
        self._triggers.clear()
        balanced = True
        try:
            for topic in self._parts.subscriptions.topics():
                try:
                    balanced &= await self._rebalance(topic, trigger)
                except Exception:
                    logger.exception("group %s: topic %s failed to rebalance",
                        self._parts.group, topic)  # fmt: skip
                    balanced &= is_retry_topic(topic)
            self._leave_topics()
            self._looked()
        finally:
            self.tell(when.RunFinished(balanced))

    async def _rebalance(self, topic: str, trigger: str) -> bool:
        loop = self._loop
        event = self.new_event(topic, trigger)
        began = loop.time()
        facts, decision = await self._decide(topic)
        asked = loop.time()
        round_ = RebalanceRound(facts, decision)
        await self._holdings.carry_out(round_)
        outcome = round_.outcome
        assert outcome is not None
        members = None if facts.members is None else tuple(java_sorted(facts.members))
        event = msgspec.structs.replace(
            described(event, decision, outcome),
            asked=asked - began,
            carried_out=loop.time() - asked,
            members=members,
            after=self.working(topic),
        )
        self.history.record(event)
        self._report(event, decision)
        if outcome.released or outcome.acquired:
            self._changed(outcome.released, tuple(outcome.acquired))
        return outcome.balanced

    def new_event(self, topic: str, trigger: str) -> RebalanceEvent:
        """Begin to describe a rebalance that begins now."""
        parts = self._parts
        return RebalanceEvent(
            group=parts.group,
            client_id=parts.session.client_id,
            topic=topic,
            strategy=self._strategy.name,
            trigger=trigger,
            started=parts.session.clock.now(),
            before=self.working(topic),
        )

    async def _decide(self, topic: str) -> tuple[RebalanceFacts, RebalanceDecision]:
        parts, member = self._parts, self._member
        session = parts.session
        if member.asks_broker:
            query = assignment_query(
                session, topic, parts.group, self._strategy.name, parts.options.model
            )
            answer = await broker_assignment(session, query)
            facts = self._facts(topic, None, None)
            return facts, decide_assigned(facts, answer)
        route = await self._route(topic)
        members = None
        if route is not None and parts.options.model is MessageModel.CLUSTERING:
            members = await group_members(session, topic, parts.group)
        facts = self._facts(topic, route, members)
        return facts, decide(facts)

    async def _route(self, topic: str) -> tuple[MessageQueue, ...] | None:
        self._asking = topic
        try:
            known = await self._parts.session.routes.get(topic)
        except MQError as error:
            logger.debug("group %s: no route of %s: %s", self._parts.group, topic, error)
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
    ) -> RebalanceFacts:
        return RebalanceFacts(
            member=self._member,
            topic=topic,
            route=route,
            members=members,
            owned=self._holdings.owned(),
            now=self._loop.time(),
        )

    def working(self, topic: str) -> tuple[MessageQueue, ...]:
        """Give the topic's queues that are held and not dropped."""
        parts = self._parts
        held = (*parts.held.values(), *parts.popped.values())
        return tuple(
            sort_queues({h.queue for h in held if h.queue.topic == topic and not h.dropped})
        )

    def _leave_topics(self) -> None:
        """Give up queues whose topics are not subscribed any more."""
        parts, holdings = self._parts, self._holdings
        gone: list[RevokeQueue] = list(
            unsubscribed(holdings.owned(), frozenset(parts.subscriptions.topics()))
        )
        for step in gone:
            # Java stores no offset here; what was consumed since would come again to a successor.
            if step.mode is MessageRequestMode.PULL:
                parts.offsets.persist(step.queue)
            holdings.perform((DropQueue(step.queue, step.mode), RemoveQueue(step.queue, step.mode)))
            self._seen.pop(step.queue.topic, None)
        if gone:
            self._changed(tuple(step.queue for step in gone), ())

    def _report(self, event: RebalanceEvent, decision: RebalanceDecision) -> None:
        for warning in decision.warnings:
            logger.debug("group %s, topic %s: %s", event.group, event.topic, warning.value)
        if decision.error is not None:
            logger.error("group %s, topic %s: %s", event.group, event.topic, event.kept_because)
        if event.changed:
            logger.info(
                "group %s, topic %s, %s: %d of %d queues, %d new, %d given up (%s)",
                event.group, event.topic, event.client_id, len(event.after),
                len(event.queues or ()), len(event.assigned), len(event.revoked), event.trigger,
            )  # fmt: skip
