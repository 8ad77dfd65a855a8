"""Registering with every name server: everything periodically, changed topics at once.

Changed topics go into a registration of their own. With `enableSingleTopicRegister` each goes into
a request (217) that says nothing about the broker, for name servers that delete the topics which a
registration lacks. Those of 4.x do not know that request, and do not even answer.

Each name server has a link of its own, so that one that is down delays no other. A link that fails
retries soon, with everything; meanwhile the broker works on. Belongs to the broker's loop.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from zlib import crc32

import msgspec

from pocketmq import errors
from pocketmq.broker.name_servers.routes import RequestSender
from pocketmq.broker.state import BrokerState
from pocketmq.errors import ResponseCode
from pocketmq.model import Permission, QueueData, TopicConfig, TopicRoute
from pocketmq.protocol import Command, RequestCode, decode_body, encode_body
from pocketmq.protocol.registration import Registration, encode_registration
from pocketmq.protocol.requests import key_values, nameserver
from pocketmq.protocol.requests import topics as rows

logger = logging.getLogger("pocketmq.broker")

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 10.0
_UNREGISTER_TIMEOUT = 2.0
_SINGLE_TIMEOUT = 3.0  # as in Java
_READ_WRITE = int(Permission.READ | Permission.WRITE)


class Registrar:
    """The broker's links to its name servers."""

    def __init__(
        self, state: BrokerState, name_servers: Sequence[str], calls: RequestSender
    ) -> None:
        self._state = state
        self._calls = calls
        self._links = [_NameServerLink(self, address) for address in dict.fromkeys(name_servers)]
        # Attached before the first registration: a topic that is made meanwhile must not get lost.
        for link in self._links:
            state.announcements.attach(link)
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Register everywhere once, then keep doing so; name servers may be down."""
        await asyncio.gather(*(link.register() for link in self._links))
        for link in self._links:
            self._tasks.append(asyncio.create_task(link.run(), name=f"register {link.address}"))
        self._state.announcements.start()

    async def stop(self) -> None:
        """Stop registering, and unregister everywhere."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        self._state.announcements.stop()
        await asyncio.gather(*(link.unregister() for link in self._links))

    def lost(self, address: str) -> None:
        """Register again where the connection was lost: with it the broker is out of the routes."""
        for link in self._links:
            if link.address == address:
                link.lost()

    def progressed(self) -> None:
        """Let answers go that waited for a link that has now done what it could."""
        self._state.announcements.progressed()

    # What a link sends

    def request(self, topics: Iterable[str] | None) -> Command:
        """Build a registration of some topics, or of all for None."""
        state, config = self._state, self._state.config
        table = state.topics
        names = table.entries if topics is None else topics
        body = encode_registration(
            Registration(
                topics=rows.TopicTableBody(
                    topic_config_table={
                        name: self._limited(table.entries[name])
                        for name in names
                        if name in table.entries
                    },
                    data_version=table.version,
                    topic_queue_mapping_info_map=state.mappings.registered(topics) or None,
                )
            ),
            compressed=config.compressed_register,
        )
        host, _, port = state.address.rpartition(":")
        header = nameserver.RegisterBrokerRequest(
            broker_name=config.broker_name,
            broker_addr=state.address,
            cluster_name=config.broker_cluster_name,
            ha_server_addr=f"{host}:{int(port) + 1}",  # no port of ours; Java requires one
            broker_id=config.broker_id,
            enable_acting_master=False,
            compressed=config.compressed_register,
            body_crc32=crc32(body) & 0x7FFF_FFFF,
        )
        return Command.request(RequestCode.REGISTER_BROKER, 0, header, body)

    def single(self, topic: TopicConfig) -> Command:
        """Build the request that makes one topic of this broker known, as a route of it alone."""
        shown = self._limited(topic)
        data = QueueData(
            broker_name=self._state.config.broker_name,
            read_queue_nums=shown.read_queue_nums,
            write_queue_nums=shown.write_queue_nums,
            perm=shown.perm,
            topic_sys_flag=shown.topic_sys_flag,
        )
        header = nameserver.RegisterTopicRequest(topic=topic.topic_name)
        body = encode_body(TopicRoute(queue_datas=[data]))
        return Command.request(RequestCode.REGISTER_TOPIC_IN_NAMESRV, 0, header, body)

    @property
    def singly(self) -> bool:
        """Whether changed topics go one by one."""
        return self._state.config.enable_single_topic_register

    def maps(self, topics: list[str]) -> bool:
        """Return whether static topics are among these, whose mapping a single topic lacks."""
        return any(topic in self._state.mappings for topic in topics)

    async def send_singly(self, address: str, topics: list[str]) -> None:
        """Register topics one by one; raises `MQError`."""
        for name in topics:
            topic = self._state.topics.get(name)
            if topic is not None:
                await self.ask(address, self.single(topic), _SINGLE_TIMEOUT)

    def _limited(self, topic: TopicConfig) -> TopicConfig:
        """Return a topic as routes show it: with no more rights than the broker itself has."""
        permitted = self._state.config.broker_permission
        if permitted & _READ_WRITE == _READ_WRITE:
            return topic
        return msgspec.structs.replace(topic, perm=topic.perm & permitted)

    async def ask(self, address: str, request: Command, timeout: float) -> Command:  # noqa: ASYNC109 - the request's own
        """Ask a name server; raises `MQError`, also for a refusal."""
        answer = await self._calls.request(address, request, timeout)
        if answer.code != ResponseCode.SUCCESS:
            raise errors.server_error(
                answer.code, answer.remark, request="registration", address=address
            )
        return answer

    def take_order(self, answer: Command | None) -> None:
        """Mark the topics that name servers list as ordered."""
        if answer is None or not answer.body:
            return
        try:
            topics = decode_body(answer.body, key_values.KVTable).table
        except errors.BodyMalformed as error:
            logger.warning("ignoring malformed list of ordered topics from name server: %s", error)
            return
        self._state.topics.set_order(topics, self._state.clock.now_ms())

    @property
    def period(self) -> float:
        """Seconds between full registrations, within Java's bounds."""
        return max(10.0, min(self._state.config.register_name_server_period / 1000, 60.0))

    @property
    def timeout(self) -> float:
        """Seconds to wait for a name server."""
        return self._state.config.register_broker_timeout_mills / 1000

    def farewell(self) -> Command:
        """Build the request that takes the broker out of all routes."""
        config = self._state.config
        header = nameserver.UnregisterBrokerRequest(
            broker_name=config.broker_name,
            broker_addr=self._state.address,
            cluster_name=config.broker_cluster_name,
            broker_id=config.broker_id,
        )
        return Command.request(RequestCode.UNREGISTER_BROKER, 0, header)


class _NameServerLink:
    """One name server."""

    def __init__(self, registrar: Registrar, address: str) -> None:
        self.address = address
        self.sent = 0  # number of the last change it was sent, or could not be sent
        self._registrar = registrar
        self._known = False  # it has all topics
        self._singly = True  # it takes single topics, as far as known
        self._changed: dict[str, None] = {}
        self._asked = 0
        self._woken = asyncio.Event()
        self._pause = _FIRST_PAUSE

    def announce(self, topics: Iterable[str], number: int) -> None:
        self._changed.update(dict.fromkeys(topics))
        self._asked = number
        self._woken.set()

    def lost(self) -> None:
        if self._known:
            self._known = False
            self._woken.set()

    async def run(self) -> None:
        """Register every period, sooner after a failure, and changes at once."""
        while True:
            try:
                async with asyncio.timeout(self._registrar.period if self._known else self._pause):
                    await self._woken.wait()
            except TimeoutError:
                self._changed.clear()
                await self.register()
            else:
                changed = list(self._changed)
                self._changed.clear()
                await self.register(changed if self._known else None)

    async def register(self, topics: list[str] | None = None) -> None:
        """Send one registration; a failure is logged once and repaired by the next."""
        # Both before the request is built: a change that comes while it is in flight wakes the
        # link again, and is not counted as sent.
        self._woken.clear()
        asked = self._asked
        registrar = self._registrar
        try:
            answer = await self._send(topics)
        except errors.MQError as error:
            log = logger.warning if self._known or self._pause == _FIRST_PAUSE else logger.debug
            log("registration failed: name_server=%s error=%s; retrying", self.address, error)
            self._pause = min(self._pause * 2, _LONGEST_PAUSE)
            self._known = False
        else:
            if not self._known:
                logger.info("registered with name server %s", self.address)
            self._known = True
            self._pause = _FIRST_PAUSE
            registrar.take_order(answer)
        self.sent = asked
        registrar.progressed()

    async def _send(self, topics: list[str] | None) -> Command | None:
        """Register some topics or all; return the answer to a registration."""
        registrar = self._registrar
        if topics is not None and registrar.singly and not registrar.maps(topics):
            if self._singly:
                try:
                    await registrar.send_singly(self.address, topics)
                except (errors.RequestNotSupported, errors.RequestTimedOut) as error:
                    self._singly = False
                    logger.info(
                        "name server %s cannot register single topics (%s); registering all topics "
                        "with each change",
                        self.address, error,
                    )  # fmt: skip
                else:
                    return None
            topics = None  # a part of them could cost the others their routes: see above
        return await registrar.ask(self.address, registrar.request(topics), registrar.timeout)

    async def unregister(self) -> None:
        if not self._known:
            return
        registrar = self._registrar
        try:
            await registrar.ask(self.address, registrar.farewell(), _UNREGISTER_TIMEOUT)
        except errors.MQError as error:
            logger.info("unregistration failed: name_server=%s error=%s", self.address, error)
