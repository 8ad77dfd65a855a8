"""The numbers of every group of a part of an estate, by the rules of `pocketmq.balance`.

Saves work where it can: topics of the same layout are laid out once, and groups of the same shape
are computed once where names decide nothing: `alike` has the rule. All others are computed group by
group; STICKY goes from the owners that one event left to the next, or from their numbers of queues.
"""

from collections.abc import Hashable, Iterator, Sequence

from pocketmq.balance.allocation import Strategy
from pocketmq.balance.what_if import Numbers, Owners, Situation, numbers, owners_in
from pocketmq.model import MessageQueue, sort_queues
from pocketmq.model.java_strings import java_sorted
from pocketmq.pipelines.fleet import by_number
from pocketmq.pipelines.fleet.alike import are_alike, may_be_alike, shapes
from pocketmq.pipelines.fleet.estate import Estate
from pocketmq.pipelines.fleet.events import FleetEvent, applied
from pocketmq.pipelines.fleet.ring import Rings

Story = list[Numbers]
"""A group's numbers at the start and after each event."""


def measure(estate: Estate, strategy: Strategy, events: Sequence[FleetEvent]) -> list[Story]:
    """Return the story of each group, in the estate's order.

    Raises `AllocationInputInvalid` where the strategy or an event refuses.
    """
    situations = list(_situations(estate, strategy))
    keys = list(_keys(estate, situations, events))
    first = dict(zip(reversed(keys), reversed(situations), strict=True))
    known = dict(zip(first, _stories(list(first.values()), events), strict=True))
    return [known[key] for key in keys]


def _keys(
    estate: Estate, situations: Sequence[Situation], events: Sequence[FleetEvent]
) -> Iterator[Hashable]:
    """Yield equal keys for groups that have the same numbers."""
    if not may_be_alike(situations[0].strategy, events):
        yield from range(len(situations))
        return
    judged: dict[Hashable, bool] = {}
    for number, (shape, group) in enumerate(
        zip(shapes(estate, situations, events), situations, strict=True)
    ):
        if shape not in judged:
            judged[shape] = are_alike(group, events)
        yield shape if judged[shape] else number


def _stories(situations: Sequence[Situation], events: Sequence[FleetEvent]) -> list[Story]:
    if by_number.is_enough(situations[0], events):
        return [by_number.story_of(situation, events) for situation in situations]
    rings: dict[int, Rings | None] = {}
    owned = _owners_in(situations, rings)
    stories = [[numbers(now, owners)] for now, owners in zip(situations, owned, strict=True)]
    for event in events:
        before = list(zip(situations, owned, strict=True))
        situations = [applied(event, earlier).after(earlier, owners) for earlier, owners in before]
        owned = _owners_in(situations, rings)
        for story, now, owners, earlier in zip(stories, situations, owned, before, strict=True):
            story.append(numbers(now, owners, earlier))
    return stories


def _owners_in(situations: Sequence[Situation], rings: dict[int, Rings | None]) -> list[Owners]:
    strategy = situations[0].strategy
    at_once = rings.setdefault(id(strategy), Rings.of(strategy))
    return list(map(owners_in, situations)) if at_once is None else at_once.owners_in(situations)


def _situations(estate: Estate, strategy: Strategy) -> Iterator[Situation]:
    layouts: dict[Hashable, list[tuple[str, int]]] = {}
    topics: dict[str, tuple[MessageQueue, ...]] = {}
    for topic, counts in estate.topics.items():
        layout = tuple(counts.items())
        if layout not in layouts:
            named = {MessageQueue("", name, n) for name, count in layout for n in range(count)}
            layouts[layout] = [(queue.broker_name, queue.queue_id) for queue in sort_queues(named)]
        topics[topic] = tuple([MessageQueue(topic, b, n) for b, n in layouts[layout]])
    for name, group in estate.groups.items():
        yield Situation(
            topics={topic: topics[topic] for topic in java_sorted(group.topics)},
            members=tuple(java_sorted(group.member_ids())),
            strategy=strategy,
            group=name,
        )
