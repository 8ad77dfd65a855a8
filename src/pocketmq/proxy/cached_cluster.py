"""The cluster behind a proxy: routes, types of topics and set-ups of groups, cached for a while.

Uses one client session for all calls. Belongs to one event loop.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from pocketmq.client.questions.asking import Question, ask, ask_address
from pocketmq.client.routes import KnownRoute
from pocketmq.client.session import Session
from pocketmq.errors import BrokerNotFound, MQError, RequestNotSupported
from pocketmq.model import GroupConfig, TopicKind
from pocketmq.protocol.requests.groups import GET_SUBSCRIPTIONGROUP_CONFIG
from pocketmq.protocol.requests.topics import GET_TOPIC_CONFIG
from pocketmq.proxy.translation.refusals import CallRefused
from pocketmq.proxy.wire import definition as d

A = TypeVar("A")
V = TypeVar("V")

FRESH_FOR = 20.0
"""Seconds that a set-up is used before it is read again, as in Apache's proxy."""
_MOST = 20_000


class Cached(Generic[V]):
    """Values by name, each read again when it is older than `FRESH_FOR`."""

    def __init__(self, read: Callable[[str], Awaitable[V]]) -> None:
        self._read = read
        self._values: dict[str, tuple[float, V]] = {}

    def known(self, name: str) -> V | None:
        """Return a value that was read lately."""
        found = self._values.get(name)
        if found is None or found[0] <= asyncio.get_running_loop().time():
            return None
        return found[1]

    async def get(self, name: str) -> V:
        """Return a value; raises what reading it does."""
        now = asyncio.get_running_loop().time()
        found = self._values.get(name)
        if found is not None and found[0] > now:
            return found[1]
        value = await self._read(name)
        if len(self._values) >= _MOST:
            self._values.clear()
        self._values[name] = (now + FRESH_FOR, value)
        return value


class CachedCluster:
    """What a proxy reads of its cluster."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._kinds = Cached(self._read_kind)
        self._groups = Cached(self._read_group)

    async def route(self, topic: str) -> KnownRoute:
        """Return a topic's route; raises `RouteNotFound`, `NameServersUnreachable`."""
        return await self.session.routes.get(topic)

    async def topic_kind(self, topic: str) -> TopicKind:
        """Return a topic's message type; UNSPECIFIED if no broker tells."""
        return await self._kinds.get(topic)

    def known_kind(self, topic: str) -> TopicKind | None:
        """Return a topic's message type if it was read lately."""
        return self._kinds.known(topic)

    async def group(self, group: str) -> GroupConfig:
        """Return the set-up of a group; brokers that create groups automatically create it now.

        Raises the `ServerError` of the last broker if none has it.
        """
        return await self._groups.get(group)

    def known_group(self, group: str) -> GroupConfig | None:
        """Return the set-up of a group if it was read lately."""
        return self._groups.known(group)

    async def reach(self, broker: str, topic: str) -> None:
        """Find a broker's address by the route of a topic, unless it is there already.

        Raises `CallRefused` if there is no such broker.
        """
        try:
            self.session.brokers.address(broker, master_only=True)
        except BrokerNotFound:
            await self.session.routes.refresh(topic)
        try:
            self.session.brokers.address(broker, master_only=True)
        except BrokerNotFound:
            raise CallRefused(
                d.Code.INVALID_RECEIPT_HANDLE, f"cannot find broker {broker[:80]}"
            ) from None

    async def _read_kind(self, topic: str) -> TopicKind:
        known = await self.route(topic)
        header = GET_TOPIC_CONFIG.header(topic=topic)
        for data in known.route.broker_datas:
            address = data.master()
            if address is None:
                continue
            try:
                config = (await self._ask(address, ask(None, GET_TOPIC_CONFIG, header))).result()
            except RequestNotSupported:  # 4.x brokers have no message types
                return TopicKind.MIXED
            except MQError:
                continue
            return TopicKind.read(config.attributes)
        return TopicKind.UNSPECIFIED

    async def _read_group(self, group: str) -> GroupConfig:
        header = GET_SUBSCRIPTIONGROUP_CONFIG.header(group=group)
        failure: MQError = BrokerNotFound("any")
        for place in self.session.addresses.places(masters_only=True):
            try:
                question = ask(None, GET_SUBSCRIPTIONGROUP_CONFIG, header)
                return (await self._ask(place.address, question)).result()
            except RequestNotSupported:
                return GroupConfig(group_name=group)
            except MQError as error:
                failure = error
        raise failure

    async def _ask(self, address: str, question: Question[A]) -> A:
        timeout = self.session.options.request_timeout
        return await ask_address(self.session.brokers.call_at, address, question, timeout=timeout)
