"""An estate: topics with their queues, groups with their members; from files or a live cluster.

Owns the file formats: one JSON document, or a directory with the three tables `topics` (topic,
broker, queues), `subscriptions` (group, topic) and `members` (group, member), each as Parquet, CSV
or JSON lines.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec

from pocketmq import Admin, ClientOptions
from pocketmq.errors import InvalidInput, MQError, RouteNotFound
from pocketmq.model import MessageModel
from pocketmq.model.names import is_retry_topic, is_system_group

Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)]


class Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A consumer group: its topics, and its members or their number."""

    topics: tuple[Name, ...]
    members: tuple[Name, ...] | Count

    def member_ids(self) -> tuple[str, ...]:
        """Return the ids; 3 stands for c1, c2, c3."""
        if isinstance(self.members, tuple):
            return self.members
        width = len(str(self.members))
        return tuple(f"c{number:0{width}}" for number in range(1, self.members + 1))


class Estate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Topics with the number of queues on each of their brokers, and groups."""

    topics: dict[Name, dict[Name, Count]]
    groups: dict[Name, Group]

    def parts(self, groups: int) -> "Iterator[Estate]":
        """Yield the estate in parts of `groups` groups, each with the topics it needs."""
        names = list(self.groups)
        for first in range(0, len(names), groups):
            some = {name: self.groups[name] for name in names[first : first + groups]}
            topics = {topic: self.topics[topic] for g in some.values() for topic in g.topics}
            yield Estate(topics, some)


def checked(estate: Estate) -> Estate:
    """Return the estate; raises `InvalidInput` if it is inconsistent."""
    if not estate.groups:
        raise InvalidInput("the groups file has no groups")
    for name, group in estate.groups.items():
        if not group.topics:
            raise InvalidInput(f"group {name} subscribes to no topic")
        for topic in group.topics:
            if topic not in estate.topics:
                raise InvalidInput(f"group {name} subscribes to {topic}, which is not listed")
        if len(set(group.topics)) < len(group.topics):
            raise InvalidInput(f"group {name} lists a topic twice")
    return estate


def uniform_estate(groups: int, queues: int, members: int, brokers: int = 4) -> Estate:
    """Return an estate of equal groups, each with its own topic, for trials and benchmarks."""
    if min(groups, queues, members, brokers) < 1:
        raise InvalidInput("a fleet must have at least one group, queue, member and broker")
    size, more = divmod(queues, brokers)
    layout = {f"broker-{n}": size + (n < more) for n in range(brokers) if size + (n < more)}
    return Estate(
        topics={f"topic-{number}": layout for number in range(groups)},
        groups={
            f"group-{number}": Group(
                (f"topic-{number}",),
                tuple(
                    f"10.{number >> 8 & 255}.{number & 255}.{m}@{4000 + m}" for m in range(members)
                ),
            )
            for number in range(groups)
        },
    )


def read_estate(path: str | Path) -> Estate:
    """Read an estate from a JSON file or a directory of tables.

    Raises `InvalidInput` for what is not there, not readable or does not fit together.
    """
    place = Path(path)
    if place.is_dir():
        return checked(_from_tables(place))
    try:
        return checked(msgspec.json.decode(place.read_bytes(), type=Estate))
    except OSError as problem:
        raise InvalidInput(f"cannot read {path}: {problem.strerror}") from problem
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise InvalidInput(f"{path} is not a groups file: {problem}") from problem


def _from_tables(place: Path) -> Estate:
    topics: dict[str, dict[str, int]] = {}
    for topic, broker, queues in _rows(place, "topics", ("topic", "broker", "queues")):
        topics.setdefault(topic, {})[broker] = queues
    subscribed: dict[str, list[str]] = {}
    for group, topic in _rows(place, "subscriptions", ("group", "topic")):
        subscribed.setdefault(group, []).append(topic)
    members: dict[str, list[str]] = {}
    for group, member in _rows(place, "members", ("group", "member")):
        members.setdefault(group, []).append(member)
    strangers = sorted(set(members) - set(subscribed))
    if strangers:
        raise InvalidInput(f"{place}: group {strangers[0]} has members but no subscription")
    plain = {
        "topics": topics,
        "groups": {
            name: {"topics": listed, "members": members.get(name, [])}
            for name, listed in subscribed.items()
        },
    }
    try:
        return msgspec.convert(plain, Estate)
    except msgspec.ValidationError as problem:
        raise InvalidInput(f"{place} is not a groups file: {problem}") from problem


def _rows(place: Path, name: str, columns: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    """Return the rows of one table, in whichever format it is."""
    found = [p for p in sorted(place.glob(f"{name}.*")) if p.suffix in _READERS]
    if not found:
        forms = ", ".join(f"{name}{suffix}" for suffix in _READERS)
        raise InvalidInput(f"{place} has none of {forms}")
    try:
        table = _READERS[found[0].suffix](found[0])
        missing = [column for column in columns if column not in table.column_names]
        if missing:
            raise InvalidInput(f"{found[0]} has no column {missing[0]}")
        return zip(*(table.column(column).to_pylist() for column in columns), strict=True)
    except (OSError, ValueError) as problem:  # Arrow's own errors are ValueErrors
        raise InvalidInput(f"cannot read {found[0]}: {problem}") from problem


def _parquet(path: Path) -> Any:
    from pyarrow import parquet

    return parquet.read_table(path)


def _csv(path: Path) -> Any:
    from pyarrow import csv, string

    texts = dict.fromkeys(("topic", "broker", "group", "member"), string())
    options = csv.ConvertOptions(column_types=texts, strings_can_be_null=False)
    return csv.read_csv(path, convert_options=options)


def _json(path: Path) -> Any:
    from pyarrow import json

    return json.read_json(path)


_READERS = {".parquet": _parquet, ".csv": _csv, ".json": _json, ".jsonl": _json}


def cluster_estate(
    name_servers: str = "", *, options: ClientOptions | None = None
) -> tuple[Estate, list[str]]:
    """Return a cluster's estate, and what could not be read of it.

    Groups without members, and those that broadcast, have no assignment and are left out, as are
    retry topics. Raises `InvalidInput` if nothing is left, and the errors of `Admin`.
    """
    topics: dict[str, dict[str, int]] = {}
    groups: dict[str, Group] = {}
    with Admin(name_servers, options=options) as admin:
        configs = admin.groups.configs().some()
        missing = [str(each) for each in configs.missing]
        names = {name for table in configs.values() for name in table if not is_system_group(name)}
        for name in sorted(names):
            try:
                views = admin.groups.connections(name).some()
            except MQError as problem:
                missing.append(f"group {name}: {problem}")
                continue
            members = {
                connection.client_id
                for view in views.values()
                for connection in view.connection_set
                if connection.client_id
            }
            models = {view.message_model for view in views.values() if view.connection_set}
            wanted = {t for v in views.values() for t in v.subscription_table}
            known = [t for t in sorted(wanted) if _learn(admin, t, topics)]
            if members and known and MessageModel.BROADCASTING not in models:
                groups[name] = Group(tuple(known), tuple(sorted(members)))
    if not groups:
        raise InvalidInput("no group of the cluster has a member, so there is nothing to assign")
    used = {topic for group in groups.values() for topic in group.topics}
    return checked(Estate({t: topics[t] for t in sorted(used)}, groups)), missing


def _learn(admin: Admin, topic: str, topics: dict[str, dict[str, int]]) -> bool:
    """Read a topic's queues into `topics`; return whether it has any to assign."""
    if is_retry_topic(topic):
        return False
    if topic not in topics:
        counts: dict[str, int] = {}
        try:
            for queue in admin.topics.route(topic).subscribe_queues(topic):
                counts[queue.broker_name] = counts.get(queue.broker_name, 0) + 1
        except RouteNotFound:
            counts = {}
        topics[topic] = counts
    return bool(topics[topic])
