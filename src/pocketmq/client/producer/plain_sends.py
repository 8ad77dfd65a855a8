"""The short way of a plain send: one try to the next queue in turn, without asking the rules.

Nearly all sends are plain: nothing about message or producer asks for more than the next queue, and
the broker stores the message. For those this does what `preparing`, `window`, `publishing`, `tries`
and `exchange` do together, in one step before the response and one after it. Anything else takes
the ordinary path: from its start if nothing has been sent yet, and from the end of the first try if
that brought no receipt.
"""

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import DecodeError, Raw

from pocketmq.balance.producer.plan import SendMode
from pocketmq.balance.producer.retry import TryEnded
from pocketmq.client.producer.plain_frames import (
    plain_frames,
    receipt_of,
    stored_answers,
    unique_id,
)
from pocketmq.client.producer.plain_messages import PlainMessages
from pocketmq.client.producer.publishing import Publication
from pocketmq.client.producer.requests import Outgoing, Template, read_stored
from pocketmq.client.producer.tries import Tries
from pocketmq.errors import BrokerNotFound, InvalidInput, MQError, RequestTimedOut
from pocketmq.model import Message, MessageQueue, SendReceipt
from pocketmq.net import Connection
from pocketmq.protocol import Command, RequestCode

if TYPE_CHECKING:
    from pocketmq.client.producer.sending import Sending

_SEND = int(RequestCode.SEND_MESSAGE_V2)

Posted: TypeAlias = tuple[
    asyncio.Future[Any], float, int, float,
    int, Template, bytes, str, int, int, Message, MessageQueue,
    Publication, Connection, float,
]  # fmt: skip
"""A send on its way. First what an open request is: its response, deadline, code and timeout; then
what `plain_frames` reads: number, template, end of the properties, both parts of the id, time of
birth, message, queue; then topic, connection, and when it was sent. A tuple, as it is made for each
message; the core has the same places (`posts.rs`)."""


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

    def post(self, message: Message, delay_level: int | None = None) -> Posted | None:
        """Send a message if it is plain, delayed or not; None if it takes the ordinary path.

        Every message posted ends with `receipt`, `go_on` or `abandon`, which free its place in
        the window (the first two unless they raise). Raises `ClientClosed` or `ClientForked`.
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
                _, deadline, _, _, _, _, _, prefix, _, now_ms, _, _, _, _, asked = drafts[-1]
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
                publication, connection, asked,
            )  # fmt: skip
            requests.ask(posted, len(body), plain_frames)
        except BaseException:
            self._window.leave(len(body))
            raise
        return posted

    def _connection(self, queue: MessageQueue) -> Connection | None:
        """Return the connection to a broker, and remember it while its address stays the same."""
        try:
            connection = self._known(self._address(queue))
        except BrokerNotFound:
            return None
        if connection is not None:
            connection.requests.read_answers = stored_answers
            self._connections[queue.broker_name] = connection
        return connection

    def receipt(self, posted: Posted, reply: SendReceipt | Command | MQError) -> SendReceipt | None:
        """End a send that was stored as usual and return its receipt; None calls for `go_on`."""
        if type(reply) is not SendReceipt:
            # Alone in its read, or among others: the response is read as any other.
            receipt = _read(posted, reply)
            if receipt is None:
                return None
            reply = receipt
        self._answered(len(posted[10].body), posted[14], self._now())
        return reply

    def go_on(
        self, posted: Posted, reply: SendReceipt | Command | MQError
    ) -> Coroutine[Any, Any, SendReceipt]:
        """Return what continues on the ordinary path after this response, or this error.

        Not a coroutine function, so that nothing of the caller holds the error while it runs.
        """
        *_, message, queue, publication, connection, asked = posted
        aim = publication, 0, queue, posted[5], posted[6]  # the turn was taken
        outgoing = self.messages.outgoing(message, aim, unique_id(posted))
        outcome: SendReceipt | MQError
        assert not isinstance(reply, SendReceipt)  # `receipt` takes those
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
        self._window.leave(len(posted[10].body))


def _read(posted: Posted, reply: SendReceipt | Command | MQError) -> SendReceipt | None:
    """Return the receipt that a response is, if it is one as usual."""
    if type(reply) is not Command or reply.code or type(reply.ext_fields) is not Raw:
        return None
    try:
        return receipt_of(posted, read_stored(reply.ext_fields))
    except (DecodeError, ValueError):
        return None
