"""The machine of one STICKY member, run: events in, instructions out.

Has the face of `Rebalancing`, whose place it takes. `balance.handover` decides; here it is told
what happens, and what it wants is passed on to queues, locks, bus and brokers. Belongs to one event
loop. Events that come in one iteration of the loop are worked in together, so that the locks they
lead to, and what is told to others, travel in few requests.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from pocketmq.balance.consumer import schedule as when
from pocketmq.balance.handover import events
from pocketmq.balance.handover import instructions as do
from pocketmq.balance.handover.machine import advance, new_group
from pocketmq.balance.handover.messages import Bye, Notice
from pocketmq.balance.handover.settings import HandoverSettings, HandoverTimes
from pocketmq.balance.handover.view import balance_of
from pocketmq.client.group.handover.bus import Bus
from pocketmq.client.group.handover.listing import GroupRoutes, MemberListing
from pocketmq.client.group.handover.queues import Handled, HandoverQueues
from pocketmq.client.group.handover.requests import HandoverRequests
from pocketmq.client.group.handover.story import HandoverStory
from pocketmq.client.group.held_queue import HeldQueue
from pocketmq.client.group.holdings import Holdings
from pocketmq.client.group.parts import MemberParts
from pocketmq.client.routes import KnownRoute
from pocketmq.model import MessageQueue
from pocketmq.model.group_balance import GroupBalance
from pocketmq.model.rebalance_event import RebalanceEvent

logger = logging.getLogger("pocketmq.client")

Q = TypeVar("Q", bound=HeldQueue)

QueuesChanged = Callable[[tuple[MessageQueue, ...], tuple[MessageQueue, ...]], None]

_TRIGGERS: dict[type, str] = {
    when.IdsChanged: "members changed",
    when.SubscriptionChanged: "subscription changed",
}
_OPEN_WAIT = 3.0
"""Seconds for which a start waits until the bus is listened to."""
_LEAVE_GRACE = 1.0
"""Seconds for the last requests of a member that leaves, beside those for handlers."""
_WARN_AGAIN = 600.0
"""Seconds for which the same warning is not logged again."""
_MOST_WARNINGS = 256
_MOST_EVENTS = 256
"""Events worked in before others have their turn on the loop."""
_FIRST_GREETING, _LAST_GREETING = 0.2, 5.0
"""Seconds between heartbeats over a fresh connection until one is accepted: at first, at most."""


def _settings_of(parts: MemberParts[Q], *, orderly: bool) -> HandoverSettings:
    """Return what the machine must know of a member, which boots now."""
    options, session = parts.options, parts.session
    assert options.sticky is not None
    return HandoverSettings(
        group=parts.group,
        client_id=session.client_id,
        boot=f"{session.random.getrandbits(64):016x}",
        overlap=not options.drains,
        orderly=orderly,
        settle=options.settle,
        drain_wait=options.drain_wait,
        return_within=options.return_within,
        mixed=options.sticky.mixed,
        # Without order to keep, heirs need not wait for the lease of a member that is gone.
        times=HandoverTimes() if orderly else HandoverTimes(seize_drained=0.0),
    )


class StickyBalancing(Generic[Q]):
    """Keeps the queues of one member as STICKY wants them, handed over without harm."""

    def __init__(
        self,
        parts: MemberParts[Q],
        holdings: Holdings[Q],
        handled: Handled[Q],
        *,
        orderly: bool,
        changed: QueuesChanged,
    ) -> None:
        session = parts.session
        self._parts = parts
        self._loop = asyncio.get_running_loop()
        settings = _settings_of(parts, orderly=orderly)
        self._settings = settings
        self._group = new_group(settings)
        self._queues = HandoverQueues(parts, holdings, handled, self._answered)
        self._bus = Bus(session, parts.group, parts.tasks, self._heard)
        self._requests = HandoverRequests(parts, settings, self._bus, self._post, orderly=orderly)
        self._routes = GroupRoutes(parts, self._routed)
        self._listing = MemberListing(
            session,
            parts.group,
            parts.tasks,
            lambda: self._routes.brokers,
            self._post,
            bus=self._bus,
        )
        self.story = HandoverStory(parts, changed, self._loop)
        self.history = self.story.history
        self._events: deque[events.HandoverEvent] = deque()
        self._due = False
        self._now = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._warned: dict[str, float] = {}  # texts, with the times when they were logged
        self._started = self._stopped = False
        self._left = asyncio.Event()
        queues, requests = self._queues, self._requests
        self._at_once: dict[type, Callable[[Any], None]] = {
            do.Tell: requests.add_message,
            do.AskMembers: lambda _: self._listing.ask_soon(),
            do.Lock: requests.add_locks,
            do.Unlock: requests.add_locks,
            do.Renew: requests.renew,
            do.ReadStart: requests.read_offset,
            do.StoreOffset: requests.store_offset,
            do.Recheck: requests.recheck,
            do.Run: self._run,
            do.LiftBarrier: queues.lift_barrier,
            do.FillHole: queues.fill_hole,
            do.StopStarting: self._stop_starting,
            do.Drain: queues.drain,
            do.Drop: self._drop,
            do.Fence: lambda step: queues.fence(step.queue),
            do.Resume: lambda step: queues.resume(step.queue),
            do.WakeAt: self._wake_at,
            do.ReportChange: self.story.reported,
            do.Warn: self._warn,
            do.LeaveGroup: lambda _: self._left.set(),
        }

    # The face of `Rebalancing`

    def begin(self, *, heartbeat_sent: bool) -> None:  # noqa: ARG002 - as `Rebalancing`
        """Take part from now on."""
        self.story.trigger("start")
        self._start()

    def tell(self, event: when.ScheduleEvent) -> None:
        """Report an event that may call for another assignment."""
        if (trigger := _TRIGGERS.get(type(event))) is not None:
            self.story.trigger(trigger)
        if not self._started or self._stopped:
            return
        if isinstance(event, when.BrokerChannelActive):
            self._parts.tasks.spawn(self._greet(event.address), f"heartbeat to {event.address}")
        elif isinstance(event, when.SubscriptionChanged):
            self._parts.session.heartbeats.beat_soon(in_full=True)
            self._routes.look_soon()
        elif isinstance(event, when.IdsChanged | when.RebalanceRequested):
            self._listing.ask_soon()

    def route_changed(self, known: KnownRoute) -> None:
        """Report a route."""
        self._routes.take(known)

    def new_event(self, topic: str, trigger: str) -> RebalanceEvent:
        """Return the event of a change that starts now, to be completed."""
        return self.story.new_event(topic, trigger)

    async def stop(self, patience: float) -> None:  # noqa: ARG002 - as `Rebalancing`
        """Decide nothing any more."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        self.story.finish()

    # What `Rebalancing` has not

    async def listen(self) -> None:
        """Listen to the bus, before brokers know of the member: it must miss nothing."""
        await self._routes.look()
        self._bus.listen(self._routes.brokers)
        await self._bus.until_listening(_OPEN_WAIT)

    async def leave(self, wait: float) -> None:
        """Hand the queues to members that claim them; release what is left after `wait`.

        Handlers in flight have as long again, so every wait has an end.
        """
        if not self._started or self._stopped:
            return
        self.story.trigger("stop")
        self._post(events.Stopping(wait))
        limit = wait + min(wait, self._settings.drain_wait) + _LEAVE_GRACE
        try:
            async with asyncio.timeout(limit):
                await self._left.wait()
        except TimeoutError:
            logger.warning(
                "stopped before all handlers finished: group=%s client_id=%s queues=%d "
                "waited_s=%g; their messages may be redelivered",
                self._parts.group, self._parts.session.client_id,
                len(self._parts.queues.pulled), limit,
            )  # fmt: skip

    def broker_lost(self, address: str) -> None:
        """Report that the connection to a broker closed."""
        broker = self._master_at(address)
        if broker is not None and self._started:
            self._post(events.Disconnected(broker))

    def balance(self) -> GroupBalance:
        """Return the balance of the group as this member sees it."""
        return balance_of(self._group)

    # Events

    def _start(self) -> None:
        self._started = True
        parts = self._parts
        parts.tasks.every(
            parts.options.commit_interval,
            self._queues.commits.commit_changed,
            "commits",
            first_after=parts.options.commit_interval,
        )
        self._post(events.Routed(self._routes.queues))
        self._post(events.Started())
        self._listing.ask_soon()
        self._routes.look_soon()

    def _routed(self) -> None:
        self._bus.listen(self._routes.brokers)
        if self._started:
            self.story.trigger("route changed")
            self._post(events.Routed(self._routes.queues))

    def _heard(self, broker: str, notice: Notice, age: float) -> None:
        own = notice.boot == self._settings.boot
        for message in notice.messages:
            if own and not isinstance(message, Bye):
                continue
            self._post(events.Heard(broker, notice.sender, notice.boot, message, age))

    async def _greet(self, address: str) -> None:
        """Send heartbeats over a fresh connection until the broker has one, or it is lost."""
        session, pause = self._parts.session, _FIRST_GREETING
        while not await session.heartbeats.beat_to(address):
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LAST_GREETING)
            if address not in session.addresses or session.calls.connected(address) is None:
                return  # the next connection is greeted again
        if (broker := self._master_at(address)) is not None:
            self._post(events.Connected(broker))

    def _master_at(self, address: str) -> str | None:
        places = self._parts.session.addresses.places(masters_only=True)
        return next((place.broker for place in places if place.address == address), None)

    def _answered(self, event: events.HandoverEvent) -> None:
        if isinstance(event, events.Drained) and event.stored:
            self.story.drained(event.queue)
        self._post(event)

    def _post(self, event: events.HandoverEvent) -> None:
        self._events.append(event)
        if not self._due:
            self._due = True
            self._loop.call_soon(self._work)

    def _work(self) -> None:
        """Work in what happened, and send what follows."""
        self._due = False
        if self._stopped:
            self._events.clear()
            return
        try:
            for _ in range(min(len(self._events), _MOST_EVENTS)):
                self._advance(self._events.popleft())
        finally:
            if self._events:
                self._due = True
                self._loop.call_soon(self._work)  # others have their turn on the loop first
            if self._timer is None and self._group.wake_at is not None:
                self._wake_at(do.WakeAt(self._group.wake_at))
            self._requests.send()

    def _advance(self, event: events.HandoverEvent) -> None:
        self._now = max(self._now, self._loop.time())
        try:
            following = advance(self._group, event, self._now)
        except Exception:
            logger.exception(
                "hand-over event failed: group=%s event=%s; ignored",
                self._parts.group, type(event).__name__,
            )  # fmt: skip
            return
        self._group = following.group
        self.story.group = following.group
        for step in following.instructions:
            try:
                self._at_once[type(step)](step)
            except Exception:  # the machine counts on the others, above all on `WakeAt`
                logger.exception(
                    "hand-over instruction failed: group=%s instruction=%s; "
                    "continuing with the next one",
                    self._parts.group, type(step).__name__,
                )  # fmt: skip

    # Instructions

    def _run(self, step: do.Run) -> None:
        self.story.taken(step.queue, step.offset)
        self._queues.run(step)

    def _stop_starting(self, step: do.StopStarting) -> None:
        self.story.released(step.queue)
        self._queues.stop_starting(step)

    def _drop(self, step: do.Drop) -> None:
        self.story.dropped(step.queue)
        self._queues.drop(step.queue)

    def _wake_at(self, step: do.WakeAt) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(step.when, self._wake, step.when)

    def _wake(self, when: float) -> None:
        # A loop's timers may fire a little early; the machine would only set the same one again.
        self._now, self._timer = max(self._now, when), None
        self._post(events.TimerElapsed())

    def _warn(self, step: do.Warn) -> None:
        now = self._loop.time()
        if now - self._warned.get(step.text, -_WARN_AGAIN) >= _WARN_AGAIN:
            if len(self._warned) >= _MOST_WARNINGS:
                del self._warned[next(iter(self._warned))]  # the one logged longest ago
            self._warned.pop(step.text, None)
            self._warned[step.text] = now
            logger.warning("%s", step.text)
