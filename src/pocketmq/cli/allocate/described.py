"""Reading the options of `pocketmq allocate` that describe the group: topics, members, owners.

Every mistake becomes a `click.UsageError` of one sentence that says what to write instead. The
owners up to now, `--previous FILE`, have three forms: CSV with the columns topic, brokerName,
queueId and owner; a JSON array of objects with these fields; or an OWNERSHIP as `--json` prints
it, such as `before` of a strategy. A queue without an owner has an empty or missing one.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from typing import Annotated

import click
import msgspec

from pocketmq.cli.output import printable
from pocketmq.errors import InvalidInput
from pocketmq.model import MessageQueue
from pocketmq.model.names import check_topic

# A million queues with long names.
MAX_BYTES = 256 * 1024 * 1024
COLUMNS = ("topic", "brokerName", "queueId", "owner")

Number = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class PreviousQueue(msgspec.Struct, frozen=True, rename="camel"):
    """A queue, and who owns it."""

    topic: str
    broker_name: str
    queue_id: Number
    owner: str | None = None


class NamedQueue(msgspec.Struct, frozen=True, rename="camel"):
    """A queue as `--json` prints it."""

    topic: str
    broker_name: str
    queue_id: Number


class PrintedShare(msgspec.Struct, frozen=True):
    """A member's queues as `--json` prints them."""

    member: str
    queues: list[NamedQueue]


class PrintedOwnership(msgspec.Struct, frozen=True):
    """An OWNERSHIP as `--json` prints it."""

    shares: list[PrintedShare]
    unowned: list[NamedQueue] = []

    def rows(self) -> Iterator[PreviousQueue]:
        """Return the same as rows."""
        owners: list[tuple[str | None, list[NamedQueue]]] = [
            *((share.member, share.queues) for share in self.shares),
            (None, self.unowned),
        ]
        for owner, queues in owners:
            for queue in queues:
                yield PreviousQueue(queue.topic, queue.broker_name, queue.queue_id, owner)


_json = msgspec.json.Decoder(list[PreviousQueue] | PrintedOwnership)

PreviousOwners = dict[MessageQueue, str | None]


def read_previous(path: str) -> PreviousOwners:
    """Read owners from a file, `-` for standard input; raises `click.UsageError`."""
    try:
        with click.open_file(path, "rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as problem:
        raise click.UsageError(f"cannot read {path}: {problem.strerror}") from problem
    if len(raw) > MAX_BYTES:
        raise click.UsageError(f"--previous {path} has more than {MAX_BYTES} bytes")
    try:
        return _owners(_rows(raw))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, InvalidInput) as problem:
        raise click.UsageError(f"--previous {path}: {printable(str(problem))}") from problem


def _rows(raw: bytes) -> Iterable[PreviousQueue]:
    if raw.lstrip()[:1] not in {b"[", b"{"}:
        return _csv_rows(raw.decode("utf-8-sig"))
    read = _json.decode(raw)
    return read.rows() if isinstance(read, PrintedOwnership) else read


def _csv_rows(text: str) -> Iterator[PreviousQueue]:
    lines = csv.DictReader(StringIO(text, newline=""))
    missing = [name for name in COLUMNS if name not in (lines.fieldnames or ())]
    if missing:
        raise InvalidInput(
            f"it is neither JSON nor CSV with the columns {', '.join(COLUMNS)}: "
            f"{missing[0]} is missing"
        )
    try:
        for line in lines:
            fields = {name: line[name] for name in COLUMNS}
            try:
                yield msgspec.convert(fields, PreviousQueue, strict=False)
            except msgspec.ValidationError as problem:
                raise InvalidInput(f"line {lines.line_num}: {problem}") from problem
    except csv.Error as problem:
        raise InvalidInput(f"after line {lines.line_num}: {problem}") from problem


def _owners(rows: Iterable[PreviousQueue]) -> PreviousOwners:
    owners: PreviousOwners = {}
    topics: set[str] = set()
    for row in rows:
        if row.topic not in topics:
            check_topic(row.topic)
            topics.add(row.topic)
        queue = MessageQueue(row.topic, row.broker_name, row.queue_id)
        for name in (row.broker_name, row.owner or ""):
            if not name.isprintable():
                raise InvalidInput(f"{name[:100]!r} contains unprintable characters")
        if not row.broker_name:
            raise InvalidInput(f"a queue of {row.topic} names no broker")
        if queue in owners:
            raise InvalidInput(
                f"queue {queue.queue_id} of {row.topic} on {row.broker_name} is listed twice"
            )
        owners[queue] = row.owner or None
    if not owners:
        raise InvalidInput("it contains no queues")
    return owners


# Far beyond any real group, and still computed within a minute.
MAX_QUEUES = 1_000_000
MAX_MEMBERS = 10_000

_NUMBER = re.compile(r"-?[0-9]+\Z")
_COUNT = re.compile(r"[0-9]{1,9}\Z")


class DescribedGroup(msgspec.Struct, frozen=True):
    """A group as the options describe it."""

    sizes: dict[str, dict[str, int]]
    queues: dict[str, list[MessageQueue]]
    members: list[str]
    previous: dict[MessageQueue, str]


def read_group(
    texts: Sequence[str], members_text: str | None, previous: str | None
) -> DescribedGroup:
    """Return topics and members; those that are not given are those of `--previous`."""
    before: PreviousOwners = {}
    if previous is not None:
        before = read_previous(previous)
    if not texts and not before:
        raise click.UsageError("no topic; give --topic, such as orders:broker-a*8,broker-b*8")
    owners = {queue: owner for queue, owner in before.items() if owner is not None}
    if members_text is None and not owners:
        raise click.UsageError(
            "no members; give --members with their number, or ids separated by commas"
        )
    members = sorted(set(owners.values()))
    if members_text is not None:
        members = _read_members(members_text)
    if not texts:
        return DescribedGroup(*_queues_of(before), members, owners)
    sizes = _read_topics(texts)
    _check_total(sizes)
    queues = {
        topic: [
            MessageQueue(topic, broker, number)
            for broker, count in brokers.items()
            for number in range(count)
        ]
        for topic, brokers in sizes.items()
    }
    for queue in before:
        if queue.queue_id >= sizes.get(queue.topic, {}).get(queue.broker_name, 0):
            raise click.UsageError(
                f"--previous: queue {queue.queue_id} of {queue.topic} on {queue.broker_name} "
                "is not one of --topic"
            )
    return DescribedGroup(sizes, queues, members, owners)


def _queues_of(
    queues: Iterable[MessageQueue],
) -> tuple[dict[str, dict[str, int]], dict[str, list[MessageQueue]]]:
    """Return the number of queues of each topic on each broker, and the queues."""
    sizes: dict[str, dict[str, int]] = {}
    named: dict[str, list[MessageQueue]] = {}
    for queue in queues:
        brokers = sizes.setdefault(queue.topic, {})
        brokers[queue.broker_name] = brokers.get(queue.broker_name, 0) + 1
        named.setdefault(queue.topic, []).append(queue)
    return sizes, named


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
            broker, count = read_broker("--topic", part)
            if broker in sizes[topic]:
                raise click.UsageError(f"--topic {topic} names {broker} twice")
            sizes[topic][broker] = count
    return sizes


def read_broker(option: str, text: str) -> tuple[str, int]:
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


def _check_total(sizes: dict[str, dict[str, int]]) -> None:
    """Raise for too many queues, before they are made."""
    check_queues(sum(count for brokers in sizes.values() for count in brokers.values()))


def check_queues(queues: int) -> None:
    """Raise for too many queues."""
    if queues > MAX_QUEUES:
        raise click.UsageError(f"{queues} queues are too many: at most {MAX_QUEUES} can be shown")
