"""Looking for messages: a form whose answer has an address of its own."""

from collections.abc import Sequence

from fastapi import Request
from nicegui import ui

from pocketmq.admin.messages import FoundMessages
from pocketmq.dashboard.bodies import as_text
from pocketmq.dashboard.desk import Desk
from pocketmq.dashboard.frame import frame
from pocketmq.dashboard.live import prepare
from pocketmq.dashboard.parts import button, card, choice, field, note, suggestions
from pocketmq.dashboard.searching import LIMIT, WAYS, Search, look
from pocketmq.dashboard.table import Cell, Column, LiveTable
from pocketmq.dashboard.words import link_to, moment, size
from pocketmq.errors import InvalidInput, MQError
from pocketmq.protocol.received import ReceivedMessage

_PREVIEW = 80
_MOST_OPTIONS = 2000


def add_pages(desk: Desk) -> None:
    """Add the page."""

    @ui.page("/messages", response_timeout=20)
    async def messages(request: Request) -> None:
        await prepare(desk.views.topics())
        problem, found, search = "", None, Search()
        try:
            search = Search.of(request.query_params)
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


def _show_form(desk: Desk, request: Request, search: Search) -> None:
    view = desk.views.topics().value
    with card(), ui.element("form").classes("pm-form") as form:
        form.props.update({"action": "/messages", "method": "get", "role": "search"})
        topic = field("Topic", "topic", search.topic, required="required", list="topics")
        topic.props["autocomplete"] = "off"
        suggestions("topics", (view.names if view is not None else [])[:_MOST_OPTIONS])
        choice("Look by", "by", WAYS, search.by)
        field("Id or key", "value", search.value)
        for label, name in (("From", "from"), ("To", "to")):
            text = request.query_params.get(name, "")
            field(label, name, text, kind="datetime-local", step="1")
        button("Search", primary=True, kind="submit")
    note(
        "By time without a beginning it is the last hour. Times are those of the machine the "
        "dashboard runs on."
    )


def _show_found(found: FoundMessages, search: Search) -> None:
    for missing in found.missing:
        with ui.element("div").classes("pm-warning").props("role=alert"):
            ui.label(f"Did not answer, and may have more: {missing}").classes("pm-warning-text")
    table = message_table(f"Messages of {search.topic}")
    table.show(found.messages)
    if len(found.messages) >= LIMIT:
        where = "each queue" if search.by == "time" else "each broker"
        note(f"At most {LIMIT} of {where} are shown: narrow the time to see others.")


def message_table(label: str, *, selectable: bool = False) -> LiveTable[ReceivedMessage]:
    """Make a table of messages."""
    return LiveTable(
        label, _COLUMNS, key=lambda message: message.offset_message_id, search=_text,
        sorted_by=0, descending=True, empty="No message was found.", selectable=selectable,
    )  # fmt: skip


def link_to_message(message: ReceivedMessage) -> str:
    """Give the page of a message, by its place."""
    return link_to(
        "messages", message.topic, message.broker_name, str(message.queue_id),
        str(message.queue_offset),
    )  # fmt: skip


def body_of(message: ReceivedMessage) -> tuple[bytes, str | None]:
    """Give a body, or the reason why it cannot be read."""
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
        return Cell(f"{size(message.body_size)} of bytes", tone="faint")
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
