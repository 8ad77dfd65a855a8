"""One broker: its settings and figures. Secrets among them are never shown."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from fastapi import Request
from nicegui import ui

from pocketmq.dashboard.desk import Desk, Desks
from pocketmq.dashboard.frame import LivePage, frame, heading, prepare
from pocketmq.dashboard.pages.missing import show_if_found
from pocketmq.dashboard.parts import FormField, action_button, confirm, fill_in, perform, visitor
from pocketmq.dashboard.table import Cell, Column, LiveTable
from pocketmq.dashboard.views import BrokerDetail
from pocketmq.errors import InvalidInput
from pocketmq.model.secrets import HIDDEN

Pair = tuple[str, str]
_SECRET = re.compile("password|secret|token|credential|accesskey|authenticationuser")


def add_pages(desks: Desks) -> None:
    """Add the page."""

    @ui.page("/brokers/{address}")
    async def broker(request: Request, address: str) -> None:
        desk = desks.of(request)
        poller = desk.views.broker(address)
        await prepare(poller)
        title = f"Broker {poller.value.broker}" if poller.value is not None else f"Broker {address}"
        with frame(desk, request, title, here="/", path=(("Cluster", "/"),)):
            show_if_found(
                poller, lambda: _Broker(desk, request, address), back=("All brokers", "/")
            )


class _Broker:
    """The open page."""

    def __init__(self, desk: Desk, request: Request, address: str) -> None:
        self._desk = desk
        self._who = visitor(request)
        self._address = address
        self._settings: dict[str, str] = {}
        live = LivePage()
        with ui.element("div").classes("pm-buttons"):
            action_button(desk, "Change a setting", self._change)
        heading("Settings")
        self._table = _pairs("Settings")
        heading("Figures")
        self._figures = _pairs("Figures")
        live.show(desk.views.broker(address), self._show)

    def _show(self, view: BrokerDetail) -> None:
        self._settings = view.settings
        self._table.show([(name, shown(name, value)) for name, value in view.settings.items()])
        self._figures.show([(name, shown(name, value)) for name, value in view.figures.items()])

    async def _change(self) -> None:
        fields = {"name": FormField("Setting"), "value": FormField("New value")}

        def checked(given: dict[str, Any]) -> Pair:
            return known_setting(given["name"].strip(), self._settings), given["value"].strip()

        wanted = await fill_in("Change a setting", fields, checked)
        if wanted is None:
            return
        name, value = wanted
        before = self._settings.get(name, "")
        consequences = [
            f"The broker at {self._address} changes it while it runs.",
            f"{name} is {before!r} now, and becomes {value!r}.",
        ]
        if await confirm(f"Change {name}?", consequences, "Change"):
            act = self._desk.actions.changing
            work = act.change_setting(self._who, self._address, name, value)
            await perform(work, lambda _: f"{name} changed.")


def known_setting(name: str, settings: Iterable[str]) -> str:
    """Return the name of a setting that may be changed. Raises `InvalidInput`."""
    known = {each for each in settings if not is_secret(each)}
    if name not in known:
        near = get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise InvalidInput(f"there is no setting {name!r} to change{hint}")
    return name


def is_secret(name: str) -> bool:
    """Return whether the value of a setting is to be hidden, by its name."""
    return _SECRET.search(name.lower()) is not None


def shown(name: str, value: str) -> str:
    """Return the value of a setting as a page may show it."""
    return HIDDEN if value and is_secret(name) else value


def _pairs(label: str) -> LiveTable[Pair]:
    return LiveTable[Pair](
        label,
        [
            Column[Pair]("Name", lambda pair: Cell(pair[0], tone="mono"), lambda pair: pair[0]),
            Column[Pair]("Value", lambda pair: Cell(pair[1], tone="mono"), kind="wrap"),
        ],
        key=lambda pair: pair[0],
        search=" ".join,
        sorted_by=0,
    )
