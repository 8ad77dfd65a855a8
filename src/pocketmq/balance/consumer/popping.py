"""Popping for a push consumer: when to pop, and when a failed message is redelivered.

A popped message is not sent back when its handler fails: it stays invisible for a while longer, and
the broker then redelivers it. Ages and delays are seconds.
"""

import msgspec

from pocketmq.balance.consumer import pulling

POP_INVISIBLE = 60.0
POP_BATCH = 32
POP_LIMIT = 96
"""With more messages of a queue in flight nothing is popped."""

_DELAYS = (
    10.0, 30.0, 60.0, 120.0, 180.0, 240.0, 300.0, 360.0,
    420.0, 480.0, 540.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0,
)  # fmt: skip


class PopFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts for `before_pop`."""

    dropped: bool = False
    running: bool = True
    paused: bool = False
    waiting: int = 0
    """Messages that were popped and are neither acked nor returned."""
    limit: int = POP_LIMIT
    subscribed: bool = True


def before_pop(facts: PopFacts) -> pulling.PullNow | pulling.StopPulling | pulling.PullLater:
    """Decide whether a queue is popped now."""
    if facts.dropped:
        return pulling.StopPulling()
    if not facts.running:
        return pulling.PullLater(pulling.RETRY_AFTER_ERROR, pulling.WaitReason.NOT_RUNNING)
    if facts.paused:
        return pulling.PullLater(pulling.RETRY_WHEN_PAUSED, pulling.WaitReason.PAUSED)
    if facts.waiting > facts.limit:
        return pulling.PullLater(pulling.RETRY_WHEN_FULL, pulling.WaitReason.TOO_MANY_MESSAGES)
    if not facts.subscribed:
        return pulling.PullLater(pulling.RETRY_AFTER_ERROR, pulling.WaitReason.NOT_SUBSCRIBED)
    return pulling.PullNow()


def hide_again(reconsume_times: int, delay_level: int = 0) -> float:
    """Return how long a failed message stays invisible; level 0: by the number of its failures."""
    index = delay_level if delay_level > 0 else reconsume_times
    return _DELAYS[min(max(0, index), len(_DELAYS) - 1)]


def after_last_try(age: float, reconsume_times: int) -> float | None:
    """Return how long a message stays invisible after its last retry; None discards it.

    As in Java it is redelivered until it is twice as old as the longest delay, later each time.
    """
    if age > 2 * _DELAYS[-1]:
        return None
    return hide_again(reconsume_times, sum(age >= delay for delay in _DELAYS))
