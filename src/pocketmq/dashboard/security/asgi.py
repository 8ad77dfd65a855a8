"""ASGI without the web library: types, short replies, and nonces for the pages' scripts.

A nonce marks the scripts of a page, so that browsers run these and no others. Text of messages in a
page is escaped by the web library and contains no `<`: whatever starts a script is the page's own.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

TEXT = b"text/plain; charset=utf-8"
HTML = b"text/html; charset=utf-8"


async def reply_with(
    scope: Scope,
    send: Send,
    status: int,
    text: str,
    *,
    kind: bytes = TEXT,
    headers: tuple[tuple[bytes, bytes], ...] = (),
) -> None:
    """Reply with a status and a text; a WebSocket is closed before it opens."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": ""})
        return
    body = text.encode()
    own = (
        (b"content-type", kind),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
    )
    await send({"type": "http.response.start", "status": status, "headers": [*own, *headers]})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


class ScriptNonces:
    """An ASGI application around the pages; the guard has put the nonce into the scope."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; only pages are changed."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        held: list[Message] = []

        async def mark(message: Message) -> None:
            if message["type"] == "http.response.start" and _is_page(message):
                held.append(message)
            elif held and message["type"] == "http.response.body":
                held.append(message)
                if not message.get("more_body"):
                    await _send_marked(send, held, scope["pocketmq.nonce"])
            else:
                await send(message)

        await self.app(scope, receive, mark)


def _is_page(start: Message) -> bool:
    return any(
        name.lower() == b"content-type" and value.startswith(b"text/html")
        for name, value in start["headers"]
    )


async def _send_marked(send: Send, held: list[Message], nonce: str) -> None:
    start, *parts = held
    page = b"".join(part.get("body", b"") for part in parts)
    page = page.replace(b"<script", f'<script nonce="{nonce}"'.encode())
    headers = [pair for pair in start["headers"] if pair[0].lower() != b"content-length"]
    start["headers"] = [*headers, (b"content-length", str(len(page)).encode())]
    await send(start)
    await send({"type": "http.response.body", "body": page})
