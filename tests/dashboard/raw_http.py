"""HTTP by hand: requests as no browser would send them."""

import socket
from urllib.parse import urlsplit

SOCKET = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"


class Reply:
    """What came back: status, headers in small letters, body."""

    def __init__(self, data: bytes) -> None:
        head, _, self.body = data.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        self.status = int(first.split()[1])
        self.headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines)
        }

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")


def ask(
    url: str,
    path: str,
    *,
    method: str = "GET",
    headers: dict[str, str] | None = None,
    body: bytes = b"",
) -> Reply:
    """Send one request; a header of None is left out, `Host` is the right one unless given."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    sent = {"Host": parts.netloc, "Connection": "close"} | (headers or {})
    if body:
        sent["Content-Length"] = str(len(body))
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items())]
    with socket.create_connection((parts.hostname, parts.port), 60) as connection:
        connection.sendall("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)
        data = b""
        while part := connection.recv(65536):
            data += part
            if b" 101 " in data.split(b"\r\n")[0]:
                break
    return Reply(data)


def knock(url: str, **headers: str) -> int:
    """Try to open a WebSocket; give the status, 101 if it was opened."""
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    return ask(url, SOCKET, headers=upgrade | headers).status
