"""Requests that wait for a reply, which a broker pushes to this client.

A reply is matched with its request by the correlation id that both carry. One that comes too late,
twice, or without a request is dropped. Sending is up to the caller.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from pocketmq.balance.producer.packing import request_properties
from pocketmq.client.checks import check_seconds
from pocketmq.client.session import Session
from pocketmq.errors import ClientClosed, MQError, RequestTimedOut, RouteNotFound
from pocketmq.model import SendReceipt
from pocketmq.model.names import AUTO_CREATE_TOPIC
from pocketmq.protocol import ReceivedMessage
from pocketmq.protocol.pushed_reply import correlation_of, pushed_reply
from pocketmq.protocol.requests.client_calls import PushReplyRequest

SendRequest: TypeAlias = Callable[[dict[str, str], float], Awaitable[SendReceipt]]
"""Sends the request with these extra properties, within this number of seconds."""


class AwaitedReplies:
    """The requests of one producer that wait for replies. Belongs to one event loop."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._waiting: dict[str, asyncio.Future[ReceivedMessage]] = {}
        self._sending: set[asyncio.Future[SendReceipt]] = set()

    def __len__(self) -> int:
        return len(self._waiting)

    async def request(
        self,
        topic: str,
        timeout: float,  # noqa: ASYNC109 - for all of it, and part of the request
        send: SendRequest,
    ) -> ReceivedMessage:
        """Send a request to a topic, by its name on the wire, and return the reply.

        Raises `RequestTimedOut` if none comes in time (the request may have been handled), what
        `send` does, and `ClientClosed`.
        """
        check_seconds("timeout", timeout, at_least=0.001)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        await self._be_known(topic, timeout)
        session = self._session
        number = str(uuid.UUID(int=session.random.getrandbits(128), version=4))
        extra = request_properties(number, session.client_id, round(timeout * 1000))
        reply: asyncio.Future[ReceivedMessage] = loop.create_future()
        self._waiting[number] = reply
        sending = asyncio.ensure_future(send(extra, max(0.001, deadline - loop.time())))
        try:
            return await self._first_of(reply, sending, deadline, topic, timeout)
        except BaseException:
            sending.cancel()
            raise
        finally:
            del self._waiting[number]
            # A send that is still in flight is kept, so that `close` can cancel it: its task would
            # outlive the client otherwise.
            if not sending.done():  # the reply came before the broker's response
                self._sending.add(sending)
            sending.add_done_callback(self._sent)

    def take(self, header: PushReplyRequest, body: bytes) -> bool:
        """Take a reply; False if no request waits for it. Raises `MessageMalformed`."""
        reply = self._waiting.get(correlation_of(header))
        if reply is None or reply.done():
            return False
        reply.set_result(pushed_reply(header, body, self._session.clock.now_ms()))
        return True

    def close(self) -> None:
        """Wait for no more replies: waiting requests raise `ClientClosed`."""
        for reply in self._waiting.values():
            if not reply.done():
                reply.set_exception(ClientClosed(self._session.client_id))
        for sending in self._sending:
            sending.cancel()

    async def _first_of(
        self,
        reply: asyncio.Future[ReceivedMessage],
        sending: asyncio.Future[SendReceipt],
        deadline: float,
        topic: str,
        timeout: float,  # noqa: ASYNC109 - for the error's text
    ) -> ReceivedMessage:
        loop = asyncio.get_running_loop()
        broker = topic
        both: tuple[asyncio.Future[Any], ...] = (reply, sending)
        left = deadline - loop.time()
        await asyncio.wait(both, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        if sending.done() and not reply.done():
            broker = sending.result().queue.broker_name
            await asyncio.wait({reply}, timeout=max(0.0, deadline - loop.time()))
        if reply.done():
            return reply.result()
        raise RequestTimedOut(broker, f"the request to topic {topic!r}", timeout)

    async def _be_known(self, topic: str, timeout: float) -> None:  # noqa: ASYNC109 - in all
        """Send heartbeats to brokers new to us, as Java does: any of them may push the reply."""
        session = self._session
        if session.routes.cached(topic) is not None:
            return
        try:
            async with asyncio.timeout(timeout):
                try:
                    await session.routes.get(topic)
                except RouteNotFound:  # the topic will be created where the template is
                    await session.routes.get(AUTO_CREATE_TOPIC)
                await session.heartbeats.beat()
        except (MQError, TimeoutError):
            return  # the send will meet the same problem, and raise it

    def _sent(self, sending: asyncio.Future[SendReceipt]) -> None:
        self._sending.discard(sending)
        if not sending.cancelled():
            sending.exception()  # retrieved, so that it is not logged: the reply is there
