"""Short answers without the pages' library: refusals, redirects, the login page."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

_Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
TEXT = b"text/plain; charset=utf-8"
HTML = b"text/html; charset=utf-8"


async def reply_with(
    scope: MutableMapping[str, Any],
    send: _Send,
    status: int,
    text: str,
    *,
    kind: bytes = TEXT,
    headers: tuple[tuple[bytes, bytes], ...] = (),
) -> None:
    """Answer a request with a status and a text; a WebSocket is closed before it opens."""
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
