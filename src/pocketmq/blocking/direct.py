"""Sends that their caller's own thread carries out: it writes the request and reads the answer.

The rules are `Sending`'s, unchanged. Only where that one would wait for its loop, this one blocks:
for an answer on a wire of its own, for a route in the loop's thread. So its coroutines never give
up the thread they run on, and `run_here` needs no loop to run them. Any thread may send.
"""

import asyncio
import time
from collections.abc import Coroutine, Sequence
from ipaddress import ip_address
from socket import SOCK_STREAM
from typing import Any, TypeVar

from pocketmq.blocking.connection_pool import ConnectionPool
from pocketmq.blocking.loop_thread import LoopThread
from pocketmq.client.producer import Producer
from pocketmq.client.producer.faults import SharedFaultTable
from pocketmq.client.producer.publishing import Publication
from pocketmq.client.producer.requests import Outgoing
from pocketmq.client.producer.sending import Sending
from pocketmq.client.producer.window import SendWindow
from pocketmq.errors import ConnectFailed
from pocketmq.model.queue import MessageQueue
from pocketmq.model.receipt import SendReceipt
from pocketmq.net import parse_address
from pocketmq.net.reasons import reason_of

T = TypeVar("T")


def run_here(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on this thread; it must not wait for a loop."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    work.close()
    raise AssertionError("a send that blocks has waited for a loop")


class DirectProducer(Producer):
    """A running producer whose sends are carried out on the thread that runs them.

    Only for its sends: `far` is the producer itself, with all the rest.
    """

    def __init__(self, far: Producer, thread: LoopThread) -> None:
        self.__dict__.update(far.__dict__)
        self._far = far
        self._direct = DirectSending(far.sending, thread)

    @property
    def sending(self) -> Sending:
        """The engine of its sends. Raises `ClientClosed` unless the producer is running."""
        _ = self._far.sending
        return self._direct

    @property
    def wires(self) -> ConnectionPool:
        """The connections its senders take."""
        return self._direct.wires


class DirectSending(Sending):
    """The sends of a producer, each on the thread of its caller. Made on the loop."""

    def __init__(self, on_loop: Sending, thread: LoopThread) -> None:
        table = on_loop.faults.table
        if table is not None:
            start = on_loop.session.random.randrange(1 << 31)
            on_loop.faults.table = SharedFaultTable(
                table.profile, detector=table.detector, worst_index=start
            )
        self.__dict__.update(on_loop.__dict__)  # one producer: names, options, routes, faults
        self.window = _Open(1, on_loop.window.budget)
        self.wires = ConnectionPool(self._resolve, on_loop.session.calls.dialer.limits)
        self._on_loop = on_loop
        self._thread = thread

    async def ask(self, outgoing: Outgoing, queue: MessageQueue, timeout: float) -> SendReceipt:  # noqa: ASYNC109 - the socket's
        """Try once, on a wire."""
        address = self.address(queue.broker_name)
        asked = time.monotonic()
        wire = self.wires.take(address, asked + timeout)
        if wire is None:  # more callers than wires
            return self._thread.call(self._on_loop.ask(outgoing, queue, timeout))
        try:
            opaque = wire.next_opaque()
            frame = self.writer.frame(outgoing, queue, opaque, self.session.clock.now_ms())
            left = timeout - (time.monotonic() - asked)
            reply = wire.ask(frame, opaque, outgoing.code, left)
        except BaseException:
            self.wires.drop(wire)
            raise
        self.wires.give(wire)
        return self.read(reply, outgoing, queue, address)

    async def tell(self, outgoing: Outgoing, queue: MessageQueue, timeout: float) -> None:  # noqa: ASYNC109 - the socket's
        """Send one way, on a wire."""
        address = self.address(queue.broker_name)
        wire = self.wires.take(address, time.monotonic() + timeout)
        if wire is None:
            self._thread.call(self._on_loop.tell(outgoing, queue, timeout))
            return
        try:
            now_ms = self.session.clock.now_ms()
            frame = self.writer.frame(outgoing, queue, wire.next_opaque(), now_ms, oneway=True)
            wire.tell(frame, timeout)
        except BaseException:
            self.wires.drop(wire)
            raise
        self.wires.give(wire)

    def refresh_soon(self, topic: str) -> None:
        """Have the loop ask for a topic's route anew."""
        self._thread.loop.call_soon_threadsafe(self._on_loop.refresh_soon, topic)

    async def _find(self, topic: str, timeout: float) -> Publication:  # noqa: ASYNC109 - the loop's
        return self._thread.call(self.publishing.find(topic, timeout))

    def _resolve(self, address: str, deadline: float) -> Sequence[tuple[str, int]]:
        host, port = parse_address(address)
        try:
            ip_address(host)
        except ValueError:
            return self._thread.call(_look_up(address, host, port, deadline))
        return [(host, port)]


class _Open(SendWindow):
    """Room for all: each sender brings a thread, and there are only so many wires."""

    def try_enter(self, size: int) -> bool:  # noqa: ARG002 - a window's
        """Enter."""
        return True

    def leave(self, size: int) -> None:
        """Leave."""


async def _look_up(address: str, host: str, port: int, deadline: float) -> list[tuple[str, int]]:
    """Ask for the addresses of a host name, which no thread could give up waiting for."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
            found = await loop.getaddrinfo(host, port, type=SOCK_STREAM)
    except TimeoutError:
        raise ConnectFailed(address, "the host name was not resolved in time") from None
    except (OSError, UnicodeError) as error:
        raise ConnectFailed(address, reason_of(error)) from error
    return [(str(place[0]), int(place[1])) for *_, place in found]
