"""Requests to the brokers that hold other ranges of this broker's logical queues.

What is forwarded says that its queue is a physical one (`lo` is false), so that no broker forwards
it again. Addresses come from the route of the topic. Belongs to the broker's loop.
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from pocketmq.broker.core.refusals import FAILED
from pocketmq.broker.name_servers.routes import Fetch, RequestSender, no_route
from pocketmq.errors import BrokerNotFound, MQError, ResponseCode, TransportError
from pocketmq.model import TopicRoute
from pocketmq.net import Connection
from pocketmq.protocol import Command, RequestCode
from pocketmq.protocol.header import Header

logger = logging.getLogger("pocketmq.broker")

TIMEOUT = 3.0
"""Seconds for a request to another broker, as in Java."""
MOST = 1000
"""Requests in flight; a client that asks for more is refused."""


class Neighbours:
    """Other brokers, as one broker sees them."""

    def __init__(self, calls: RequestSender | None = None, fetch: Fetch = no_route) -> None:
        self._calls = calls
        self._fetch = fetch
        self._addresses: dict[str, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Do nothing: there is no work without a request."""

    async def stop(self) -> None:
        """Leave what is in flight unanswered."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def answer_later(
        self, connection: Connection, request: Command, work: Coroutine[Any, Any, Command]
    ) -> Command | None:
        """Answer a request with what `work` returns, when it does; return the answer if at once."""
        if len(self._tasks) >= MOST:
            work.close()
            return request.reply(ResponseCode.SYSTEM_BUSY, "too many requests to other brokers")
        task = asyncio.create_task(self._answer(connection, request, work), name="static topic")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return None

    async def _answer(
        self, connection: Connection, request: Command, work: Coroutine[Any, Any, Command]
    ) -> None:
        try:
            answer = await work
        except MQError as error:
            logger.info("forwarded request failed: code=%s error=%s", request.code, error)
            answer = request.reply(ResponseCode.SYSTEM_ERROR, str(error))
        except Exception:
            logger.exception("forwarded request failed: request=%r", request)
            answer = request.reply(ResponseCode.SYSTEM_ERROR, FAILED)
        if not request.is_oneway and not connection.closed:
            connection.write(answer.encode())

    async def ask(
        self, topic: str, broker: str, code: RequestCode, fields: Header | dict[str, str]
    ) -> Command:
        """Ask the broker of that name about a physical queue. Raises `MQError`."""
        ext = fields.to_ext() if isinstance(fields, Header) else fields
        request = Command.request(code, 0, {"lo": "false"} | ext | {"bname": broker})
        address = self._addresses.get(broker) or await self._find(topic, broker)
        try:
            if self._calls is None:
                raise BrokerNotFound(broker)
            return await self._calls.request(address, request, TIMEOUT)
        except TransportError:
            self._addresses.pop(broker, None)  # it may be back at another address
            raise

    async def route(self, topic: str) -> TopicRoute | None:
        """Return a topic's route; None if there is none, or no name server answers."""
        found: asyncio.Future[TopicRoute | None] = asyncio.get_running_loop().create_future()

        def take(route: TopicRoute | None) -> None:
            if not found.done():
                found.set_result(route)

        self._fetch(topic, take)
        return await found

    async def _find(self, topic: str, broker: str) -> str:
        route = await self.route(topic)
        for data in [] if route is None else route.broker_datas:
            if data.broker_name == broker and (address := data.master()) is not None:
                self._addresses[broker] = address
                return address
        raise BrokerNotFound(broker)
