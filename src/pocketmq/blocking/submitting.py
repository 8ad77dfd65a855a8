"""Sends that a thread begins and does not wait for: handed to the loop, many at a time.

Owns the way there and back. What a send is, and what is done about failures, is `Sending`'s.
"""

import asyncio
import threading
import time
from collections import deque
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import TypeAlias

from pocketmq.blocking.loop_thread import LoopThread
from pocketmq.blocking.process_loop import callback_threads
from pocketmq.client.producer.choices import Choice
from pocketmq.client.producer.requests import Outgoing
from pocketmq.client.producer.submitting import Submitting
from pocketmq.client.producer.window import ByteBudget
from pocketmq.errors import ClientClosed, MQError
from pocketmq.model.message import Message
from pocketmq.model.receipt import SendReceipt
from pocketmq.net.reasons import untraced

_PENDING, _FINISHED = "PENDING", "FINISHED"  # the parent's states
_UNDER_WAY = frozenset({_PENDING, "RUNNING"})
_first_wait = threading.Lock()
_Send: TypeAlias = tuple[Outgoing, Message, Choice | None, float]


class SubmitWindow:
    """Room for sends. Any thread enters and waits; whoever ends a send makes room again."""

    def __init__(self, most: int, budget: ByteBudget) -> None:
        self._most = most
        self._budget = budget
        self._count = 0
        self._bytes = 0
        self._waiting = 0
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)

    def try_enter(self, size: int) -> bool:
        """Enter if there is room."""
        with self._lock:
            if self._count and (
                self._count >= self._most or self._bytes + size > self._budget.limit
            ):
                return False
            self._count += 1
            self._bytes += size
            return True

    def enter(self, size: int, timeout: float) -> bool:
        """Enter, waiting for room at most so many seconds; False if there was none."""
        with self._changed:
            if not self._wait(size, timeout):
                return False
            self._count += 1
            self._bytes += size
            return True

    def wait_for_room(self) -> None:
        """Wait until a small send could enter at once."""
        with self._changed:
            while not self._has_room(0):
                self._wait(0, 60.0)

    def leave(self, size: int) -> None:
        """Make room. Threads that wait go on once half of it is free: few turns, many sends."""
        with self._lock:
            self._count -= 1
            self._bytes -= size
            if self._waiting and self._count <= self._most // 2:
                self._changed.notify_all()

    def _wait(self, size: int, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        self._waiting += 1
        try:
            while not self._has_room(size):
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(left)
        finally:
            self._waiting -= 1
        return True

    def _has_room(self, size: int) -> bool:
        if not self._count:
            return True
        return self._count < self._most and self._bytes + size <= self._budget.limit


class LoopHandOver:
    """Has sends begun by the loop. Any thread may hand over."""

    def __init__(self, on_loop: Submitting, thread: LoopThread, gate: SubmitWindow) -> None:
        self.gate = gate
        self._on_loop = on_loop
        self._thread = thread
        self._handed: deque[SubmittedSend] = deque()
        self._woken = False

    def hand_over(
        self, outgoing: Outgoing, message: Message, choice: Choice | None, timeout: float
    ) -> "SubmittedSend":
        """Have a send begun that has entered the gate; gives the future of its receipt."""
        handed = SubmittedSend(self.gate, outgoing, message, choice, timeout)
        self._handed.append(handed)
        if not self._woken:  # the loop takes all that is handed over until it comes round
            self._woken = True
            self._thread.loop.call_soon_threadsafe(self._begin)
        return handed

    def _begin(self) -> None:
        self._woken = False
        handed = self._handed
        while handed:
            handed.popleft().begin(self._on_loop)


class SubmittedSend(Future[SendReceipt]):
    """A message on its way, and the future of its receipt.

    Callbacks run in threads of their own, where they may block. Cancelling it does not take the
    message back.
    """

    def __init__(
        self,
        gate: SubmitWindow,
        outgoing: Outgoing,
        message: Message,
        choice: Choice | None,
        timeout: float,
    ) -> None:
        # As the parent's, but for the condition, which costs more than all the rest and is only
        # needed by those who wait before the receipt is there.
        self._state = _PENDING
        self._result = None
        self._exception = None
        self._waiters = []
        self._done_callbacks: list[object] = []
        self._waited_for: threading.Condition | None = None
        self._left = False
        self._gate = gate
        self._size = len(outgoing.body)
        self._send: _Send | None = (outgoing, message, choice, timeout)

    def begin(self, on_loop: Submitting) -> None:
        """Begin the send; on the loop."""
        send, self._send = self._send, None  # a future that is kept keeps no message
        assert send is not None
        try:
            on_loop.submit_into(self, *send)
        except MQError as error:
            self.set_exception(error)

    # Where the receipt goes: called on the loop.

    def set_result(self, receipt: SendReceipt) -> None:
        """Take the receipt."""
        with _first_wait:
            alone = self._waited_for is None  # nobody waits, has called back or cancelled
            if alone:
                self._result = receipt
                self._state = _FINISHED
        self._leave()
        if not alone:
            with suppress(InvalidStateError):  # whoever cancelled it does not want to know
                super().set_result(receipt)

    def set_exception(self, error: BaseException | None) -> None:
        """Take the error."""
        self._leave()
        if isinstance(error, asyncio.CancelledError):  # by the end of the loop
            error = ClientClosed("producer")
        if error is not None:
            untraced(error)  # the frames of its way here hold the message
        with suppress(InvalidStateError):
            super().set_exception(error)

    def cancel(self) -> bool:
        """Want the receipt no more; the message goes its way."""
        cancelled = super().cancel()
        if cancelled:
            self._leave()
        return cancelled

    def _leave(self) -> None:
        """Make room for others, once."""
        with _first_wait:
            left, self._left = self._left, True
        if not left:
            self._gate.leave(self._size)

    def done(self) -> bool:
        """Whether the receipt is there, or will not come."""
        return self._state not in _UNDER_WAY

    @property
    def _condition(self) -> threading.Condition:  # type: ignore[override]
        """What the parent's methods wait for and hold; made for the first of them."""
        condition = self._waited_for
        if condition is None:
            with _first_wait:
                condition = self._waited_for
                if condition is None:
                    condition = self._waited_for = threading.Condition()
        return condition

    def _invoke_callbacks(self) -> None:
        if not self._done_callbacks:
            return
        invoke = super()._invoke_callbacks  # type: ignore[misc]
        try:
            callback_threads().submit(invoke)
        except RuntimeError:  # the interpreter ends, and no thread begins any more
            invoke()
