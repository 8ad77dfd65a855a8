"""One member of a group, as it reports itself: subscriptions, queues, rates, threads."""

from fastapi import Request
from nicegui import ui

from pocketmq.dashboard.desk import Desk, Desks
from pocketmq.dashboard.formatting import count, link_to, moment, rate
from pocketmq.dashboard.frame import LivePage, frame, heading, prepare
from pocketmq.dashboard.pages.missing import show_if_found
from pocketmq.dashboard.parts import button, card, facts, note
from pocketmq.dashboard.table import Cell, Column, LiveTable
from pocketmq.errors import MQError
from pocketmq.model import MessageQueue, Subscription
from pocketmq.protocol.requests.client_calls import ConsumeStatus, ProcessQueueBody, RunningInfo

Held = tuple[MessageQueue, ProcessQueueBody]
Status = tuple[str, ConsumeStatus]
_LONGEST_STACK = 256 * 1024


def add_pages(desks: Desks) -> None:
    """Add the page."""

    @ui.page("/groups/{group}/members/{member_id}")  # the library has a use for `client`
    async def member(request: Request, group: str, member_id: str) -> None:
        desk = desks.of(request)
        poller = desk.views.member(group, member_id)
        await prepare(poller)
        path = (("Groups", "/groups"), (group, link_to("groups", group)))
        with frame(desk, request, member_id, here="/clients", path=path):
            show_if_found(
                poller, lambda: _Member(desk, group, member_id), back=("All clients", "/clients")
            )


def link_to_member(group: str, client: str) -> str:
    """Return the page of a member."""
    return link_to("groups", group, "members", client)


class _Member:
    """The open page."""

    def __init__(self, desk: Desk, group: str, client: str) -> None:
        self._desk = desk
        self._names = group, client
        live = LivePage()
        with ui.element("div").classes("pm-buttons"):
            button("Show threads", self._stacks)
        self._problem = note("")
        with ui.element("pre").classes("pm-pre pm-card").props("tabindex=0") as self._pre:
            self._pre.props["aria-label"] = "Threads"
            self._stack = ui.label("").classes("pm-inline")
        self._pre.set_visibility(False)
        heading("Subscriptions")
        self._subscriptions = LiveTable[Subscription](
            "Subscriptions", _SUBSCRIPTIONS, key=lambda each: each.topic, sorted_by=0
        )
        heading("Queues")
        self._queues = LiveTable[Held](
            "Queues", _QUEUES, key=lambda row: str(row[0]), search=lambda row: str(row[0]),
            empty="It owns no queue.",
        )  # fmt: skip
        heading("Rates")
        self._rates = LiveTable[Status]("Rates", _RATES, key=lambda row: row[0], sorted_by=0)
        with card("Properties") as self._box:
            pass
        self._properties: list[tuple[str, str]] | None = None
        live.show(desk.views.member(group, client), self._show)

    def _show(self, info: RunningInfo) -> None:
        self._subscriptions.show(info.subscription_set)
        self._queues.show(list(info.mq_table.items()))
        self._rates.show(list(info.status_table.items()))
        properties = sorted({**info.properties, **info.user_consumer_info}.items())
        if properties != self._properties:
            self._properties = properties
            self._box.clear()
            with self._box:
                facts(properties)

    async def _stacks(self) -> None:
        """Ask the member for the stacks of its threads; it goes on working."""
        self._problem.set_text("")
        try:
            info = await self._desk.admin.groups.running_info(*self._names, stacks=True)
        except MQError as error:
            self._problem.set_text(str(error))
            return
        self._stack.set_text((info.jstack or "It reports no threads.")[:_LONGEST_STACK])
        self._pre.set_visibility(True)


_SUBSCRIPTIONS = [
    Column[Subscription](
        "Topic", lambda s: Cell(s.topic, href=link_to("topics", s.topic)), lambda s: s.topic
    ),
    Column[Subscription]("Expression", lambda s: Cell(s.sub_string, tone="mono")),
    Column[Subscription]("Type", lambda s: Cell(s.expression_type)),
]
_QUEUES = [
    Column[Held]("Topic", lambda r: Cell(r[0].topic), lambda r: r[0].topic),
    Column[Held]("Broker", lambda r: Cell(r[0].broker_name), lambda r: r[0].broker_name),
    Column[Held](
        "Queue", lambda r: Cell(str(r[0].queue_id)), lambda r: r[0].queue_id, kind="number"
    ),
    Column[Held](
        "Committed",
        lambda r: Cell(count(r[1].commit_offset)),
        lambda r: r[1].commit_offset,
        kind="number",
    ),
    Column[Held](
        "Waiting",
        lambda r: Cell(count(r[1].cached_msg_count)),
        lambda r: r[1].cached_msg_count,
        kind="number",
    ),
    Column[Held]("Locked", lambda r: Cell("yes" if r[1].locked else "no")),
    Column[Held](
        "Last pull",
        lambda r: Cell(moment(r[1].last_pull_timestamp)),
        lambda r: r[1].last_pull_timestamp,
        kind="time",
    ),
    Column[Held](
        "Last handled",
        lambda r: Cell(moment(r[1].last_consume_timestamp)),
        lambda r: r[1].last_consume_timestamp,
        kind="time",
    ),
]
_RATES = [
    Column[Status]("Topic", lambda r: Cell(r[0]), lambda r: r[0]),
    Column[Status]("Pulled /s", lambda r: Cell(rate(r[1].pull_tps)), kind="number"),
    Column[Status]("Pull ms", lambda r: Cell(rate(r[1].pull_rt)), kind="number"),
    Column[Status]("Handled /s", lambda r: Cell(rate(r[1].consume_ok_tps)), kind="number"),
    Column[Status]("Failed /s", lambda r: Cell(rate(r[1].consume_failed_tps)), kind="number"),
    Column[Status]("Handler ms", lambda r: Cell(rate(r[1].consume_rt)), kind="number"),
]
