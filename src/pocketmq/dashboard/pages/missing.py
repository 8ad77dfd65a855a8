"""Pages that are not there: an unknown address, an unknown topic or group."""

from collections.abc import Callable
from typing import Any

from fastapi import Request
from nicegui import Client, ui
from nicegui import app as pages
from nicegui.page import page
from starlette.responses import PlainTextResponse, Response

from pocketmq.dashboard.desk import Desks
from pocketmq.dashboard.frame import TICK, frame
from pocketmq.dashboard.parts import note
from pocketmq.dashboard.polling import Poller

_LIBRARY = "/_nicegui"
_LONGEST = 200


def add_pages(desks: Desks) -> None:
    """Add the page for all addresses without one."""

    @pages.exception_handler(404)
    async def missing(request: Request, _: Exception) -> Response:
        desk = desks.of(request)
        path = request.url.path
        if path.startswith(_LIBRARY):
            return PlainTextResponse("not found", 404)
        with (
            Client(page(""), request=request) as client,
            frame(desk, request, "Page not found", here=""),
        ):
            note(f"There is no page {path[:_LONGEST]}.")
            ui.link("Go to the cluster", "/").classes("pm-button")
        return client.build_response(request, 404)


def show_if_found(
    poller: Poller[Any], show: Callable[[], object], *, back: tuple[str, str]
) -> None:
    """Show something by its first poll; if that failed, the reason, and a link `back`.

    If the first poll takes longer than a page waits for it, the page is loaded again if it fails.
    """
    if poller.value is None and poller.problem is not None:
        _show_missing(poller, *back)
        return
    show()
    if poller.version == 0:
        _judge_first(poller)


def _judge_first(poller: Poller[Any]) -> None:
    def look() -> None:
        if poller.version > 0:
            timer.cancel()
            if poller.value is None:
                ui.navigate.reload()

    timer = ui.timer(TICK, look)


def _show_missing(poller: Poller[Any], back: str, target: str) -> None:
    """Show why there is nothing to show; the page is loaded again once there is."""
    with ui.element("div").classes("pm-warning").props("role=alert"):
        ui.label(f"Nothing to show: {poller.problem}.").classes("pm-warning-text")
    ui.link(back, target).classes("pm-button")

    def look() -> None:
        poller.want()
        if poller.value is not None:
            ui.navigate.reload()

    ui.timer(TICK, look)
