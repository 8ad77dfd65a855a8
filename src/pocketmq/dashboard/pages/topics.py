"""All topics, and creating one."""

from typing import Any

from fastapi import Request
from nicegui import ui

from pocketmq.admin.topics import TopicStatus
from pocketmq.dashboard.actions.changing import TopicChange
from pocketmq.dashboard.desk import Desk, Desks
from pocketmq.dashboard.formatting import NEVER, UNKNOWN, count, link_to, moment, rate
from pocketmq.dashboard.frame import LivePage, frame, prepare
from pocketmq.dashboard.parts import FormField, action_button, confirm, fill_in, perform, visitor
from pocketmq.dashboard.table import Cell, Column, LiveTable
from pocketmq.dashboard.views import TopicsView
from pocketmq.errors import InvalidInput
from pocketmq.model.names import check_topic, is_dead_letter_topic, is_retry_topic, is_system_topic
from pocketmq.model.topics import is_logical


def add_pages(desks: Desks) -> None:
    """Add the page."""

    @ui.page("/topics")
    async def topics(request: Request) -> None:
        desk = desks.of(request)
        desk.views.figures().want()  # they take longer than names
        await prepare(desk.views.topics())
        with frame(desk, request, "Topics", here="/topics"):
            _Topics(desk, request)


class _Topics:
    """The open page: a table fed by two pollers, since figures take longer than names."""

    def __init__(self, desk: Desk, request: Request) -> None:
        self._desk = desk
        self._who = visitor(request)
        self._view = TopicsView([], {}, frozenset(), ())
        self._figures: dict[str, TopicStatus | None] = {}
        self._live = LivePage()
        with ui.element("div").classes("pm-buttons"):
            action_button(desk, "Create topic", self._ask)
        self._table = LiveTable[str](
            "Topics",
            [
                Column("Topic", self._name, lambda name: (self._kind(name) != "", name)),
                Column("Kind", lambda name: Cell(self._kind(name), tone="faint"), self._kind),
                Column("Queues", self._queues, self._queue_count, kind="number"),
                Column("Messages", self._messages, self._held, kind="number"),
                Column("In /s", self._flow, self._put_tps, kind="number"),
                Column("Last message", self._last, self._last_ms, kind="time"),
                Column("Brokers", self._brokers),
            ],
            key=str,
            search=lambda name: f"{name} {self._kind(name)}",
            sorted_by=0,
            empty="No matching topic.",
        )
        self._live.show(desk.views.topics(), self._show)
        self._live.show(desk.views.figures(), self._count)

    def _show(self, view: TopicsView) -> None:
        self._view = view
        self._live.missing(self._desk.views.topics(), view.missing)
        self._table.show(view.names)

    def _count(self, figures: dict[str, TopicStatus | None]) -> None:
        self._figures = figures
        if self._view.names:
            self._table.show(self._view.names)

    # Columns

    def _kind(self, name: str) -> str:
        return kind(name) or ("system" if name in self._view.own else "")

    def _name(self, name: str) -> Cell:
        return Cell(name, href=link_to("topics", name))

    def _queue_count(self, name: str) -> int | None:
        configs = self._view.configs.get(name)
        return None if not configs else sum(each.read_queue_nums for each in configs.values())

    def _queues(self, name: str) -> Cell:
        configs = self._view.configs.get(name, {})
        odd = any(each.read_queue_nums != each.write_queue_nums for each in configs.values())
        hint = "read and write queues differ" if odd else None
        return Cell(count(self._queue_count(name)), hint=hint, tone="warn" if odd else None)

    def _held(self, name: str) -> int | None:
        return messages_in(self._figures.get(name))

    def _messages(self, name: str) -> Cell:
        return Cell(count(self._held(name)) if name in self._figures else "…")

    def _put_tps(self, name: str) -> float | None:
        status = self._figures.get(name)
        return None if status is None or status.missing else status.put_tps

    def _flow(self, name: str) -> Cell:
        return Cell(rate(self._put_tps(name)) if name in self._figures else "…")

    def _last_ms(self, name: str) -> int | None:
        status = self._figures.get(name)
        if status is None:
            return None
        return max((each.last_update_timestamp for each in status.queues.values()), default=0)

    def _last(self, name: str) -> Cell:
        if name not in self._figures:
            return Cell("…")
        last = self._last_ms(name)
        return Cell(UNKNOWN if last is None else moment(last))

    def _brokers(self, name: str) -> Cell:
        names = sorted(self._view.configs.get(name, ()))
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        return Cell(shown or NEVER, hint=", ".join(names) if len(names) > 3 else None)

    # Creating a topic

    async def _ask(self) -> None:
        fields = {
            "name": FormField("Name", longest=255),
            "queues": FormField("Queues on each broker", 8),
        }
        wanted = await fill_in("Create topic", fields, self._checked)
        if wanted is None:
            return
        topic, number = wanted
        consequences = [
            f"Topic {topic} is created on every broker, with {number} queues on each.",
            "Clients can send to it immediately. Nothing else changes.",
        ]
        if await confirm(f"Create topic {topic}?", consequences, "Create"):
            work = self._desk.actions.create_topic(self._who, topic, number)
            await perform(work, lambda brokers: f"Topic {topic} created on {brokers} brokers.")

    def _checked(self, given: dict[str, Any]) -> tuple[str, int]:
        """Return name and number of queues. Raises `InvalidInput`, `NameInvalid`."""
        topic = given["name"].strip()
        check_topic(topic)
        if topic in self._view.names:
            raise InvalidInput(f"topic {topic!r} exists already")
        TopicChange(given["queues"], given["queues"], 6)
        return topic, given["queues"]


def kind(topic: str) -> str:
    """Return the kind of a topic that is not an application's."""
    if is_retry_topic(topic):
        return "retry"
    if is_dead_letter_topic(topic):
        return "dead letters"
    return "system" if is_system_topic(topic) or topic.startswith("%SYS%") else ""


def messages_in(status: TopicStatus | None) -> int | None:
    """Return the number of messages; None unless all brokers responded."""
    if status is None or status.missing:
        return None
    physical = (each for queue, each in status.queues.items() if not is_logical(queue))
    return sum(each.max_offset - each.min_offset for each in physical)
