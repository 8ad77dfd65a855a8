"""Which groups of an estate have the same numbers, so that one of them stands for all.

Groups of one shape differ in names alone. Names decide nothing in AVG, AVG_BY_CIRCLE and
MACHINE_ROOM. In STICKY they decide between assignments that are equally even and move equally few
queues, so the numbers of an event do not depend on them; those of later events may:

- which member has one queue more of a topic shows when a member leaves. Otherwise the members can
  be renamed, unless two topics are uneven: which of their extras meet at one member shows, too;
- which queues a member has shows when a broker is lost, or another strategy takes over.

A retry topic is balanced by itself, so the spread of both together depends on names.
"""

from collections.abc import Hashable, Iterator, Sequence

from pocketmq.balance.allocation import Strategy, by_position
from pocketmq.balance.sticky import Sticky
from pocketmq.balance.what_if import Situation
from pocketmq.model.java_strings import java_sorted
from pocketmq.model.names import is_retry_topic
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
