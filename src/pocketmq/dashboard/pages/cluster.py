"""The first page: the brokers, and the cluster in a few numbers."""

from fastapi import Request
from nicegui import ui

from pocketmq.dashboard.charts import ChartCard
from pocketmq.dashboard.desk import Desk, Desks
from pocketmq.dashboard.formatting import NEVER, UNKNOWN, count, link_to, moment, percent, rate
from pocketmq.dashboard.frame import LivePage, frame, heading, prepare
from pocketmq.dashboard.parts import Tiles
from pocketmq.dashboard.recording import Points
from pocketmq.dashboard.table import Cell, Column, LiveTable
from pocketmq.dashboard.views import BrokerView, GroupsView, TopicsView, silenced

_FULL = 0.85


def add_pages(desks: Desks) -> None:
    """Add the page."""

    @ui.page("/")
    async def cluster(request: Request) -> None:
        desk = desks.of(request)
        views = desk.views
        views.groups().want()  # they take longer; their tiles are filled when they arrive
        await prepare(views.cluster(), views.topics())
        with frame(desk, request, "Cluster", here="/"):
            _show(desk)


def _show(desk: Desk) -> None:
    live, views = LivePage(), desk.views
    tiles = Tiles(
        ("brokers", "Brokers", "/"),
        ("in", "Messages in /s", None),
        ("out", "Messages out /s", None),
        ("topics", "Topics", "/topics"),
        ("groups", "Groups", "/groups"),
        ("members", "Consumers", "/clients"),
        ("lag", "Lag", "/groups"),
    )

    def rates(since: float) -> dict[str, Points]:
        return {name: views.rates.since(name, since) for name in ("in", "out")}

    chart = ChartCard("Messages per second", rates, " /s")
    heading("Brokers")
    table = LiveTable(
        "Brokers", _COLUMNS, key=lambda view: view.place.address, sorted_by=0,
        empty="No broker is registered with the name server.",
    )  # fmt: skip

    def show_brokers(last: tuple[BrokerView, ...]) -> None:
        brokers = silenced(last, views.cluster().problem)
        told = [view.status for view in brokers if view.status is not None]
        silent = len(brokers) - len(told)
        tiles.show(
            "brokers", count(len(brokers)), f"{silent} not responding" if silent else "", bad=silent
        )
        for name, points in rates(0.0).items():
            tiles.show(name, rate(points[-1][1] if points else None))
        chart.show()
        table.show(brokers)

    def show_topics(view: TopicsView) -> None:
        tiles.show("topics", count(len(view.names)))
        live.missing(views.topics(), view.missing)

    def show_groups(view: GroupsView) -> None:
        live.missing(views.groups(), view.missing)
        lags = [None if each.progress is None else each.progress.lag for each in view.groups]
        members = [None if each.members is None else len(each.members) for each in view.groups]
        unknown = bool(view.missing)
        tiles.show("groups", count(len(view.groups)) + ("+" if unknown else ""))
        tiles.show("lag", _total(lags, unknown=unknown))
        tiles.show("members", _total(members, unknown=unknown))

    live.show(views.cluster(), show_brokers)
    live.show(views.topics(), show_topics)
    live.show(views.groups(), show_groups)


def _total(parts: list[int | None], *, unknown: bool) -> str:
    """Sum; an unknown part makes it a lower bound, or unknown."""
    known = [part for part in parts if part is not None]
    if len(known) == len(parts) and not unknown:
        return count(sum(known))
    return f"≥ {count(sum(known))}" if known else UNKNOWN


def _name(view: BrokerView) -> Cell:
    return Cell(view.place.broker, href=link_to("brokers", view.place.address))


def _role(view: BrokerView) -> str:
    return "master" if view.place.is_master else f"slave {view.place.broker_id}"


def state_of(view: BrokerView) -> Cell:
    """Return the state of a broker."""
    if view.status is None:
        return Cell("no response", tone="bad", hint=view.problem)
    if view.problem is not None:
        return Cell("not listed", tone="bad", hint=view.problem)
    if view.status.active is False:
        return Cell("inactive", tone="warn")
    return Cell("up", tone="good")


def _disk(view: BrokerView) -> Cell:
    ratio = view.status.disk_ratio if view.status is not None else None
    known = ratio if ratio is not None and 0 <= ratio <= 1 else None
    tone = "bad" if known is not None and known > _FULL else None
    return Cell(percent(known), tone=tone, share=known)


def _oldest(view: BrokerView) -> Cell:
    if view.status is None:
        return Cell(UNKNOWN)
    earliest = view.status.earliest_message
    return Cell(NEVER if earliest is None else moment(int(earliest * 1000)))


_COLUMNS = [
    Column[BrokerView]("Broker", _name, lambda v: v.place.broker),
    Column[BrokerView]("State", state_of, lambda v: v.status is None or v.problem is not None),
    Column[BrokerView]("Cluster", lambda v: Cell(v.place.cluster), lambda v: v.place.cluster),
    Column[BrokerView]("Role", lambda v: Cell(_role(v)), lambda v: v.place.broker_id),
    Column[BrokerView]("Address", lambda v: Cell(v.place.address, tone="mono")),
    Column[BrokerView](
        "Version", lambda v: Cell(UNKNOWN if v.status is None else v.status.version or UNKNOWN)
    ),
    Column[BrokerView](
        "In /s",
        lambda v: Cell(rate(None if v.status is None else v.status.put_tps)),
        lambda v: None if v.status is None else v.status.put_tps,
        kind="number",
    ),
    Column[BrokerView](
        "Out /s",
        lambda v: Cell(rate(None if v.status is None else v.status.get_tps)),
        lambda v: None if v.status is None else v.status.get_tps,
        kind="number",
    ),
    Column[BrokerView](
        "In today",
        lambda v: Cell(count(None if v.status is None else v.status.put_today)),
        lambda v: None if v.status is None else v.status.put_today,
        kind="number",
    ),
    Column[BrokerView]("Disk", _disk, kind="number"),
    Column[BrokerView]("Oldest message", _oldest, kind="time"),
]
