"""Sends that a thread starts and does not wait for: handed over to the loop, many at a time.

Owns the way there and back. What a send is, and what is done about failures, is `Sending`'s.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import TypeAlias, TypeVar

from pocketmq.balance.producer.plan import SendMode
from pocketmq.blocking.calls_in_flight import CallsInFlight
from pocketmq.blocking.conditions import SteadyCondition
from pocketmq.blocking.loop_thread import LoopThread
from pocketmq.blocking.process_loop import callback_threads
from pocketmq.client.producer.choices import Choice
from pocketmq.client.producer.requests import Outgoing
from pocketmq.client.producer.submitting import Submitting
from pocketmq.client.producer.window import ByteBudget
from pocketmq.errors import ClientClosed, MQError, SendFailed
from pocketmq.model import SendReceipt
from pocketmq.net.reasons import untraced

_PENDING, _FINISHED, _CANCELLED = "PENDING", "FINISHED", "CANCELLED"  # the parent's states
_UNFINISHED = frozenset({_PENDING, "RUNNING"})
_first_wait = threading.Lock()
_Send: TypeAlias = tuple[Outgoing, Choice | None, float, SendMode]
E = TypeVar("E")


class SubmitWindow:
    """How much threads may submit before they wait: a bound on sends and on their bytes.

    Any thread enters and waits; the end of a send, on the loop, frees its capacity.
    """

    def __init__(self, most: int, budget: ByteBudget, lock: "threading.Lock | None" = None) -> None:
        self.most = most
        self.budget = budget
        self.count = 0
        """Sends in flight; guarded by the lock, as `bytes` is."""
        self.bytes = 0
        self.pressed = False
        """Whether threads had to wait since nothing was in flight the last time."""
        self.on_full: Callable[[], None] = lambda: None
        """Called before a thread waits."""
        self._in_flight = CallsInFlight()
        self._lock = lock or threading.Lock()

    def try_enter(
        self, size: int, put: Callable[[E], object], entering: E, *, waited: bool = False
    ) -> bool:
        """Put something where it waits to be sent, if there is capacity.

        `waited` is whether the thread had to wait for that. `put` is compiled, such as the method
        of a list: so an interrupt (KeyboardInterrupt) comes before the capacity is taken, or after
        it has an owner.
        """
        with self._lock:
            if not self.has_room(size, waited=waited):
                return False
            self.count += 1
            self.bytes += size
            put(entering)
            return True

    def wait(self, size: int, timeout: float) -> bool:
        """Wait for capacity at most `timeout` seconds; False if there was none.

        Another thread may be the first to enter.
        """
        self.on_full()

        def fits() -> bool | None:
            with self._lock:
                self.pressed = True
                return self._fits(size) or None

        return self._in_flight.wait_for(fits, timeout) is not None

    def wait_for_room(self) -> None:
        """Wait until a small send could enter at once."""
        while not self._fits(0):
            self.wait(0, 60.0)

    def leave(self, size: int, amount: int = 1) -> None:
        """Free the capacity of a send, or of `amount` that travelled together.

        Waiting threads are woken once half of the capacity is free: waking one for each send would
        cost a thread switch per message.
        """
        with self._lock:
            self.give_back(size, amount)

    def give_back(self, size: int, amount: int) -> None:
        """Do as `leave` does; with the lock held."""
        self.give_back_last([(amount, size)])

    def give_back_last(self, unused: list[tuple[int, int]]) -> None:
        """Do the same for the last of several amounts, and remove it; with the lock held.

        An interrupt comes before both or after both.
        """
        amount, size = unused[-1]
        self.count -= amount
        self.bytes -= size
        unused.pop()
        if self._in_flight.sleepers and self.count <= self.most // 2:
            self._in_flight.notify_all()

    def grant(self, size: int, amount: int, share: int) -> tuple[int, int]:
        """Reserve capacity in advance, of what is free one `share`; return sends and bytes.

        With the lock held. What is not used is given back.
        """
        amount = min(amount, (self.most - self.count) // share)
        size = min(size, (self.budget.limit - self.bytes) // share)
        if amount <= 0 or size <= 0:
            return 0, 0
        self.count += amount
        self.bytes += size
        return amount, size

    def has_room(self, size: int, *, waited: bool) -> bool:
        """Return whether a send may enter now; with the lock held."""
        if not self.count and not waited:
            self.pressed = False
        return self._fits(size)

    def _fits(self, size: int) -> bool:
        if not self.count:
            return True
        return self.count < self.most and self.bytes + size <= self.budget.limit


class LoopHandOver:
    """Starts sends on the loop. Any thread may submit."""

    def __init__(self, on_loop: Submitting, thread: LoopThread, window: SubmitWindow) -> None:
        self.window = window
        self._on_loop = on_loop
        self._thread = thread
        self._handed: deque[SubmittedSend] = deque()
        self._woken = False

    def submit(
        self,
        outgoing: Outgoing,
        choice: Choice | None,
        timeout: float | None,
        mode: SendMode = SendMode.ASYNC,
        *,
        share: bool = False,
    ) -> "SubmittedSend":
        """Start a send, waiting while the window is full, and return the future of its receipt.

        With `share` it may travel in a batch with others whose callers chose the same queue.
        Raises `SendFailed` if there is no capacity within the message's time, and what
        `Session.check` does.
        """
        sending = self._on_loop.sending
        sending.session.check()
        limit = sending.limit(timeout)
        size = len(outgoing.body)
        handed = SubmittedSend(self.window, outgoing, choice, limit, mode, share=share)
        try:
            if not self.window.try_enter(size, self._handed.append, handed):
                self._wait(handed, size, limit)
            self._wake()
        except BaseException:  # an interrupt: what has been handed over is sent all the same
            self._wake()
            raise
        return handed

    def _wait(self, handed: "SubmittedSend", size: int, limit: float) -> None:
        """Hand over a send once there is capacity."""
        window, started = self.window, time.monotonic()
        while True:
            has_room = window.wait(size, started + limit - time.monotonic())
            elapsed = time.monotonic() - started
            if not has_room or elapsed >= limit:
                raise SendFailed(handed.topic, None, 0, elapsed, None)
            handed.limit(limit - elapsed)
            if window.try_enter(size, self._handed.append, handed, waited=True):
                return

    def _wake(self) -> None:
        """Make the loop begin what was handed over.

        One wake-up is for all that threads hand over until the loop comes round. The order matters:
        threads append, then look at the flag; the loop clears the flag, then empties the queue.
        """
        if self._handed and not self._woken:
            self._woken = True
            try:
                self._thread.loop.call_soon_threadsafe(self._begin)
            except BaseException:
                self._woken = False
                raise

    def _begin(self) -> None:
        self._woken = False
        handed = self._handed
        while handed:
            handed.popleft().begin(self._on_loop)


class CallbackFuture(Future[SendReceipt]):
    """A future whose callbacks run in threads of their own, where they may block."""

    _done_callbacks: list[object]

    def cancel(self) -> bool:
        """Discard the result; `concurrent.futures.wait` and `as_completed` take it for done."""
        cancelled = super().cancel()
        with self._condition:
            if self._state == _CANCELLED:  # else it was cancelled before
                self.set_running_or_notify_cancel()
        return cancelled

    def _invoke_callbacks(self) -> None:
        if not self._done_callbacks:
            return
        invoke = super()._invoke_callbacks  # type: ignore[misc]
        try:
            callback_threads().submit(invoke)
        except RuntimeError:  # the interpreter shuts down, and no thread starts any more
            invoke()


class SubmittedSend(CallbackFuture):
    """A message in flight, and the future of its receipt.

    Cancelling it does not take the message back.
    """

    def __init__(
        self,
        window: SubmitWindow,
        outgoing: Outgoing,
        choice: Choice | None,
        timeout: float,
        mode: SendMode = SendMode.ASYNC,
        *,
        share: bool = False,
    ) -> None:
        # As the parent's, except the condition, which costs more than all the rest and is only
        # needed by threads that wait before the receipt is there.
        self._state = _PENDING
        self._result = None
        self._exception = None
        self._waiters = []
        self._done_callbacks = []
        self._waited_for: SteadyCondition | None = None
        self._left = False
        self._window = window
        self._size = len(outgoing.body)
        self._send: _Send | None = (outgoing, choice, timeout, mode)
        self._share = share

    @property
    def topic(self) -> str:
        """Its message's topic, before it begins."""
        assert self._send is not None
        return self._send[0].messages[0].topic

    def limit(self, timeout: float) -> None:
        """Set the seconds that it may take, before it begins."""
        assert self._send is not None
        outgoing, choice, _, mode = self._send
        self._send = outgoing, choice, timeout, mode

    def begin(self, on_loop: Submitting) -> None:
        """Start the send; on the loop."""
        send, self._send = self._send, None  # a future that is kept keeps no message
        assert send is not None
        try:
            on_loop.submit_into(self, *send, share=self._share)
        except MQError as error:
            self.set_exception(error)

    # Where the receipt goes: called on the loop.

    def set_result(self, receipt: SendReceipt) -> None:
        """Take the receipt."""
        # Without a condition no thread waits, has added a callback or has cancelled, and none can
        # start to while the lock is held; so the parent's locking and notifying can be left out.
        with _first_wait:
            alone = self._waited_for is None
            if alone:
                self._result = receipt
                self._state = _FINISHED
        self._leave()
        if not alone:
            with suppress(InvalidStateError):  # it was cancelled
                super().set_result(receipt)

    def set_exception(self, error: BaseException | None) -> None:
        """Take the error."""
        self._leave()
        if isinstance(error, asyncio.CancelledError):  # the loop has been stopped
            error = ClientClosed("producer")
        if error is not None:
            untraced(error)  # the frames of its traceback hold the message
        with suppress(InvalidStateError):
            super().set_exception(error)

    def cancel(self) -> bool:
        """Discard the receipt; the message is sent nevertheless."""
        cancelled = super().cancel()
        if cancelled:
            self._leave()
        return cancelled

    def _leave(self) -> None:
        """Free the capacity, once."""
        with _first_wait:
            left, self._left = self._left, True
        if not left:
            self._window.leave(self._size)

    def done(self) -> bool:
        """Whether the receipt is there, or will not come."""
        return self._state not in _UNFINISHED

    @property
    def _condition(self) -> SteadyCondition:  # type: ignore[override]
        """The condition that the parent's methods wait for and hold; made for the first of them."""
        condition = self._waited_for
        if condition is None:
            with _first_wait:
                condition = self._waited_for
                if condition is None:
                    condition = self._waited_for = SteadyCondition()
        return condition
