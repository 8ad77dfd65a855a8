"""The pages as one ASGI application, and the server that runs it (uvicorn).

Browsers load nothing from other sites.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import uvicorn
from fastapi import FastAPI, Request
from nicegui import app as pages
from nicegui import ui
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response

from pocketmq.dashboard.assignment import page as assignment
from pocketmq.dashboard.desk import Desk, Desks
from pocketmq.dashboard.export_page import add_export
from pocketmq.dashboard.metrics import CONTENT_TYPE, ClusterFigures, metrics_text
from pocketmq.dashboard.pages import (
    access,
    broker,
    client,
    clients,
    cluster,
    dead_letters,
    group,
    groups,
    message,
    messages,
    missing,
    topic,
    topics,
)
from pocketmq.dashboard.polling import Poller
from pocketmq.dashboard.security.asgi import App, ScriptNonces
from pocketmq.dashboard.security.guard import METRICS_PATH
from pocketmq.errors import CannotStart

_PAGES = (
    cluster, topics, topic, groups, group, assignment, clients, messages, message, dead_letters,
    missing, broker, client, access,
)  # fmt: skip
T = TypeVar("T")

_PATIENCE = 8.0
"""Seconds to collect figures; Prometheus times out after 10."""
_LARGEST_FRAME = 1 << 20
_GRACE = 1
"""Seconds for open connections when the dashboard stops; browsers never close theirs."""
HERE = Path(__file__).parent
_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" '
    'rx="7" fill="#4253d6"/><g fill="#fff"><rect x="6" y="7" width="20" height="4" rx="2"/>'
    '<rect x="6" y="14" width="13" height="4" rx="2"/>'
    '<rect x="6" y="21" width="17" height="4" rx="2"/></g></svg>'
)


def build(desks: Desks) -> App:
    """Return the pages as an ASGI application."""
    logging.getLogger("nicegui").setLevel(logging.ERROR)  # it warns about every missing page
    outer = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    # WebSocket only: browsers send its origin, which long polling would not.
    pages.config.socket_io_js_transports = ["websocket"]
    pages.add_static_file(local_file=HERE / "style.css", url_path="/style.css")
    ui.add_head_html('<link rel="stylesheet" href="/style.css">', shared=True)
    for module in _PAGES:
        module.add_pages(desks)

    @outer.get(METRICS_PATH, response_class=Response)
    async def metrics(request: Request) -> Response:
        desk = desks.named_by(request)
        if desk is None:
            return Response("there is no such cluster here", 404, media_type="text/plain")
        text = await asyncio.to_thread(metrics_text, await _known(desk))
        return Response(text, media_type=CONTENT_TYPE)

    add_export(outer, desks)
    ui.run_with(
        outer,
        title="PocketMQ",
        favicon=_ICON,
        dark=None,
        language="en-US",
        binding_refresh_interval=None,
        reconnect_timeout=5.0,
        message_history_length=100,
        gzip_middleware_factory=None,
        tailwind=False,
        show_welcome_message=False,
    )
    return GZipMiddleware(ScriptNonces(outer), minimum_size=1024, compresslevel=6)


async def _known(desk: Desk) -> ClusterFigures:
    """Collect the figures; scrapes are rare, so stale answers are refreshed first."""
    views = desk.views
    pollers = (views.cluster(), views.groups(), views.producers(), views.figures())
    balances, handovers = views.balances(), views.handovers()
    polled: list[Poller[Any]] = [*pollers, balances, *([handovers] if handovers else [])]
    await asyncio.gather(*(poller.fresh(_PATIENCE) for poller in polled))
    return ClusterFigures(
        brokers=_current(views.cluster()),
        groups=_current(views.groups()),
        producers=_current(views.producers()),
        figures=_current(views.figures()),
        balances=_current(balances),
        handovers=None if handovers is None else _current(handovers),
    )


def _current(poller: Poller[T]) -> T | None:
    """Return a poller's answer, None if its last poll failed: stale figures are not exported."""
    return poller.value if poller.problem is None else None


class _Server(uvicorn.Server):
    """Leaves signals to the process that runs it, and reports when it has started."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then set `ready`."""
        await super().startup(sockets)
        self.ready.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Serving:
    """Serves an application on a socket until it is stopped. Belongs to one loop."""

    def __init__(self, app: App) -> None:
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            log_level="warning",
            ws="wsproto",
            ws_max_size=_LARGEST_FRAME,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=_GRACE,
        )
        self._server = _Server(config)
        self._task: asyncio.Task[None] | None = None

    async def start(self, listening: socket.socket) -> None:
        """Start serving. Raises `CannotStart` if the application does not start."""
        self._task = asyncio.create_task(self._server.serve(sockets=[listening]))
        ready = asyncio.create_task(self._server.ready.wait())
        await asyncio.wait({self._task, ready}, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if self._task.done() or not self._server.started:
            raise CannotStart("the dashboard", "its pages failed to start")

    async def stop(self) -> None:
        """Close connections and stop the application."""
        if self._task is not None:
            self._server.should_exit = True
            await asyncio.wait({self._task})
