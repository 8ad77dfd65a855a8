"""The short way of a plain send: one try to the next queue in turn, without asking the rules.

Nearly all sends are plain: nothing about message or producer asks for more than the next queue, and
the broker stores the message. For those this does what `preparing`, `window`, `publishing`, `tries`
and `exchange` do together, in one step before the response and one after it. Anything else takes
the ordinary path: from its start if nothing has been sent yet, and from the end of the first try if
that brought no receipt.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import DecodeError, Raw

from pocketmq.balance.producer.plan import SendMode
from pocketmq.balance.producer.retry import TryEnded
from pocketmq.client.producer.bursts import Bursts
from pocketmq.client.producer.plain_frames import plain_frames, receipt_of, take_receipts, unique_id
from pocketmq.client.producer.plain_messages import PlainMessages
from pocketmq.client.producer.publishing import Publication
from pocketmq.client.producer.requests import Outgoing, Template, read_stored
from pocketmq.client.producer.tries import Tries
from pocketmq.client.producer.window import SendWindow
from pocketmq.errors import BrokerNotFound, InvalidInput, MQError, RequestTimedOut
from pocketmq.model import Message, MessageQueue, SendReceipt
from pocketmq.net import Connection
from pocketmq.net.open_requests import ReadAnswers
from pocketmq.protocol import Command, RequestCode

if TYPE_CHECKING:
    from pocketmq.client.producer.sending import Sending

_SEND = int(RequestCode.SEND_MESSAGE_V2)

Posted: TypeAlias = tuple[
    asyncio.Future[Any], float, int, float,
    int, Template, bytes, str, int, int, Message, MessageQueue,
    Publication, Connection, float, SendWindow,
]  # fmt: skip
"""A send on its way. First what an open request is: its response, deadline, code and timeout; then
what `plain_frames` reads: number, template, end of the properties, both parts of the id, time of
birth, message, queue; then topic, connection, when it was sent, and the window it is in. A tuple,
as it is made for each message; the core has the same places (`posts.rs`)."""


class PlainSends:
    """The plain sends of one producer on its event loop."""

    def __init__(self, sending: "Sending") -> None:
        session = sending.session
        self.messages = PlainMessages(sending)
        self._sending = sending
        self._aim = self.messages.aim
        self._window = sending.window
        self._answered = sending.window.answered
        self._exchange = sending.exchange
        self._new_future = asyncio.get_running_loop().create_future
        self._now = sending.now
        self._now_ms = session.clock.now_ms
        self._next_id = sending.preparing.ids.next_parts
        self._next_number = sending.preparing.ids.next_number
        self._prefix = ""  # of the latest id
        self._check = session.check
        self._address = session.brokers.send_address
        self._addresses = session.addresses
        self._masters = session.addresses.masters
        self._connections: dict[str, Connection] = {}  # by broker, while `_masters` stays
        self._known = session.calls.dialer.known
        self._timeout = sending.options.send_timeout
        self._read_answers = _answer_reader(sending.now)
        self.bursts = Bursts(sending, self.messages)

    def post(self, message: Message, delay_level: int | None = None) -> Posted | None:
        """Send a message if it is plain, delayed or not; None if it takes the ordinary path.

        It ends with a receipt in place of a response, or with `receipt`, `go_on` or `abandon`: each
        frees its place in the window, unless it raises. Raises `ClientClosed` or `ClientForked`.
        """
        try:
            aim = self._aim(message, delay_level)
        except InvalidInput:
            return None
        if aim is None:
            return None
        self._check()
        publication, turn, queue, template, tail = aim
        if self._masters is not self._addresses.masters:
            self._masters = self._addresses.masters
            self._connections.clear()
            self.bursts.forget_connections()
        connection = self._connections.get(queue.broker_name)
        if connection is None or connection.closed:
            connection = self._connection(queue)
        body = message.body
        if connection is None or not self._window.try_enter(len(body)):
            return None
        publication.robin.index = turn
        try:
            requests, limit = connection.requests, self._timeout
            drafts = requests.drafts
            opaque = requests.take()
            if opaque in requests.open:
                opaque = requests.number()
            if drafts and drafts[-1][7] is self._prefix:
                # It leaves with the one before, which is this producer's: at the same time.
                _, deadline, _, _, _, _, _, prefix, _, now_ms, _, _, _, _, asked, _ = drafts[-1]
                number = self._next_number()
            else:
                now_ms = self._now_ms()
                prefix, number = self._next_id(now_ms)
                self._prefix = prefix
                asked = self._now()
                deadline = asked + limit
            if template.signing is not None:
                middle = template.signing.plain_middle(tail, prefix, number, body, now_ms)
                template = Template(queue, template.head, middle)
            posted = (
                self._new_future(), deadline, _SEND, limit,
                opaque, template, tail, prefix, number, now_ms, message, queue,
                publication, connection, asked, self._window,
            )  # fmt: skip
        except BaseException:
            self._window.leave(len(body))
            raise
        try:
            requests.ask(posted, len(body), plain_frames)
            if drafts and self.bursts.follow is not None:
                self.bursts.lead(message.topic, turn, prefix, self._connections)
        except BaseException:
            self.abandon(posted)
            raise
        return posted

    def _connection(self, queue: MessageQueue) -> Connection | None:
        """Return the connection to a broker, and remember it while its address stays the same."""
        try:
            connection = self._known(self._address(queue))
        except BrokerNotFound:
            return None
        if connection is not None:
            connection.requests.read_answers = self._read_answers
            self._connections[queue.broker_name] = connection
            self.bursts.forget_connections()
        return connection

    def receipt(self, posted: Posted, reply: Command | MQError) -> SendReceipt | None:
        """End a send that was stored as usual and return its receipt; None calls for `go_on`.

        For a response that was read as any other, as it came with others.
        """
        receipt = _read(posted, reply)
        if receipt is not None:
            self._answered(len(posted[10].body), posted[14], self._now())
        return receipt

    def go_on(self, posted: Posted, reply: Command | MQError) -> Coroutine[Any, Any, SendReceipt]:
        """Return what continues on the ordinary path after this response, or this error.

        Not a coroutine function, so that nothing of the caller holds the error while it runs.
        """
        *_, message, queue, publication, connection, asked, _ = posted
        aim = publication, 0, queue, posted[5], posted[6]  # the turn was taken
        outgoing = self.messages.outgoing(message, aim, unique_id(posted))
        outcome: SendReceipt | MQError
        if isinstance(reply, MQError):
            outcome = reply
            if isinstance(reply, RequestTimedOut):
                self._exchange.timed_out(connection, asked, len(outgoing.body))
        else:
            address = connection.remote_address
            outcome = self._exchange.read(reply, asked, outgoing, queue, address)
        ended = TryEnded(queue, self._now() - asked, outcome)
        tries = self._sending.rule.tries(
            outgoing, publication, None, SendMode.SYNC, self._timeout, asked, ended
        )
        return self._make(outgoing, tries)

    async def _make(self, outgoing: Outgoing, tries: Tries) -> SendReceipt:
        """Make the tries that are left."""
        try:
            return await self._sending.finish(outgoing, tries, next(tries))
        except StopIteration as end:  # there are none: the rules took the outcome as it is
            receipt: SendReceipt = end.value
            return receipt
        finally:
            self._window.leave(len(outgoing.body))

    def abandon(self, posted: Posted) -> None:
        """End a send whose caller no longer waits for it."""
        posted[13].forget(posted[4])
        if not _has_receipt(posted[0]):
            self._window.leave(len(posted[10].body))


def _answer_reader(now: Callable[[], float]) -> ReadAnswers:
    """Return what hands receipts over to the sends of all producers of a connection."""

    def read(data: bytes, start: int, limit: int, waiting: dict[int, Any]) -> tuple[int, int]:
        freed: list[tuple[SendWindow, int, int, float]] = []
        try:
            return take_receipts(data, start, limit, waiting, freed)
        finally:
            for window, amount, size, asked in freed:
                window.answered(size, asked, now(), amount)

    return read


def _has_receipt(future: asyncio.Future[Any]) -> bool:
    """Return whether a send has its receipt: then it has left the window."""
    return (
        future.done()
        and not future.cancelled()
        and future.exception() is None
        and type(future.result()) is SendReceipt
    )


def _read(posted: Posted, reply: Command | MQError) -> SendReceipt | None:
    """Return the receipt that a response is, if it is one as usual."""
    if type(reply) is not Command or reply.code or type(reply.ext_fields) is not Raw:
        return None
    try:
        return receipt_of(posted, read_stored(reply.ext_fields))
    except (DecodeError, ValueError):
        return None
