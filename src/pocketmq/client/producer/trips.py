"""A batch that has left: its receipt is taken apart, and so is the batch if a broker refuses it.

A broker refuses a batch as a whole. If the reason may be one of its messages, they are sent once
more, each alone, so that only that one fails.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from pocketmq.balance.producer.plan import SendMode
from pocketmq.client.producer.choices import Choice
from pocketmq.client.producer.requests import Outgoing
from pocketmq.client.producer.shared_batches import BatchReceipts, SharedBatch, Taker, apart
from pocketmq.errors import MQError, ResponseCode, SendFailed
from pocketmq.model import SendReceipt

if TYPE_CHECKING:
    from pocketmq.client.producer.lanes import Lane
    from pocketmq.client.producer.sharing import Sharing

Start: TypeAlias = Callable[[Taker, Outgoing, Choice | None, float, SendMode], None]
"""Starts to send something within this number of seconds; its receipt goes to the taker."""

_OF_ONE_MESSAGE = frozenset({ResponseCode.MESSAGE_ILLEGAL, ResponseCode.REQUEST_CODE_NOT_SUPPORTED})
"""Refusals whose reason may be one message of a batch, or that there is a batch at all."""
_TOO_LARGE = "size exceeded"
_LEAST = 0.001  # seconds for a send


class Trip:
    """A batch in flight: the taker of its receipt."""

    __slots__ = ("_batch", "_lane", "_outgoing", "_sharing", "_start")

    def __init__(
        self, sharing: "Sharing", lane: "Lane", batch: SharedBatch, outgoing: Outgoing, start: Start
    ) -> None:
        self._sharing = sharing
        self._lane = lane
        self._batch = batch
        self._outgoing = outgoing
        self._start = start

    def done(self) -> bool:
        """Whether its outcome is not wanted: never, its lane waits for it."""
        return False

    def abandoned(self) -> bool:
        """Return whether no receipt is wanted any more; the batch has ended then."""
        if not self._batch.unwanted():
            return False
        self._sharing.ended(self._lane)
        self._sharing.done(self._batch)
        return True

    def on_unwanted(self, call: Callable[[], object]) -> None:
        """Call a function when no receipt is wanted any more."""
        self._batch.on_unwanted(call)

    def set_result(self, whole: SendReceipt) -> None:
        """Take the receipt, and hand each message its own."""
        batch, sharing = self._batch, self._sharing
        sharing.ended(self._lane)  # first: the next batch is on its way while these are handed out
        count = len(batch.messages)
        if count == 1:
            batch.settle_one(0, whole)
        else:
            batch.settle(BatchReceipts(whole, self._outgoing.unique_id, count))
        sharing.done(batch)

    def set_exception(self, error: BaseException) -> None:
        """Take the error: of all messages, or, if it may be of one, send each alone."""
        batch, sharing = self._batch, self._sharing
        if len(batch.messages) > 1 and sharing.clock() < batch.deadline and _may_be_of_one(error):
            self._send_apart()
            return
        sharing.ended(self._lane)
        batch.fail(error)
        sharing.done(batch)

    def _send_apart(self) -> None:
        choice = self._lane.choice()
        jobs = [(single, choice) for single in apart(self._outgoing)]
        send_one_by_one(self._sharing, self._lane, self._batch, self._start, jobs)


def send_one_by_one(
    sharing: "Sharing",
    lane: "Lane",
    batch: SharedBatch,
    start: Start,
    jobs: Sequence[tuple[Outgoing, Choice | None]],
) -> None:
    """Send the messages of a batch alone, within its time; then its lane goes on.

    Those of a chosen queue one after the other: Java's brokers keep no order of requests that come
    at once.
    """
    batch.pending = len(jobs)
    waiting = deque(enumerate(jobs))

    def send_next() -> None:
        if not waiting:
            sharing.ended(lane)
            return
        at, (single, choice) = waiting.popleft()
        one = _OneOf(sharing, batch, at, send_next if lane.queue is not None else None)
        try:
            start(one, single, choice, max(_LEAST, batch.deadline - sharing.clock()), lane.mode)
        except MQError as error:
            one.set_exception(error)

    if lane.queue is not None:
        send_next()
        return
    while waiting:
        send_next()
    sharing.ended(lane)


def _may_be_of_one(error: BaseException) -> bool:
    """Return whether a batch was refused for what may be one message of it, or its size."""
    if not isinstance(error, SendFailed) or error.outcome_unknown:
        return False
    if error.code == ResponseCode.SYSTEM_ERROR:
        # 5.x refuses what is over its own maxMessageSize like this.
        return _TOO_LARGE in (getattr(error.last_error, "remark", None) or "")
    return error.code in _OF_ONE_MESSAGE


class _OneOf:
    """One message of a batch that is sent alone after all: the taker of its receipt."""

    __slots__ = ("_at", "_batch", "_sharing", "_then")

    def __init__(
        self, sharing: "Sharing", batch: SharedBatch, at: int, then: Callable[[], None] | None
    ) -> None:
        self._sharing = sharing
        self._batch = batch
        self._at = at
        self._then = then

    def done(self) -> bool:
        """Whether its outcome is not wanted: never, its batch waits for it."""
        return False

    def set_result(self, receipt: SendReceipt) -> None:
        """Take the receipt."""
        self._ended(receipt)

    def set_exception(self, error: BaseException) -> None:
        """Take the error."""
        self._ended(error)

    def _ended(self, outcome: SendReceipt | BaseException) -> None:
        batch = self._batch
        batch.settle_one(self._at, outcome)
        batch.pending -= 1
        if not batch.pending:
            self._sharing.done(batch)
        if self._then is not None:
            self._sharing.soon(self._then)
