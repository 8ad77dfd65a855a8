"""Batches that threads fill, and the futures of their messages.

A future knows no more than its batch and its place in it: it makes its receipt of the batch's when
it is asked for. Outcomes come on the loop.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import InvalidStateError
from contextlib import suppress

from pocketmq.blocking.batch_places import OpenPlaces, Place
from pocketmq.blocking.conditions import SteadyCondition
from pocketmq.blocking.submitting import CallbackFuture, SubmitWindow
from pocketmq.client.producer.batches import pack_batch
from pocketmq.client.producer.preparing import Preparing
from pocketmq.client.producer.requests import Outgoing
from pocketmq.client.producer.shared_batches import BatchReceipts, SharedBatch, own_error
from pocketmq.errors import ClientClosed
from pocketmq.model import SendReceipt
from pocketmq.net.reasons import untraced

_PENDING, _FINISHED = "PENDING", "FINISHED"  # the states of futures
_UNFINISHED = frozenset({_PENDING, "RUNNING"})
_first_wait = threading.Lock()


class ThreadBatch(SharedBatch):
    """A batch that threads fill. Its futures ask it for receipts; it notifies those waited for.

    Outcomes come on the loop, and are guarded by one lock together with the first wait for each.
    """

    __slots__ = (
        "_error", "_ones", "_reclaimed", "_sealed", "_waited_for", "_window", "alone", "places",
        "receipts",
    )  # fmt: skip

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
        self.places: OpenPlaces | None = None
        """Those that messages take, as long as it is open."""
        self._sealed: OpenPlaces | None = None  # the same until it is packed
        self.receipts: BatchReceipts | None = None
        """Those of all messages, once they are there."""
        self.alone = False
        """Whether no other message may join the one that it has."""
        self._reclaimed: list[tuple[int, int]] = []  # not given back to the window yet
        self._error: BaseException | None = None
        self._ones: dict[int, SendReceipt | BaseException] = {}
        self._waited_for: dict[int, SharedSend] = {}

    def outcome(self, at: int) -> SendReceipt | BaseException | None:
        """Return the receipt or the error of one message; None as long as there is none."""
        if self.receipts is not None:
            return self.receipts.own(at)
        if self._error is not None:
            return own_error(self._error)
        return self._ones.get(at)

    def has_ended(self, at: int) -> bool:
        """Return whether a message has an outcome."""
        return self.receipts is not None or self._error is not None or at in self._ones

    def watch(self, at: int, future: "SharedSend") -> None:
        """Notify a future when its outcome comes; with the lock held."""
        self._waited_for[at] = future

    def open_places(self, alone_from: int, id_size: int) -> OpenPlaces:
        """Let messages take places; see `OpenPlaces`. None is granted yet."""
        self.places = OpenPlaces(self, self.messages, self.timeout, SharedSend, alone_from, id_size)
        return self.places

    def reclaim(self) -> None:
        """Return what was granted and not taken to the window; with its lock held."""
        places, reclaimed = self.places, self._reclaimed
        if places is not None:
            # In one step: interrupted before the result is stored, it would be lost.
            reclaimed.extend(map(OpenPlaces.reclaim, (places,)))
            self.size = places.size
        while reclaimed:
            self._window.give_back_last(reclaimed)

    def closed(self) -> None:
        """Take no more messages; with the lock held."""
        self.reclaim()
        if self.places is not None:  # else a thread was interrupted when it had done so
            self._sealed, self.places = self.places, None

    def pack(self, preparing: Preparing) -> Outgoing:
        """Return all messages as one request; they were written when they were added."""
        sealed, messages = self._sealed, self.messages
        if sealed is None or len(messages) == 1:
            return super().pack(preparing)
        plain = len(messages) - len(self.entries)
        packed = sealed.packed(*preparing.ids.take_run(preparing.clock.now_ms(), plain))
        return pack_batch(preparing, self.topic, messages, *packed)

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
            self.receipts = receipts
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
        self.messages, self.entries, self._sealed = [], {}, None
        self._window.leave(self.size, amount)


def _without_frames(error: BaseException) -> BaseException:
    if isinstance(error, asyncio.CancelledError):  # the loop has been stopped
        error = ClientClosed("producer")
    return untraced(error)  # the frames of its traceback hold the message


class SharedSend(Place, CallbackFuture):
    """A message in a batch, and the future of its receipt.

    Callbacks run in threads of their own, where they may block. Cancelling it does not take the
    message back.
    """

    # Of the class, until a thread waits: making a future is what a message costs most.
    _waited_for: SteadyCondition | None = None
    _place: "list[tuple[ThreadBatch | None, int, SendReceipt | None]] | None" = None
    _state = _PENDING
    _result: SendReceipt | None = None
    _exception = None
    __init__ = Place.__init__  # not the future's

    def _done_after_wait(self) -> bool:
        return self._state not in _UNFINISHED

    def _result_after_wait(self, timeout: float | None) -> SendReceipt:
        return CallbackFuture.result(self, timeout)

    def arrived(self, outcome: SendReceipt | BaseException) -> None:
        """Take the outcome that a thread waits for; on the loop."""
        with suppress(InvalidStateError):  # it was cancelled
            if isinstance(outcome, BaseException):
                self.set_exception(outcome)
            else:
                self.set_result(outcome)

    @property
    def _condition(self) -> SteadyCondition:  # type: ignore[override]
        """The condition that the parent's methods wait for and hold; made for the first of them."""
        return self._waited_for or self._watch()

    def _watch(self) -> SteadyCondition:
        with _first_wait:
            condition = self._waited_for
            if condition is None:
                self._waiters = []
                self._done_callbacks = []
                place = self._place
                if place is None:
                    place = self._place = []
                if not place:  # else a thread was interrupted below, as it may be here: in one step
                    place.extend(map(Place._leave_place, (self,)))  # noqa: SLF001 - the parent's
                batch, at, receipt = place[0]
                outcome = batch.outcome(at) if receipt is None and batch is not None else receipt
                if outcome is not None:
                    self._state = _FINISHED
                    if isinstance(outcome, BaseException):
                        self._exception = outcome
                    else:
                        self._result = outcome
                elif batch is not None:
                    batch.watch(at, self)
                condition = self._waited_for = SteadyCondition()
                self._place = None  # a future that is kept keeps no messages
        return condition
