"""Dead letters: which groups have given up messages, and sending them again."""

from fastapi import Request
from nicegui import ui

from pocketmq.admin.topics import TopicStatus
from pocketmq.dashboard.desk import Desk
from pocketmq.dashboard.formatting import UNKNOWN, count, link_to, moment
from pocketmq.dashboard.frame import LivePage, frame, prepare
from pocketmq.dashboard.pages.message import told_resent
from pocketmq.dashboard.pages.messages import message_table
from pocketmq.dashboard.pages.topics import messages_in
from pocketmq.dashboard.parts import action_button, button, confirm, note, perform, visitor
from pocketmq.dashboard.table import Cell, Column, LiveTable
from pocketmq.errors import MQError, RouteNotFound
from pocketmq.protocol.received import ReceivedMessage

Row = tuple[str, TopicStatus | None]
LIMIT = 64
"""Letters of each queue that are shown."""
_SHOWN = 5


def add_pages(desk: Desk) -> None:
    """Add the pages."""

    @ui.page("/dead-letters")
    async def dead_letters(request: Request) -> None:
        watch = desk.views.dead_letters()
        await prepare(watch)
        with frame(desk, request, "Dead letters", here="/dead-letters"):
            live = LivePage()
            note("Messages whose last retry failed, by the group that gave them up.")
            table = LiveTable[Row](
                "Dead letters", _COLUMNS, key=lambda row: row[0], search=lambda row: row[0],
                sorted_by=1, descending=True, empty="No group has given up a message.",
            )  # fmt: skip
            live.show(watch, lambda found: table.show(list(found.items())))

    @ui.page("/dead-letters/{group}", response_timeout=20)
    async def letters_of(request: Request, group: str) -> None:
        path = (("Dead letters", "/dead-letters"), (group, link_to("groups", group)))
        title = f"Dead letters of {group}"
        with frame(desk, request, title, here="/dead-letters", path=path):
            letters = _Letters(desk, request, group)
            await letters.look()


class _Letters:
    """The open page of one group."""

    def __init__(self, desk: Desk, request: Request, group: str) -> None:
        self._desk = desk
        self._group = group
        self._who = visitor(request)
        self._letters: list[ReceivedMessage] = []
        with ui.element("div").classes("pm-buttons"):
            action_button(desk, "Send the chosen again", self._resend)
            button("Look again", self.look)
        self._note = note("")
        self._table = message_table(f"Dead letters of {group}", selectable=True)

    async def look(self) -> None:
        """Read the oldest letters."""
        text = ""
        try:
            self._letters = (await self._desk.admin.messages.dead_letters(self._group)).messages
        except RouteNotFound:
            self._letters, text = [], f"{self._group} has given up no message."
        except MQError as error:
            text = f"Not known: {error}"
        if len(self._letters) >= LIMIT:
            text = f"The oldest {LIMIT} of each queue are shown."
        self._note.set_text(text)
        self._table.show(self._letters)

    async def _resend(self) -> None:
        chosen = [each for each in self._letters if each.offset_message_id in self._table.selected]
        if not chosen:
            ui.notify("Choose messages first.", type="warning")
            return
        ids = [message.message_id for message in chosen[:_SHOWN]]
        more = [f"and {len(chosen) - _SHOWN} more"] if len(chosen) > _SHOWN else []
        consequences = [
            "A copy of each goes to the topic it first was sent to: " + ", ".join(ids + more),
            "Every group of that topic gets the copies, also those that consumed the first ones.",
            "The dead letters stay here.",
        ]
        if await confirm(f"Send {len(chosen)} messages again?", consequences, "Send again"):
            await perform(self._desk.actions.resend(self._who, chosen), told_resent)


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
    Column[Row]("Last one", _shown_last, lambda row: _last(row[1]), kind="time"),
]
