"""The numbers of every group of a part of an estate, by the rules of `pocketmq.balance`.

Saves work where it can: topics of the same layout are laid out once, and one group stands for
all of its shape where names decide nothing. All others are computed group by group; STICKY goes
from the owners that one event left to the next, or from their numbers of queues.

Groups of one shape differ in names alone. Names decide nothing in AVG, AVG_BY_CIRCLE and
MACHINE_ROOM. In STICKY they decide between assignments that are equally even and move equally
few queues, so the numbers of an event do not depend on them; those of later events may:

- which member has one queue more of a topic shows when a member leaves. Otherwise the members
  can be renamed, unless two topics are uneven: which of their extras meet at one member shows,
  too;
- which queues a member has shows when a broker is lost, or another strategy takes over.

A retry topic is balanced by itself, so the spread of both together depends on names.
"""

from collections.abc import Hashable, Iterator, Sequence

from pocketmq.balance.allocation import Strategy
from pocketmq.balance.allocation.registry import by_position
from pocketmq.balance.sticky import Sticky
from pocketmq.balance.what_if import Numbers, Owners, Situation, numbers, owners_in
from pocketmq.model import MessageQueue, sort_queues
from pocketmq.model.java_strings import java_sorted
from pocketmq.model.names import is_retry_topic
from pocketmq.pipelines.fleet import by_number
from pocketmq.pipelines.fleet.estate import Estate
from pocketmq.pipelines.fleet.events import (
    AddQueues,
    FleetEvent,
    Join,
    Leave,
    LoseBroker,
    SwitchTo,
    applied,
)
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


def may_be_alike(strategy: Strategy, events: Sequence[FleetEvent]) -> bool:
    """Return whether groups of one shape can have the same numbers under these strategies."""
    used = [strategy, *(event.strategy for event in events if isinstance(event, SwitchTo))]
    return all(by_position(each) or isinstance(each, Sticky) for each in used)


def are_alike(situation: Situation, events: Sequence[FleetEvent]) -> bool:
    """Return whether all groups of a group's shape have its numbers.

    The strategies must be those that `may_be_alike` allows.
    """
    used = [
        situation.strategy,
        *(event.strategy for event in events if isinstance(event, SwitchTo)),
    ]
    if all(map(by_position, used)):
        return True
    if any(map(is_retry_topic, situation.topics)):
        return False
    for event in events:
        later = applied(event, situation)
        if later is situation:
            continue
        if isinstance(situation.strategy, Sticky) and _names_show(event, situation):
            return False
        situation = later
    return True


def _names_show(event: FleetEvent, before: Situation) -> bool:
    """Return whether an event's numbers depend on what names decided before it."""
    match event:
        case LoseBroker():
            return True
        case SwitchTo(strategy):
            return not isinstance(strategy, Sticky) or _uneven(before) > 1
        case Leave():
            return _uneven(before) > 0
    return _uneven(before) > 1


def _uneven(situation: Situation) -> int:
    """Return the number of topics of which some members have one queue more than others."""
    members = len(set(situation.members))
    return sum(len(queues) % members > 0 for queues in situation.topics.values()) if members else 0


def shapes(
    estate: Estate, situations: Sequence[Situation], events: Sequence[FleetEvent]
) -> Iterator[Hashable]:
    """Yield what each group's numbers depend on where names do not count.

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
                (
                    topic if topic in singled_out else is_retry_topic(topic),
                    *estate.topics[topic].items(),
                )
                for topic in situation.topics
            ]),
        )  # fmt: skip
