"""Sends that their caller's own thread carries out: it writes the request and reads the response.

Path and rule are those of `client.producer.sending`. Only where that one awaits something, this one
blocks: for a response on a connection of its own, for a route in the loop's thread. So a send takes
no hop between threads, which would cost more than the rest of it.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import get_ident
from typing import TypeAlias

from pocketmq.balance.producer.plan import SendMode
from pocketmq.balance.producer.retry import TryEnded
from pocketmq.blocking.calls_in_flight import CallsInFlight
from pocketmq.blocking.exchange import ThreadExchange
from pocketmq.blocking.loop_thread import LoopThread
from pocketmq.client.producer.choices import Choice
from pocketmq.client.producer.plain_messages import Aim
from pocketmq.client.producer.requests import Outgoing
from pocketmq.client.producer.sending import Sending
from pocketmq.client.producer.tries import Outcome, Tries
from pocketmq.errors import ClientClosed, InvalidInput
from pocketmq.model import Message, MessageQueue, SendReceipt

Exchange: TypeAlias = Callable[[Outgoing, MessageQueue, float], Outcome]


class BlockingSending:
    """The sends of a blocking producer, each on the thread of its caller. Any thread may send.

    They go by way of the loop instead if hooks watch them: hooks run on the loop. Made on the loop.
    """

    def __init__(self, on_loop: Sending, thread: LoopThread) -> None:
        self.namespace = on_loop.namespace
        self.preparing = on_loop.preparing
        self.exchange = ThreadExchange(on_loop, thread)
        self._on_loop = on_loop
        self._thread = thread
        self._plain = on_loop.plain.messages
        self._rule = on_loop.make_rule(time.monotonic, self._refresh_route)
        self._name = f"producer of group {on_loop.options.group}"
        self._busy: set[int] = set()  # ids of threads that send; adding is one step for all threads
        self._idle = CallsInFlight()
        self._closing = False

    def deliver(
        self, outgoing: Outgoing, choice: Choice | None = None, *, timeout: float | None = None
    ) -> SendReceipt:
        """Send what was prepared; raises as `Sending.deliver` does, and `ClientClosed`."""
        began = self._begin()
        try:
            if self._on_loop.hooks.hooks:
                return self._thread.call(self._on_loop.deliver(outgoing, choice, timeout=timeout))
            receipt = self._carry_out(self.exchange.ask, outgoing, choice, SendMode.SYNC, timeout)
            assert receipt is not None  # only messages sent one way have none
            return receipt
        finally:
            self._busy.discard(began)
            if self._closing:
                self._idle.notify()

    def send_plain(self, message: Message, delay_level: int | None = None) -> SendReceipt | None:
        """Send a message if it is plain (see `client.producer.plain_sends`), delayed or not.

        None if it takes the ordinary path: nothing was sent then. Raises as `deliver` does.
        """
        try:
            aim = self._plain.aim(message, delay_level)
        except InvalidInput:
            return None  # the ordinary path has the words
        return None if aim is None else self._send_aimed(aim, message)

    def send_half(self, message: Message, half: Mapping[str, str]) -> SendReceipt | None:
        """Send a plain message as a half message, with the properties of one; else as above."""
        try:
            aim = self._plain.aim_half(message, half)
        except InvalidInput:
            return None  # the ordinary path has the words
        return None if aim is None else self._send_aimed(aim, message)

    def _send_aimed(self, aim: Aim, message: Message) -> SendReceipt | None:
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
            publication, _, queue, _, _ = aim
            outgoing = self._plain.outgoing(message, aim, unique_id)
            ended = TryEnded(queue, time.monotonic() - started, outcome)
            del outcome, asked  # an error has a traceback, whose frames would have this one
            tries = self._rule.tries(
                outgoing, publication, None, SendMode.SYNC, limit, started, ended
            )
            del ended
            return self._make(tries, self.exchange.ask, outgoing)
        finally:
            self._busy.discard(began)
            if self._closing:
                self._idle.notify()

    def send_plain_batch(self, messages: Sequence[Message]) -> SendReceipt | None:
        """Send messages as one batch the short way (see `client.producer.plain_batches`).

        None if they take the ordinary path: nothing was sent then. Raises as `deliver` does.
        """
        aim = self._on_loop.plain_batches.aim(messages)
        if aim is None:
            return None
        began = self._begin()
        try:
            started = time.monotonic()
            self._on_loop.session.check()
            limit = self._on_loop.options.send_timeout
            asked = self.exchange.ask_batch(aim, messages, started, limit)
            if asked is None:
                return None
            outcome, outgoing = asked
            if isinstance(outcome, SendReceipt) and self._rule.is_done(outcome):
                return outcome
            assert outgoing is not None  # only what was stored as usual has none
            ended = TryEnded(aim[2], time.monotonic() - started, outcome)
            del outcome, asked  # as above
            tries = self._rule.tries(outgoing, aim[0], None, SendMode.SYNC, limit, started, ended)
            del ended
            return self._make(tries, self.exchange.ask, outgoing)
        finally:
            self._busy.discard(began)
            if self._closing:
                self._idle.notify()

    def deliver_oneway(
        self, outgoing: Outgoing, choice: Choice | None = None, timeout: float | None = None
    ) -> None:
        """Send without waiting for a response; raises as `deliver` does."""
        began = self._begin()
        try:
            if self._on_loop.hooks.hooks:
                self._thread.call(self._on_loop.deliver_oneway(outgoing, choice, timeout))
            else:
                self._carry_out(self.exchange.tell, outgoing, choice, SendMode.ONEWAY, timeout)
        finally:
            self._busy.discard(began)
            if self._closing:
                self._idle.notify()

    @property
    def watched(self) -> bool:
        """Whether hooks watch its sends, so that they run on the loop."""
        return bool(self._on_loop.hooks.hooks)

    @contextmanager
    def several(self) -> Iterator[None]:
        """Count several sends of this thread as one, so that a close waits for the last of them.

        Raises `ClientClosed`.
        """
        began = self._begin()
        try:
            yield
        finally:
            self._busy.discard(began)
            if self._closing:
                self._idle.notify()

    def _begin(self) -> int:
        """Count this thread's send as in flight, and return its id; 0 if it is already counted.

        A close sets `_closing` and then looks who is in flight. So the flag is read only after this
        thread is in the set: either the close waits for it, or this raises. The caller takes it out
        first thing in a `finally`, without a call in between in which it could be interrupted.
        """
        this_thread = get_ident()
        if this_thread in self._busy:
            return 0
        try:
            self._busy.add(this_thread)
            if self._closing:
                raise ClientClosed(self._name)  # noqa: TRY301 - for each send: a call would cost
        except BaseException:  # KeyboardInterrupt, too
            self._busy.discard(this_thread)
            self._idle.notify()
            raise
        return this_thread

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
            if on_loop.publishing.can_adapt(publication):
                outgoing = on_loop.publishing.adapt(outgoing, publication)
            else:
                asked = on_loop.publishing.adapted(outgoing, publication, limit)
                outgoing = self._thread.call(asked)
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
        others = self._busy - {get_ident()}
        self._idle.wait(lambda: not (self._busy & others))

    def _refresh_route(self, topic: str) -> None:
        routes = self._on_loop.session.routes
        self._thread.loop.call_soon_threadsafe(routes.refresh_soon, topic)
