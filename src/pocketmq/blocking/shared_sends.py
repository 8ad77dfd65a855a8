"""Messages that threads submit and that share batches: added by threads, sent by the loop.

A message costs its thread a place in the open batch and a future that knows no more than this
place (see `shared_futures`). The loop hears of a batch once, and takes its receipt once. When a
batch leaves is decided by `client.producer.sharing`.
"""

import time

from pocketmq.balance.producer.plan import SendMode
from pocketmq.blocking.loop_thread import LoopThread
from pocketmq.blocking.shared_futures import SharedSend, ThreadBatch
from pocketmq.blocking.submitting import SubmitWindow
from pocketmq.client.lifetime import fork_count
from pocketmq.client.producer.lanes import Lane
from pocketmq.client.producer.requests import Outgoing
from pocketmq.client.producer.sending import Sending
from pocketmq.client.producer.shared_batches import Entry
from pocketmq.client.producer.sharing import Sharing
from pocketmq.errors import ClientClosed, SendFailed
from pocketmq.model import Message

_ASYNC = SendMode.ASYNC
_new = object.__new__


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
            or message.priority is not None
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
                # As `SharedSend(batch, at)`, at half the cost.
                future = _new(SharedSend)
                future.batch = batch
                future.at = at
                return future
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
