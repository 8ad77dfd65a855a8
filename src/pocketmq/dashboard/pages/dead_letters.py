"""Dead letters by consumer group, and resending them."""

from fastapi import Request
from nicegui import ui

from pocketmq.admin.topics import TopicStatus
from pocketmq.dashboard import parts
from pocketmq.dashboard.actions.sending import BulkResent
from pocketmq.dashboard.browsing.reader import LONGEST, ContentFilter, TopicReader
from pocketmq.dashboard.desk import Desk, Desks
from pocketmq.dashboard.export_page import link_to_export
from pocketmq.dashboard.formatting import UNKNOWN, count, link_to, moment
from pocketmq.dashboard.frame import LivePage, frame, prepare
from pocketmq.dashboard.pages.message import told_resent
from pocketmq.dashboard.pages.message_browser import MessageBrowser
from pocketmq.dashboard.pages.topics import messages_in
from pocketmq.dashboard.table import Cell, Column, LiveTable
from pocketmq.errors import MQError
from pocketmq.model.names import dead_letter_topic

Row = tuple[str, TopicStatus | None]
_SHOWN = 5


def add_pages(desks: Desks) -> None:
    """Add the pages."""

    @ui.page("/dead-letters")
    async def dead_letters(request: Request) -> None:
        desk = desks.of(request)
        poller = desk.views.dead_letters()
        await prepare(poller)
        with frame(desk, request, "Dead letters", here="/dead-letters"):
            live = LivePage()
            parts.note("Messages whose last retry failed, by consumer group.")
            table = LiveTable[Row](
                "Dead letters", _COLUMNS, key=lambda row: row[0], search=lambda row: row[0],
                sorted_by=1, descending=True, empty="There are no dead letters.",
            )  # fmt: skip
            live.show(poller, lambda found: table.show(list(found.items())))

    @ui.page("/dead-letters/{group}", response_timeout=20)
    async def letters_of(request: Request, group: str) -> None:
        desk = desks.of(request)
        path = (("Dead letters", "/dead-letters"), (group, link_to("groups", group)))
        title = f"Dead letters of {group}"
        with frame(desk, request, title, here="/dead-letters", path=path):
            wanted = _show_filter(request, group)
            await _Letters(desk, request, group, wanted).browser.newest()


def _show_filter(request: Request, group: str) -> ContentFilter:
    """Show the form of the filter, and return the filter; one that is too long is left out."""
    text = request.query_params.get("text", "").strip()
    with parts.card(), ui.element("form").classes("pm-form") as form:
        action = link_to("dead-letters", group)
        form.props.update({"action": action, "method": "get", "role": "search"})
        parts.field("Contains", "text", text, maxlength=str(LONGEST))
        parts.button("Filter", primary=True, kind="submit")
    return ContentFilter.of(text[:LONGEST])


class _Letters:
    """The open page of one group."""

    def __init__(self, desk: Desk, request: Request, group: str, wanted: ContentFilter) -> None:
        self._desk = desk
        self._who = parts.visitor(request)
        self._topic = dead_letter_topic(group)
        self._wanted = wanted
        self._going: BulkResent | None = None
        self._stop = False
        with ui.element("div").classes("pm-buttons"):
            parts.action_button(desk, "Resend selected", self._resend)
            parts.action_button(desk, "Resend all", self._resend_all)
            self._stop_button = parts.button("Stop resending", self._stop_now)
            self._stop_button.set_visibility(False)
            self._progress = parts.note("").props("role=status")
        self.browser = MessageBrowser(
            desk.admin,
            self._topic,
            f"Dead letters of {group}",
            wanted=wanted,
            selectable=True,
            absent=f"Group {group} has no dead letters.",
            exported=lambda form: link_to_export(form, self._topic, wanted.text, cluster=desk.name),
        )

    async def _resend(self) -> None:
        chosen = [
            each
            for each in self.browser.messages
            if each.offset_message_id in self.browser.table.selected
        ]
        if not chosen:
            ui.notify("Select messages first.", type="warning")
            return
        ids = [message.message_id for message in chosen[:_SHOWN]]
        more = [f"and {len(chosen) - _SHOWN} more"] if len(chosen) > _SHOWN else []
        consequences = [
            "A copy of each is sent to its original topic: " + ", ".join(ids + more),
            "Every group of that topic receives the copies, also if it consumed the originals.",
            "The dead letters are kept.",
        ]
        if await parts.confirm(f"Resend {len(chosen)} messages?", consequences, "Resend"):
            await parts.perform(self._desk.actions.resend(self._who, chosen), told_resent)

    def _stop_now(self) -> None:
        self._stop = True

    async def _resend_all(self) -> None:
        """Resend what is there now, or of it what passes the filter, oldest first."""
        if self._going is not None:
            return
        reader = TopicReader(self._desk.admin, self._topic)
        try:
            position = (await reader.bounds()).position
        except MQError as error:
            ui.notify(str(error), type="negative")
            return
        total = count(sum(end - first for first, end in position.values()))
        text = self._wanted.text
        which = f"those of {total} dead letters that contain {text!r}" if text else f"all {total}"
        consequences = [
            f"Copies of {which} are sent to their original topics, oldest first.",
            "Every group of those topics receives the copies, also if it consumed the originals.",
            "The dead letters are kept: resending them again sends further copies.",
        ]
        if not await parts.confirm("Resend all dead letters?", consequences, "Resend all"):
            return
        what = f"resend {which} of topic {self._topic!r}"
        batches = reader.oldest_first(position, self._wanted)
        self._going, self._stop = BulkResent(), False
        self._stop_button.set_visibility(True)
        try:
            sending = self._desk.actions.sending
            work = sending.resend_all(self._who, what, batches, self._went_on)
            await parts.perform(work, lambda done: f"{done}.")
        finally:
            self._going = None
            self._stop_button.set_visibility(False)

    def _went_on(self, done: BulkResent) -> bool:
        """Show the progress, and return whether to go on."""
        self._going = done
        self._progress.set_text(f"{done}.")
        return not self._stop


def _last(status: TopicStatus | None) -> int | None:
    if status is None:
        return None
    return max((each.last_update_timestamp for each in status.queues.values()), default=0)


def _shown_last(row: Row) -> Cell:
    last = _last(row[1])
    return Cell(UNKNOWN if last is None else moment(last))


_COLUMNS = [
    Column[Row](
        "Group", lambda row: Cell(row[0], href=link_to("dead-letters", row[0])), lambda row: row[0]
    ),
    Column[Row](
        "Messages",
        lambda row: Cell(count(messages_in(row[1]))),
        lambda row: messages_in(row[1]),
        kind="number",
    ),
    Column[Row]("Last message", _shown_last, lambda row: _last(row[1]), kind="time"),
]
