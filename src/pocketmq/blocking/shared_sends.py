"""Messages that threads submit and that share batches: added by threads, sent by the loop.

A message costs its thread a place in the open batch and a future that knows no more than this
place (see `shared_futures`). The loop hears of a batch once, and takes its receipt once. When a
batch leaves is decided by `client.producer.sharing`.
"""

import os
import time
from weakref import WeakSet

from pocketmq.balance.producer.plan import SendMode
from pocketmq.blocking.batch_places import PlainSubmits
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
_PRESSED_HOLD = 0.001
"""Seconds that a batch waits for company while threads submit more than there is capacity for."""
_USUAL_SIZE = 256
"""Bytes that are granted for each place."""
_running: "WeakSet[ThreadSharing]" = WeakSet()


def _forked() -> None:
    for sharing in list(_running):
        sharing.plain.stop()  # so that every submit comes to the check for forks


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class ThreadSharing:
    """Adds messages of threads to the batches of a producer. Any thread may submit."""

    def __init__(
        self, sending: Sending, sharing: Sharing, thread: LoopThread, window: SubmitWindow
    ) -> None:
        self._sending = sending
        self._sharing = sharing
        self._thread = thread
        self._lock = sharing.lock
        self._window = window
        self._check = sending.session.check
        self._generation = fork_count()
        self._async_lanes = sharing.plain[_ASYNC]
        self._sync_lanes = sharing.plain[SendMode.SYNC]
        sharing.clock = time.monotonic
        sharing.make_plain = self._make
        window.on_full = self._leave_open
        self.plain = PlainSubmits(self._async_lanes)
        """Those messages that find a granted place; comes before `submit`."""
        _running.add(self)

    def _make(
        self, topic: str, timeout: float | None, opened: float, deadline: float
    ) -> ThreadBatch:
        return ThreadBatch(self._window, topic, timeout, opened, deadline)

    def submit(
        self, message: Message, timeout: float | None, mode: SendMode = _ASYNC
    ) -> SharedSend:
        """Start to send a message whose queue is not chosen; return the future of its receipt.

        Waits while the window is full. Raises `SendFailed` if there is no capacity within the
        message's time, and what `Preparing.prepare` and `Session.check` do.
        """
        # For many messages: no call that can be left out, no look at a clock.
        if fork_count() != self._generation:
            self._check()
        try:
            lanes = self._async_lanes if mode is _ASYNC else self._sync_lanes
            lane = lanes[message.topic]
            places = lane.places
            future = None if places is None else places.add(message, timeout)
        except (AttributeError, TypeError, KeyError):
            return self._submit_prepared(message, timeout, mode)
        if future is not None:
            return future  # type: ignore[return-value] # see `_make`
        if lane.alone or not self._sharing.is_plain(message):
            return self._submit_prepared(message, timeout, mode)
        return self._submit_slowly(lane, message, None, timeout)

    def _submit_prepared(
        self, message: Message, timeout: float | None, mode: SendMode
    ) -> SharedSend:
        """Do the same for a message with more than a body, or the first one to its topic."""
        outgoing = self._sending.preparing.prepare(message)
        with self._lock:
            lane = self._sharing.plain_lane(message.topic, mode)
        return self._submit_slowly(lane, message, self._sharing.given(lane, outgoing), timeout)

    def _submit_slowly(
        self,
        lane: Lane,
        message: Message,
        given: Outgoing | Entry | None,
        timeout: float | None,
    ) -> SharedSend:
        """Do the same for a message that needs more than a granted place in the open batch."""
        self._check()
        sharing, started = self._sharing, time.monotonic()
        deadline = started + self._sending.limit(timeout)
        alone = isinstance(given, Outgoing)
        entry: tuple[bytes, str] | None = None
        prepared: Entry | None = None
        if isinstance(given, Outgoing):
            entry, prepared = (given.body, given.unique_id), (given, b"")
        elif given is not None:
            entry, prepared = (given[1], given[0].unique_id), given
        size = len(message.body) + sharing.plain_size if entry is None else len(entry[0])
        window, waited = self._window, False
        try:
            while True:
                with self._lock:
                    if window.has_room(size, waited=waited):
                        batch = self._joined(lane, size, timeout, deadline, alone=alone)
                        assert batch.places is not None
                        at = len(batch.messages)
                        # An interrupt comes before all of these steps or after them: there is no
                        # call in between, and the last one is compiled.
                        if prepared is not None:
                            batch.entries[at] = prepared
                        window.count += 1
                        window.bytes += size
                        batch.places.append(message, entry)
                        batch.deadline = min(batch.deadline, deadline)
                        if alone:
                            sharing.seal(lane)
                        else:
                            self._grant(batch)
                        break
                self._wait(message, size, started, deadline)
                waited = True
            self._wake()
        except BaseException:  # an interrupt: what was added leaves all the same
            self._wake()
            raise
        future: SharedSend = SharedSend(batch, at)
        return future

    def _joined(
        self, lane: Lane, size: int, timeout: float | None, deadline: float, *, alone: bool
    ) -> ThreadBatch:
        """Return the batch that a message joins, a new one if need be; with the lock held."""
        batch: ThreadBatch | None = lane.open  # type: ignore[assignment] # see `_make`
        if batch is not None:
            batch.reclaim()
        if (
            batch is None
            or alone
            or batch.alone
            or batch.places is None  # a thread was interrupted before it made them
            or not self._sharing.fits(batch, size, timeout)
        ):
            batch = self._open(lane, timeout, deadline)
            batch.alone = alone
        return batch

    def _open(self, lane: Lane, timeout: float | None, deadline: float) -> ThreadBatch:
        """Open a batch with places for messages; with the lock held."""
        batch = self._sharing.open_batch(lane, timeout, deadline)
        assert isinstance(batch, ThreadBatch)
        if self._window.pressed:
            batch.hold = _PRESSED_HOLD
        lane.places = batch.open_places(self._sharing.alone_from, self._sharing.id_size)
        return batch

    def _grant(self, batch: ThreadBatch) -> None:
        """Grant a batch its next places; with the lock held."""
        places, sharing = batch.places, self._sharing
        assert places is not None
        amount = sharing.most - len(batch.messages)
        size = min(amount * _USUAL_SIZE, sharing.most_bytes - places.size)
        places.grant(*self._window.grant(size, amount, share=2 if sharing.several_open else 1))

    def _wait(self, message: Message, size: int, started: float, deadline: float) -> None:
        """Wait for capacity, which another thread may take first."""
        has_room = self._window.wait(size, deadline - time.monotonic())
        now = time.monotonic()
        if not has_room or now >= deadline:
            raise SendFailed(message.topic, None, 0, now - started, None)

    def _leave_open(self) -> None:
        """Let what is open leave: nothing joins it while a thread waits for capacity."""
        with self._lock:
            self._sharing.seal_all()
        self._wake()

    def _wake(self) -> None:
        sharing = self._sharing
        if sharing.is_due and not sharing.woken:
            sharing.woken = True
            try:
                self._thread.loop.call_soon_threadsafe(sharing.leave_due)
            except BaseException as error:
                sharing.woken = False
                if self._thread.loop.is_closed() and isinstance(error, RuntimeError):
                    raise ClientClosed("producer") from None
                raise
