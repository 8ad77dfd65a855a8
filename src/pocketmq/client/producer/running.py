"""What takes more than a send: transactions, requests that wait, and replies.

The producer's other half: it puts the engine of sends together with `transactions`, `check_backs`
and `replies`, and has the trace follow both. Belongs to one event loop.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping

from pocketmq.balance.producer.replies import reply_properties, reply_topic
from pocketmq.balance.producer.retry import SendMode
from pocketmq.balance.producer.selectors import OrderingKey
from pocketmq.balance.producer.transactions import half_properties
from pocketmq.client.checks import check_callable
from pocketmq.client.producer.check_backs import CheckBacks, TransactionCheck
from pocketmq.client.producer.choices import QueueSelector, choice_of
from pocketmq.client.producer.cluster_topics import send_to_cluster
from pocketmq.client.producer.replies import AwaitedReplies
from pocketmq.client.producer.sending import Sending
from pocketmq.client.producer.trace import SendTracing, open_tracer
from pocketmq.client.producer.transactions import (
    LocalTransaction,
    TransactionReceipt,
    Transactions,
)
from pocketmq.client.routes import KnownRoute
from pocketmq.client.tasks import Tasks
from pocketmq.client.tracing import Tracer
from pocketmq.model.message import Message
from pocketmq.model.queue import MessageQueue
from pocketmq.model.receipt import SendReceipt
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.command import Command
from pocketmq.protocol.received import ReceivedMessage
from pocketmq.protocol.requests.replies import PushReplyRequest
from pocketmq.protocol.requests.transactions import CheckTransactionStateRequest

_REPLY = int(RequestCode.SEND_REPLY_MESSAGE_V2)


class _Parts:
    """What a running producer needs for its exchanges."""

    def __init__(self, sending: Sending, tasks: Tasks, check: TransactionCheck | None) -> None:
        session, options = sending.session, sending.options
        self.sending = sending
        self.tracer: Tracer | None = None
        on_end = None
        if options.trace:
            self.tracer = open_tracer(
                session,
                options.group,
                kind="PRODUCE",
                topic=options.trace_topic,
                tasks=tasks,
                publishing=sending.publishing,
            )
            tracing = SendTracing(self.tracer, session.clock)
            sending.hooks.append(tracing)
            on_end = tracing.transaction_ended
        self.transactions = Transactions(
            session, sending.group, timeout=options.send_timeout, on_end=on_end
        )
        self.checks = CheckBacks(session, tasks, sending.group, check, on_end=on_end)
        self.replies = AwaitedReplies(session)
        self.under_way: set[asyncio.Future[None]] = set()


class Exchanging(ABC):
    """Transactions, requests and replies of a producer."""

    def __init__(self, check: TransactionCheck | None = None) -> None:
        if check is not None:
            check_callable("check", check, "a half message")
        self._check = check
        self._parts: _Parts | None = None

    @property
    @abstractmethod
    def sending(self) -> Sending:
        """The engine of its sends. Raises `ClientClosed` unless it is running."""

    # What applications use

    async def send_in_transaction(
        self,
        message: Message,
        local: LocalTransaction,
        *,
        queue: MessageQueue | None = None,
        ordering_key: OrderingKey | None = None,
        selector: QueueSelector | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - of the message's send
    ) -> TransactionReceipt:
        """Send a message that consumers see once, and only if, `local` says so.

        When the message is stored, `local` is called with it and the transaction's id: a coroutine
        function on the loop, another one in a thread. It gives `TransactionState.COMMIT`,
        `ROLLBACK` or `UNKNOWN`; raising or giving None counts as unknown, and the receipt has the
        error. The broker asks the group's producers about unknown ends, and about ends it was not
        told: see `check`. As in Java a message in a transaction cannot be delayed.

        Raises what `send` does; `local` has not been called then.
        """
        check_callable("local", local, "a message and a transaction id")
        parts = self._running()
        sending = parts.sending
        choice = choice_of(message, queue, ordering_key, selector, sending.namespace)
        extra = half_properties({}, sending.group)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        parts.under_way.add(done)
        try:
            return await parts.transactions.run(
                message, local, lambda: sending.send(message, extra, choice, timeout=timeout)
            )
        finally:
            parts.under_way.discard(done)
            done.set_result(None)

    async def request(
        self,
        message: Message,
        timeout: float,  # noqa: ASYNC109 - until the reply is there
        *,
        queue: MessageQueue | None = None,
        ordering_key: OrderingKey | None = None,
        selector: QueueSelector | None = None,
    ) -> ReceivedMessage:
        """Send a message and wait for the reply of whoever consumes it.

        Raises `RequestTimedOut` if none comes in time, although the message was sent and may have
        been handled; a reply that comes later is dropped. Else raises what `send` does.
        """
        parts = self._running()
        sending = parts.sending
        choice = choice_of(message, queue, ordering_key, selector, sending.namespace)

        async def send(extra: dict[str, str], left: float) -> SendReceipt:
            return await sending.send(message, extra, choice, mode=SendMode.ASYNC, timeout=left)

        topic = sending.preparing.wire_topic(message.topic)
        return await parts.replies.request(topic, timeout, send)

    async def reply(
        self,
        to: ReceivedMessage,
        body: bytes,
        *,
        properties: Mapping[str, str] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - for all tries together
    ) -> SendReceipt:
        """Reply to a message that was sent with `request`, here or by a Java client.

        The receipt says that the waiting client has the reply. Raises `InvalidInput` if the
        message waits for none, `SendFailed` if the client is gone, and what else `send` does.
        """
        asked = to.properties
        message = Message(reply_topic(asked), body, properties=properties or {})
        return await send_to_cluster(
            self._running().sending, message, reply_properties(asked), _REPLY, timeout
        )

    @property
    def traces_dropped(self) -> int:
        """How many records of the trace found no room, or no broker that took them."""
        parts = self._parts
        return 0 if parts is None or parts.tracer is None else parts.tracer.dropped

    # What brokers ask

    async def _check_transaction(
        self, message: ReceivedMessage, header: CheckTransactionStateRequest, address: str
    ) -> None:
        """Take a broker's question about a transaction on; it is answered when its turn comes."""
        if self._parts is not None:
            self._parts.checks.take(message, header, address)

    def _take_reply(self, header: PushReplyRequest, request: Command) -> bool:
        """Take a reply to a request of this producer; False if it waits for no such reply."""
        return self._parts is not None and self._parts.replies.take(header, request.body)

    # Life: called by the producer.

    def _begin_exchanges(self, sending: Sending, tasks: Tasks) -> None:
        self._parts = _Parts(sending, tasks, self._check)

    async def _end_exchanges(self) -> None:
        """Let transactions under way end, for the time of a send; wait for replies no more.

        Those whose local function takes longer are left to the broker, which asks.
        """
        parts = self._parts
        if parts is None:
            return
        parts.replies.close()
        if parts.under_way:
            await asyncio.wait(parts.under_way, timeout=parts.sending.options.send_timeout)
        parts.checks.close()
        parts.transactions.close()

    async def _end_trace(self) -> None:
        """Send what the trace still has, once nothing is under way any more."""
        if self._parts is not None and self._parts.tracer is not None:
            await self._parts.tracer.close()

    def _running(self) -> _Parts:
        _ = self.sending  # raises if it is not
        assert self._parts is not None
        return self._parts


Check = Callable[[ReceivedMessage, CheckTransactionStateRequest, str], Awaitable[None]]
TakeReply = Callable[[PushReplyRequest, Command], bool]


class Membership:
    """The member that a session knows for a producer (a `ProducerMember`)."""

    def __init__(self, sending: Sending, check: Check, take_reply: TakeReply) -> None:
        self._sending = sending
        self._check = check
        self._take_reply = take_reply

    @property
    def group(self) -> str:
        """The group's name on the wire."""
        return self._sending.group

    def topics(self) -> Collection[str]:
        """List the topics whose routes shall be kept fresh."""
        return self._sending.publishing.topics()

    def on_route_changed(self, known: KnownRoute) -> None:
        """Take over a topic's new queues."""
        self._sending.publishing.on_route_changed(known)

    async def check_transaction(
        self, message: ReceivedMessage, header: CheckTransactionStateRequest, address: str
    ) -> None:
        """Tell a broker what became of the transaction of a half message."""
        await self._check(message, header, address)

    def take_reply(self, header: PushReplyRequest, request: Command) -> bool:
        """Take a reply to a request of this producer; False if it waits for no such reply."""
        return self._take_reply(header, request)
