"""When a client rebalances: its timer, what wakes it, and how bursts become one run.

4.x runs at every wake-up. 5.x leaves at least a second between runs and before the first one, and
runs again after a second when a run did not reach its target. The second is Java's, and stays where
a member of another kind may be in the group: it releases queues up to a second after it was
notified, and a member of ours that turned faster than its fellows would pull queues they still
have. Where all members are prompt a much shorter pause suffices (`balance.profile`).

The shell reports events with the time, arms one timer for `SetRebalanceTimer` and reports
`RebalanceTimerElapsed`; a run is reported back with `RunFinished`. Numbers are those of
`balance.profile`. How long the first pull of a queue waits is `RebalanceFacts.start_delay`.
"""

import msgspec
from msgspec.structs import replace

from pocketmq.balance.consumer.instructions import Instruction, SendHeartbeats, SendHeartbeatTo
from pocketmq.balance.profile import Profile


class RunRebalance(Instruction, frozen=True):
    """Rebalance every subscribed topic, then report `RunFinished`."""


class SetRebalanceTimer(Instruction, frozen=True):
    """Report `RebalanceTimerElapsed` at this time; the timer set before is void."""

    when: float


class FetchRoutes(Instruction, frozen=True):
    """Fetch the route of every subscribed topic from the name server."""


class ConsumerStarted(msgspec.Struct, frozen=True):
    """The consumer is up; `heartbeat_sent` says whether any broker accepted its heartbeat."""

    heartbeat_sent: bool = True
    pause: float | None = None
    """What suffices where every member releases queues at once; None if that is not known."""


class RebalanceTimerElapsed(msgspec.Struct, frozen=True):
    """The time of `SetRebalanceTimer` has come."""


class IdsChanged(msgspec.Struct, frozen=True):
    """A broker notified that the group's members changed."""


class RouteChanged(msgspec.Struct, frozen=True):
    """The name server returned other queues of a subscribed topic, or its first ones."""

    pause: float | None = None
    """As in `RunFinished`."""


class SubscriptionChanged(msgspec.Struct, frozen=True):
    """The application subscribed to a topic (`added`) or left one, while running."""

    added: bool = True
    pull_consumer: bool = False


class BrokerChannelActive(msgspec.Struct, frozen=True):
    """A connection to a known broker came up."""

    address: str


class ChannelHeartbeatSent(msgspec.Struct, frozen=True):
    """The heartbeat over the new connection was accepted."""


class RebalanceRequested(msgspec.Struct, frozen=True):
    """`RebalanceAgain` was given by a round or a pull."""

    after: float = 0.0


class Paused(msgspec.Struct, frozen=True):
    """The application suspended the consumer."""


class Resumed(msgspec.Struct, frozen=True):
    """The application resumed the consumer."""


class RunFinished(msgspec.Struct, frozen=True):
    """A run is over; `balanced` if every topic reached its target."""

    balanced: bool
    pause: float | None = None
    """What suffices where every member releases queues at once; None if that is not known."""


class Stopped(msgspec.Struct, frozen=True):
    """The consumer shuts down."""


ScheduleEvent = (
    ConsumerStarted
    | RebalanceTimerElapsed
    | IdsChanged
    | RouteChanged
    | SubscriptionChanged
    | BrokerChannelActive
    | ChannelHeartbeatSent
    | RebalanceRequested
    | Paused
    | Resumed
    | RunFinished
    | Stopped
)


class RebalanceSchedule(msgspec.Struct, frozen=True):
    """When the next rebalance is due. Start with `new_schedule`, continue with `advance`."""

    profile: Profile
    last_run: float
    """When the last run ended, or the client was created."""
    due: float
    ran: bool = False
    """Whether there was a run."""
    pause: float | None = None
    """Of `RunFinished`: None leaves Java's."""
    woken_at: float | None = None
    """While a run is in progress: the earliest time another one was requested."""
    running: bool = False
    paused: bool = False
    stopped: bool = False


class Next(msgspec.Struct, frozen=True):
    """The schedule after an event, and what to do now."""

    schedule: RebalanceSchedule
    instructions: tuple[Instruction, ...] = ()


def new_schedule(profile: Profile, now: float) -> RebalanceSchedule:
    """Return the schedule of a client that is created now."""
    return RebalanceSchedule(profile, last_run=now, due=now + profile.rebalance_interval)


def advance(schedule: RebalanceSchedule, event: ScheduleEvent, now: float) -> Next:
    """Return the schedule after an event, and the instructions that follow."""
    if schedule.stopped:
        return Next(schedule)
    match event:
        case RebalanceTimerElapsed():
            return _tick(schedule, now)
        case RunFinished(balanced, pause):
            return _finished(replace(schedule, pause=pause), now, balanced=balanced)
        case ConsumerStarted(heartbeat_sent, pause):
            schedule = replace(schedule, pause=pause)
            if schedule.profile.start_needs_heartbeat and not heartbeat_sent:
                return Next(schedule, (SetRebalanceTimer(schedule.due),))
            woken = _wake(schedule, now, now)
            # No timer is set yet: set it also where the first run is due when it would be anyway.
            timer = SetRebalanceTimer(schedule.due)
            return woken if woken.instructions else Next(woken.schedule, (timer,))
        case IdsChanged() | ChannelHeartbeatSent():
            return _wake(schedule, now, now)
        case RebalanceRequested(after):
            return _wake(schedule, now, now + after)
        case Resumed():
            return _resumed(replace(schedule, paused=False), now)
        case Paused():
            return Next(replace(schedule, paused=True))
        case Stopped():
            return Next(replace(schedule, stopped=True))
        case _:
            return _noticed(schedule, event, now)


def _noticed(schedule: RebalanceSchedule, event: ScheduleEvent, now: float) -> Next:
    """Handle events that do not concern the timer, at least not in Java."""
    match event:
        case RouteChanged(pause) if schedule.profile.rebalance_on_route_change:
            known = schedule if pause is None else replace(schedule, pause=pause)
            return _wake(known, now, now)
        case SubscriptionChanged(added=True, pull_consumer=pull):
            # Brokers notify a group's members when a heartbeat has another subscription.
            beat = SendHeartbeats()
            return Next(schedule, (beat, FetchRoutes()) if pull else (beat,))
        case BrokerChannelActive(address) if schedule.profile.channel_active_heartbeat:
            return Next(schedule, (SendHeartbeatTo(address),))
        case _:
            return Next(schedule)


def _wake(schedule: RebalanceSchedule, now: float, when: float) -> Next:
    if schedule.running:  # what the run has read may be older than the wake-up: run once more
        earliest = when if schedule.woken_at is None else min(schedule.woken_at, when)
        return Next(replace(schedule, woken_at=earliest))
    # Wake-ups come in bursts (every broker notifies of the same change): the first one sets the
    # time of the next run, at least the minimal interval after the last; the others fall into it.
    due = min(schedule.due, max(when, _allowed(schedule, now)))
    woken = replace(schedule, due=due)
    if due <= now:
        return _run(woken, now)
    return Next(woken, (SetRebalanceTimer(due),)) if due != schedule.due else Next(schedule)


def _allowed(schedule: RebalanceSchedule, now: float) -> float:
    """Return the earliest time of the next run."""
    interval = schedule.profile.rebalance_min_interval
    if schedule.pause is None:
        return schedule.last_run + interval
    if not schedule.ran:  # the others were notified by the heartbeat, and release queues now
        return now
    return schedule.last_run + min(schedule.pause, interval)


def _tick(schedule: RebalanceSchedule, now: float) -> Next:
    if schedule.running:
        return Next(schedule)
    if now < schedule.due:
        return Next(schedule, (SetRebalanceTimer(schedule.due),))
    return _run(schedule, now)


def _run(schedule: RebalanceSchedule, now: float) -> Next:
    if schedule.paused:  # a paused consumer skips this run and counts as not balanced
        return _finished(schedule, now, balanced=False)
    return Next(replace(schedule, running=True), (RunRebalance(),))


def _finished(schedule: RebalanceSchedule, now: float, *, balanced: bool) -> Next:
    profile = schedule.profile
    wait = profile.rebalance_interval if balanced else profile.unbalanced_interval
    ended = replace(schedule, running=False, woken_at=None, last_run=now, ran=True, due=now + wait)
    if schedule.woken_at is not None:
        woken = _wake(ended, now, max(now, schedule.woken_at))
        if woken.instructions:
            return woken
    return Next(ended, (SetRebalanceTimer(ended.due),))


def _resumed(schedule: RebalanceSchedule, now: float) -> Next:
    if schedule.running:
        return _wake(schedule, now, now)
    # Java rebalances in the caller's thread at once, however short ago the last run was.
    return Next(replace(schedule, running=True), (RunRebalance(),))
