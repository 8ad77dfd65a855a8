"""One send from begin to end: a queue, a request, an answer, and another try where that helps.

What is retried, where and when is decided in `balance.producer`; here are the clock and the
connections. One deadline covers waiting for room, the route and all tries. Everything that sends
for a producer ends up here: single messages, batches, half messages, requests and replies, traces.
Belongs to one event loop.
"""

import asyncio
from collections.abc import Mapping, Sequence

from pocketmq.balance.producer.choice import queue_for
from pocketmq.balance.producer.instructions import Feedback, RefreshRoute, Return, Send
from pocketmq.balance.producer.retry import (
    Attempts,
    SendMode,
    SendPlan,
    TryEnded,
    cancelled,
    first_step,
    next_step,
)
from pocketmq.client.brokers import vip_address
from pocketmq.client.producer.choices import Choice
from pocketmq.client.producer.faults import Faults
from pocketmq.client.producer.hooks import SendContext, SendHook, call_after, call_before
from pocketmq.client.producer.identifiers import unique_ids
from pocketmq.client.producer.preparing import Preparing
from pocketmq.client.producer.publishing import Publication, Publishing
from pocketmq.client.producer.requests import Outgoing, RequestWriter, read_answer
from pocketmq.client.producer.window import Window
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
        self.preparing = Preparing(
            options, namespace, unique_ids(session, options.group), session.clock
        )
        self.publishing = Publishing(session, options)
        self.faults = Faults(session, options, self.publishing)
        self.window = Window(options.window, options.window_bytes)
        self.hooks: list[SendHook] = []
        self.writer = RequestWriter(
            self.group, options, session.calls.request if session.calls.hooks else None
        )
        self._vip = session.options.vip_channel
        self._dialer = session.calls.dialer
        self._now = asyncio.get_running_loop().time

    # What others use

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
        return await self.deliver(outgoing, (message,), choice, mode, timeout)

    async def deliver(
        self,
        outgoing: Outgoing,
        messages: Sequence[Message],
        choice: Choice | None = None,
        mode: SendMode = SendMode.SYNC,
        timeout: float | None = None,  # noqa: ASYNC109 - for all tries together
    ) -> SendReceipt:
        """Send what is prepared; `messages` are what hooks are shown of it."""
        self.session.check()
        started = self._now()
        if timeout is None:
            timeout = self.options.send_timeout
        elif not timeout > 0:
            raise InvalidInput(f"timeout is in seconds and positive, not {timeout!r}")
        size = len(outgoing.body)
        window = self.window
        if not window.try_enter(size) and not await window.enter(size, timeout):
            raise SendFailed(messages[0].topic, None, 0, self._now() - started, None)
        try:
            publication = self.publishing.ready(outgoing.topic)
            if publication is None:
                left = timeout - (self._now() - started)
                publication = await self.publishing.find(outgoing.topic, left)
            if choice is not None or self.hooks or self.faults.table is not None:
                one = _OneSend(self, outgoing, messages, mode, timeout, started)
                return await one.run(publication, choice)
            # The same as below for a first try that works, without the ceremony: queues take turns.
            queue = publication.robin.next(publication.queues)
            try:
                receipt = await self.attempt(outgoing, queue, timeout - (self._now() - started))
                if receipt.ok or not self.options.retry_when_not_stored_ok:
                    return receipt
                outcome: SendReceipt | MQError = receipt
            except MQError as error:
                outcome = error
            one = _OneSend(self, outgoing, messages, mode, timeout, started)
            return await one.run(publication, None, TryEnded(queue, self._now() - started, outcome))
        finally:
            window.leave(size)

    async def attempt(self, outgoing: Outgoing, queue: MessageQueue, timeout: float) -> SendReceipt:  # noqa: ASYNC109 - one timer serves all requests
        """Try once; raises `ServerError`, `TransportError`, `BrokerNotFound` or `ProtocolError`."""
        address = self.address(queue.broker_name)
        connection = self._dialer.known(address)
        asked = self._now()
        if connection is None:
            connection = await self._dialer.connect(address, timeout)
            if connection.closed:
                raise ConnectFailed(address, "the connection was closed as soon as it was made")
            timeout -= self._now() - asked
        opaque, answer = connection.expect(outgoing.code, timeout)
        connection.post(
            self.writer.frame(outgoing, queue, opaque, self.session.clock.now_ms())
        )
        try:
            reply = await answer
        except RequestTimedOut:
            self._dialer.doubt(connection, asked, self._now() - asked)
            raise
        except asyncio.CancelledError:
            connection.forget(opaque)
            raise
        topic = outgoing.topic
        if self.namespace:
            topic = unwrap_namespace(self.namespace, topic)
        return read_answer(reply, outgoing, queue, address, topic)

    async def tell(self, outgoing: Outgoing, queue: MessageQueue, timeout: float) -> None:  # noqa: ASYNC109 - of each wait
        """Send one way; raises `BrokerNotFound` or `TransportError` if it cannot leave."""
        address = self.address(queue.broker_name)
        connection = await self._dialer.connect(address, timeout)
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

    def plan(self, topic: str, mode: SendMode, *, pinned: bool, timeout: float) -> SendPlan:
        """Say what a send was asked to do, for the rules."""
        options = self.options
        return SendPlan(
            profile=self.session.options.profile,
            topic=topic,
            mode=mode,
            pinned=pinned,
            retries=options.retries,
            timeout=timeout,
            timeout_per_try=options.send_timeout_per_try,
            retry_another_broker=options.retry_when_not_stored_ok,
            detector=self.faults.detector,
        )


class _OneSend:
    """One send that needs the whole of the rules."""

    def __init__(
        self,
        sending: Sending,
        outgoing: Outgoing,
        messages: Sequence[Message],
        mode: SendMode,
        timeout: float,
        started: float,
    ) -> None:
        self._sending = sending
        self._outgoing = outgoing
        self._messages = messages
        self._mode = mode
        self._timeout = timeout
        self._started = started
        self._now = sending._now

    async def run(
        self, publication: Publication, choice: Choice | None, ended: TryEnded | None = None
    ) -> SendReceipt:
        """Try until the rules say enough; `ended` is a first try that has been made."""
        chosen = None if choice is None else choice(publication.queues)
        sending = self._sending
        plan = sending.plan(
            self._messages[0].topic,
            self._mode,
            pinned=chosen is not None,
            timeout=self._timeout,
        )
        attempts = Attempts()
        action = first_step(plan, self._elapsed())
        while True:
            if ended is None:
                if not isinstance(action, Send):
                    break
                queue = queue_for(
                    action,
                    publication.queues,
                    publication.robin,
                    sending.faults.table,
                    now=self._now(),
                    chance=sending.session.random.randrange,
                    chosen=chosen,
                )
                ended = await self._try(plan, queue, action.timeout)
            decision = next_step(plan, attempts, ended, self._elapsed())
            self._take(decision.feedback)
            attempts, action, ended = decision.attempts, decision.action, None
        if isinstance(action, Return):
            assert action.receipt is not None  # only messages sent one way have none
            return action.receipt
        raise action.error

    async def _try(self, plan: SendPlan, queue: MessageQueue, timeout: float) -> TryEnded:  # noqa: ASYNC109
        began = self._now()
        context = self._context(queue) if self._sending.hooks else None
        if context is not None:
            call_before(self._sending.hooks, context)
        outcome: SendReceipt | MQError
        try:
            outcome = await self._sending.attempt(self._outgoing, queue, timeout)
        except MQError as error:
            outcome = error
        except asyncio.CancelledError:
            self._take(cancelled(plan, queue, self._now() - began))
            raise
        latency = self._now() - began
        if context is not None:
            context.latency = latency
            if isinstance(outcome, MQError):
                context.error = outcome
            else:
                context.receipt = outcome
            call_after(self._sending.hooks, context)
        return TryEnded(queue, latency, outcome)

    def _take(self, feedback: Sequence[Feedback]) -> None:
        for each in feedback:
            if isinstance(each, RefreshRoute):
                self._sending.session.routes.refresh_soon(self._outgoing.topic)
            else:
                self._sending.faults.update(each)

    def _elapsed(self) -> float:
        return self._now() - self._started

    def _context(self, queue: MessageQueue) -> SendContext:
        sending = self._sending
        try:
            address = sending.address(queue.broker_name)
        except BrokerNotFound:
            address = ""
        return SendContext(
            group=sending.group,
            client_id=sending.session.client_id,
            namespace=sending.namespace,
            messages=self._messages,
            unique_id=self._outgoing.unique_id,
            properties=self._outgoing.properties,
            queue=queue,
            address=address,
            mode=self._mode,
            born_ms=sending.session.clock.now_ms(),
        )


async def _drain(connection: Connection, timeout: float) -> None:  # noqa: ASYNC109 - the caller's deadline
    try:
        async with asyncio.timeout(timeout):
            await connection.drain()
    except TimeoutError as error:
        raise RequestTimedOut(connection.remote_address, "one-way send", timeout) from error
