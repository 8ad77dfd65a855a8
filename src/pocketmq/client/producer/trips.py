"""A batch that has left: its receipt is taken apart, and so is the batch if a broker refuses it.

A broker refuses a batch as a whole. If the reason may be one of its messages, they are sent once
more, each alone, so that only that one fails.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from pocketmq.balance.producer.plan import SendMode
from pocketmq.client.producer.choices import Choice
from pocketmq.client.producer.requests import Outgoing
from pocketmq.client.producer.shared_batches import BatchReceipts, LoopBatch, SharedBatch, apart
from pocketmq.client.producer.takers import Taker
from pocketmq.errors import MQError, ResponseCode, SendFailed
from pocketmq.model import SendReceipt

if TYPE_CHECKING:
    from pocketmq.client.producer.sharing import Lane, Sharing

Start: TypeAlias = Callable[[Taker, Outgoing, Choice | None, float, SendMode], None]
"""Starts to send something within this number of seconds; its receipt goes to the taker."""

_OF_ONE_MESSAGE = frozenset({ResponseCode.MESSAGE_ILLEGAL, ResponseCode.REQUEST_CODE_NOT_SUPPORTED})
"""Refusals whose reason may be one message of a batch, or that there is a batch at all."""


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
        """Whether it need not be told its outcome: never, its lane waits for it."""
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
        left = batch.deadline - sharing.clock()
        if (
            isinstance(error, SendFailed)
            and error.code in _OF_ONE_MESSAGE
            and not error.outcome_unknown
            and len(batch.messages) > 1
            and left > 0
        ):
            self._send_apart(left)
            sharing.ended(self._lane)
            return
        sharing.ended(self._lane)
        batch.fail(error)
        sharing.done(batch)

    def _send_apart(self, left: float) -> None:
        choice, mode = self._lane.choice(), self._lane.mode
        for single, one in zip(
            apart(self._outgoing), _each(self._sharing, self._batch), strict=True
        ):
            _send(self._start, one, single, choice, left, mode)


def send_each(
    sharing: "Sharing", lane: "Lane", batch: LoopBatch, start: Start, left: float
) -> None:
    """Send the messages of a batch alone, each to the queue that its own choice names now."""
    singles = [batch.entries[at][0] for at in range(len(batch.messages))]
    for single, one, choice in zip(singles, _each(sharing, batch), batch.choices, strict=True):
        _send(start, one, single, choice, left, lane.mode)


def _each(sharing: "Sharing", batch: SharedBatch) -> "list[_OneOf]":
    batch.pending = len(batch.messages)
    return [_OneOf(sharing, batch, at) for at in range(batch.pending)]


def _send(
    start: Start,
    one: "_OneOf",
    single: Outgoing,
    choice: Choice | None,
    left: float,
    mode: SendMode,
) -> None:
    try:
        start(one, single, choice, left, mode)
    except MQError as error:
        one.set_exception(error)


class _OneOf:
    """One message of a batch that is sent alone after all: the taker of its receipt."""

    __slots__ = ("_at", "_batch", "_sharing")

    def __init__(self, sharing: "Sharing", batch: SharedBatch, at: int) -> None:
        self._sharing = sharing
        self._batch = batch
        self._at = at

    def done(self) -> bool:
        """Whether it need not be told its outcome: never, its batch waits for it."""
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
