"""Searching messages: a form whose result has a URL of its own."""

from collections.abc import Mapping

import msgspec
from fastapi import Request
from nicegui import ui

from pocketmq.admin.admin import Admin
from pocketmq.admin.messages import FOR_EVER, FoundMessages
from pocketmq.dashboard.browsing.reader import ContentFilter
from pocketmq.dashboard.desk import Desk, Desks
from pocketmq.dashboard.export_page import link_to_export
from pocketmq.dashboard.formatting import time_ms
from pocketmq.dashboard.frame import frame, prepare
from pocketmq.dashboard.pages.message_browser import MessageBrowser, message_table
from pocketmq.dashboard.parts import button, card, choice, field, note, suggestions
from pocketmq.errors import InvalidInput, MQError

_MOST_OPTIONS = 2000


WAYS = {
    "id": "Message id",
    "key": "Key",
    "time": "Time and content",
}
LIMIT = 64
"""Messages per broker in a search by key."""
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
        begin, end = (time_ms(query.get(name, "")) for name in ("from", "to"))
        return cls(fields["topic"], way, fields["value"], begin, end)

    @property
    def wanted(self) -> bool:
        """Whether there is enough to search for."""
        return bool(self.topic) and (self.by == "time" or bool(self.value))

    @property
    def times(self) -> tuple[int, int | None]:
        """The span of time to search, in milliseconds; None if it has no end."""
        return self.begin_ms, self.end_ms or None


async def look(admin: Admin, search: MessageSearch) -> FoundMessages:
    """Search messages by id or key. Raises `MQError`: no such topic or message, no response."""
    if search.by == "id":
        return FoundMessages([await admin.messages.by_id(search.topic, search.value)])
    end_ms = search.end_ms or FOR_EVER
    return await admin.messages.by_key(
        search.topic, search.value, LIMIT, begin_ms=search.begin_ms, end_ms=end_ms
    )


def add_pages(desks: Desks) -> None:
    """Add the page."""

    @ui.page("/messages", response_timeout=20)
    async def messages(request: Request) -> None:
        desk = desks.of(request)
        await prepare(desk.views.topics())
        problem, found, search = "", None, MessageSearch()
        try:
            search = MessageSearch.of(request.query_params)
            if search.wanted and search.by != "time":
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
            elif search.wanted and not problem:
                label = f"Messages of {search.topic}"
                wanted = ContentFilter.of(search.value)
                begin, end = (request.query_params.get(name, "") for name in ("from", "to"))
                browser = MessageBrowser(
                    desk.admin, search.topic, label, wanted=wanted, times=search.times,
                    exported=lambda form: link_to_export(
                        form, search.topic, search.value, begin, end, cluster=desk.name
                    ),
                )  # fmt: skip
                await browser.newest()


def _show_form(desk: Desk, request: Request, search: MessageSearch) -> None:
    view = desk.views.topics().value
    with card(), ui.element("form").classes("pm-form") as form:
        form.props.update({"action": "/messages", "method": "get", "role": "search"})
        topic = field("Topic", "topic", search.topic, required="required", list="topics")
        topic.props["autocomplete"] = "off"
        suggestions("topics", (view.names if view is not None else [])[:_MOST_OPTIONS])
        choice("Search by", "by", WAYS, search.by)
        field("Id, key or text", "value", search.value)
        for label, name in (("From", "from"), ("To", "to")):
            text = request.query_params.get(name, "")
            field(label, name, text, kind="datetime-local", step="1")
        button("Search", primary=True, kind="submit")
    note(
        "By time: newest first; the text may be in the body, id, tag, keys or properties, or be "
        "name=value. Times are in the time zone of the dashboard's machine."
    )


def _show_found(found: FoundMessages, search: MessageSearch) -> None:
    for missing in found.missing:
        with ui.element("div").classes("pm-warning").props("role=alert"):
            ui.label(f"No response, results may be incomplete: {missing}").classes(
                "pm-warning-text"
            )
    table = message_table(f"Messages of {search.topic}")
    table.show(found.messages)
    if len(found.messages) >= LIMIT:
        note(f"Showing at most {LIMIT} of each broker; narrow the time to see others.")
