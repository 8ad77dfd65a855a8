"""Messages on pages: a table of them, and the browser of a topic.

The browser shows them newest first, older ones on request, new ones as they come.
"""

from collections.abc import Callable, Iterable, Sequence

from nicegui import ui

from pocketmq.admin.admin import Admin
from pocketmq.dashboard.browsing.newest_first import Position
from pocketmq.dashboard.browsing.reader import BrowsedPage, ContentFilter, TopicReader
from pocketmq.dashboard.formatting import as_text, count, link_to, moment, size
from pocketmq.dashboard.parts import button, note
from pocketmq.dashboard.table import Cell, Column, LiveTable
from pocketmq.errors import InvalidInput, MQError, RouteNotFound
from pocketmq.model import MessageQueue
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


_TICK = 1.0
"""Seconds between two looks of a live tail."""
_MOST_FOLLOWED = 200
"""Messages that a live tail keeps."""
_MOST_PAGES = 1000
"""Pages that one can go back to."""
_LIVE = "Live: new messages appear at the top."


class MessageBrowser:
    """The messages of a topic on one open page. Await `newest` once it is made.

    `exported` returns the address of the same messages as a file of a format.
    """

    def __init__(
        self,
        admin: Admin,
        topic: str,
        label: str,
        *,
        wanted: ContentFilter,
        times: tuple[int, int | None] = (0, None),
        selectable: bool = False,
        absent: str = "",
        exported: Callable[[str], str],
    ) -> None:
        self._reader = TopicReader(admin, topic)
        self._wanted = wanted
        self._times = times
        self._absent = absent or f"there is no topic {topic!r}"
        self._trail: list[Position] = []
        self._older: Position = {}
        self._ends: dict[MessageQueue, int] = {}
        self._skipped = 0
        self._busy = False
        self.messages: list[ReceivedMessage] = []
        """The messages shown, newest first."""
        with ui.element("div").classes("pm-buttons"):
            button("Newest", self.newest)
            self._newer_button = button("Newer", self._newer)
            self._older_button = button("Older", self._go_older)
            self._follow_button = button("Follow live", self._follow)
            for form, name in (("csv", "Export CSV"), ("jsonl", "Export JSON lines")):
                ui.link(name, exported(form)).classes("pm-button").props("download")
        with ui.element("div").classes("pm-warning").props("role=alert") as self._box:
            self._warning = ui.label("").classes("pm-warning-text")
        self._note = note("").props("role=status")
        self.table = message_table(label, selectable=selectable)
        # Made on demand: a page with a timer is sent before its messages are read.
        self._timer: ui.timer | None = None
        self._warn([])
        self._enable()

    async def newest(self) -> None:
        """Show the newest messages; a live tail ends."""
        self._stop_following()
        if self._busy:
            return
        self._busy = True
        try:
            bounds = await self._reader.bounds(*self._times)
        except RouteNotFound:
            self._warn([self._absent])
        except MQError as error:
            self._warn([f"No response: {error}"])
        else:
            self._ends = {queue: end for queue, (_, end) in bounds.position.items()}
            self._trail = [bounds.position]
            await self._show(bounds.missing)
        finally:
            self._busy = False
            self._enable()

    async def _newer(self) -> None:
        if len(self._trail) > 1 and not self._busy:
            self._trail.pop()
            await self._turn()

    async def _go_older(self) -> None:
        if self._older and not self._busy:
            self._trail = [*self._trail, self._older][-_MOST_PAGES:]
            await self._turn()

    async def _turn(self) -> None:
        self._busy = True
        self._stop_following()
        try:
            await self._show(())
        finally:
            self._busy = False
            self._enable()

    async def _show(self, missing: Iterable[str]) -> None:
        """Show the page at the end of the trail."""
        page = await self._reader.page(self._trail[-1], self._wanted)
        self.messages, self._older = page.messages, page.older
        self._warn([f"No response from {each}" for each in (*missing, *page.missing)])
        self._note.set_text(described(page, self._wanted))
        self.table.show(self.messages)

    async def _follow(self) -> None:
        """Start or end the live tail."""
        if self._timer is not None:
            self._stop_following()
            self._note.set_text("")
            self._enable()
            return
        await self.newest()
        if self._trail and self._timer is None:
            self._skipped = 0
            self._timer = ui.timer(_TICK, self._look)
            self._note.set_text(_LIVE)
            self._enable()

    def _stop_following(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _look(self) -> None:
        """Add what has come since the last look."""
        if self._busy:
            return
        try:
            step = await self._reader.newer(self._ends)
        except MQError as error:
            self._warn([f"No response: {error}"])
            return
        if self._timer is None:  # it was ended meanwhile
            return
        self._ends = step.ends
        self._warn([f"No response from {each}" for each in step.missing])
        new = [each for each in reversed(step.messages) if self._wanted.matches(each)]
        if new:
            self.messages = [*new, *self.messages][:_MOST_FOLLOWED]
            self.table.show(self.messages)
        if step.skipped:
            self._skipped += step.skipped
            lost = f" {count(self._skipped)} came too fast to be shown."
            self._note.set_text(_LIVE + lost)

    def _warn(self, lines: list[str]) -> None:
        text = "\n".join(lines)
        if text != self._warning.text or self._box.visible != bool(text):
            self._warning.set_text(text)
            self._box.set_visibility(bool(text))

    def _enable(self) -> None:
        """Enable what is possible now."""
        live = self._timer is not None
        self._newer_button.props["disabled"] = live or len(self._trail) < 2
        self._older_button.props["disabled"] = live or not self._older
        self._follow_button.props["aria-pressed"] = "true" if live else "false"
        for each in (self._newer_button, self._older_button, self._follow_button):
            each.update()


def described(page: BrowsedPage, wanted: ContentFilter) -> str:
    """Return what a page shows."""
    older = sum(end - first for first, end in page.older.values())
    found = len(page.messages)
    parts = []
    if wanted.text:
        parts.append(f"{count(found)} of {count(page.scanned)} messages searched match")
    elif found:
        parts.append(f"{count(found)} {'message' if found == 1 else 'messages'}, newest first")
    if found:
        times = [each.store_timestamp_ms for each in page.messages]
        parts.append(f"stored {moment(min(times))} to {moment(max(times))}")
    if older:
        rest = "not searched yet" if wanted.text else "older"
        parts.append(f"{count(older)} {rest}")
    return "; ".join(parts) + ("." if parts else "")
