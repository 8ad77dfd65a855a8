"""Messages that threads submit and that share batches: added by threads, sent by the loop.

A message costs its thread a place in the open batch and a future that knows no more than this
place. The loop hears of a batch once, and takes its receipt once; a future makes its own of it when
somebody asks. When a batch leaves is decided by `client.producer.sharing`.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import InvalidStateError
from contextlib import suppress

from pocketmq.balance.producer.plan import SendMode
from pocketmq.blocking.loop_thread import LoopThread
from pocketmq.blocking.submitting import CallbackFuture, SubmitWindow
from pocketmq.client.lifetime import fork_count
from pocketmq.client.producer.requests import Outgoing
from pocketmq.client.producer.sending import Sending
from pocketmq.client.producer.shared_batches import (
    BatchReceipts,
    Entry,
    SharedBatch,
    own_error,
)
from pocketmq.client.producer.sharing import Lane, Sharing
from pocketmq.errors import ClientClosed, SendFailed
from pocketmq.model import Message, SendReceipt
from pocketmq.net.reasons import untraced

_PENDING, _FINISHED = "PENDING", "FINISHED"  # the states of futures
_UNFINISHED = frozenset({_PENDING, "RUNNING"})
_ASYNC = SendMode.ASYNC
_first_wait = threading.Lock()


class ThreadBatch(SharedBatch):
    """A batch that threads fill. Its futures ask it for receipts; it notifies those waited for.

    Outcomes come on the loop, and are guarded by one lock together with the first wait for each.
    """

    __slots__ = ("_error", "_ones", "_receipts", "_waited_for", "_window")

    def __init__(
        self,
        window: SubmitWindow,
        topic: str,
        timeout: float | None,
        opened: float,
        deadline: float,
    ) -> None:
        super().__init__(topic, timeout, opened, deadline)
        self._window = window
        self._receipts: BatchReceipts | None = None
        self._error: BaseException | None = None
        self._ones: dict[int, SendReceipt | BaseException] = {}
        self._waited_for: dict[int, SharedSend] = {}

    def outcome(self, at: int) -> SendReceipt | BaseException | None:
        """Return the receipt or the error of one message; None as long as there is none."""
        if self._receipts is not None:
            return self._receipts.own(at)
        if self._error is not None:
            return own_error(self._error)
        return self._ones.get(at)

    def has_ended(self, at: int) -> bool:
        """Return whether a message has an outcome."""
        return self._receipts is not None or self._error is not None or at in self._ones

    def watch(self, at: int, future: "SharedSend") -> None:
        """Notify a future when its outcome comes; with the lock held."""
        self._waited_for[at] = future

    def drop_cancelled(self) -> None:
        """Remove nothing: what a thread has submitted is sent."""

    def unwanted(self) -> bool:
        """Return False: what a thread has submitted is sent."""
        return False

    def on_unwanted(self, call: Callable[[], object]) -> None:
        """Call nothing, for the same reason."""

    def settle(self, receipts: BatchReceipts) -> None:
        """Take the receipts of all messages."""
        with _first_wait:
            self._receipts = receipts
            waited_for, self._waited_for = self._waited_for, {}
        self._leave()
        for at, future in waited_for.items():
            future.arrived(receipts.own(at))

    def fail(self, error: BaseException) -> None:
        """Take the error of all messages."""
        error = _without_frames(error)
        with _first_wait:
            self._error = error
            waited_for, self._waited_for = self._waited_for, {}
        self._leave()
        for future in waited_for.values():
            future.arrived(own_error(error))

    def settle_one(self, at: int, outcome: SendReceipt | BaseException) -> None:
        """Take the outcome of one message."""
        if isinstance(outcome, BaseException):
            outcome = _without_frames(outcome)
        with _first_wait:
            self._ones[at] = outcome
            future = self._waited_for.pop(at, None)
        if len(self._ones) == len(self.messages):
            self._leave()
        if future is not None:
            future.arrived(outcome)

    def _leave(self) -> None:
        """Free the capacity of all messages, and the messages: futures may be kept for long."""
        amount = len(self.messages)
        self.messages, self.entries = [], {}
        self._window.leave(self.size, amount)


def _without_frames(error: BaseException) -> BaseException:
    if isinstance(error, asyncio.CancelledError):  # the loop has been stopped
        error = ClientClosed("producer")
    return untraced(error)  # the frames of its traceback hold the message


class SharedSend(CallbackFuture):
    """A message in a batch, and the future of its receipt.

    Callbacks run in threads of their own, where they may block. Cancelling it does not take the
    message back.
    """

    # Of the class, until a thread waits: making a future is what a message costs most.
    _waited_for: threading.Condition | None = None
    _state = _PENDING
    _result: SendReceipt | None = None
    _exception = None

    def __init__(self, batch: ThreadBatch, at: int) -> None:
        self._batch: ThreadBatch | None = batch
        self._at = at

    def result(self, timeout: float | None = None) -> SendReceipt:
        """Return the receipt, or raise the error; waits for it at most `timeout` seconds."""
        if self._state == _FINISHED and self._result is not None:
            return self._result
        batch = self._batch
        if self._waited_for is None and batch is not None and batch.has_ended(self._at):
            outcome = batch.outcome(self._at)
            if isinstance(outcome, SendReceipt):
                self._result, self._state, self._batch = outcome, _FINISHED, None
                return outcome
        return super().result(timeout)

    def done(self) -> bool:
        """Whether the receipt is there, or will not come."""
        batch = self._batch
        if self._waited_for is None and batch is not None:
            return batch.has_ended(self._at)
        return self._state not in _UNFINISHED

    def arrived(self, outcome: SendReceipt | BaseException) -> None:
        """Take the outcome that a thread waits for; on the loop."""
        with suppress(InvalidStateError):  # it was cancelled
            if isinstance(outcome, BaseException):
                self.set_exception(outcome)
            else:
                self.set_result(outcome)

    @property
    def _condition(self) -> threading.Condition:  # type: ignore[override]
        """The condition that the parent's methods wait for and hold; made for the first of them."""
        return self._waited_for or self._watch()

    def _watch(self) -> threading.Condition:
        with _first_wait:
            condition = self._waited_for
            if condition is None:
                self._waiters = []
                self._done_callbacks = []
                batch, self._batch = self._batch, None
                if batch is not None:
                    outcome = batch.outcome(self._at)
                    if outcome is None:
                        batch.watch(self._at, self)
                    else:
                        self._state = _FINISHED
                        if isinstance(outcome, BaseException):
                            self._exception = outcome
                        else:
                            self._result = outcome
                condition = self._waited_for = threading.Condition()
        return condition


class ThreadSharing:
    """Adds messages of threads to the batches of a producer. Any thread may submit."""

    def __init__(
        self, sending: Sending, sharing: Sharing, thread: LoopThread, window: SubmitWindow
    ) -> None:
        self._sending = sending
        self._sharing = sharing
        self._loop = thread.loop
        self._lock = sharing.lock
        self._window = window
        self._check = sending.session.check
        self._generation = fork_count()
        self._async_lanes = sharing.plain[_ASYNC]
        self._sync_lanes = sharing.plain[SendMode.SYNC]
        self._plain_size = sharing.plain_size
        self._alone_from = sharing.alone_from
        self._most_bytes = sharing.most_bytes
        self._most = sharing.most
        sharing.clock = time.monotonic
        sharing.make_plain = lambda *batch: ThreadBatch(window, *batch)

    def submit(
        self, message: Message, timeout: float | None, mode: SendMode = _ASYNC
    ) -> SharedSend:
        """Start to send a message whose queue is not chosen; return the future of its receipt.

        Waits while the window is full. Raises `SendFailed` if there is no capacity within the
        message's time, and what `Preparing.prepare` and `Session.check` do.
        """
        # For each message: no call that can be left out, no look at a clock.
        if fork_count() != self._generation:
            self._check()
        try:
            lane = (self._async_lanes if mode is _ASYNC else self._sync_lanes).get(message.topic)
        except (AttributeError, TypeError):
            lane = None
        if (
            lane is None
            or message.properties
            or message.keys
            or message.tag
            or message.flag
            or not 0 < (size := len(message.body)) < self._alone_from
            or lane.alone
        ):
            return self._submit_prepared(message, timeout, mode)
        size += self._plain_size
        window = self._window
        with self._lock:
            batch: ThreadBatch | None = lane.open  # type: ignore[assignment] # see `make_plain`
            if (
                batch is not None
                and (total := batch.size + size) <= self._most_bytes
                and batch.timeout == timeout
                and (at := len(messages := batch.messages)) < self._most
                and (count := window.count) < window.most
                and (held := window.bytes + size) <= window.budget.limit
            ):
                window.count = count + 1
                window.bytes = held
                batch.size = total
                messages.append(message)
                return SharedSend(batch, at)
        return self._submit_slowly(lane, message, None, size, timeout)

    def _submit_prepared(
        self, message: Message, timeout: float | None, mode: SendMode
    ) -> SharedSend:
        """Do the same for a message with more than a body, or the first one to its topic."""
        outgoing = self._sending.preparing.prepare(message)
        with self._lock:
            lane = self._sharing.plain_lane(message.topic, mode)
        given = self._sharing.given(lane, outgoing)
        size = len(given.body) if isinstance(given, Outgoing) else len(given[1])
        return self._submit_slowly(lane, message, given, size, timeout)

    def _submit_slowly(
        self,
        lane: Lane,
        message: Message,
        given: Outgoing | Entry | None,
        size: int,
        timeout: float | None,
    ) -> SharedSend:
        """Do the same for a message that needs more than a place in the open batch."""
        self._check()
        sharing, started = self._sharing, time.monotonic()
        deadline = started + self._sending.limit(timeout)
        if not self._window.try_enter(size):
            self._wait(message, size, started, deadline)
        alone = isinstance(given, Outgoing)
        try:
            with self._lock:
                batch = lane.open
                if alone or not sharing.fits(batch, size, timeout):
                    batch = sharing.open_batch(lane, timeout, deadline)
                assert isinstance(batch, ThreadBatch)
                at = len(batch.messages)
                if given is not None:
                    batch.entries[at] = (given, b"") if isinstance(given, Outgoing) else given
                batch.messages.append(message)
                batch.size += size
                batch.deadline = min(batch.deadline, deadline)
                if alone:
                    sharing.seal(lane)
        except ClientClosed:
            self._window.leave(size)
            raise
        self._wake()
        return SharedSend(batch, at)

    def _wait(self, message: Message, size: int, started: float, deadline: float) -> None:
        """Wait for capacity; what is open leaves, because nothing joins it meanwhile."""
        with self._lock:
            self._sharing.seal_all()
        self._wake()
        entered = self._window.enter(size, deadline - started)
        elapsed = time.monotonic() - started
        if entered and started + elapsed >= deadline:
            self._window.leave(size)
            entered = False
        if not entered:
            raise SendFailed(message.topic, None, 0, elapsed, None)

    def _wake(self) -> None:
        sharing = self._sharing
        if sharing.is_due and not sharing.woken:
            sharing.woken = True
            try:
                self._loop.call_soon_threadsafe(sharing.leave_due)
            except RuntimeError:  # the loop was closed just now
                raise ClientClosed("producer") from None
