"""All clients: members of groups, and producers."""

from collections.abc import Callable
from typing import TypeVar

from fastapi import Request
from nicegui import ui

from pocketmq.dashboard.desk import Desk, Desks
from pocketmq.dashboard.formatting import UNKNOWN, count, link_to, moment
from pocketmq.dashboard.frame import LivePage, frame, heading, prepare
from pocketmq.dashboard.pages.client import link_to_member
from pocketmq.dashboard.pages.groups import version
from pocketmq.dashboard.parts import Tiles
from pocketmq.dashboard.table import Cell, Column, LiveTable
from pocketmq.dashboard.views import GroupsView, ProducersView
from pocketmq.protocol.peers import Language
from pocketmq.protocol.requests.groups import ClientConnection, ProducerInfo

Consumer = tuple[str, ClientConnection]
Producer = tuple[str, ProducerInfo, tuple[str, ...]]
Row = TypeVar("Row")


def add_pages(desks: Desks) -> None:
    """Add the page."""

    @ui.page("/clients")
    async def clients(request: Request) -> None:
        desk = desks.of(request)
        await prepare(desk.views.groups(), desk.views.producers())
        with frame(desk, request, "Clients", here="/clients"):
            _show(desk)


def _show(desk: Desk) -> None:
    live, groups, producers = LivePage(), desk.views.groups(), desk.views.producers()
    tiles = Tiles(
        ("consumers", "Consumers", None),
        ("producers", "Producers", None),
        ("versions", "Versions", None),
        ("languages", "Languages", None),
    )
    heading("Consumers")
    consumed = LiveTable[Consumer](
        "Consumers", _CONSUMER_COLUMNS, key=lambda row: f"{row[0]} {row[1].client_id}",
        search=_consumer_text, sorted_by=0, empty="No consumer is connected.",
    )  # fmt: skip
    heading("Producers")
    produced = LiveTable[Producer](
        "Producers", _PRODUCER_COLUMNS, key=lambda row: f"{row[0]} {row[1].client_id}",
        search=_producer_text, sorted_by=0, empty="No producer is connected.",
    )  # fmt: skip
    kinds: dict[str, set[tuple[Language | None, int]]] = {"consumers": set(), "producers": set()}

    def show_kinds() -> None:
        found = kinds["consumers"] | kinds["producers"]
        tiles.show("versions", ", ".join(sorted({version(number) for _, number in found})) or "–")
        tiles.show("languages", ", ".join(sorted({_language(each) for each, _ in found})) or "–")

    def show_consumers(view: GroupsView) -> None:
        live.missing(groups, view.missing)
        rows = [(each.group, member) for each in view.groups for member in each.members or ()]
        unknown = view.missing or any(each.members is None for each in view.groups)
        tiles.show("consumers", f"≥ {count(len(rows))}" if unknown else count(len(rows)))
        kinds["consumers"] = {(member.language, member.version) for _, member in rows}
        show_kinds()
        consumed.show(rows)

    def show_producers(view: ProducersView) -> None:
        live.missing(producers, view.missing)
        total = count(len(view.producers))
        tiles.show("producers", f"≥ {total}" if view.missing else total)
        kinds["producers"] = {(info.language, info.version) for _, info, _ in view.producers}
        show_kinds()
        produced.show(view.producers)

    live.show(groups, show_consumers)
    live.show(producers, show_producers)


def _language(language: Language | None) -> str:
    return UNKNOWN if language is None else language.name.lower()


def _member(row: Consumer) -> ClientConnection:
    return row[1]


def _info(row: Producer) -> ProducerInfo:
    return row[1]


def _consumer_text(row: Consumer) -> str:
    return f"{row[0]} {row[1].client_id} {row[1].client_addr} {_language(row[1].language)}"


def _producer_text(row: Producer) -> str:
    return f"{row[0]} {row[1].client_id} {row[1].remote_ip} {_language(row[1].language)}"


def _client_columns(
    client: Callable[[Row], ClientConnection | ProducerInfo], address: Callable[[Row], str | None]
) -> list[Column[Row]]:
    """Return the columns that members and producers share."""
    return [
        Column[Row](
            "Client",
            lambda row: Cell(client(row).client_id or UNKNOWN, tone="mono"),
            lambda row: client(row).client_id,
        ),
        Column[Row]("Address", lambda row: Cell(address(row) or UNKNOWN, tone="mono"), address),
        Column[Row](
            "Language",
            lambda row: Cell(_language(client(row).language)),
            lambda row: _language(client(row).language),
        ),
        Column[Row](
            "Version",
            lambda row: Cell(version(client(row).version)),
            lambda row: client(row).version,
        ),
    ]


_CONSUMER_COLUMNS = [
    Column[Consumer](
        "Group", lambda row: Cell(row[0], href=link_to("groups", row[0])), lambda row: row[0]
    ),
    *_client_columns(_member, lambda row: row[1].client_addr),
    Column[Consumer](
        "", lambda row: Cell("Details", href=link_to_member(row[0], row[1].client_id or ""))
    ),
]
_PRODUCER_COLUMNS = [
    Column[Producer]("Group", lambda row: Cell(row[0]), lambda row: row[0]),
    *_client_columns(_info, lambda row: row[1].remote_ip),
    Column[Producer](
        "Last heartbeat",
        lambda row: Cell(moment(row[1].last_update_timestamp)),
        lambda row: row[1].last_update_timestamp,
        kind="time",
    ),
    Column[Producer]("Brokers", lambda row: Cell(", ".join(row[2]))),
]
