"""Reading the owners up to now: `pocketmq allocate --previous FILE`.

Three forms: CSV with the columns topic, brokerName, queueId and owner; a JSON array of objects with
these fields; or an OWNERSHIP as `--json` prints it, such as `before` of a strategy. A queue without
an owner has an empty or missing one.
"""

import csv
from collections.abc import Iterable, Iterator
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


class OwnedQueue(msgspec.Struct, frozen=True, rename="camel"):
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

    def rows(self) -> Iterator[OwnedQueue]:
        """Return the same as rows."""
        owners: list[tuple[str | None, list[NamedQueue]]] = [
            *((share.member, share.queues) for share in self.shares),
            (None, self.unowned),
        ]
        for owner, queues in owners:
            for queue in queues:
                yield OwnedQueue(queue.topic, queue.broker_name, queue.queue_id, owner)


_json = msgspec.json.Decoder(list[OwnedQueue] | PrintedOwnership)

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


def _rows(raw: bytes) -> Iterable[OwnedQueue]:
    if raw.lstrip()[:1] not in {b"[", b"{"}:
        return _csv_rows(raw.decode("utf-8-sig"))
    read = _json.decode(raw)
    return read.rows() if isinstance(read, PrintedOwnership) else read


def _csv_rows(text: str) -> Iterator[OwnedQueue]:
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
                yield msgspec.convert(fields, OwnedQueue, strict=False)
            except msgspec.ValidationError as problem:
                raise InvalidInput(f"line {lines.line_num}: {problem}") from problem
    except csv.Error as problem:
        raise InvalidInput(f"after line {lines.line_num}: {problem}") from problem


def _owners(rows: Iterable[OwnedQueue]) -> PreviousOwners:
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
