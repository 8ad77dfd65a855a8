"""Sends that their caller's own thread carries out: it writes the request and reads the response.

Path and rule are those of `client.producer.sending`. Only where that one awaits something, this one
blocks: for a response on a connection of its own, for a route in the loop's thread. So a send takes
no hop between threads, which would cost more than the rest of it.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ipaddress import ip_address
from socket import SOCK_STREAM
from typing import TypeAlias

from pocketmq.balance.producer.plan import SendMode
from pocketmq.balance.producer.retry import TryEnded
from pocketmq.blocking.connection_pool import ConnectionPool
from pocketmq.blocking.loop_thread import LoopThread
from pocketmq.client.producer.choices import Choice
from pocketmq.client.producer.plain_frames import plain_frame
from pocketmq.client.producer.plain_sends import Aim
from pocketmq.client.producer.requests import Outgoing, read_receipt
from pocketmq.client.producer.sending import Sending
from pocketmq.client.producer.tries import Outcome, Tries
from pocketmq.errors import BrokerNotFound, ClientClosed, ConnectFailed, InvalidInput, MQError
from pocketmq.model import Message, MessageQueue, SendReceipt, SendStatus
from pocketmq.net import parse_address
from pocketmq.net.reasons import reason_of
from pocketmq.protocol import RequestCode

_SEND = int(RequestCode.SEND_MESSAGE_V2)
_OK = SendStatus.SEND_OK

Exchange: TypeAlias = Callable[[Outgoing, MessageQueue, float], Outcome]


class BlockingSending:
    """The sends of a blocking producer, each on the thread of its caller. Any thread may send.

    They go by way of the loop instead if they need TLS, or if hooks watch them: hooks run on the
    loop. Made on the loop.
    """

    def __init__(self, on_loop: Sending, thread: LoopThread) -> None:
        self.namespace = on_loop.namespace
        self.preparing = on_loop.preparing
        self.exchange = ThreadExchange(on_loop, thread)
        self._on_loop = on_loop
        self._thread = thread
        self._own_thread = on_loop.session.calls.dialer.tls is None
        self._plain = on_loop.plain.messages if self._own_thread else None
        self._rule = on_loop.make_rule(time.monotonic, self._refresh_route)
        self._name = f"producer of group {on_loop.options.group}"
        self._busy: set[int] = set()  # ids of threads that send; adding is one step for all threads
        self._idle = threading.Condition()
        self._closing = False

    def deliver(
        self, outgoing: Outgoing, choice: Choice | None = None, *, timeout: float | None = None
    ) -> SendReceipt:
        """Send what was prepared; raises as `Sending.deliver` does, and `ClientClosed`."""
        began = self._begin()
        try:
            if self._on_loop.hooks.hooks or not self._own_thread:
                return self._thread.call(self._on_loop.deliver(outgoing, choice, timeout=timeout))
            receipt = self._carry_out(self.exchange.ask, outgoing, choice, SendMode.SYNC, timeout)
            assert receipt is not None  # only messages sent one way have none
            return receipt
        finally:
            if began:
                self._end()

    def send_plain(self, message: Message) -> SendReceipt | None:
        """Send a message if it is plain (see `client.producer.plain_sends`).

        None if it takes the ordinary path: nothing was sent then. Raises as `deliver` does.
        """
        plain = self._plain
        if plain is None:
            return None
        try:
            aim = plain.aim(message)
        except InvalidInput:
            return None  # the ordinary path has the words
        if aim is None:
            return None
        began = self._begin()
        try:
            started = time.monotonic()
            self._on_loop.session.check()
            limit = self._on_loop.options.send_timeout
            asked = self.exchange.ask_plain(aim, message, started, limit)
            if asked is None:
                return None
            outcome, unique_id = asked
            if type(outcome) is SendReceipt and self._rule.is_done(outcome):
                return outcome
            publication, _, queue, *_ = aim
            outgoing = plain.outgoing(message, publication, unique_id)
            ended = TryEnded(queue, time.monotonic() - started, outcome)
            del outcome, asked  # an error has a traceback, whose frames would have this one
            tries = self._rule.tries(
                outgoing, publication, None, SendMode.SYNC, limit, started, ended
            )
            del ended
            return self._make(tries, self.exchange.ask, outgoing)
        finally:
            if began:
                self._end()

    def deliver_oneway(
        self, outgoing: Outgoing, choice: Choice | None = None, timeout: float | None = None
    ) -> None:
        """Send without waiting for a response; raises as `deliver` does."""
        began = self._begin()
        try:
            if self._on_loop.hooks.hooks or not self._own_thread:
                self._thread.call(self._on_loop.deliver_oneway(outgoing, choice, timeout))
            else:
                self._carry_out(self.exchange.tell, outgoing, choice, SendMode.ONEWAY, timeout)
        finally:
            if began:
                self._end()

    @contextmanager
    def several(self) -> Iterator[None]:
        """Count several sends of this thread as one, so that a close waits for the last of them.

        Raises `ClientClosed`.
        """
        began = self._begin()
        try:
            yield
        finally:
            if began:
                self._end()

    def _begin(self) -> bool:
        """Count this thread's send as in flight; return False if it is already counted.

        A close sets `_closing` and then looks who is in flight. So the flag is read only after this
        thread is in the set: either the close waits for it, or this raises.
        """
        this_thread = threading.get_ident()
        if this_thread in self._busy:
            return False
        self._busy.add(this_thread)
        if self._closing:
            self._end()
            raise ClientClosed(self._name)
        return True

    def _end(self) -> None:
        self._busy.discard(threading.get_ident())
        if self._closing:
            with self._idle:
                self._idle.notify_all()

    def _carry_out(
        self,
        exchange: Exchange,
        outgoing: Outgoing,
        choice: Choice | None,
        mode: SendMode,
        timeout: float | None,
    ) -> SendReceipt | None:
        on_loop, started = self._on_loop, time.monotonic()
        on_loop.session.check()
        limit = on_loop.limit(timeout)
        publication = on_loop.publishing.ready(outgoing.topic)
        if publication is None:
            publication = self._thread.call(on_loop.publishing.find(outgoing.topic, limit))
        if outgoing.for_5x:
            outgoing = on_loop.publishing.adapt(outgoing, publication)
        tries = self._rule.tries(outgoing, publication, choice, mode, limit, started)
        return self._make(tries, exchange, outgoing)

    def _make(self, tries: Tries, exchange: Exchange, outgoing: Outgoing) -> SendReceipt | None:
        """Make the tries of a send."""
        try:
            queue, left = next(tries)
            while True:
                queue, left = tries.send(exchange(outgoing, queue, left))
        except StopIteration as end:
            receipt: SendReceipt | None = end.value
            return receipt
        finally:
            tries.close()

    def wait_for_others(self) -> None:
        """Wait until the sends of all other threads have ended; no new ones may be started."""
        self._closing = True
        with self._idle:
            others = self._busy - {threading.get_ident()}
            self._idle.wait_for(lambda: not (self._busy & others))

    def _refresh_route(self, topic: str) -> None:
        routes = self._on_loop.session.routes
        self._thread.loop.call_soon_threadsafe(routes.refresh_soon, topic)


class ThreadExchange:
    """One try on the caller's own thread: a request and its response on a connection of its own.

    Any thread may call. If there are more callers than connections, the try goes to the loop.
    """

    def __init__(self, on_loop: Sending, thread: LoopThread) -> None:
        session = on_loop.session
        self.connections = ConnectionPool(self._resolve, session.calls.dialer.limits)
        self._on_loop = on_loop.exchange
        self._thread = thread
        self._frame = on_loop.exchange.writer.frame
        self._now_ms = session.clock.now_ms
        self._address = session.brokers.send_address
        self._namespace = on_loop.namespace
        self._plain = on_loop.plain.messages
        self._next_id = on_loop.preparing.ids.next_parts

    def ask(self, outgoing: Outgoing, queue: MessageQueue, timeout: float) -> SendReceipt | MQError:
        """Send a message and return its receipt, or the error, as `LoopExchange.ask` does."""
        try:
            address = self._address(queue.broker_name)
            deadline = time.monotonic() + timeout
            connection = self.connections.take(address, deadline)
            if connection is None:
                return self._thread.call(self._on_loop.ask(outgoing, queue, timeout))
            try:
                opaque = connection.next_opaque()
                frame = self._frame(outgoing, queue, opaque, self._now_ms())
                reply = connection.ask(frame, opaque, outgoing.code, deadline - time.monotonic())
            except BaseException:  # KeyboardInterrupt, too: the response may still come
                self.connections.drop(connection)
                raise
            self.connections.give(connection)
            return read_receipt(reply, outgoing, queue, address, self._namespace)
        except MQError as error:
            return error

    def ask_plain(
        self, aim: Aim, message: Message, started: float, timeout: float
    ) -> tuple[SendReceipt | MQError, str] | None:
        """Send a plain message and return its receipt, or the error, and the id it was given.

        None if that takes more than a connection that is there, and was used just now.
        """
        publication, turn, queue, template, tail = aim
        try:
            connection = self.connections.take_idle(self._address(queue.broker_name), started)
        except BrokerNotFound:
            return None
        if connection is None:
            return None
        publication.robin.index = turn
        now_ms = self._now_ms()
        prefix, number = self._next_id(now_ms)
        opaque = connection.next_opaque()
        frame, unique_id = plain_frame(
            template.head, template.middle, tail, prefix, number, message.body, now_ms, opaque
        )
        try:
            try:
                answer = connection.ask_stored(frame, opaque, _SEND, timeout)
            except BaseException:  # KeyboardInterrupt, too: the response may still come
                self.connections.drop(connection)
                raise
            self.connections.give(connection)
            if not isinstance(answer, tuple):
                outgoing = self._plain.outgoing(message, publication, unique_id)
                address = connection.address
                return read_receipt(answer, outgoing, queue, address), unique_id
        except MQError as error:
            return error, unique_id
        place, queue_id, offset, transaction_id, recall_handle, region, trace_on = answer
        if queue_id != queue.queue_id:
            queue = MessageQueue(queue.topic, queue.broker_name, queue_id)
        receipt = SendReceipt(
            status=_OK,
            message_id=unique_id,
            offset_message_id=place,
            queue=queue,
            queue_offset=offset,
            transaction_id=transaction_id,
            recall_handle=recall_handle,
            region_id=region,
            trace_on=trace_on,
        )
        return receipt, unique_id

    def tell(self, outgoing: Outgoing, queue: MessageQueue, timeout: float) -> MQError | None:
        """Send one way; return the error if it cannot leave."""
        try:
            address = self._address(queue.broker_name)
            connection = self.connections.take(address, time.monotonic() + timeout)
            if connection is None:
                return self._thread.call(self._on_loop.tell(outgoing, queue, timeout))
            try:
                opaque = connection.next_opaque()
                frame = self._frame(outgoing, queue, opaque, self._now_ms(), oneway=True)
                connection.tell(frame, timeout)
            except BaseException:
                self.connections.drop(connection)
                raise
            self.connections.give(connection)
        except MQError as error:
            return error
        return None

    def _resolve(self, address: str, deadline: float) -> Sequence[tuple[str, int]]:
        host, port = parse_address(address)
        try:
            ip_address(host)
        except ValueError:
            return self._thread.call(_look_up(address, host, port, deadline))
        return [(host, port)]


async def _look_up(address: str, host: str, port: int, deadline: float) -> list[tuple[str, int]]:
    """Resolve a host name on the loop: a thread could not stop waiting for it at the deadline."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
            found = await loop.getaddrinfo(host, port, type=SOCK_STREAM)
    except TimeoutError:
        raise ConnectFailed(address, "the host name was not resolved in time") from None
    except (OSError, UnicodeError) as error:
        raise ConnectFailed(address, reason_of(error)) from error
    return [(str(place[0]), int(place[1])) for *_, place in found]
