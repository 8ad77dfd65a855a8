"""The engine of a producer's sends: room, route, queue, request and answer.

Everything that sends for a producer ends up here: single messages, batches, half messages, requests
and replies, traces. One deadline covers waiting for room, the route and all tries. A first try that
works takes the short way; whatever else becomes of a send is `tries`. Belongs to one event loop.
"""

import asyncio
from collections.abc import Mapping, Sequence

from pocketmq.balance.producer.retry import SendMode, SendPlan, TryEnded
from pocketmq.balance.profile import V4
from pocketmq.client.addresses import UNKNOWN_VERSION
from pocketmq.client.brokers import vip_address
from pocketmq.client.checks import LONGEST, is_number
from pocketmq.client.producer.choices import Choice
from pocketmq.client.producer.faults import Faults
from pocketmq.client.producer.hooks import SendHook
from pocketmq.client.producer.preparing import Preparing, unique_ids
from pocketmq.client.producer.publishing import Publication, Publishing
from pocketmq.client.producer.requests import (
    Outgoing,
    RequestWriter,
    for_4x,
    read_answer,
)
from pocketmq.client.producer.tries import Tries
from pocketmq.client.producer.window import ByteBudget, SendWindow
from pocketmq.client.producer_options import ProducerOptions
from pocketmq.client.session import Session
from pocketmq.errors import (
    BrokerNotFound,
    ConnectFailed,
    InvalidInput,
    MQError,
    RequestTimedOut,
    SendFailed,
)
from pocketmq.model.message import Message
from pocketmq.model.names import unwrap_namespace, wrap_namespace
from pocketmq.model.queue import MessageQueue
from pocketmq.model.receipt import SendReceipt
from pocketmq.net import Connection
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.command import Command
from pocketmq.protocol.peers import Gate

_SEND = int(RequestCode.SEND_MESSAGE_V2)
_NOTHING: Mapping[str, str] = {}


class Sending:
    """Sends for one group over one session."""

    def __init__(self, session: Session, options: ProducerOptions) -> None:
        namespace = session.options.namespace
        self.session = session
        self.options = options
        self.group = wrap_namespace(namespace, options.group)
        self.namespace = namespace
        self.now = asyncio.get_running_loop().time
        self.preparing = Preparing(
            options, namespace, unique_ids(session, options.group), session.clock
        )
        self.publishing = Publishing(session, options)
        self.faults = Faults(session, options, self.publishing)
        self.window = SendWindow(
            options.window, ByteBudget(options.window_bytes, options.send_timeout)
        )
        self.writer = RequestWriter(
            self.group, options, session.calls.request if session.calls.hooks else None
        )
        self.hooks: list[SendHook] = []
        self._dialer = session.calls.dialer
        self._vip = session.options.vip_channel

    async def send(
        self,
        message: Message,
        extra: Mapping[str, str] = _NOTHING,
        choice: Choice | None = None,
        *,
        code: int = _SEND,
        mode: SendMode = SendMode.SYNC,
        timeout: float | None = None,  # noqa: ASYNC109 - for all tries together
    ) -> SendReceipt:
        """Send one message; `extra` are properties added to its own (see `Preparing.prepare`).

        Raises `InvalidInput`, `SendFailed`, or what `Publishing.find` does if the topic's queues
        cannot be found out.
        """
        outgoing = self.preparing.prepare(message, extra, code)
        return await self.deliver(outgoing, (message,), choice, mode=mode, timeout=timeout)

    async def deliver(
        self,
        outgoing: Outgoing,
        messages: Sequence[Message],
        choice: Choice | None = None,
        *,
        mode: SendMode = SendMode.SYNC,
        timeout: float | None = None,  # noqa: ASYNC109 - for all tries together
    ) -> SendReceipt:
        """Send what is prepared from `messages`; raises as `send` does."""
        self.session.check()
        now = self.now
        started = now()
        timeout = self.limit(timeout)
        size = len(outgoing.body)
        window = self.window
        if not window.try_enter(size) and not await window.enter(size, timeout):
            raise SendFailed(messages[0].topic, None, 0, now() - started, None)
        try:
            publication = self.publishing.ready(outgoing.topic)
            if publication is None:
                publication = await self._find(outgoing.topic, timeout - (now() - started))
            if outgoing.for_5x and self._may_be_old(publication, outgoing):
                outgoing = for_4x(outgoing)
            if choice is not None or self.needs_rules():
                plan = self.plan(messages[0].topic, mode, choice, timeout)
                tries = Tries(self, outgoing, messages, plan, started)
                return tries.receipt(await tries.run(publication, choice))
            # As the rules have it for a first try, without the ceremony: queues take turns, and
            # what is stored is done.
            queue = publication.robin.next(publication.queues)
            began = now()
            outcome: SendReceipt | MQError
            try:
                outcome = await self.ask(outgoing, queue, timeout - (began - started))
                if outcome.ok or not self.options.retry_when_not_stored_ok:
                    return outcome
            except MQError as error:
                outcome = error
            plan = self.plan(messages[0].topic, mode, None, timeout)
            tries = Tries(self, outgoing, messages, plan, started)
            ended = TryEnded(queue, now() - began, outcome)
            return tries.receipt(await tries.run(publication, None, ended))
        finally:
            window.leave(size)

    async def deliver_oneway(
        self,
        outgoing: Outgoing,
        message: Message,
        choice: Choice | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - for the way out
    ) -> None:
        """Send and wait for nothing but the way out; raises as `send` does."""
        self.session.check()
        started = self.now()
        timeout = self.limit(timeout)
        publication = self.publishing.ready(outgoing.topic)
        if publication is None:
            publication = await self._find(outgoing.topic, timeout)
        plan = self.plan(message.topic, SendMode.ONEWAY, choice, timeout)
        await Tries(self, outgoing, (message,), plan, started).run(publication, choice)

    # One try

    async def ask(self, outgoing: Outgoing, queue: MessageQueue, timeout: float) -> SendReceipt:  # noqa: ASYNC109 - one timer serves all requests
        """Try once; raises `ServerError`, `TransportError`, `BrokerNotFound` or `ProtocolError`."""
        address = self.address(queue.broker_name)
        asked = self.now()
        connection = self._dialer.known(address)
        if connection is None:
            connection = await self._connect(address, timeout)
            timeout -= self.now() - asked
        opaque, answer = connection.expect(outgoing.code, timeout)
        now_ms = self.session.clock.now_ms()
        connection.post(opaque, self.writer.frame(outgoing, queue, opaque, now_ms))
        try:
            reply = await answer
        except RequestTimedOut:
            self.window.answered(len(outgoing.body), asked, self.now())
            self.doubt(connection, asked)
            raise
        except asyncio.CancelledError:
            connection.forget(opaque)
            raise
        finally:
            del answer  # it holds the error, which holds this frame
        self.window.answered(len(outgoing.body), asked, self.now())
        return self.read(reply, outgoing, queue, address)

    def read(
        self, reply: Command, outgoing: Outgoing, queue: MessageQueue, address: str
    ) -> SendReceipt:
        """Give the receipt for a broker's answer; raises `ServerError` or `HeaderMalformed`."""
        topic = queue.topic
        if self.namespace:
            topic = unwrap_namespace(self.namespace, topic)
        return read_answer(reply, outgoing, queue, address, topic)

    def doubt(self, connection: Connection, asked: float) -> None:
        """Take note that an answer did not come in time."""
        self._dialer.doubt(connection, asked, self.now() - asked)

    def connected(self, broker: str) -> Connection | None:
        """Give the connection to a broker if there is one."""
        try:
            return self._dialer.known(self.address(broker))
        except BrokerNotFound:
            return None

    async def tell(self, outgoing: Outgoing, queue: MessageQueue, timeout: float) -> None:  # noqa: ASYNC109 - of each wait
        """Send one way; raises `BrokerNotFound` or `TransportError` if it cannot leave."""
        address = self.address(queue.broker_name)
        connection = self._dialer.known(address) or await self._connect(address, timeout)
        opaque, _ = connection.expect(outgoing.code, timeout)
        connection.forget(opaque)
        now_ms = self.session.clock.now_ms()
        connection.write(self.writer.frame(outgoing, queue, opaque, now_ms, oneway=True))
        if connection.clogged:
            await _drain(connection, timeout)

    def address(self, broker: str) -> str:
        """Give where a broker takes messages; raises `BrokerNotFound`."""
        address = self.session.addresses.master(broker)
        return vip_address(address) if self._vip else address

    async def _connect(self, address: str, timeout: float) -> Connection:  # noqa: ASYNC109 - the dialler's
        connection = await self._dialer.connect(address, timeout)
        if connection.closed:
            raise ConnectFailed(address, "the connection was closed as soon as it was made")
        return connection

    def refresh_soon(self, topic: str) -> None:
        """Ask for a topic's route anew, without waiting."""
        self.session.routes.refresh_soon(topic)

    # What a send needs first

    async def _find(self, topic: str, timeout: float) -> Publication:  # noqa: ASYNC109 - for the question
        return await self.publishing.find(topic, timeout)

    def _may_be_old(self, publication: Publication, outgoing: Outgoing) -> bool:
        """Return whether a topic is on 4.x brokers, or, for a batch, may be.

        Brokers tell their version when they answer the first heartbeat. 5.x brokers do without the
        id of a batch; 4.x ones would give it to all of its messages.
        """
        if self.session.options.profile.line == V4.line:
            return True
        addresses = self.session.addresses
        versions = [addresses.version_of(broker) for broker in publication.brokers]
        if outgoing.batch_id is not None and UNKNOWN_VERSION in versions:
            return True
        return any(UNKNOWN_VERSION < version < Gate.TOPIC_QUEUE_MAPPING for version in versions)

    def needs_rules(self) -> bool:
        """Tell whether even a first try to a queue of the turn is more than that."""
        per_try = self.options.send_timeout_per_try
        return bool(self.hooks) or self.faults.table is not None or per_try is not None

    def limit(self, timeout: float | None) -> float:
        """Give the seconds a send may take; raises `InvalidInput` for what cannot be."""
        if timeout is None:
            return self.options.send_timeout
        if not is_number(timeout) or not 0 < timeout <= LONGEST:
            raise InvalidInput(f"timeout is in seconds, up to {LONGEST:g}, not {timeout!r}")
        return timeout

    def plan(self, topic: str, mode: SendMode, choice: Choice | None, timeout: float) -> SendPlan:
        """Say what a send was asked to do, for the rules."""
        options = self.options
        return SendPlan(
            profile=self.session.options.profile,
            topic=topic,
            mode=mode,
            pinned=choice is not None,
            retries=options.retries,
            timeout=timeout,
            timeout_per_try=options.send_timeout_per_try,
            retry_another_broker=options.retry_when_not_stored_ok,
            detector=self.faults.detector,
        )


async def _drain(connection: Connection, timeout: float) -> None:  # noqa: ASYNC109 - the caller's deadline
    try:
        async with asyncio.timeout(timeout):
            await connection.drain()
    except TimeoutError as error:
        raise RequestTimedOut(connection.remote_address, "one-way send", timeout) from error
