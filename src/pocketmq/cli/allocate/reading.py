"""Reading the options of `pocketmq allocate` into situations and events.

Every mistake becomes a `click.UsageError` of one sentence that says what to write instead.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import click
import msgspec

from pocketmq.balance.allocation import Average, RoomInName, RoomTable, StrategySettings
from pocketmq.balance.allocation.registry import NEARBY
from pocketmq.balance.strategies import strategy_by_name
from pocketmq.balance.what_if import (
    BrokerAdded,
    BrokerDown,
    Event,
    MemberJoined,
    MemberLeft,
    QueuesAdded,
    Situation,
    StrategyChanged,
)
from pocketmq.model.names import check_topic
from pocketmq.model.queue import MessageQueue

COMPARED_BY_DEFAULT = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")
# Far beyond any real group, and still computed within a minute.
MAX_QUEUES = 1_000_000
MAX_MEMBERS = 10_000
MAX_RING = 1_000_000
MAX_SHOWN = 10_000_000
"""Members and queues after every event, summed over all events."""

_NUMBER = re.compile(r"-?[0-9]+\Z")
_COUNT = re.compile(r"[0-9]{1,9}\Z")


class AllocateOptions(msgspec.Struct, frozen=True):
    """The options as they were given."""

    topics: tuple[str, ...]
    members: str | None
    strategies: tuple[str, ...]
    events: list[tuple[str, str]]
    rooms: str
    room_items: tuple[str, ...]
    virtual_nodes: int


class AllocationPlan(msgspec.Struct, frozen=True):
    """What to compute: one situation per strategy, and the events that happen in each."""

    situations: list[Situation]
    events: list[Event]


def make_plan(options: AllocateOptions) -> AllocationPlan:
    """Read all options; raises `click.UsageError`, or `InvalidInput` from the rules themselves."""
    if not options.topics:
        raise click.UsageError("no topic; give --topic, such as orders:broker-a*8,broker-b*8")
    if options.members is None:
        raise click.UsageError(
            "no members; give --members with their number, or ids separated by commas"
        )
    sizes = _read_topics(options.topics)
    members = _read_members(options.members)
    changes = [read_event(kind, text, tuple(sizes)) for kind, text in options.events]
    _check_sizes(sizes, members, changes, options.virtual_nodes)
    names = [
        name
        for text in options.strategies or COMPARED_BY_DEFAULT
        for name in split_names("--strategy", text)
    ]
    all_names = _check_strategies([*names, *(name for name in changes if isinstance(name, str))])
    settings = _settings(options, all_names, sizes, members, changes)
    events: list[Event] = [
        StrategyChanged(strategy_by_name(change, settings)) if isinstance(change, str) else change
        for change in changes
    ]
    strategies = {name.upper(): strategy_by_name(name, settings) for name in names}
    topics = {
        topic: [
            MessageQueue(topic, broker, number)
            for broker, count in brokers.items()
            for number in range(count)
        ]
        for topic, brokers in sizes.items()
    }
    first = Situation.of(topics, members, Average())
    situations = [
        msgspec.structs.replace(first, strategy=strategy) for strategy in strategies.values()
    ]
    return AllocationPlan(situations, events)


def split_names(option: str, text: str) -> list[str]:
    """Split at commas; raises for empty names and for unprintable characters."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if not name:
            raise click.UsageError(f"{option} {text!r} contains an empty name")
        if not name.isprintable():
            raise click.UsageError(f"{option} {name!r} contains unprintable characters")
    return names


def _read_topics(texts: Iterable[str]) -> dict[str, dict[str, int]]:
    sizes: dict[str, dict[str, int]] = {}
    for text in texts:
        topic, colon, brokers = text.partition(":")
        if not colon or not brokers:
            raise click.UsageError(f"--topic {text!r} must look like orders:broker-a*8,broker-b*8")
        check_topic(topic)
        if topic in sizes:
            raise click.UsageError(f"--topic {topic} is given twice")
        sizes[topic] = {}
        for part in split_names("--topic", brokers):
            broker, count = _read_broker("--topic", part)
            if broker in sizes[topic]:
                raise click.UsageError(f"--topic {topic} names {broker} twice")
            sizes[topic][broker] = count
    return sizes


def _read_broker(option: str, text: str) -> tuple[str, int]:
    """Read `broker-a*8`."""
    broker, _, count = text.rpartition("*")
    broker = split_names(option, broker)[0] if broker else ""
    if not broker or not _COUNT.match(count) or int(count) == 0:
        raise click.UsageError(f"{option} {text!r} must look like broker-a*8, with 1 queue or more")
    return broker, int(count)


def _read_members(text: str) -> list[str]:
    if _NUMBER.match(text):
        if text.startswith("-") or not text.strip("0"):
            raise click.UsageError(f"--members {text}: a group needs at least one member")
        if not _COUNT.match(text) or int(text) > MAX_MEMBERS:
            raise click.UsageError(f"--members: at most {MAX_MEMBERS} members can be shown")
        count = int(text)
        width = len(str(count))  # members are sorted as text: c02 comes before c10, c2 would not
        return [f"c{number:0{width}}" for number in range(1, count + 1)]
    members = split_names("--members", text)
    for member, times in Counter(members).items():
        if times > 1:
            raise click.UsageError(f"--members: {member} is given twice")
    return members


def read_event(kind: str, text: str, topics: Sequence[str]) -> Event | str:
    """Read one event option; a strategy change comes as the strategy's name."""
    option = "--" + kind.replace("_", "-")
    names = split_names(option, text)
    if len(names) > 1:
        raise click.UsageError(
            f"{option} takes one value; repeat the option instead of using commas"
        )
    match kind:
        case "join":
            return MemberJoined(names[0])
        case "leave":
            return MemberLeft(names[0])
        case "broker_down":
            return BrokerDown(names[0])
        case "add_broker":
            broker, count = _read_broker(option, names[0])
            return BrokerAdded(broker, dict.fromkeys(topics, count))
        case "add_queues":
            topic, colon, rest = names[0].partition(":")
            if not colon:
                raise click.UsageError(f"{option} {text!r} must look like orders:broker-a*4")
            return QueuesAdded(topic, *_read_broker(option, rest))
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


def _check_sizes(
    sizes: dict[str, dict[str, int]],
    members: list[str],
    changes: Sequence[Event | str],
    virtual_nodes: int,
) -> None:
    queues = sum(count for brokers in sizes.values() for count in brokers.values())
    queues += sum(change.count for change in changes if isinstance(change, QueuesAdded))
    queues += sum(
        sum(change.queues.values()) for change in changes if isinstance(change, BrokerAdded)
    )
    if queues > MAX_QUEUES:
        raise click.UsageError(f"{queues} queues are too many: at most {MAX_QUEUES} can be shown")
    if len(members) > MAX_MEMBERS:
        raise click.UsageError(f"--members: at most {MAX_MEMBERS} members can be shown")
    if len(members) * virtual_nodes > MAX_RING:
        reason = f"{len(members)} members with {virtual_nodes} virtual nodes each are too many"
        raise click.UsageError(reason)
    if len(changes) * (queues + len(members)) > MAX_SHOWN:
        raise click.UsageError(
            f"{len(changes)} events are too many for this number of queues and members"
        )
    present = set(members)
    for change in changes:
        if isinstance(change, MemberJoined):
            if change.member in present:
                raise click.UsageError(f"--join {change.member}: it is a member already")
            present.add(change.member)
        elif isinstance(change, MemberLeft):
            present.discard(change.member)


def _settings(
    options: AllocateOptions,
    names: list[str],
    sizes: dict[str, dict[str, int]],
    members: list[str],
    changes: Sequence[Event | str],
) -> StrategySettings:
    rooms = frozenset(split_names("--rooms", options.rooms)) if options.rooms else frozenset()
    if not rooms and any(name.endswith("MACHINE_ROOM") for name in names):
        raise click.UsageError("MACHINE_ROOM needs --rooms, the rooms whose queues are allocated")
    brokers = {broker for counts in sizes.values() for broker in counts}
    brokers |= {change.broker for change in changes if isinstance(change, BrokerAdded)}
    everyone = set(members)
    everyone |= {change.member for change in changes if isinstance(change, MemberJoined)}
    table = _room_table(options.room_items, brokers, everyone)
    if any(name.startswith(NEARBY) for name in names):
        for name in (*sorted(brokers - set(table.brokers)), *sorted(everyone - set(table.members))):
            reason = f"the room of {name} is unknown; add --room ROOM={name}"
            raise click.UsageError(reason)
    return StrategySettings(virtual_nodes=options.virtual_nodes, rooms=rooms, resolver=table)


def _room_table(items: Iterable[str], brokers: set[str], members: set[str]) -> RoomTable:
    """Return the room of each broker and member: by option, else by the prefix of its name."""
    by_name = RoomInName()
    rooms = {name: by_name.room_of_member(name) for name in brokers | members}
    for text in items:
        room, equals, names = text.partition("=")
        if not room or not equals:
            raise click.UsageError(f"--room {text!r} must look like room1=broker-a,c1,c2")
        for name in split_names("--room", names):
            if name not in rooms:
                raise click.UsageError(f"--room {room}: {name} is neither a broker nor a member")
            rooms[name] = room
    known = {name: room for name, room in rooms.items() if room}
    return RoomTable(
        brokers={name: room for name, room in known.items() if name in brokers},
        members={name: room for name, room in known.items() if name in members},
    )
