"""Reading the options of `pocketmq allocate` into situations and events; `described` has the group.

Every mistake becomes a `click.UsageError` of one sentence that says what to write instead.
"""

from collections.abc import Iterable, Sequence

import click
import msgspec

from pocketmq.balance import what_if
from pocketmq.balance.allocation import Average, RoomInName, RoomTable, StrategySettings
from pocketmq.balance.allocation.registry import NEARBY
from pocketmq.balance.strategies import STICKY, strategy_by_name
from pocketmq.cli.allocate import described

COMPARED_BY_DEFAULT = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", STICKY)
_MIXED = "AVG"
MAX_RING = 1_000_000
MAX_STICKY = 100_000_000
"""Queues times members: at the start STICKY looks at nearly every pair."""
MAX_SHOWN = 10_000_000
"""Members and queues after every event, summed over all events."""


class AllocateOptions(msgspec.Struct, frozen=True):
    """The options as they were given."""

    topics: tuple[str, ...]
    members: str | None
    strategies: tuple[str, ...]
    events: list[tuple[str, str]]
    rooms: str
    room_items: tuple[str, ...]
    virtual_nodes: int
    previous: str | None = None
    foreign: str = ""
    mixed: str | None = None


class AllocationPlan(msgspec.Struct, frozen=True):
    """What to compute: one situation per strategy, and the events that happen in each."""

    situations: list[what_if.Situation]
    events: list[what_if.Event]
    left_out: str | None = None
    """Why a strategy that is compared by default is not."""


def make_plan(options: AllocateOptions) -> AllocationPlan:
    """Read all options; raises `click.UsageError`, or `InvalidInput` from the rules themselves."""
    group = described.read_group(options.topics, options.members, options.previous)
    changes = [read_event(kind, text, tuple(group.sizes)) for kind, text in options.events]
    _check_sizes(group, changes, options.virtual_nodes)
    names, left_out = _compared(options.strategies, group, changes)
    all_names = _check_strategies([*names, *(name for name in changes if isinstance(name, str))])
    foreign = _foreign(options, all_names, group, changes)
    settings = _settings(options, all_names, group, changes)
    events: list[what_if.Event] = [
        what_if.StrategyChanged(strategy_by_name(change, settings))
        if isinstance(change, str)
        else change
        for change in changes
    ]
    strategies = {name.upper(): strategy_by_name(name, settings) for name in names}
    first = what_if.Situation.of(
        group.queues, group.members, Average(), previous=group.previous, foreign=foreign
    )
    situations = [
        msgspec.structs.replace(first, strategy=strategy) for strategy in strategies.values()
    ]
    return AllocationPlan(situations, events, left_out)


def _compared(
    given: tuple[str, ...], group: described.DescribedGroup, changes: Sequence[what_if.Event | str]
) -> tuple[list[str], str | None]:
    """Return the names of the strategies to compare, and why STICKY is not among them.

    STICKY is compared by default where it is feasible; where it is not, it must not be asked for.
    """
    names = [name for text in given for name in described.split_names("--strategy", text)]
    switched = [change for change in changes if isinstance(change, str)]
    queues, members = _largest(group, changes)
    if queues * members <= MAX_STICKY:
        return names or list(COMPARED_BY_DEFAULT), None
    reason = f"{queues} queues times {members} members are too many: at most {MAX_STICKY}"
    if STICKY in {name.upper() for name in (*names, *switched)}:
        raise click.UsageError(f"STICKY: {reason}")
    if names:
        return names, None
    return [name for name in COMPARED_BY_DEFAULT if name != STICKY], f"STICKY: {reason}"


def _foreign(
    options: AllocateOptions,
    names: Iterable[str],
    group: described.DescribedGroup,
    changes: Sequence[what_if.Event | str],
) -> list[str]:
    """Return the foreign members; raises if there is nothing that they would mean."""
    for option, value in (("--foreign", options.foreign), ("--mixed", options.mixed)):
        if value and STICKY not in names:
            raise click.UsageError(f"{option} applies to STICKY only")
    if options.mixed and not options.foreign:
        raise click.UsageError("--mixed is the strategy of foreign members; name them: --foreign")
    foreign = described.split_names("--foreign", options.foreign) if options.foreign else []
    everyone = _everyone(group, changes)
    for member in foreign:
        if member not in everyone:
            raise click.UsageError(f"--foreign: {member} neither is a member nor joins")
    return foreign


def read_event(kind: str, text: str, topics: Sequence[str]) -> what_if.Event | str:
    """Read one event option; a strategy change comes as the strategy's name."""
    option = "--" + kind.replace("_", "-")
    names = described.split_names(option, text)
    if len(names) > 1:
        raise click.UsageError(
            f"{option} takes one value; repeat the option instead of using commas"
        )
    match kind:
        case "join":
            return what_if.MemberJoined(names[0])
        case "leave":
            return what_if.MemberLeft(names[0])
        case "broker_down":
            return what_if.BrokerDown(names[0])
        case "add_broker":
            broker, count = described.read_broker(option, names[0])
            return what_if.BrokerAdded(broker, dict.fromkeys(topics, count))
        case "add_queues":
            topic, colon, rest = names[0].partition(":")
            if not colon:
                raise click.UsageError(f"{option} {text!r} must look like orders:broker-a*4")
            return what_if.QueuesAdded(topic, *described.read_broker(option, rest))
        case _:
            return names[0]


def _check_strategies(names: Iterable[str]) -> list[str]:
    """Return the names as Java writes them; raises for unknown ones, and for CONFIG."""
    any_settings = StrategySettings(rooms=frozenset({"any"}))
    known = [strategy_by_name(name, any_settings).name for name in names]
    for name in known:
        if name.endswith("CONFIG"):
            reason = f"{name} uses the configured queues of each member: nothing to show"
            raise click.UsageError(reason)
    return known


def _largest(
    group: described.DescribedGroup, changes: Sequence[what_if.Event | str]
) -> tuple[int, int]:
    """Return the number of queues and of members, if no event takes any away."""
    queues = sum(map(len, group.queues.values()))
    queues += sum(change.count for change in changes if isinstance(change, what_if.QueuesAdded))
    queues += sum(
        sum(change.queues.values()) for change in changes if isinstance(change, what_if.BrokerAdded)
    )
    return queues, len(_everyone(group, changes))


def _everyone(group: described.DescribedGroup, changes: Sequence[what_if.Event | str]) -> set[str]:
    """Return all members, and those that join."""
    joiners = {change.member for change in changes if isinstance(change, what_if.MemberJoined)}
    return set(group.members) | joiners


def _check_sizes(
    group: described.DescribedGroup, changes: Sequence[what_if.Event | str], virtual_nodes: int
) -> None:
    members = group.members
    queues, _ = _largest(group, changes)
    described.check_queues(queues)
    if len(members) > described.MAX_MEMBERS:
        raise click.UsageError(f"--members: at most {described.MAX_MEMBERS} members can be shown")
    if len(members) * virtual_nodes > MAX_RING:
        reason = f"{len(members)} members with {virtual_nodes} virtual nodes each are too many"
        raise click.UsageError(reason)
    if len(changes) * (queues + len(members)) > MAX_SHOWN:
        raise click.UsageError(
            f"{len(changes)} events are too many for this number of queues and members"
        )
    present = set(members)
    for change in changes:
        if isinstance(change, what_if.MemberJoined):
            if change.member in present:
                raise click.UsageError(f"--join {change.member}: it is a member already")
            present.add(change.member)
        elif isinstance(change, what_if.MemberLeft):
            present.discard(change.member)


def _settings(
    options: AllocateOptions,
    names: list[str],
    group: described.DescribedGroup,
    changes: Sequence[what_if.Event | str],
) -> StrategySettings:
    rooms = (
        frozenset(described.split_names("--rooms", options.rooms)) if options.rooms else frozenset()
    )
    mixed = options.mixed or _MIXED
    names = [*names, *_check_strategies([mixed])] if options.foreign else names
    if not rooms and any(name.endswith("MACHINE_ROOM") for name in names):
        raise click.UsageError("MACHINE_ROOM needs --rooms, the rooms whose queues are allocated")
    brokers = {broker for counts in group.sizes.values() for broker in counts}
    brokers |= {change.broker for change in changes if isinstance(change, what_if.BrokerAdded)}
    everyone = _everyone(group, changes)
    table = _room_table(options.room_items, brokers, everyone)
    if any(name.startswith(NEARBY) for name in names):
        for name in (*sorted(brokers - set(table.brokers)), *sorted(everyone - set(table.members))):
            reason = f"the room of {name} is unknown; add --room ROOM={name}"
            raise click.UsageError(reason)
    return StrategySettings(
        virtual_nodes=options.virtual_nodes, rooms=rooms, resolver=table, mixed=mixed
    )


def _room_table(items: Iterable[str], brokers: set[str], members: set[str]) -> RoomTable:
    """Return the room of each broker and member: by option, else by the prefix of its name."""
    by_name = RoomInName()
    rooms = {name: by_name.room_of_member(name) for name in brokers | members}
    for text in items:
        room, equals, names = text.partition("=")
        if not room or not equals:
            raise click.UsageError(f"--room {text!r} must look like room1=broker-a,c1,c2")
        for name in described.split_names("--room", names):
            if name not in rooms:
                raise click.UsageError(f"--room {room}: {name} is neither a broker nor a member")
            rooms[name] = room
    known = {name: room for name, room in rooms.items() if room}
    return RoomTable(
        brokers={name: room for name, room in known.items() if name in brokers},
        members={name: room for name, room in known.items() if name in members},
    )
