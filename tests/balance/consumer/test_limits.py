"""Thresholds: ranges, and sharing those of a topic among queues."""

import pytest

from pocketmq.balance.consumer.instructions import SetQueueLimits
from pocketmq.balance.consumer.limits import PullLimits, QueueLimits, spread_topic_limits
from pocketmq.errors import InvalidInput


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("count", 1, 65535),
        ("size_mib", 1, 1024),
        ("span", 1, 65535),
        ("topic_count", 1, 6553500),
        ("topic_size_mib", 1, 102400),
    ],
)
def test_limits_outside_javas_ranges_are_refused(name: str, low: int, high: int) -> None:
    for value in (low, high):
        assert getattr(PullLimits(**{name: value}), name) == value
    for value in (low - 1, high + 1):
        with pytest.raises(InvalidInput, match=f"{name} is {value}; allowed are {low} to {high}"):
            PullLimits(**{name: value})


def test_only_topic_limits_may_be_unlimited() -> None:
    assert PullLimits(topic_count=-1, topic_size_mib=-1) == PullLimits()
    with pytest.raises(InvalidInput, match="count is -1"):
        PullLimits(count=-1)


@pytest.mark.parametrize(
    ("limits", "held", "change"),
    [
        (PullLimits(), 4, None),
        (PullLimits(topic_count=1000), 0, None),
        (PullLimits(topic_count=1000), 3, SetQueueLimits(333, None)),
        (PullLimits(topic_size_mib=100), 3, SetQueueLimits(None, 33)),
        (PullLimits(topic_count=2, topic_size_mib=1), 5, SetQueueLimits(1, 1)),
    ],
)
def test_topic_limits_are_shared_at_least_one_each(
    limits: PullLimits, held: int, change: SetQueueLimits | None
) -> None:
    assert spread_topic_limits(limits, held) == change


def test_shares_are_not_checked_against_the_ranges() -> None:
    limits = PullLimits(topic_count=6553500)
    change = spread_topic_limits(limits, 1)
    assert limits.in_force(change) == QueueLimits(6553500, 100, 2000)
    assert limits.in_force() == QueueLimits(1000, 100, 2000)
