"""The numbers of every group of a part of an estate, by the rules of `pocketmq.balance`.

Saves work where it can: topics of the same layout are laid out once, and where a strategy only uses
positions, groups of the same shape are computed once. STICKY is computed group by group, each event
from the owners that the one before left.
"""

from collections.abc import Hashable, Iterator, Sequence

from pocketmq.balance.allocation import Strategy, by_position
from pocketmq.balance.what_if import Numbers, Owners, Situation, numbers, owners_in
from pocketmq.model import MessageQueue, sort_queues
from pocketmq.model.java_strings import java_sorted
from pocketmq.pipelines.fleet.estate import Estate
from pocketmq.pipelines.fleet.events import AddQueues, FleetEvent, Join, Leave, SwitchTo
from pocketmq.pipelines.fleet.ring import Rings

Story = list[Numbers]
"""A group's numbers at the start and after each event."""


def measure(estate: Estate, strategy: Strategy, events: Sequence[FleetEvent]) -> list[Story]:
    """Return the story of each group, in the estate's order.

    Raises `AllocationInputInvalid` where the strategy or an event refuses.
    """
    situations = list(_situations(estate, strategy))
    used = [strategy, *(event.strategy for event in events if isinstance(event, SwitchTo))]
    if not all(map(by_position, used)):
        return _stories(situations, events)
    shapes = list(_shapes(estate, situations, events))
    first = dict(zip(reversed(shapes), reversed(situations), strict=True))
    known = dict(zip(first, _stories(list(first.values()), events), strict=True))
    return [known[shape] for shape in shapes]


def _stories(situations: Sequence[Situation], events: Sequence[FleetEvent]) -> list[Story]:
    rings: dict[int, Rings | None] = {}
    owned = _owners_in(situations, rings)
    stories = [[numbers(now, owners)] for now, owners in zip(situations, owned, strict=True)]
    for event in events:
        before = list(zip(situations, owned, strict=True))
        situations = [_after(event, earlier).after(earlier, owners) for earlier, owners in before]
        owned = _owners_in(situations, rings)
        for story, now, owners, earlier in zip(stories, situations, owned, before, strict=True):
            story.append(numbers(now, owners, earlier))
    return stories


def _after(event: FleetEvent, situation: Situation) -> Situation:
    for step in event.in_group(situation):
        situation = step.apply(situation)
    return situation


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


def _shapes(
    estate: Estate, situations: Sequence[Situation], events: Sequence[FleetEvent]
) -> Iterator[Hashable]:
    """Return what each group's numbers depend on where names do not count.

    That is the order of its members among themselves and those named by events, and the layouts of
    its topics; a topic that an event names keeps its name.
    """
    named = [event.member for event in events if isinstance(event, Join)]
    named += [e.which for e in events if isinstance(e, Leave) and isinstance(e.which, str)]
    singled_out = {event.topic for event in events if isinstance(event, AddQueues)}
    for situation in situations:
        everyone = java_sorted({*situation.members, *named})
        place = {member: number for number, member in enumerate(everyone)}
        yield (
            tuple([place[member] for member in (*situation.members, *named)]),
            tuple([
                (topic if topic in singled_out else None, *estate.topics[topic].items())
                for topic in situation.topics
            ]),
        )  # fmt: skip
