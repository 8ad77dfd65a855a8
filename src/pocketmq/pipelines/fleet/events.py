"""Events of an estate, and what each means for one group.

An event applies to every group that it concerns: the loss of a broker does not concern a group
whose topics do not use it. `pocketmq.balance.what_if.events` defines what an event does; here it is
only translated.
"""

from collections.abc import Sequence

import msgspec

from pocketmq.balance import what_if
from pocketmq.balance.allocation import Strategy
from pocketmq.errors import InvalidInput


class Join(msgspec.Struct, frozen=True, tag="join"):
    """A member of this id joins every group that has none of that id."""

    member: str

    def in_group(self, now: what_if.Situation) -> Sequence[what_if.Event]:
        """Return what happens to a group."""
        return () if self.member in now.members else (what_if.MemberJoined(self.member),)


class Leave(msgspec.Struct, frozen=True, tag="leave"):
    """The member with this id, or at this place (1 is the first, -1 the last), leaves."""

    which: int | str

    def in_group(self, now: what_if.Situation) -> Sequence[what_if.Event]:
        """Return what happens to a group."""
        members, which = now.members, self.which
        if isinstance(which, str):
            return (what_if.MemberLeft(which),) if which in members else ()
        place = which - 1 if which > 0 else len(members) + which
        return (what_if.MemberLeft(members[place]),) if 0 <= place < len(members) else ()


class LoseBroker(msgspec.Struct, frozen=True, tag="broker_down"):
    """A broker disappears from the routes with its queues."""

    broker: str

    def in_group(self, now: what_if.Situation) -> Sequence[what_if.Event]:
        """Return what happens to a group."""
        return (what_if.BrokerDown(self.broker),) if self.broker in now.brokers() else ()


class AddBroker(msgspec.Struct, frozen=True, tag="broker_added"):
    """A broker is added, or returns, with `queues` queues of every topic."""

    broker: str
    queues: int

    def in_group(self, now: what_if.Situation) -> Sequence[what_if.Event]:
        """Return what happens to a group."""
        return (what_if.BrokerAdded(self.broker, dict.fromkeys(now.topics, self.queues)),)


class AddQueues(msgspec.Struct, frozen=True, tag="queues_added"):
    """Every topic, or one, gets `count` more queues on each of its brokers, or on one."""

    count: int
    topic: str | None = None
    broker: str | None = None

    def in_group(self, now: what_if.Situation) -> Sequence[what_if.Event]:
        """Return what happens to a group."""
        events: list[what_if.Event] = []
        used = now.brokers()
        for topic, queues in now.topics.items():
            if self.topic not in (None, topic):
                continue
            if self.broker is None:
                brokers = sorted({queue.broker_name for queue in queues})
                events += [what_if.QueuesAdded(topic, broker, self.count) for broker in brokers]
            elif self.broker in used:
                events.append(what_if.QueuesAdded(topic, self.broker, self.count))
            else:  # no topic of the group is on it so far
                events.append(what_if.BrokerAdded(self.broker, {topic: self.count}))
                used.add(self.broker)
        return events


class SwitchTo(msgspec.Struct, frozen=True, tag="strategy_changed"):
    """All members of all groups restart with another strategy."""

    strategy: Strategy

    def in_group(self, now: what_if.Situation) -> Sequence[what_if.Event]:  # noqa: ARG002
        """Return what happens to a group."""
        return (what_if.StrategyChanged(self.strategy),)


FleetEvent = Join | Leave | LoseBroker | AddBroker | AddQueues | SwitchTo


def applied(event: FleetEvent, situation: what_if.Situation) -> what_if.Situation:
    """Return a group's situation after an event; the same object if it does not concern it."""
    for step in event.in_group(situation):
        situation = step.apply(situation)
    return situation


def described(event: FleetEvent) -> str:
    """Return a short description of an event."""
    match event:
        case Join(member):
            return f"{member} joins"
        case Leave(which):
            return f"member {which} leaves"
        case LoseBroker(broker):
            return f"{broker} goes down"
        case AddBroker(broker, queues):
            return f"{broker} is added with {queues} queues per topic"
        case AddQueues(count, topic, broker):
            return f"{count} more queues of {topic or 'each topic'} on {broker or 'each broker'}"
        case SwitchTo(strategy):
            return f"all switch to {strategy.name}"


def check_events(topics: dict[str, dict[str, int]], events: list[FleetEvent]) -> None:
    """Raise `InvalidInput` for an event that is impossible in the estate."""
    brokers = {broker for layout in topics.values() for broker, count in layout.items() if count}
    for event in events:
        reason = _impossible(event, set(topics), brokers)
        if reason:
            raise InvalidInput(reason)
        if isinstance(event, LoseBroker):
            brokers.discard(event.broker)
        elif isinstance(event, AddBroker):
            brokers.add(event.broker)


def _impossible(event: FleetEvent, topics: set[str], brokers: set[str]) -> str | None:
    """Return why an event is impossible, None if it is not."""
    match event:
        case LoseBroker(broker) if broker not in brokers:
            return f"no topic has queues on broker {broker}"
        case AddBroker(broker) if broker in brokers:
            return f"broker {broker} has queues already"
        case AddBroker(broker, queues) if queues < 1:
            return f"broker {broker} must have at least 1 queue"
        case AddQueues(count) if count < 1:
            return f"cannot add {count} queues; at least 1 is needed"
        case AddQueues(_, str(topic)) if topic not in topics:
            return f"there is no topic {topic}"
        case AddQueues(_, _, str(broker)) if broker not in brokers:
            return f"no topic has queues on broker {broker}"
        case Join(""):
            return "a member id must not be empty"
        case Leave(0 | ""):
            return "members are counted from 1, or from the last with -1"
    return None
