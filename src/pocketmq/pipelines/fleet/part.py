"""A part of an estate as arrays: all queues and members that ever exist, and when they do.

Owns the shape. Every queue of a (group, topic) pair is a row, in Java's order; every member of a
group has a place in the group's roster, in Java's order, too. What comes and goes with the events
is told by masks, one for each moment, so that owners are comparable from moment to moment.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from pocketmq.model.java_strings import java_sorted
from pocketmq.model.queue import MessageQueue, sort_queues
from pocketmq.pipelines.fleet.estate import Estate
from pocketmq.pipelines.fleet.events import AddQueues, FleetEvent, Join, Layout, Leave, SwitchTo

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Roster:
    """All queues that topics of one layout have at any moment, and which of them exist when."""

    queues: tuple[tuple[str, int], ...]  # broker and id, in Java's order
    present: Bools  # [moment, queue]
    endings: tuple[str, ...]  # of the queues' keys on the ring, after the topic


@dataclass(frozen=True)
class Part:
    """Groups, pairs and rows of a part of the estate; moments are the start and after each event.

    `odd` lists groups that the arrays do not describe: those where an id is there twice.
    """

    groups: list[str]
    rosters: list[tuple[str, ...]]
    moments: list[list[tuple[str, ...]]]  # [group][moment] -> members in Java's order
    members: Bools  # [moment, group, place in roster]
    pair_group: Ints
    pair_topic: list[str]
    pair_roster: list[Roster]
    pair_first: Ints  # first row of each pair, and the number of rows
    row_pair: Ints
    row_group: Ints
    rows: Bools  # [moment, row]
    odd: list[int]
    ring_cache: dict[int, npt.NDArray[np.uint64]] = field(default_factory=dict)

    @property
    def roster_size(self) -> int:
        """The largest roster's size."""
        return int(self.members.shape[2])

    def queues(self, pair: int) -> list[MessageQueue]:
        """Name the queues of a pair."""
        return [MessageQueue(self.pair_topic[pair], *q) for q in self.pair_roster[pair].queues]


def make_part(estate: Estate, events: Sequence[FleetEvent]) -> Part:
    """Lay out a part of an estate; raises `InvalidInput` for an event that cannot happen."""
    topics = _rosters(estate.topics, events)
    groups = list(estate.groups)
    moments = [_member_moments(estate.groups[name].member_ids(), events) for name in groups]
    rosters = [tuple(java_sorted({m for now in some for m in now})) for some in moments]
    pairs = [
        (at, topic)
        for at, name in enumerate(groups)
        for topic in java_sorted(estate.groups[name].topics)
    ]
    pair_roster = [topics[topic] for _, topic in pairs]
    sizes = np.array([len(roster.queues) for roster in pair_roster], dtype=np.int64)
    pair_group = np.array([at for at, _ in pairs], dtype=np.int64)
    row_pair = np.repeat(np.arange(len(pairs)), sizes)
    return Part(
        groups=groups,
        rosters=rosters,
        moments=moments,
        members=_presence(rosters, moments),
        pair_group=pair_group,
        pair_topic=[topic for _, topic in pairs],
        pair_roster=pair_roster,
        pair_first=np.concatenate([[0], np.cumsum(sizes)]),
        row_pair=row_pair,
        row_group=pair_group[row_pair],
        rows=np.concatenate([roster.present for roster in pair_roster], axis=1),
        odd=[at for at, some in enumerate(moments) if len(set(some[0])) < len(some[0])],
    )


def _member_moments(first: tuple[str, ...], events: Sequence[FleetEvent]) -> list[tuple[str, ...]]:
    moments = [tuple(java_sorted(first))]
    for event in events:
        now = moments[-1]
        moments.append(event.members(now) if isinstance(event, Join | Leave) else now)
    return moments


def _presence(rosters: list[tuple[str, ...]], moments: list[list[tuple[str, ...]]]) -> Bools:
    """Tell for each moment and group which places of the roster are taken."""
    width = max(1, *(len(roster) for roster in rosters))
    members = np.zeros((len(moments[0]), len(rosters), width), dtype=np.bool_)
    for at, roster in enumerate(rosters):
        for moment, now in enumerate(moments[at]):
            there = set(now)  # ids may repeat
            if len(there) == len(roster):
                members[moment, at, : len(roster)] = True
            else:
                members[moment, at, : len(roster)] = [member in there for member in roster]
    return members


def _rosters(topics: dict[str, dict[str, int]], events: Sequence[FleetEvent]) -> dict[str, Roster]:
    """Give each topic's roster; topics of one layout, to which the same happens, share it."""
    singled_out = {event.topic for event in events if isinstance(event, AddQueues)}
    made: dict[object, Roster] = {}
    result = {}
    for topic, layout in topics.items():
        alike = (tuple(layout.items()), topic if topic in singled_out else None)
        if alike not in made:
            made[alike] = _roster(topic, layout, events)
        result[topic] = made[alike]
    return result


def _roster(topic: str, layout: dict[str, int], events: Sequence[FleetEvent]) -> Roster:
    now: Layout = {broker: tuple(range(count)) for broker, count in layout.items() if count}
    moments = [now]
    for event in events:
        if not isinstance(event, Join | Leave | SwitchTo):
            now = event.layout(topic, now)
        moments.append(now)
    there = [
        {(broker, number) for broker, ids in some.items() for number in ids} for some in moments
    ]
    ever = sort_queues({MessageQueue(topic, *queue) for some in there for queue in some})
    queues = tuple((queue.broker_name, queue.queue_id) for queue in ever)
    present = np.array([[queue in some for queue in queues] for some in there], dtype=np.bool_)
    named = [str(MessageQueue("", *queue)) for queue in queues]
    start = str(MessageQueue("", "", 0)).index(",")
    return Roster(queues, present, tuple(name[start:] for name in named))
