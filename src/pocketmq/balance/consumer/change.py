"""What follows when the queues a consumer holds have changed (Java: messageQueueChanged)."""

import msgspec

from pocketmq.balance.consumer.instructions import (
    AssignQueues,
    BumpSubscription,
    Instruction,
    NotifyListener,
    SendHeartbeats,
)
from pocketmq.balance.consumer.limits import PullLimits, spread_topic_limits
from pocketmq.balance.profile import Profile
from pocketmq.model.kinds import ConsumeType
from pocketmq.model.queue import MessageQueue


class QueueChange(msgspec.Struct, frozen=True):
    """The queues of a topic, and those that are this member's now.

    `held` counts the held queues of all topics together, for topic-level thresholds are shared
    among them all. `queues` is `None` when the broker made the assignment.
    """

    topic: str
    queues: tuple[MessageQueue, ...] | None
    mine: tuple[MessageQueue, ...]
    held: int
    now: float


def follow_change(
    profile: Profile, consume_type: ConsumeType, limits: PullLimits, change: QueueChange
) -> tuple[Instruction, ...]:
    """Tell what to do after a change, in Java's order.

    A push consumer gives its subscription a new version and announces it, so that brokers do not
    serve pulls from an older view; a pull consumer only changes its assignment.
    """
    notify = NotifyListener(change.topic, change.queues, change.mine)
    if consume_type is ConsumeType.CONSUME_ACTIVELY:
        return AssignQueues(change.topic, change.mine), notify
    steps: list[Instruction] = [BumpSubscription(change.topic, int(change.now * 1000))]
    new_limits = spread_topic_limits(limits, change.held)
    if new_limits is not None:
        steps.append(new_limits)
    steps.append(SendHeartbeats())
    if profile.push_listener:
        steps.append(notify)
    return tuple(steps)
