"""Stands before every request: host and origin, login, headers that keep browsers from harm.

An ASGI application around another. What it does not let in never reaches the pages.
"""

import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any, TypeAlias

from pocketmq.dashboard.doorstep import Doorstep
from pocketmq.dashboard.login import Login
from pocketmq.dashboard.replies import reply_with
from pocketmq.dashboard.sessions import COOKIE, basic_password
from pocketmq.dashboard.settings import DashboardSettings

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

SOCKET_PATH = "/_nicegui_ws/"
METRICS_PATH = "/metrics"
_METHODS = {"GET", "HEAD"}
_NEVER_HEARD = (b"x-forwarded-", b"forwarded")
"""Headers for those who sit behind a proxy; nobody else may tell us where we are."""


class Guard:
    """Lets in whom it may, and adds headers to what goes out."""

    def __init__(self, app: App, settings: DashboardSettings) -> None:
        self.app = app
        self._doorstep = Doorstep(settings)
        self._login = Login(settings.password) if settings.password is not None else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request or connection."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in scope["headers"]
        }
        method = scope.get("method", "GET")
        refusal = self._doorstep.refuse(scope["type"], method, headers)
        if refusal is not None:
            await reply_with(scope, send, refusal.status, refusal.reason)
            return
        nonce = secrets.token_urlsafe(16)
        outgoing = send if scope["type"] == "websocket" else _with_headers(send, nonce)
        scope["headers"] = [
            (name, value)
            for name, value in scope["headers"]
            if not name.lower().startswith(_NEVER_HEARD)
        ]
        scope["pocketmq.nonce"] = nonce
        await self._let_in(scope, receive, outgoing, headers)

    async def _let_in(
        self, scope: Scope, receive: Receive, send: Send, headers: dict[str, str]
    ) -> None:
        login, path = self._login, scope["path"]
        cookie = _cookie(headers.get("cookie", ""))
        if login is not None:
            if await login.handles(scope, receive, send, cookie):
                return
            who = login.who(cookie)
            if who is None and path == METRICS_PATH:
                who = login.by_header(scope, basic_password(headers.get("authorization", "")))
            if who is None:
                await login.turn_away(scope, send)
                return
            scope["pocketmq.who"] = who
        if scope["type"] == "websocket":
            if login is not None:
                receive = _while_known(receive, lambda: login.who(cookie) is not None)
        elif path.startswith(SOCKET_PATH):
            await reply_with(scope, send, 404, "only a WebSocket is served here")
            return
        elif scope["method"] not in _METHODS:
            await reply_with(scope, send, 405, "pages are only read")
            return
        await self.app(scope, receive, send)


def _cookie(header: str) -> str:
    try:
        found = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _while_known(receive: Receive, known: Callable[[], bool]) -> Receive:
    """Give what a browser says until it logs out or its session ends."""

    async def receive_if_known() -> Message:
        message = await receive()
        if message["type"] == "websocket.receive" and not known():
            return {"type": "websocket.disconnect", "code": 1008}
        return message

    return receive_if_known


def _with_headers(send: Send, nonce: str) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = {name for name, _ in security_headers(nonce)}
            kept = [
                (name, value)
                for name, value in message.get("headers", ())
                if name.lower() not in own and not name.lower().startswith(b"access-control-")
            ]
            message["headers"] = [*kept, *security_headers(nonce)]
        await send(message)

    return send_with_headers


def security_headers(nonce: str) -> list[tuple[bytes, bytes]]:
    """Tell browsers to load nothing from elsewhere, run no foreign script, and show us in no frame.

    Vue compiles templates in the browser, hence 'unsafe-eval'. Others are told nothing of where a
    visitor comes from; we are, since browsers leave `Origin` out of forms otherwise.
    """
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src 'self' 'nonce-{nonce}' 'unsafe-eval'",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data:",
            "font-src 'self' data:",
            "connect-src 'self'",
            "manifest-src 'self'",
            "base-uri 'none'",
            "form-action 'self'",
            "frame-ancestors 'none'",
        )
    )
    return [
        (b"content-security-policy", policy.encode()),
        (b"x-frame-options", b"DENY"),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"same-origin"),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"cross-origin-resource-policy", b"same-origin"),
        (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    ]
