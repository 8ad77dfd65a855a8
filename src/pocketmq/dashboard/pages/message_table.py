"""A table of messages, and what its cells show."""

from collections.abc import Sequence

from pocketmq.dashboard.formatting import as_text, link_to, moment, size
from pocketmq.dashboard.table import Cell, Column, LiveTable
from pocketmq.errors import InvalidInput, MQError
from pocketmq.protocol import ReceivedMessage

_PREVIEW = 80


def message_table(label: str, *, selectable: bool = False) -> LiveTable[ReceivedMessage]:
    """Make a table of messages."""
    return LiveTable(
        label, _COLUMNS, key=lambda message: message.offset_message_id, search=_text,
        sorted_by=0, descending=True, empty="No messages found.", selectable=selectable,
    )  # fmt: skip


def link_to_message(message: ReceivedMessage) -> str:
    """Return the page of a message, by queue and offset."""
    return link_to(
        "messages", message.topic, message.broker_name, str(message.queue_id),
        str(message.queue_offset),
    )  # fmt: skip


def body_of(message: ReceivedMessage) -> tuple[bytes, str | None]:
    """Return a body, or the reason why it cannot be read."""
    try:
        return message.body, None
    except (MQError, InvalidInput) as error:
        return b"", str(error)


def _preview(message: ReceivedMessage) -> Cell:
    try:
        start = message.body_start(8 * _PREVIEW)
    except (MQError, InvalidInput) as error:
        return Cell(str(error), tone="bad")
    text = as_text(start)
    if text is None:
        return Cell(f"{size(message.body_size)}, binary", tone="faint")
    line = " ".join(text.split())
    return Cell(line[:_PREVIEW] + ("…" if len(line) > _PREVIEW else ""), tone="mono")


def _text(message: ReceivedMessage) -> str:
    words: Sequence[str] = (message.message_id, message.tag or "", *message.keys)
    return " ".join(words)


_COLUMNS = [
    Column[ReceivedMessage](
        "Stored",
        lambda m: Cell(moment(m.store_timestamp_ms)),
        lambda m: (m.store_timestamp_ms, m.queue_offset),
        kind="time",
    ),
    Column[ReceivedMessage](
        "Id", lambda m: Cell(m.message_id, href=link_to_message(m), tone="mono")
    ),
    Column[ReceivedMessage]("Tag", lambda m: Cell(m.tag or ""), lambda m: m.tag or ""),
    Column[ReceivedMessage]("Keys", lambda m: Cell(" ".join(m.keys)), lambda m: " ".join(m.keys)),
    Column[ReceivedMessage]("Body", _preview, kind="wrap"),
    Column[ReceivedMessage](
        "Queue",
        lambda m: Cell(f"{m.broker_name} {m.queue_id}"),
        lambda m: (m.broker_name, m.queue_id),
    ),
    Column[ReceivedMessage](
        "Offset", lambda m: Cell(str(m.queue_offset)), lambda m: m.queue_offset, kind="number"
    ),
]
