"""What a member has gathered when it rebalances, and what follows when its queues changed.

The latter is Java's messageQueueChanged.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from pocketmq.balance.consumer import instructions
from pocketmq.balance.consumer.limits import PullLimits, spread_topic_limits
from pocketmq.balance.consumer.offsets import StartRule
from pocketmq.balance.profile import Profile
from pocketmq.model import ConsumeType, MessageModel, MessageQueue, MessageRequestMode


class Allocator(Protocol):
    """A rule that shares queues among members.

    An error keeps what the member owns, an empty result drops all of it.
    """

    def allocate(
        self,
        group: str,
        member: str,
        queues: Sequence[MessageQueue],
        members: Sequence[str],
        /,
    ) -> Sequence[MessageQueue] | None:
        """Return the member's share of the sorted queues among the sorted members."""
        ...


class GroupMember(msgspec.Struct, frozen=True, kw_only=True):
    """One consumer of a group: what stays the same from one rebalance to the next."""

    profile: Profile
    group: str
    client_id: str
    strategy: Allocator
    model: MessageModel = MessageModel.CLUSTERING
    consume_type: ConsumeType = ConsumeType.CONSUME_PASSIVELY
    orderly: bool = False
    limits: PullLimits = PullLimits()
    start: StartRule = StartRule()
    client_rebalance: bool = True
    """False lets brokers make the assignment where the line and the consumer's kind allow it."""

    @property
    def locks(self) -> bool:
        """Whether a queue must be locked at its broker before it is taken."""
        return self.orderly and (
            self.model is MessageModel.CLUSTERING or self.profile.broadcasting_locks
        )

    @property
    def asks_broker(self) -> bool:
        """Whether the assignment comes from QUERY_ASSIGNMENT."""
        return (
            self.profile.server_assignment
            and self.consume_type is ConsumeType.CONSUME_PASSIVELY
            and not (self.client_rebalance or self.orderly)
            and self.model is MessageModel.CLUSTERING
        )


class OwnedQueue(msgspec.Struct, frozen=True):
    """A queue in this member's table, and what its process queue says."""

    queue: MessageQueue
    last_pull: float
    dropped: bool = False
    cached: bool = False
    last_lock: float = 0.0
    mode: MessageRequestMode = MessageRequestMode.PULL


class RebalanceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a member has gathered when it rebalances a topic.

    `owned` is its whole table, of all topics. `route` and `members` are `None` when they could not
    be fetched; a broadcasting member does not need `members`.
    """

    member: GroupMember
    topic: str
    route: tuple[MessageQueue, ...] | None
    members: tuple[str, ...] | None
    owned: tuple[OwnedQueue, ...]
    now: float
    prompt: bool = False
    """Whether every member, those that have just left included, releases queues at once."""
    denied: frozenset[MessageQueue] = frozenset()
    """Queues whose locks were denied in the round before."""

    @property
    def pause(self) -> float | None:
        """What suffices where every member releases queues at once; None leaves Java's pauses."""
        if not self.prompt:
            return None
        return self.member.profile.pause_among(0 if self.members is None else len(self.members))

    @property
    def start_delay(self) -> float:
        """Seconds between taking a queue and its first pull.

        Java's pull consumers have none; theirs is hidden in the wait before the first rebalance.
        """
        delay = self.member.profile.pull_start_delay
        if self.pause is not None:
            return min(self.pause, delay)
        passive = self.member.consume_type is ConsumeType.CONSUME_PASSIVELY
        return delay if passive else 0.0


class QueueChange(msgspec.Struct, frozen=True):
    """The queues of a topic, and those that are this member's now.

    `owned_count` counts the owned queues of all topics, because topic-level thresholds are divided
    among them all. `queues` is `None` when the broker made the assignment.
    """

    topic: str
    queues: tuple[MessageQueue, ...] | None
    mine: tuple[MessageQueue, ...]
    owned_count: int
    now: float
    start_delay: float = 0.0
    """Seconds until new queues are pulled, for a pull consumer."""


def follow_change(
    profile: Profile, consume_type: ConsumeType, limits: PullLimits, change: QueueChange
) -> tuple[instructions.Instruction, ...]:
    """Return what to do after a change, in Java's order.

    A push consumer gives its subscription a new version and announces it, so that brokers do not
    serve pulls from an older subscription; a pull consumer only changes its assignment.
    """
    notify = instructions.NotifyListener(change.topic, change.queues, change.mine)
    if consume_type is ConsumeType.CONSUME_ACTIVELY:
        return instructions.AssignQueues(change.topic, change.mine, change.start_delay), notify
    steps: list[instructions.Instruction] = [
        instructions.BumpSubscription(change.topic, int(change.now * 1000))
    ]
    new_limits = spread_topic_limits(limits, change.owned_count)
    if new_limits is not None:
        steps.append(new_limits)
    steps.append(instructions.SendHeartbeats())
    if profile.push_listener:
        steps.append(notify)
    return tuple(steps)
