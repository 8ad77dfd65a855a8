"""Messages that were sent one by one and travel as one request; each keeps a receipt of its own.

A `SharedBatch` collects them. Where a receipt goes is its `Taker`: on the loop those here, for
threads futures, in `pocketmq.blocking.shared_sends`. Independent of when a batch leaves.
"""

import asyncio
import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import count, repeat
from typing import Protocol, TypeAlias, TypeVar

import msgspec

from pocketmq.client.producer.batches import pack_batch
from pocketmq.client.producer.choices import Choice
from pocketmq.client.producer.preparing import Preparing
from pocketmq.client.producer.requests import Outgoing
from pocketmq.model import Message, SendReceipt
from pocketmq.native import in_core
from pocketmq.net.reasons import untraced
from pocketmq.protocol import RequestCode
from pocketmq.protocol.batch import (
    BatchEntry,
    decode_batch,
    encode_batch,
    encode_messages,
    encode_numbered,
)

_SEND = int(RequestCode.SEND_MESSAGE_V2)
E = TypeVar("E", bound=BaseException)

Entry: TypeAlias = tuple[Outgoing, bytes]
"""A message that was prepared by itself, and the same as an entry of a batch."""


class Taker(Protocol):
    """Where a receipt, or the error instead of it, goes; called on the loop, and once."""

    def done(self) -> bool:
        """Whether it is not wanted any more."""

    def set_result(self, result: SendReceipt, /) -> None:
        """Take the receipt."""

    def set_exception(self, exception: BaseException, /) -> None:
        """Take the error."""


class SharedBatch(ABC):
    """A batch that is open for more messages until it leaves.

    `timeout` is what the callers passed, the same for all; `deadline` is that of the first message.
    """

    __slots__ = (
        "deadline", "entries", "hold", "messages", "opened", "pending", "size", "timeout", "topic",
    )  # fmt: skip

    def __init__(self, topic: str, timeout: float | None, opened: float, deadline: float) -> None:
        self.topic = topic
        """The name on the wire."""
        self.timeout = timeout
        self.opened = opened
        self.deadline = deadline
        self.hold = 0.0
        """Seconds that it waits for company in any case."""
        self.messages: list[Message] = []
        self.entries: dict[int, Entry] = {}
        """Those of messages with more than a body, by their position."""
        self.size = 0
        """Bytes as entries of a batch."""
        self.pending = 0
        """Messages whose outcome is still to come, of those that are sent one by one."""

    def pack(self, preparing: Preparing) -> Outgoing:
        """Return all messages as one request; one alone as the message it is."""
        messages, entries = self.messages, self.entries
        if len(messages) == 1:
            return entries[0][0] if entries else preparing.prepare(messages[0])
        now_ms = preparing.clock.now_ms()
        if not entries:
            body, ids = encode_numbered(messages, *preparing.ids.take(now_ms, len(messages)))
            return pack_batch(preparing, self.topic, messages, body, ids)
        plain = [each for at, each in enumerate(messages) if at not in entries]
        own = preparing.ids.next_ids(now_ms, len(plain))
        made = zip(own, encode_messages(plain, own), strict=True)
        parts = [
            (entries[at][0].unique_id, entries[at][1]) if at in entries else next(made)
            for at in range(len(messages))
        ]
        body, ids = b"".join([part[1] for part in parts]), ",".join([part[0] for part in parts])
        return pack_batch(preparing, self.topic, messages, body, ids)

    def closed(self) -> None:  # noqa: B027 - most need nothing
        """Take note that nothing joins it any more; with the lock of the lanes held."""

    # Where receipts go. Called on the loop.

    @abstractmethod
    def drop_cancelled(self) -> None:
        """Remove messages that were cancelled while they waited."""

    @abstractmethod
    def unwanted(self) -> bool:
        """Return whether no caller wants a receipt any more."""

    @abstractmethod
    def on_unwanted(self, call: Callable[[], object]) -> None:
        """Call a function when no caller wants a receipt any more."""

    @abstractmethod
    def settle(self, receipts: "BatchReceipts") -> None:
        """Take the receipts of all messages."""

    @abstractmethod
    def fail(self, error: BaseException) -> None:
        """Take the error of all messages."""

    @abstractmethod
    def settle_one(self, at: int, outcome: SendReceipt | BaseException) -> None:
        """Take the outcome of one message."""


class LoopBatch(SharedBatch):
    """A batch whose receipts go to futures of the loop, or what looks like them."""

    __slots__ = ("choices", "takers")

    def __init__(self, topic: str, timeout: float | None, opened: float, deadline: float) -> None:
        super().__init__(topic, timeout, opened, deadline)
        self.takers: list[Taker] = []
        self.choices: list[Choice] = []
        """The callers' choices, if they chose the queue."""

    def drop_cancelled(self) -> None:
        """Remove messages whose future was cancelled."""
        if not any(taker.done() for taker in self.takers):
            return
        kept = [at for at, taker in enumerate(self.takers) if not taker.done()]
        self.entries = {
            new: self.entries[old] for new, old in enumerate(kept) if old in self.entries
        }
        self.messages = [self.messages[at] for at in kept]
        self.takers = [self.takers[at] for at in kept]
        self.choices = [self.choices[at] for at in kept] if self.choices else []

    def unwanted(self) -> bool:
        """Return whether all futures have been cancelled."""
        return all(taker.done() for taker in self.takers)

    def on_unwanted(self, call: Callable[[], object]) -> None:
        """Call a function when all futures have been cancelled."""

        def ended(future: asyncio.Future[SendReceipt]) -> None:
            if future.cancelled() and self.unwanted():
                call()

        for taker in self.takers:
            if isinstance(taker, asyncio.Future):
                taker.add_done_callback(ended)

    def settle(self, receipts: "BatchReceipts") -> None:
        """Hand every future its receipt."""
        for taker, receipt in zip(self.takers, receipts.each(), strict=True):
            if not taker.done():
                taker.set_result(receipt)

    def fail(self, error: BaseException) -> None:
        """Hand every future an error of its own."""
        for at, taker in enumerate(self.takers):
            if not taker.done():
                taker.set_exception(own_error(error) if at else error)

    def settle_one(self, at: int, outcome: SendReceipt | BaseException) -> None:
        """Hand one future its outcome."""
        taker = self.takers[at]
        if taker.done():
            return
        if isinstance(outcome, BaseException):
            taker.set_exception(outcome)
        else:
            taker.set_result(outcome)


@in_core
class BatchReceipts:
    """The receipts of a batch's messages, made when one is asked for: callers want all or none.

    Made of the receipt of the whole: it has all ids, and the queue offset of the first message.
    """

    __slots__ = ("_count", "_ids", "_made", "_whole")

    def __init__(self, whole: SendReceipt, ids: str, count: int) -> None:
        self._whole = whole
        self._ids = ids
        self._count = count
        self._made: Sequence[SendReceipt] = ()

    def own(self, at: int) -> SendReceipt:
        """Return the receipt of one message. Any thread may call it."""
        return (self._made or self._make())[at]

    def each(self) -> Iterator[SendReceipt]:
        """Return the receipts of all messages."""
        return iter(self._made or self._make())

    def _make(self) -> Sequence[SendReceipt]:
        status, _, places, queue, offset, *others = msgspec.structs.astuple(self._whole)
        made = map(
            SendReceipt,
            repeat(status),
            _split_ids(self._ids, self._count),
            repeat(None) if places is None else _split_ids(places, self._count),
            repeat(queue),
            count(offset),
            *map(repeat, others),
        )
        self._made = receipts = list(made)
        return receipts


def _split_ids(ids: str, count: int) -> list[str]:
    """Return ids that were joined by commas, one for each message."""
    found = ids.split(",")
    # A broker of 5.x that stores a batch as one record gives it one id.
    return found if len(found) == count else [ids] * count


def as_entry(outgoing: Outgoing) -> Entry | None:
    """Return a message as an entry; None for one that can only travel alone.

    That is one which is compressed, in a transaction, to a retry topic or with a priority, by
    which its broker chooses the queue.
    """
    if (
        outgoing.sys_flag
        or outgoing.code != _SEND
        or outgoing.for_5x
        or outgoing.max_reconsume_times is not None
        or outgoing.reconsume_times
        or any(message.priority is not None for message in outgoing.messages)
    ):
        return None
    entry = BatchEntry(outgoing.body, outgoing.properties.encode(), outgoing.flag)
    return outgoing, encode_batch((entry,))


def apart(whole: Outgoing) -> list[Outgoing]:
    """Return the messages of a batch as requests of their own, with the ids they had in it."""
    ids = whole.unique_id.split(",")
    return [
        Outgoing(
            whole.topic,
            entry.body,
            entry.property_bytes.decode(),
            unique_id,
            entry.flag,
            messages=(message,),
        )
        for entry, unique_id, message in zip(
            decode_batch(whole.body), ids, whole.messages, strict=True
        )
    ]


def own_error(error: E) -> E:
    """Return a copy of an error: one that several callers raise would mix their tracebacks."""
    own = copy.copy(error)
    own.__cause__ = error.__cause__
    return untraced(own)
