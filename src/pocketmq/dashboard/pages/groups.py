"""All consumer groups: members, and how far each is behind."""

from fastapi import Request
from nicegui import ui

from pocketmq.admin.overview import Glance
from pocketmq.dashboard.desk import Desks
from pocketmq.dashboard.formatting import NEVER, UNKNOWN, count, link_to, rate
from pocketmq.dashboard.frame import LivePage, frame, prepare
from pocketmq.dashboard.pages.change_dialogs import create_group
from pocketmq.dashboard.parts import action_button, visitor
from pocketmq.dashboard.table import Cell, Column, LiveTable
from pocketmq.dashboard.views import GroupsView
from pocketmq.protocol.peers import version_name


def add_pages(desks: Desks) -> None:
    """Add the page."""

    @ui.page("/groups")
    async def groups(request: Request) -> None:
        desk = desks.of(request)
        poller = desk.views.groups()
        await prepare(poller)
        who = visitor(request)
        with frame(desk, request, "Groups", here="/groups"):
            live = LivePage()
            with ui.element("div").classes("pm-buttons"):
                action_button(desk, "Create group", lambda: create_group(desk, who, known()))
            table = LiveTable(
                "Groups", _COLUMNS, key=lambda each: each.group, search=_text, sorted_by=2,
                descending=True, empty="No matching group.",
            )  # fmt: skip

            def known() -> set[str]:
                return {each.group for each in poller.value.groups} if poller.value else set()

            def show(view: GroupsView) -> None:
                live.missing(poller, view.missing)
                table.show(view.groups)

            live.show(poller, show)


def version(number: int | None) -> str:
    """Format a client's version: 5.3.3."""
    if number is None:
        return NEVER
    return version_name(number).removeprefix("V").replace("_", ".")


def _text(glance: Glance) -> str:
    return glance.group if _members(glance) else f"{glance.group} offline"


def _members(glance: Glance) -> int | None:
    return None if glance.members is None else len(glance.members)


def _shown_members(glance: Glance) -> Cell:
    members = _members(glance)
    if members is None:
        return Cell(UNKNOWN, hint="\n".join(glance.errors))
    return Cell(count(members), tone=None if members else "faint")


def _lag(glance: Glance) -> int | None:
    return None if glance.progress is None else max(0, glance.progress.lag)


def _shown_lag(glance: Glance) -> Cell:
    lag = _lag(glance)
    if lag is None:
        return Cell(UNKNOWN, hint="\n".join(glance.errors) or None)
    return Cell(count(lag), tone="bad" if lag and not _members(glance) else None)


def _tps(glance: Glance) -> float | None:
    return None if glance.progress is None else glance.progress.consume_tps


def _how(glance: Glance) -> str:
    if glance.members == ():
        return "offline"
    words = [] if glance.type is None else [glance.type.value.removeprefix("CONSUME_").lower()]
    words += [] if glance.model is None else [glance.model.value.lower()]
    return ", ".join(words) or UNKNOWN


_COLUMNS = [
    Column[Glance](
        "Group", lambda g: Cell(g.group, href=link_to("groups", g.group)), lambda g: g.group
    ),
    Column[Glance]("Members", _shown_members, _members, kind="number"),
    Column[Glance]("Lag", _shown_lag, _lag, kind="number"),
    Column[Glance]("Out /s", lambda g: Cell(rate(_tps(g))), _tps, kind="number"),
    Column[Glance]("Mode", lambda g: Cell(_how(g), tone="faint"), _how),
    Column[Glance](
        "Oldest client version",
        lambda g: Cell(version(g.oldest_version)),
        lambda g: g.oldest_version,
    ),
    Column[Glance]("", lambda g: Cell("Assignment", href=link_to("groups", g.group, "assignment"))),
]
