"""Checks every request: host and origin, login; and adds security headers to responses.

An ASGI application around another: a refused request never reaches the pages. A page of another
site can make a browser send requests here, but it cannot choose `Host`, `Origin` and
`Sec-Fetch-Site`: by these it is recognised.
"""

import ipaddress
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from pocketmq.dashboard.security.asgi import App, Message, Receive, Scope, Send, reply_with
from pocketmq.dashboard.security.login import COOKIE, Login, basic_password
from pocketmq.dashboard.settings import DashboardSettings, is_loopback

SOCKET_PATH = "/_nicegui_ws/"
METRICS_PATH = "/metrics"
_METHODS = {"GET", "HEAD"}
_NEVER_HEARD = (b"x-forwarded-", b"forwarded")
"""Headers of proxies; they are dropped, since anyone could send them."""


class Guard:
    """Checks requests and adds headers to responses."""

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
            await reply_with(scope, send, 404, "only WebSocket connections are served here")
            return
        elif scope["method"] not in _METHODS:
            await reply_with(scope, send, 405, "only GET and HEAD are allowed")
            return
        await self.app(scope, receive, send)


def _cookie(header: str) -> str:
    try:
        found = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _while_known(receive: Receive, known: Callable[[], bool]) -> Receive:
    """Pass on a browser's messages until it logs out or its session expires."""

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
    """Return headers that forbid other sites' content and scripts, and being framed.

    Vue compiles templates in the browser, hence 'unsafe-eval'. The referrer is sent to this site
    only; without it browsers would leave `Origin` out of forms.
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


_SAFE_METHODS = {"GET", "HEAD"}
_OWN_FETCHES = {"same-origin", "none"}


@dataclass(frozen=True)
class Refusal:
    """Why a request is refused."""

    status: int
    reason: str


class Doorstep:
    """Checks host, origin and method of a request. Pure, over headers."""

    def __init__(self, settings: DashboardSettings) -> None:
        own = {"localhost", "127.0.0.1", "::1", settings.host, *settings.names}
        self._names = {name.lower().rstrip(".") for name in own}
        self._any_address = not is_loopback(settings.host)

    def refuse(self, kind: str, method: str, headers: Mapping[str, str]) -> Refusal | None:
        """Return why a request is refused, None if it is accepted; `kind` is http or websocket."""
        host = headers.get("host", "")
        if not self._knows(host):
            return Refusal(421, "unknown host name; see --allow-host")
        origin = headers.get("origin")
        if origin is not None and not _same(origin, host):
            return Refusal(403, "cross-site requests are refused")
        if origin is None and (kind == "websocket" or method not in _SAFE_METHODS):
            return Refusal(403, "the Origin header is missing")
        foreign = headers.get("sec-fetch-site", "none") not in _OWN_FETCHES
        if foreign and headers.get("sec-fetch-mode") != "navigate":
            return Refusal(403, "cross-site requests are refused")
        return None

    def _knows(self, host: str) -> bool:
        """Return whether a host names this dashboard: an allowed name, or an address.

        An attacker can point a name to any address (DNS rebinding), but not an address.
        """
        try:
            parts = urlsplit(f"//{host}")
            name, _ = (parts.hostname or "").rstrip("."), parts.port
        except ValueError:
            return False
        if parts.netloc != host or parts.username is not None or not name:
            return False
        return name in self._names or (self._any_address and _is_address(name))


def _same(origin: str, host: str) -> bool:
    parts = urlsplit(origin)
    return parts.scheme in {"http", "https"} and parts.netloc.lower() == host.lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
