"""What may befall an estate, and what each event leaves of topics and members.

An event happens to every group it can happen to: a broker that a group's topics do not use is no
event for that group. The rules of each are those of `pocketmq.balance.what_if.events`.
"""

import msgspec

from pocketmq.balance.allocation import Strategy
from pocketmq.errors import InvalidInput
from pocketmq.model.java_strings import java_sorted

# A topic's queues: broker -> ids.
Layout = dict[str, tuple[int, ...]]


class Join(msgspec.Struct, frozen=True, tag="join"):
    """A member of this id joins every group that has none of that id."""

    member: str

    def members(self, now: tuple[str, ...]) -> tuple[str, ...]:
        """Give a group's members afterwards, in Java's order."""
        return now if self.member in now else tuple(java_sorted((*now, self.member)))


class Leave(msgspec.Struct, frozen=True, tag="leave"):
    """The member with this id, or at this place (1 is the first, -1 the last), leaves."""

    which: int | str

    def members(self, now: tuple[str, ...]) -> tuple[str, ...]:
        """Give a group's members afterwards."""
        if isinstance(self.which, str):
            at = now.index(self.which) if self.which in now else None
        else:
            place = self.which - 1 if self.which > 0 else len(now) + self.which
            at = place if 0 <= place < len(now) else None
        return now if at is None else now[:at] + now[at + 1 :]


class LoseBroker(msgspec.Struct, frozen=True, tag="broker_down"):
    """A broker vanishes from the routes with its queues."""

    broker: str

    def layout(self, topic: str, now: Layout) -> Layout:  # noqa: ARG002
        """Give a topic's queues afterwards."""
        return {broker: ids for broker, ids in now.items() if broker != self.broker}


class AddBroker(msgspec.Struct, frozen=True, tag="broker_added"):
    """A broker comes, or comes back, with so many queues of every topic."""

    broker: str
    queues: int

    def layout(self, topic: str, now: Layout) -> Layout:
        """Give a topic's queues afterwards; raises `InvalidInput` if it is there already."""
        if now.get(self.broker):
            raise InvalidInput(f"topic {topic} has queues on {self.broker} already")
        return now | {self.broker: tuple(range(self.queues))}


class AddQueues(msgspec.Struct, frozen=True, tag="queues_added"):
    """Every topic, or one, gets so many more queues on each of its brokers, or on one."""

    count: int
    topic: str | None = None
    broker: str | None = None

    def layout(self, topic: str, now: Layout) -> Layout:
        """Give a topic's queues afterwards, numbered on from those it has."""
        if self.topic not in (None, topic):
            return now
        later = dict(now)
        for broker in [self.broker] if self.broker is not None else list(now):
            first = max(now.get(broker, ()), default=-1) + 1
            later[broker] = (*now.get(broker, ()), *range(first, first + self.count))
        return later


class SwitchTo(msgspec.Struct, frozen=True, tag="strategy_changed"):
    """All members of all groups are restarted with another strategy."""

    strategy: Strategy


FleetEvent = Join | Leave | LoseBroker | AddBroker | AddQueues | SwitchTo


def described(event: FleetEvent) -> str:
    """Say in a few words what happens."""
    match event:
        case Join(member):
            return f"{member} joins"
        case Leave(which):
            return f"member {which} leaves"
        case LoseBroker(broker):
            return f"{broker} goes down"
        case AddBroker(broker, queues):
            return f"{broker} comes with {queues} queues a topic"
        case AddQueues(count, topic, broker):
            return f"{count} more queues of {topic or 'each topic'} on {broker or 'each broker'}"
        case SwitchTo(strategy):
            return f"all change to {strategy.name}"


def check_events(topics: dict[str, dict[str, int]], events: list[FleetEvent]) -> None:
    """Raise `InvalidInput` for an event that can happen to no topic of the estate."""
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
    """Say why an event cannot happen."""
    match event:
        case LoseBroker(broker) if broker not in brokers:
            return f"no topic has queues on broker {broker}"
        case AddBroker(broker) if broker in brokers:
            return f"broker {broker} has queues already"
        case AddBroker(broker, queues) if queues < 1:
            return f"broker {broker} must come with 1 queue or more"
        case AddQueues(count) if count < 1:
            return f"{count} queues cannot be added"
        case AddQueues(_, str(topic)) if topic not in topics:
            return f"there is no topic {topic}"
        case AddQueues(_, _, str(broker)) if broker not in brokers:
            return f"no topic has queues on broker {broker}"
        case Join(""):
            return "a member id is empty"
        case Leave(0 | ""):
            return "members are counted from 1, or from the last with -1"
    return None
