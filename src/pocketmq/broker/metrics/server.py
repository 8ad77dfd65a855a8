"""An HTTP server for Prometheus: GET /metrics, and nothing else.

The server of `prometheus-client` is not used. It runs in threads of its own, and our tables belong
to the broker's loop; it starts a thread for every connection, without a limit or a timeout, so a
slow peer holds it for ever. Here one request is served per connection, slow, large or other
requests are closed, and a scrape lets the loop run between pieces, so that clients do not wait.
Families are collected on the loop; their text, which needs no table, is written in a thread.
"""

import asyncio
import ipaddress
import logging

from pocketmq.broker.metrics.exposition import CONTENT_TYPE, expose
from pocketmq.broker.metrics.families import collected
from pocketmq.broker.state import BrokerState
from pocketmq.errors import ListenFailed
from pocketmq.net import Address

logger = logging.getLogger("pocketmq.broker")

_PATIENCE = 10.0
"""Seconds a client has to send its request and to read the answer."""
_LARGEST_REQUEST = 16 * 1024
_MOST_CLIENTS = 16


class MetricsServer:
    """Serves a running broker's metrics. Belongs to the broker's loop."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.Task[None]] = set()

    async def start(self, host: str, port: int) -> Address:
        """Listen, and return the address. Raises `ListenFailed`."""
        try:
            self._server = await asyncio.start_server(
                self._serve, host, port, limit=_LARGEST_REQUEST
            )
        except OSError as error:
            raise ListenFailed(f"{host}:{port}", error.strerror or str(error)) from error
        name = self._server.sockets[0].getsockname()
        address = Address(name[0], name[1])
        logger.info("metrics served: url=http://%s/metrics", address)
        if not ipaddress.ip_address(address.host).is_loopback:
            logger.warning(
                "metrics are readable without a password by anyone who can reach %s", address
            )
        return address

    async def stop(self) -> None:
        """Stop listening, and cancel scrapes in progress."""
        if self._server is not None:
            self._server.close()
        clients = list(self._clients)
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)
        try:
            async with asyncio.timeout(_PATIENCE):
                head = await reader.readuntil(b"\r\n\r\n")
                answer = b""
                if len(self._clients) <= _MOST_CLIENTS:
                    answer = await self._answer(head)
                writer.write(answer)
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            writer.transport.abort()
        except Exception:
            logger.exception("metrics scrape failed")
        finally:
            self._clients.discard(task)
            writer.close()

    async def _answer(self, head: bytes) -> bytes:
        method, _, rest = head.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if method not in (b"GET", b"HEAD"):
            return _response("405 Method Not Allowed", b"only GET is served here\n")
        if path != b"/metrics":
            return _response("404 Not Found", b"metrics are at /metrics\n")
        body = await self._metrics()
        return _response("200 OK", body, with_body=method == b"GET")

    async def _metrics(self) -> bytes:
        return await asyncio.to_thread(expose, await collected(self._state))


def _response(status: str, body: bytes, *, with_body: bool = True) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\nX-Content-Type-Options: nosniff\r\n\r\n"
    ).encode()
    return head + body if with_body else head
