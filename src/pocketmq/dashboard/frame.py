"""The frame around every page, and what keeps an open page current.

`frame` has navigation, light and dark mode, a skip link for the keyboard. `LivePage` updates parts
of a page whenever a poller has a new answer. Pages are written with the library's elements and the
classes of `style.css`; there is no Tailwind.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from fastapi import Request
from nicegui import ui

from pocketmq import __version__, native
from pocketmq.dashboard.desk import Desk
from pocketmq.dashboard.polling import Poller
from pocketmq.errors import MQError

PAGES = (
    ("/", "Cluster"),
    ("/topics", "Topics"),
    ("/groups", "Groups"),
    ("/clients", "Clients"),
    ("/messages", "Messages"),
    ("/dead-letters", "Dead letters"),
    ("/access", "Access"),
)
THEME_COOKIE = "pocketmq_theme"
_THEMES = {"dark": True, "light": False}
_SWITCH = """() => {
  const dark = !Quasar.Dark.isActive;
  setDark(dark);
  document.cookie = `pocketmq_theme=${dark ? "dark" : "light"}; path=/; max-age=31536000; samesite=strict`;
}"""  # noqa: E501
_CHOOSE = """(event) => {
  const name = encodeURIComponent(event.target.value);
  document.cookie = `pocketmq_cluster=${name}; path=/; max-age=31536000; samesite=strict`;
  location.href = "/";
}"""
_LOGOUT = """() => {
  const form = document.createElement("form");
  form.method = "post";
  form.action = "/logout";
  document.body.append(form);
  form.submit();
}"""


@contextmanager
def frame(
    desk: Desk, request: Request, title: str, *, here: str, path: tuple[tuple[str, str], ...] = ()
) -> Iterator[None]:
    """Put what is made inside into the frame of a page.

    `here` is the active entry of the navigation, `path` the links above the title.
    """
    ui.page_title(f"{title} · PocketMQ")
    theme = request.cookies.get(THEME_COOKIE, "")
    if theme in _THEMES:
        ui.dark_mode(_THEMES[theme])
    ui.context.client.content.classes("pm-content")
    # The library's page is the <main> element; the header stands before it.
    with ui.context.client.layout, ui.element("header").classes("pm-header") as header:
        with ui.link(target="/").classes("pm-brand").props('aria-label="PocketMQ"'):
            ui.element("span").classes("pm-logo").props("aria-hidden=true")
            ui.label("PocketMQ")
        _cluster_label(desk)
        if len(desk.names) > 1:
            _cluster_choice(desk)
        with ui.element("nav").classes("pm-nav").props("aria-label=Pages"):
            for target, name in PAGES:
                link = ui.link(name, target).classes("pm-nav-link")
                if target == here:
                    link.props("aria-current=page")
        _switches(desk)
    header.move(target_index=0)
    with ui.element("div").classes("pm-main").props("tabindex=-1") as main:
        if path:
            with ui.element("nav").classes("pm-path").props('aria-label="Breadcrumbs"'):
                for name, target in path:
                    ui.link(name, target)
                    ui.label("/").props("aria-hidden=true")
        heading(title, 1)
        yield
    with ui.context.client.layout, ui.element("footer").classes("pm-footer"):
        ui.label(f"PocketMQ {__version__}, {native.description}")
    ui.skip_link("Skip to content", target=main)


def _cluster_label(desk: Desk) -> None:
    """Show the cluster; a name that is unknown when the page is sent follows."""
    label = ui.label(cluster_name(desk)).classes("pm-cluster")
    label.props('aria-label="Cluster shown"')
    poller = desk.views.cluster()
    if poller.value is not None:
        return

    def look() -> None:
        poller.want()
        if poller.value is not None:
            timer.cancel()
            label.set_text(cluster_name(desk))

    timer = ui.timer(TICK, look)


def cluster_name(desk: Desk) -> str:
    """Return which cluster is shown: its name, or names, and where its name servers are."""
    brokers = desk.views.cluster().value or ()
    names = sorted({view.place.cluster for view in brokers if view.place.cluster})
    try:
        addresses = ", ".join(desk.admin.name_servers.addresses)
    except MQError:  # it could not be reached yet
        addresses = ""
    return " · ".join(filter(None, (desk.name, ", ".join(names), addresses)))


def _cluster_choice(desk: Desk) -> None:
    with ui.element("select").classes("pm-input") as made:
        for name in desk.names:
            with ui.element("option") as option:
                ui.label(name or "first cluster").classes("pm-inline")
            option.props["value"] = name
            if name == desk.name:
                option.props["selected"] = True
    made.props["aria-label"] = "Choose a cluster"
    made.on("change", js_handler=_CHOOSE)


def heading(text: str, level: int = 2) -> ui.element:
    """Make a heading; its text is never treated as HTML."""
    with ui.element(f"h{level}").classes(f"pm-h{level}") as made:
        ui.label(text).classes("pm-inline")
    return made


def _switches(desk: Desk) -> None:
    with ui.element("div").classes("pm-switches"):
        button = ui.element("button").classes("pm-icon-button").props("type=button")
        button.props('aria-label="Switch between light and dark" title="Light or dark"')
        button.on("click", js_handler=_SWITCH)
        with button:
            ui.label("◐").props("aria-hidden=true")
        if desk.settings.password is not None:
            leave = ui.element("button").classes("pm-icon-button pm-leave").props("type=button")
            leave.on("click", js_handler=_LOGOUT)
            with leave:
                ui.label("Log out").classes("pm-inline")


T = TypeVar("T")

TICK = 1.0
"""Seconds between two updates of a page; pollers query the cluster at their own pace."""
PATIENCE = 0.8
"""Seconds a page waits for first answers before it is sent without them."""


async def prepare(*pollers: Poller[Any]) -> None:
    """Wait a little for first answers, of all pollers at once."""
    await asyncio.gather(*(poller.fresh(PATIENCE) for poller in pollers))


class LivePage:
    """The live parts of one open page, and a line that names servers that did not respond.

    Make it inside the frame of a page; parts are shown at once and then with every change.
    """

    def __init__(self) -> None:
        self._parts: list[tuple[Poller[Any], Callable[[Any], None]]] = []
        self._seen: dict[int, int] = {}
        self._missing: dict[int, tuple[str, ...]] = {}
        with ui.element("div").classes("pm-warning").props("role=status") as self._box:
            self._warning = ui.label("").classes("pm-warning-text")
        self._box.set_visibility(False)
        ui.timer(TICK, self.tick, immediate=False)

    def show(self, poller: Poller[T], update: Callable[[T], None]) -> None:
        """Call `update` with a poller's answer, now and after every poll."""
        self._parts.append((poller, update))
        self.tick()

    def missing(self, poller: Poller[Any], named: Iterable[str]) -> None:
        """Set which servers are missing from a poller's answer."""
        self._missing[id(poller)] = tuple(named)

    def tick(self) -> None:
        """Update what has changed."""
        for number, (poller, update) in enumerate(self._parts):
            poller.want()
            if self._seen.get(number) == poller.version:
                continue
            self._seen[number] = poller.version
            if poller.value is not None:
                update(poller.value)
        text = self._unknown()
        if text != self._warning.text:
            self._warning.set_text(text)
            self._box.set_visibility(bool(text))

    def _unknown(self) -> str:
        lines = []
        pollers = list({id(part[0]): part[0] for part in self._parts}.values())
        # One trouble stops many queries; it is named once, with the oldest data shown.
        for problem in dict.fromkeys(each.problem for each in pollers if each.problem is not None):
            oldest = min(each.at for each in pollers if each.problem == problem)
            since = time.strftime("%H:%M:%S %z", time.localtime(oldest))
            shown = f" Showing data from {since}." if oldest else ""
            stop = "" if problem.endswith(("?", ".")) else "."
            lines.append(f"No response: {problem}{stop}{shown}")
        for poller in pollers:
            lines += [f"No response from {name}." for name in self._missing.get(id(poller), ())]
        return "\n".join(dict.fromkeys(lines))
