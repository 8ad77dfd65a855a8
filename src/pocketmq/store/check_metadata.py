"""Looking at a store's meta.sqlite without changing it."""

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import msgspec

from pocketmq.errors import MQError
from pocketmq.store.check_values import NO_FORMATS, Findings, Severity, StoredFormats
from pocketmq.store.extents import ENTRY_BYTES, FILE_BYTES, ExtentRow
from pocketmq.store.metadata import APPLICATION, FORMAT, OffsetRow, QueueRow
from pocketmq.store.recovery import REPAIR_KIND, RepairNote, read_repair_note

PART = "metadata"


class SeenMetadata(msgspec.Struct):
    """What the file holds."""

    numbers: dict[str, int] = {}
    queues: list[QueueRow] = []
    extents: list[ExtentRow] = []
    deleted: dict[str, int] = {}
    documents: list[tuple[str, str, bytes]] = []
    """Kind, key and value of each document that can be read."""
    offsets: list[OffsetRow] = []
    repair: RepairNote | None = None

    @property
    def position(self) -> int:
        """Where the last checkpoint was made."""
        return self.numbers.get("position", 0)

    def summary(self) -> str:
        """Return a one-line summary."""
        counts = Counter(kind for kind, _, _ in self.documents if kind != REPAIR_KIND)
        documents = " ".join(f"{kind}={count}" for kind, count in sorted(counts.items()))
        return (
            f"format {FORMAT}, checkpoint at byte {self.position}; "
            f"documents: {documents or 'none'}; offsets of groups: {len(self.offsets)}"
        )


def read_metadata(
    path: Path, findings: Findings, formats: StoredFormats = NO_FORMATS
) -> SeenMetadata | None:
    """Read all of it and check that it can be true; None if it cannot be read."""
    if not path.exists():
        findings.error(PART, "meta.sqlite is missing: topics, groups and offsets are in it")
        return None
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as connection:
            return _read(connection, findings, formats)
    except sqlite3.Error as error:
        findings.error(PART, f"meta.sqlite cannot be read: {error}")
        return None


def _read(
    connection: sqlite3.Connection, findings: Findings, formats: StoredFormats
) -> SeenMetadata | None:
    def rows(query: str) -> list[tuple]:  # type: ignore[type-arg]
        return connection.execute(query).fetchall()

    if rows("pragma application_id") != [(APPLICATION,)]:
        findings.error(PART, "meta.sqlite is not a PocketMQ store's")
        return None
    (version,) = rows("pragma user_version")[0]
    if version > FORMAT:
        findings.error(PART, f"meta.sqlite has format {version}, this program reads {FORMAT}")
        return None
    for (fault,) in rows("pragma integrity_check"):
        if fault != "ok":
            findings.error(PART, f"meta.sqlite is damaged: {fault}", kind="damage in SQLite")
    seen = SeenMetadata(
        numbers=dict(rows("select name, value from store")),
        queues=rows("select number, topic, queue_id, min_offset, next_offset from queue"),
        extents=rows("select file, place, entries, queue, first from extent"),
        deleted=dict(rows("select topic, position from deleted_topic")),
    )
    for kind, key, value in rows("select kind, key, value from document"):
        try:
            _read_document(seen, formats, findings, kind, key, value)
        except (ValueError, TypeError, MQError, msgspec.MsgspecError) as error:
            text = f"the document {key!r} of kind {kind} cannot be read: {error}"
            findings.error(PART, text, kind="documents that cannot be read")
        else:
            seen.documents.append((kind, key, value))
    for row in rows("select topic, consumer_group, queue_id, next_offset from consumer_offset"):
        topic, group, number, offset = row
        if number < 0 or offset < 0:
            text = f"group {group} has offset {offset} in queue {number} of {topic}"
            findings.error(PART, text, kind="invalid offsets")
        else:
            seen.offsets.append(row)
    _check_extents(seen, findings)
    return seen


def _read_document(  # noqa: PLR0917 - a row and where to tell of it
    seen: SeenMetadata,
    formats: StoredFormats,
    findings: Findings,
    kind: str,
    key: str,
    value: bytes,
) -> None:
    """Read a document as its kind is read; raises what that raises."""
    if kind == REPAIR_KIND:
        seen.repair = read_repair_note(value)
    elif (read := formats.documents.get(kind)) is not None:
        read(key, value)
    elif formats.documents:
        text = f"the document {key!r} is of kind {kind}, which this program does not know"
        findings.add(Severity.WARNING, PART, text, kind="documents of an unknown kind")


def _check_extents(seen: SeenMetadata, findings: Findings) -> None:
    """Check that no two queues share index space, and that each has all it needs."""
    places = sorted(
        (file, place, entries, queue) for file, place, entries, queue, _ in seen.extents
    )
    end = seen.numbers.get("index_end", 0)
    before = (-1, 0)
    for file, place, entries, queue in places:
        stop = place + entries * ENTRY_BYTES
        if stop > FILE_BYTES or file * FILE_BYTES + stop > end:
            text = f"queue number {queue} has index space at {file}:{place}, where there is none"
            findings.error("queues", text, kind="index space out of bounds")
        if file == before[0] and place < before[1]:
            text = f"queue number {queue} shares index space at {file}:{place} with another"
            findings.error("queues", text, kind="shared index space")
        before = file, max(stop, before[1] if file == before[0] else 0)
