"""STICKY's numbers of a group without its queues: how many each member has of each topic.

Enough after the last event that singles out queues: the loss of a broker. The members' numbers are
those of `pocketmq.balance.sticky.shares`, which `assign` deals out; a queue that a member can keep
stays, so as many move as must.
"""

from collections import Counter
from collections.abc import Collection, Sequence

from pocketmq.balance.sticky import Sticky, TopicCount, shares
from pocketmq.balance.what_if import Numbers, Owners, Situation, numbers, owners_in
from pocketmq.pipelines.fleet.events import FleetEvent, LoseBroker, SwitchTo, applied

Shares = dict[str, dict[str, int]]
"""For each topic the number of queues of each member."""


def is_enough(situation: Situation, events: Sequence[FleetEvent]) -> bool:
    """Return whether numbers of queues lead through the last of these events."""
    return isinstance(situation.strategy, Sticky) and not any(
        isinstance(event, SwitchTo) and not isinstance(event.strategy, Sticky) for event in events
    )


def story_of(situation: Situation, events: Sequence[FleetEvent]) -> list[Numbers]:
    """Return a group's numbers at the start and after each event."""
    losses = [at for at, event in enumerate(events) if isinstance(event, LoseBroker)]
    if losses:
        story, situation, owned = _through_loss(situation, events[: losses[-1] + 1])
        events = events[losses[-1] + 1 :]
    else:
        owned = _shares(situation, {topic: {} for topic in situation.topics})
        story = [_numbers(situation, owned)]
    for event in events:
        later = applied(event, situation)
        had, owned = owned, _shares(later, owned)
        story.append(_numbers(later, owned, situation, had))
        situation = later
    return story


def _through_loss(
    situation: Situation, events: Sequence[FleetEvent]
) -> tuple[list[Numbers], Situation, Shares]:
    """Go queue by queue up to the last event, the loss of a broker, and count what it leaves."""
    owners = owners_in(situation)
    story = [numbers(situation, owners)]
    for event in events[:-1]:
        before = situation, owners
        situation = applied(event, situation).after(situation, owners)
        owners = owners_in(situation)
        story.append(numbers(situation, owners, before))
    later = applied(events[-1], situation)
    left = _left(situation, owners, later)
    owned = _shares(later, left)
    removed = sum(map(len, situation.topics.values())) - sum(map(len, later.topics.values()))
    story.append(_numbers(later, owned, later, left)._replace(removed=removed))
    return story, later, owned


def _left(before: Situation, owners: Owners, now: Situation) -> Shares:
    """Return how many of the queues that are still there each member had."""
    left: Shares = {}
    for topic, queues in before.topics.items():
        there = set(now.topics[topic])
        kept = zip(queues, owners[topic], strict=True)
        left[topic] = dict(Counter([owner for queue, owner in kept if owner and queue in there]))
    return left


def _shares(situation: Situation, owned: Shares) -> Shares:
    present = set(situation.members)
    topics = [
        TopicCount(
            topic, len(queues), {m: n for m, n in owned[topic].items() if m in present and n}
        )
        for topic, queues in situation.topics.items()
    ]
    return shares(topics, present)


def _numbers(
    now: Situation, owned: Shares, before: Situation | None = None, had: Shares | None = None
) -> Numbers:
    totals = [sum(of[member] for of in owned.values()) for member in set(now.members)]
    queues = sum(map(len, now.topics.values()))
    moved = added = 0
    if before is not None and had is not None:
        added = queues - sum(map(len, before.topics.values()))
        moved = sum(_moved(len(before.topics[t]), had[t], owned[t]) for t in before.topics)
    return Numbers(
        queues=queues,
        unowned=0 if now.members else queues,
        spread=_spread(totals),
        topic_spread=max((_spread(of.values()) for of in owned.values()), default=0),
        moved=moved,
        minimum=moved,
        added=added,
    )


def _spread(numbers: Collection[int]) -> int:
    return max(numbers, default=0) - min(numbers, default=0)


def _moved(queues: int, had: dict[str, int], owned: dict[str, int]) -> int:
    """Return how many of a topic's old queues have another owner now, or their first or none."""
    kept = sum(min(number, owned.get(member, 0)) for member, number in had.items())
    without_owner = queues - sum(had.values())
    return sum(had.values()) - kept + (without_owner if owned else 0)
