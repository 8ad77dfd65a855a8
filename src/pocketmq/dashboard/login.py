"""The login page: a password, a cookie, and patience with those who guess."""

import html
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias
from urllib.parse import parse_qs, quote

from pocketmq.dashboard.replies import HTML, reply_with
from pocketmq.dashboard.sessions import COOKIE, LASTS, Attempts, Sessions, same_password

logger = logging.getLogger("pocketmq.dashboard.login")

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

LOGIN_PATH = "/login"
LOGOUT_PATH = "/logout"
_LONGEST_FORM = 4096
_METRICS = "metrics"


class Login:
    """Knows the password and who has shown it. Belongs to one loop."""

    def __init__(self, password: str) -> None:
        self._password = password
        self._sessions = Sessions(secrets.token_bytes(32))
        self._attempts = Attempts()

    def who(self, cookie: str) -> str | None:
        """Name the session of a cookie, None if there is none."""
        nonce = self._sessions.who(cookie, time.time()) if cookie else None
        return None if nonce is None else nonce[:8]

    def by_header(self, scope: Scope, password: str | None) -> str | None:
        """Let in a program that shows the password with its request, such as Prometheus."""
        if password is None or not self._try(_address(scope), password):
            return None
        return _METRICS

    async def handles(self, scope: Scope, receive: Receive, send: Send, cookie: str) -> bool:
        """Answer requests for the login page; gives whether this was one."""
        path, method = scope["path"], scope.get("method", "")
        if scope["type"] != "http" or path not in {LOGIN_PATH, LOGOUT_PATH}:
            return False
        if path == LOGOUT_PATH and method == "POST":
            self._sessions.end(cookie, time.time())
            await _go(scope, send, LOGIN_PATH, _set_cookie("", 0))
        elif path == LOGIN_PATH and method == "POST":
            await self._log_in(scope, receive, send)
        elif path == LOGIN_PATH and method in {"GET", "HEAD"}:
            await _show(scope, send, 200, _wanted(scope))
        else:
            await reply_with(scope, send, 405, "not this way")
        return True

    async def turn_away(self, scope: Scope, send: Send) -> None:
        """Answer one who has not logged in."""
        wants_page = scope["type"] == "http" and scope["method"] == "GET"
        if wants_page and _header(scope, b"sec-fetch-mode") in {"navigate", ""}:
            if scope["path"] == "/metrics":
                challenge = ((b"www-authenticate", b'Basic realm="pocketmq"'),)
                await reply_with(scope, send, 401, "log in first", headers=challenge)
                return
            query = scope.get("query_string", b"").decode("latin-1")
            target = quote(scope["path"]) + (f"?{query}" if query else "")
            await _go(scope, send, f"{LOGIN_PATH}?to={quote(target, safe='')}")
            return
        await reply_with(scope, send, 401, "log in first")

    async def _log_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        form = await _read_form(receive)
        if form is None:
            await reply_with(scope, send, 413, "that is no password")
            return
        address, now = _address(scope), time.time()
        target = _local(form.get("to", "/"))
        wait = self._attempts.wait(address, now)
        if wait > 0:
            problem = f"Too many wrong passwords. Try again in {int(wait) + 1} s."
            await _show(scope, send, 429, target, problem, retry=int(wait) + 1)
        elif self._try(address, form.get("password", "")):
            cookie = self._sessions.begin(now, secrets.token_hex(16))
            await _go(scope, send, target, _set_cookie(cookie, int(LASTS)))
        else:
            await _show(scope, send, 401, target, "That is not the password.")

    def _try(self, address: str, password: str) -> bool:
        now = time.time()
        if self._attempts.wait(address, now) > 0:
            return False
        if same_password(password, self._password):
            self._attempts.succeeded(address)
            return True
        self._attempts.failed(address, now)
        logger.warning("wrong password from %s", address)
        return False


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else "?"


def _header(scope: Scope, name: bytes) -> str:
    for key, value in scope["headers"]:
        if key.lower() == name:
            return str(value.decode("latin-1"))
    return ""


def _wanted(scope: Scope) -> str:
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    return _local(query.get("to", ["/"])[0])


def _local(target: str) -> str:
    """Give a path of ours to go to; anything that leads elsewhere becomes the first page."""
    plain = target.isascii() and target.isprintable() and "\\" not in target
    return target if plain and target.startswith("/") and not target.startswith("//") else "/"


async def _read_form(receive: Receive) -> dict[str, str] | None:
    """Read the fields of a form; None if it is too long."""
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if len(body) > _LONGEST_FORM:
            return None
        if not message.get("more_body"):
            break
    fields = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=8)
    return {name: values[0] for name, values in fields.items()}


def _set_cookie(value: str, seconds: int) -> tuple[bytes, bytes]:
    text = f"{COOKIE}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict"
    return b"set-cookie", text.encode()


async def _go(scope: Scope, send: Send, target: str, *headers: tuple[bytes, bytes]) -> None:
    where = (b"location", target.encode("latin-1", "replace"))
    await reply_with(scope, send, 303, "", headers=(where, *headers))


async def _show(
    scope: Scope, send: Send, status: int, target: str, problem: str = "", *, retry: int = 0
) -> None:
    told = f'<p role="alert">{html.escape(problem)}</p>' if problem else ""
    page = _PAGE.replace("{problem}", told).replace("{target}", html.escape(target, quote=True))
    headers = ((b"retry-after", str(retry).encode()),) if retry else ()
    await reply_with(scope, send, status, page, kind=HTML, headers=headers)


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>PocketMQ: log in</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<style>
body { font: 16px/1.5 system-ui, sans-serif; display: grid; place-items: center; min-height: 90vh }
form { display: grid; gap: .75rem; width: min(20rem, 90vw) }
h1 { font-size: 1.3rem; margin: 0 }
input, button { font: inherit; padding: .5rem .7rem; border-radius: .4rem; border: 1px solid #8888 }
button { background: #4253d6; color: #fff; border-color: #4253d6; cursor: pointer }
:focus-visible { outline: 3px solid #7c8cff; outline-offset: 2px }
p { margin: 0; color: #c2362e }
</style></head><body>
<form method="post" action="/login">
<h1>PocketMQ</h1>{problem}
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required
 autofocus>
<input type="hidden" name="to" value="{target}">
<button type="submit">Log in</button>
</form></body></html>
"""
