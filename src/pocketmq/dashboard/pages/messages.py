"""Searching messages: a form whose result has a URL of its own."""

import time
from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec
from fastapi import Request
from nicegui import ui

from pocketmq.admin.admin import Admin
from pocketmq.admin.messages import FOR_EVER, FoundMessages
from pocketmq.dashboard.desk import Desk
from pocketmq.dashboard.formatting import as_text, link_to, moment, size
from pocketmq.dashboard.frame import frame, prepare
from pocketmq.dashboard.parts import button, card, choice, field, note, suggestions
from pocketmq.dashboard.table import Cell, Column, LiveTable
from pocketmq.errors import InvalidInput, MQError, RouteNotFound
from pocketmq.protocol import ReceivedMessage

_PREVIEW = 80
_MOST_OPTIONS = 2000


WAYS = {
    "id": "Message id",
    "key": "Key",
    "time": "Time",
}
LIMIT = 64
"""Messages per broker, or per queue in a search by time."""
_HOUR_MS = 3_600_000
_LONGEST = 1024


class MessageSearch(msgspec.Struct, frozen=True):
    """A search; times are milliseconds, 0 if not set."""

    topic: str = ""
    by: str = "time"
    value: str = ""
    begin_ms: int = 0
    end_ms: int = 0

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "MessageSearch":
        """Read the fields of a form. Raises `InvalidInput` for an invalid time or a long text."""
        fields = {name: query.get(name, "").strip() for name in ("topic", "by", "value")}
        if any(len(text) > _LONGEST for text in fields.values()):
            raise InvalidInput(f"search terms may have at most {_LONGEST} characters")
        way = fields["by"] if fields["by"] in WAYS else "time"
        begin, end = (_time_ms(query.get(name, "").strip()) for name in ("from", "to"))
        return cls(fields["topic"], way, fields["value"], begin, end)

    @property
    def wanted(self) -> bool:
        """Whether there is enough to search for."""
        return bool(self.topic) and (self.by == "time" or bool(self.value))


async def look(admin: Admin, search: MessageSearch) -> FoundMessages:
    """Search messages. Raises `MQError`: no such topic or message, no response."""
    end_ms = search.end_ms or FOR_EVER
    if search.by == "id":
        return FoundMessages([await admin.messages.by_id(search.topic, search.value)])
    if search.by == "key":
        return await admin.messages.by_key(
            search.topic, search.value, LIMIT, begin_ms=search.begin_ms, end_ms=end_ms
        )
    begin_ms = search.begin_ms or int(time.time() * 1000) - _HOUR_MS
    try:
        return await admin.messages.between(search.topic, begin_ms, end_ms, LIMIT)
    except RouteNotFound:
        raise InvalidInput(f"there is no topic {search.topic!r}") from None


def _time_ms(text: str) -> int:
    if not text:
        return 0
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise InvalidInput(f"{text!r} is not a time; use for example 2026-01-31T12:00") from None


def add_pages(desk: Desk) -> None:
    """Add the page."""

    @ui.page("/messages", response_timeout=20)
    async def messages(request: Request) -> None:
        await prepare(desk.views.topics())
        problem, found, search = "", None, MessageSearch()
        try:
            search = MessageSearch.of(request.query_params)
            if search.wanted:
                found = await look(desk.admin, search)
        except MQError as error:
            problem = str(error)
        with frame(desk, request, "Messages", here="/messages"):
            _show_form(desk, request, search)
            if problem:
                with ui.element("div").classes("pm-warning").props("role=alert"):
                    ui.label(problem).classes("pm-warning-text")
            if found is not None:
                _show_found(found, search)


def _show_form(desk: Desk, request: Request, search: MessageSearch) -> None:
    view = desk.views.topics().value
    with card(), ui.element("form").classes("pm-form") as form:
        form.props.update({"action": "/messages", "method": "get", "role": "search"})
        topic = field("Topic", "topic", search.topic, required="required", list="topics")
        topic.props["autocomplete"] = "off"
        suggestions("topics", (view.names if view is not None else [])[:_MOST_OPTIONS])
        choice("Search by", "by", WAYS, search.by)
        field("Id or key", "value", search.value)
        for label, name in (("From", "from"), ("To", "to")):
            text = request.query_params.get(name, "")
            field(label, name, text, kind="datetime-local", step="1")
        button("MessageSearch", primary=True, kind="submit")
    note("Default: last hour. Times are in the time zone of the dashboard's machine.")


def _show_found(found: FoundMessages, search: MessageSearch) -> None:
    for missing in found.missing:
        with ui.element("div").classes("pm-warning").props("role=alert"):
            ui.label(f"No response, results may be incomplete: {missing}").classes(
                "pm-warning-text"
            )
    table = message_table(f"Messages of {search.topic}")
    table.show(found.messages)
    if len(found.messages) >= LIMIT:
        where = "each queue" if search.by == "time" else "each broker"
        note(f"Showing at most {LIMIT} of {where}; narrow the time to see others.")


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
