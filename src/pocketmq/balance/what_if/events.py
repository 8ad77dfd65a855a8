"""The events that may happen to a group, and how each changes its situation.

Independent of shares: who owns what in a situation is computed elsewhere. The owners that a
situation brings along are those before the event.
"""

from typing import ClassVar

import msgspec

from pocketmq.balance.allocation import Strategy
from pocketmq.balance.what_if.situation import Situation, in_order
from pocketmq.errors import AllocationInputInvalid
from pocketmq.model import MessageQueue
from pocketmq.model.java_strings import java_sorted


class MemberJoined(msgspec.Struct, frozen=True):
    """One more member. An id that is there already is allowed, as brokers allow it."""

    kind: ClassVar[str] = "member_joined"
    member: str

    @property
    def subject(self) -> str:
        """What it happened to, in one word."""
        return self.member

    def apply(self, situation: Situation) -> Situation:
        """Return the situation after the event; raises `AllocationInputInvalid` for an empty id."""
        if not self.member:
            raise AllocationInputInvalid("a member id must not be empty")
        members = tuple(java_sorted((*situation.members, self.member)))
        return msgspec.structs.replace(situation, members=members)


class MemberLeft(msgspec.Struct, frozen=True):
    """One member less."""

    kind: ClassVar[str] = "member_left"
    member: str

    @property
    def subject(self) -> str:
        """What it happened to, in one word."""
        return self.member

    def apply(self, situation: Situation) -> Situation:
        """Return the situation after it; raises `AllocationInputInvalid` for an unknown member."""
        if self.member not in situation.members:
            raise AllocationInputInvalid(f"{self.member} is not a member of the group")
        members = list(situation.members)
        members.remove(self.member)
        return msgspec.structs.replace(situation, members=tuple(members))


class BrokerDown(msgspec.Struct, frozen=True):
    """A broker and its queues vanish from the routes, for good.

    Members that use STICKY wait a while for a broker to come back before they move anything.
    """

    kind: ClassVar[str] = "broker_down"
    broker: str

    @property
    def subject(self) -> str:
        """What it happened to, in one word."""
        return self.broker

    def apply(self, situation: Situation) -> Situation:
        """Return the situation after it; raises `AllocationInputInvalid` for an unknown broker."""
        if self.broker not in situation.brokers():
            raise AllocationInputInvalid(f"broker {self.broker} has no queues of these topics")
        topics = {
            topic: tuple(queue for queue in queues if queue.broker_name != self.broker)
            for topic, queues in situation.topics.items()
        }
        return msgspec.structs.replace(situation, topics=topics)


class BrokerAdded(msgspec.Struct, frozen=True):
    """A new broker, or one that comes back, with a number of queues of each topic."""

    kind: ClassVar[str] = "broker_added"
    broker: str
    queues: dict[str, int]

    @property
    def subject(self) -> str:
        """What it happened to, in one word."""
        return self.broker

    def apply(self, situation: Situation) -> Situation:
        """Return the situation after it; raises `AllocationInputInvalid` if the broker exists."""
        if self.broker in situation.brokers():
            raise AllocationInputInvalid(f"broker {self.broker} already has queues")
        for topic, count in self.queues.items():
            situation = _with_queues(situation, topic, self.broker, count)
        return situation


class QueuesAdded(msgspec.Struct, frozen=True):
    """More queues of a topic on a broker, numbered on from those it has."""

    kind: ClassVar[str] = "queues_added"
    topic: str
    broker: str
    count: int

    @property
    def subject(self) -> str:
        """What it happened to, as `topic:broker*count`."""
        return f"{self.topic}:{self.broker}*{self.count}"

    def apply(self, situation: Situation) -> Situation:
        """Return the situation after the event.

        Raises `AllocationInputInvalid` for a topic or broker unknown, or fewer than one queue.
        """
        if self.broker not in situation.brokers():
            raise AllocationInputInvalid(f"broker {self.broker} has no queues of these topics")
        return _with_queues(situation, self.topic, self.broker, self.count)


class StrategyChanged(msgspec.Struct, frozen=True):
    """All members were restarted with another strategy."""

    kind: ClassVar[str] = "strategy_changed"
    strategy: Strategy

    @property
    def subject(self) -> str:
        """The new strategy's name."""
        return self.strategy.name

    def apply(self, situation: Situation) -> Situation:
        """Return the situation after the event."""
        return msgspec.structs.replace(situation, strategy=self.strategy)


Event = MemberJoined | MemberLeft | BrokerDown | BrokerAdded | QueuesAdded | StrategyChanged


def _with_queues(situation: Situation, topic: str, broker: str, count: int) -> Situation:
    if topic not in situation.topics:
        raise AllocationInputInvalid(f"the group does not subscribe to topic {topic}")
    if count < 1:
        raise AllocationInputInvalid(
            f"cannot add {count} queues of {topic} to {broker}; add at least 1"
        )
    queues = situation.topics[topic]
    first = max((queue.queue_id + 1 for queue in queues if queue.broker_name == broker), default=0)
    more = [MessageQueue(topic, broker, number) for number in range(first, first + count)]
    topics = situation.topics | {topic: in_order([*queues, *more])}
    return msgspec.structs.replace(situation, topics=topics)
