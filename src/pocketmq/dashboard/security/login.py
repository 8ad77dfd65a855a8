"""The login page: a password, a signed session cookie, and delays after wrong passwords."""

import base64
import hashlib
import hmac
import html
import logging
import secrets
import time
from collections import OrderedDict
from urllib.parse import parse_qs, quote

from pocketmq.dashboard.security.asgi import HTML, Receive, Scope, Send, reply_with

logger = logging.getLogger("pocketmq.dashboard.login")

LOGIN_PATH = "/login"
LOGOUT_PATH = "/logout"
_LONGEST_FORM = 4096
_METRICS = "metrics"


class Login:
    """Checks the password and keeps sessions. Belongs to one loop."""

    def __init__(self, password: str) -> None:
        self._password = password
        self._sessions = Sessions(secrets.token_bytes(32))
        self._attempts = LoginAttempts()

    def who(self, cookie: str) -> str | None:
        """Return the session of a cookie, None if there is none."""
        nonce = self._sessions.who(cookie, time.time()) if cookie else None
        return None if nonce is None else nonce[:8]

    def by_header(self, scope: Scope, password: str | None) -> str | None:
        """Accept a program that sends the password with its request, such as Prometheus."""
        if password is None or not self._try(_address(scope), password):
            return None
        return _METRICS

    async def handles(self, scope: Scope, receive: Receive, send: Send, cookie: str) -> bool:
        """Reply to requests for the login page; return whether this was one."""
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
            await reply_with(scope, send, 405, "method not allowed")
        return True

    async def turn_away(self, scope: Scope, send: Send) -> None:
        """Reply to a request without a login."""
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
            await reply_with(scope, send, 413, "the form is too large")
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
            await _show(scope, send, 401, target, "Wrong password.")

    def _try(self, address: str, password: str) -> bool:
        now = time.time()
        if self._attempts.wait(address, now) > 0:
            return False
        if same_password(password, self._password):
            self._attempts.succeeded(address)
            return True
        self._attempts.failed(address, now)
        logger.warning("login failed: wrong password, address=%s", address)
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
    """Return a path of this site to redirect to; anything else becomes the first page."""
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


COOKIE = "pocketmq_session"
LASTS = 12 * 3600.0
"""Seconds until a session expires."""
_MOST_ADDRESSES = 1024
_FREE_TRIES = 3
_LONGEST_WAIT = 60.0


class Sessions:
    """Issues and verifies session cookies: `expiry.nonce.signature`. Pure, over `now`."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._ended: dict[str, float] = {}

    def begin(self, now: float, nonce: str) -> str:
        """Return a cookie for a new session; `nonce` is random hex."""
        text = f"{int(now + LASTS)}.{nonce}"
        return f"{text}.{self._signature(text)}"

    def end(self, cookie: str, now: float) -> None:
        """Revoke a cookie: its owner has logged out."""
        nonce = self.who(cookie, now)
        if nonce is not None:
            self._ended = {known: at for known, at in self._ended.items() if at > now}
            self._ended[nonce] = now + LASTS

    def who(self, cookie: str, now: float) -> str | None:
        """Return the nonce of a valid cookie, else None."""
        text, _, signature = cookie.rpartition(".")
        expected = self._signature(text)
        if not hmac.compare_digest(signature.encode(errors="replace"), expected.encode()):
            return None
        expiry, _, nonce = text.partition(".")
        return nonce if now < int(expiry) and nonce not in self._ended else None

    def _signature(self, text: str) -> str:
        return hmac.new(self._key, text.encode(errors="replace"), hashlib.sha256).hexdigest()


class LoginAttempts:
    """Slows down guessing: after three wrong passwords each further one doubles the wait."""

    def __init__(self) -> None:
        self._failed: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def wait(self, address: str, now: float) -> float:
        """Return the seconds until this address may try again, 0 if it may now."""
        count, last = self._failed.get(address, (0, 0.0))
        if count < _FREE_TRIES:
            return 0.0
        pause = min(_LONGEST_WAIT, 2.0 ** (count - _FREE_TRIES))
        return max(0.0, last + pause - now)

    def failed(self, address: str, now: float) -> None:
        """Record a wrong password."""
        count, _ = self._failed.pop(address, (0, 0.0))
        self._failed[address] = (count + 1, now)
        while len(self._failed) > _MOST_ADDRESSES:
            self._failed.popitem(last=False)

    def succeeded(self, address: str) -> None:
        """Forget the wrong passwords of an address that sent the right one."""
        self._failed.pop(address, None)


def same_password(given: str, wanted: str) -> bool:
    """Compare in constant time."""
    digests = [hashlib.sha256(text.encode(errors="replace")).digest() for text in (given, wanted)]
    return hmac.compare_digest(*digests)


def basic_password(header: str) -> str | None:
    """Return the password of an `Authorization: Basic` header, None if it is not one."""
    kind, _, text = header.partition(" ")
    if kind.lower() != "basic":
        return None
    try:
        decoded = base64.b64decode(text.strip(), validate=True).decode()
    except ValueError:
        return None
    return decoded.partition(":")[2]
