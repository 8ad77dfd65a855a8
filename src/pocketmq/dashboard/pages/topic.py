"""One topic: its queues, consumer groups and settings."""

from fastapi import Request
from nicegui import ui

from pocketmq.dashboard.charts import ChartCard
from pocketmq.dashboard.desk import Desk, Desks
from pocketmq.dashboard.formatting import UNKNOWN, count, leaders_text, link_to, moment, rate
from pocketmq.dashboard.frame import LivePage, frame, heading, prepare
from pocketmq.dashboard.pages.change_dialogs import change_topic, delete_topic, write_and_send
from pocketmq.dashboard.pages.missing import show_if_found
from pocketmq.dashboard.pages.topics import messages_in
from pocketmq.dashboard.parts import Tiles, action_button, note, visitor
from pocketmq.dashboard.recording import Points
from pocketmq.dashboard.table import Cell, Column, LiveTable
from pocketmq.dashboard.views import GroupsView, TopicsView, TopicView
from pocketmq.model import MessageQueue, Permission, TopicConfig
from pocketmq.protocol.requests.stats import OffsetRange

Held = tuple[MessageQueue, OffsetRange]
Consumer = tuple[str, int | None, int | None]
"""Group, members, lag in this topic."""


def add_pages(desks: Desks) -> None:
    """Add the page."""

    @ui.page("/topics/{topic}")
    async def topic_page(request: Request, topic: str) -> None:
        desk = desks.of(request)
        poller = desk.views.topic(topic)
        await prepare(poller, desk.views.topics())
        with frame(desk, request, topic, here="/topics", path=(("Topics", "/topics"),)):
            show_if_found(
                poller, lambda: _TopicPage(desk, request, topic), back=("All topics", "/topics")
            )


class _TopicPage:
    """The open page."""

    def __init__(self, desk: Desk, request: Request, topic: str) -> None:
        self._desk = desk
        self._who = visitor(request)
        self._topic = topic
        self._live = LivePage()
        self._view: TopicView | None = None
        self._groups: GroupsView | None = None
        self._configs: list[tuple[str, TopicConfig]] = []
        self._tiles = Tiles(
            ("queues", "Queues", None),
            ("messages", "Messages stored", None),
            ("flow", "Messages in /s", None),
            ("groups", "Consumer groups", None),
        )
        with ui.element("div").classes("pm-buttons"):
            ui.link("View messages", f"/messages?topic={link_to(topic)[1:]}&by=time").classes(
                "pm-button"
            )
            action_button(desk, "Send message", lambda: write_and_send(desk, self._who, topic))
            action_button(desk, "Change settings", self._change)
            action_button(desk, "Delete topic", self._delete)
        self._chart = ChartCard("Messages in per second", self._rates, " /s")
        heading("Groups")
        self._consumers = LiveTable[Consumer](
            "Groups", _CONSUMER_COLUMNS, key=lambda row: row[0], sorted_by=2, descending=True,
            empty="No group consumes it.",
        )  # fmt: skip
        heading("Queues")
        self._leaders = note("")
        self._queues = LiveTable[Held](
            "Queues", _QUEUE_COLUMNS, key=lambda row: f"{row[0].broker_name} {row[0].queue_id}",
            search=lambda row: f"{row[0].broker_name} {row[0].queue_id}", empty="It has no queues.",
        )  # fmt: skip
        heading("Settings")
        note("By broker.")
        self._settings = LiveTable[tuple[str, TopicConfig]](
            "Settings", _SETTING_COLUMNS, key=lambda row: row[0]
        )
        views = desk.views
        self._live.show(views.topic(topic), self._show)
        self._live.show(views.groups(), self._show_groups)
        self._live.show(views.topics(), self._show_settings)

    async def _change(self) -> None:
        configs = self._configs
        if not configs:
            ui.notify("The settings are not known yet.", type="warning")
            return
        await change_topic(self._desk, self._who, self._topic, configs[0][1])

    async def _delete(self) -> None:
        held = count(messages_in(None if self._view is None else self._view.status))
        await delete_topic(self._desk, self._who, self._topic, held)

    def _rates(self, since: float) -> dict[str, Points]:
        return {"in": self._desk.views.topic_rates.since(self._topic, since)}

    def _show(self, view: TopicView) -> None:
        self._view = view
        self._chart.show()
        self._live.missing(self._desk.views.topic(self._topic), view.missing)
        status = view.status
        self._tiles.show("queues", count(len(view.route.subscribe_queues(self._topic))))
        self._tiles.show("messages", count(messages_in(status)))
        known = status is not None and not status.missing
        self._tiles.show("flow", rate(status.put_tps if known and status is not None else None))
        self._tiles.show("groups", count(len(view.groups)) if not view.missing else UNKNOWN)
        self._leaders.set_text(leaders_text(view.route.leaders(self._topic)))
        if status is not None:
            self._queues.show(list(status.queues.items()))
        self._show_consumers()

    def _show_groups(self, view: GroupsView) -> None:
        self._groups = view
        self._show_consumers()

    def _show_consumers(self) -> None:
        if self._view is None:
            return
        glances = {each.group: each for each in self._groups.groups} if self._groups else {}
        rows: list[Consumer] = []
        for group in self._view.groups:
            glance = glances.get(group)
            members = None if glance is None or glance.members is None else len(glance.members)
            lag = None
            if glance is not None and glance.progress is not None:
                lag = sum(
                    each.broker_offset - each.consumer_offset
                    for queue, each in glance.progress.queues.items()
                    if queue.topic == self._topic
                )
            rows.append((group, members, lag))
        self._consumers.show(rows)

    def _show_settings(self, view: TopicsView) -> None:
        self._live.missing(self._desk.views.topics(), view.missing)
        self._configs = sorted(view.configs.get(self._topic, {}).items())
        self._settings.show(self._configs)


def permission(bits: int) -> str:
    """Format the permissions of a topic."""
    names = [
        name
        for flag, name in ((Permission.READ, "read"), (Permission.WRITE, "write"))
        if bits & int(flag)
    ]
    return " and ".join(names) or "nothing"


_CONSUMER_COLUMNS = [
    Column[Consumer](
        "Group", lambda row: Cell(row[0], href=link_to("groups", row[0])), lambda row: row[0]
    ),
    Column[Consumer]("Members", lambda row: Cell(count(row[1])), lambda row: row[1], kind="number"),
    Column[Consumer]("Lag", lambda row: Cell(count(row[2])), lambda row: row[2], kind="number"),
]
_QUEUE_COLUMNS = [
    Column[Held]("Broker", lambda row: Cell(row[0].broker_name), lambda row: row[0].broker_name),
    Column[Held](
        "Queue", lambda row: Cell(str(row[0].queue_id)), lambda row: row[0].queue_id, kind="number"
    ),
    Column[Held](
        "First offset",
        lambda row: Cell(count(row[1].min_offset)),
        lambda row: row[1].min_offset,
        kind="number",
    ),
    Column[Held](
        "Next offset",
        lambda row: Cell(count(row[1].max_offset)),
        lambda row: row[1].max_offset,
        kind="number",
    ),
    Column[Held](
        "Messages",
        lambda row: Cell(count(row[1].max_offset - row[1].min_offset)),
        lambda row: row[1].max_offset - row[1].min_offset,
        kind="number",
    ),
    Column[Held](
        "Last message",
        lambda row: Cell(moment(row[1].last_update_timestamp)),
        lambda row: row[1].last_update_timestamp,
        kind="time",
    ),
]
Setting = tuple[str, TopicConfig]
_SETTING_COLUMNS = [
    Column[Setting]("Broker", lambda row: Cell(row[0]), lambda row: row[0]),
    Column[Setting]("Read queues", lambda row: Cell(count(row[1].read_queue_nums)), kind="number"),
    Column[Setting](
        "Write queues", lambda row: Cell(count(row[1].write_queue_nums)), kind="number"
    ),
    Column[Setting]("Permissions", lambda row: Cell(permission(row[1].perm))),
    Column[Setting]("Ordered", lambda row: Cell("yes" if row[1].order else "no")),
    Column[Setting](
        "Attributes",
        lambda row: Cell(", ".join(f"{key} = {value}" for key, value in row[1].attributes.items())),
    ),
]
