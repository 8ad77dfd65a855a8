"""Pushing replies to the clients that wait for them.

A reply is pushed to the connection on which its client registered as a producer, and the sender of
the reply learns whether that client took it. Belongs to the broker's loop.
"""

import asyncio
import logging
from collections.abc import Callable

from pocketmq.broker.core.peer import ClientPeer
from pocketmq.errors import MQError, ResponseCode
from pocketmq.net import Connection
from pocketmq.protocol import Command

logger = logging.getLogger("pocketmq.broker")

TIMEOUT = 10.0
"""Seconds a client has to take a reply."""


class ReplyDelivery:
    """The replies of a running broker that are in flight."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._pushes: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Nothing to do before the first reply."""

    async def stop(self) -> None:
        """Cancel replies that are in flight."""
        pushes = list(self._pushes)
        for push in pushes:
            push.cancel()
        await asyncio.gather(*pushes, return_exceptions=True)

    def push(self, client: ClientPeer, request: Command, pushed: Callable[[bool], None]) -> None:
        """Push a reply to a client, then call `pushed` with whether it took it."""
        task = self._loop.create_task(self._push(client, request, pushed))
        self._pushes.add(task)
        task.add_done_callback(self._pushes.discard)

    async def _push(
        self, client: ClientPeer, request: Command, pushed: Callable[[bool], None]
    ) -> None:
        assert isinstance(client, Connection)
        try:
            answer = await client.request(request, TIMEOUT)
        except MQError as error:
            logger.warning(
                "push of a reply failed: client=%s error=%s", client.remote_address, error
            )
            pushed(False)
        else:
            pushed(answer.code == ResponseCode.SUCCESS)
