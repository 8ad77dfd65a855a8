"""Places of messages in a batch that threads fill: what `submit` does for each message.

The compiled core replaces these classes. A batch is granted places by the window in advance, so
that taking one needs neither the window nor its lock.
"""

import threading
from typing import TYPE_CHECKING

from pocketmq.model import Message, SendReceipt
from pocketmq.native import in_core
from pocketmq.protocol.batch import encode_messages, encode_numbered, plain_overhead
from pocketmq.protocol.message_ids import numbered_ids

if TYPE_CHECKING:
    from pocketmq.blocking.shared_futures import SharedSend, ThreadBatch
    from pocketmq.client.producer.lanes import Lane


@in_core
class Place:
    """A message's place in a batch: what its future knows as long as no thread waits for it.

    The future that is made of it has `_done_after_wait` and `_result_after_wait`, which are called
    once it has left its place.
    """

    _receipt: SendReceipt | None = None

    def __init__(self, batch: "ThreadBatch | None" = None, at: int = 0) -> None:
        self._batch = batch
        self._at = at

    def done(self) -> bool:
        """Whether the receipt is there, or will not come."""
        batch = self._batch
        if batch is None:
            return self._receipt is not None or self._done_after_wait()
        return batch.receipts is not None or batch.has_ended(self._at)

    def result(self, timeout: float | None = None) -> SendReceipt:
        """Return the receipt, or raise the error; waits for it at most `timeout` seconds."""
        receipt, batch = self._receipt, self._batch
        if receipt is not None:
            return receipt
        if batch is not None and (receipts := batch.receipts) is not None:
            receipt = self._receipt = receipts.own(self._at)
            self._batch = None
            return receipt
        return self._result_after_wait(timeout)

    def _done_after_wait(self) -> bool:
        raise NotImplementedError

    def _result_after_wait(self, timeout: float | None) -> SendReceipt:
        raise NotImplementedError

    def _leave_place(self) -> "tuple[ThreadBatch | None, int, SendReceipt | None]":
        """Return batch, position and receipt, and leave the batch: from now on a thread waits."""
        batch, self._batch = self._batch, None
        return batch, self._at, self._receipt


@in_core
class OpenPlaces:
    """The places of an open batch, and what was written into them. Any thread may add a message.

    A body of `alone_from` bytes and more travels alone.
    """

    def __init__(  # noqa: PLR0917 - as the core's
        self,
        batch: "ThreadBatch",
        messages: list[Message],
        timeout: float | None,
        futures: "type[SharedSend]",
        alone_from: int,
        id_size: int,
    ) -> None:
        self._batch = batch
        self._messages = messages
        self._timeout = timeout
        self._futures = futures
        self._alone_from = alone_from
        self._overhead = plain_overhead(id_size)
        self._lock = threading.Lock()
        self._places = self._bytes = 0
        self._entries: dict[int, tuple[bytes, str]] = {}  # of messages with more than a body
        self.size = 0
        """Bytes of its messages as entries of a batch."""

    def add(self, message: Message, timeout: float | None) -> "SharedSend | None":
        """Put a message with nothing but a body into a granted place, and return its future.

        None for any other message or another timeout, and if there is no place.
        """
        if (
            not self._places
            or timeout is not self._timeout
            or type(message) is not Message
            or message.properties
            or message.keys
            or message.tag
            or message.flag
            or message.priority is not None
            or not 0 < (size := len(message.body)) < self._alone_from
        ):
            return None
        size += self._overhead
        with self._lock:
            if not self._places or self._bytes < size:
                return None
            at = len(self._messages)
            # An interrupt (KeyboardInterrupt) comes before all of these steps or after them.
            self._places -= 1
            self._bytes -= size
            self.size += size
            self._messages.append(message)
        future: SharedSend = self._futures(self._batch, at)
        return future

    def append(self, message: Message, entry: tuple[bytes, str] | None) -> int:
        """Put a message into a place that was not granted; return its position.

        `entry` is what it is in a batch, and its id. One without has nothing but a body.
        """
        size = self._overhead + len(message.body) if entry is None else len(entry[0])
        with self._lock:
            at = len(self._messages)
            if entry is not None:
                self._entries[at] = entry
            self.size += size
            self._messages.append(message)
            return at

    def grant(self, places: int, size: int) -> None:
        """Grant more places, and bytes of messages in them."""
        with self._lock:
            self._places += places
            self._bytes += size

    def reclaim(self) -> tuple[int, int]:
        """Take back what was granted and not used: places and bytes."""
        with self._lock:
            unused = self._places, self._bytes
            self._places = self._bytes = 0
            return unused

    def packed(self, prefix: str, step: int) -> tuple[bytes, str]:
        """Return the body of the batch, and the ids of its messages with commas between them.

        Ids of messages without any are `prefix` and four digits, of the numbers from `step` on.
        """
        with self._lock:
            messages, entries = self._messages, self._entries
            steps = range(step, step + len(messages) - len(entries))
            if not entries:
                return encode_numbered(messages, prefix, steps)
            own = numbered_ids(prefix, steps)
            plain = [each for at, each in enumerate(messages) if at not in entries]
            made = zip(encode_messages(plain, own), own, strict=True)
            parts = [entries.get(at) or next(made) for at in range(len(messages))]
            return b"".join([part[0] for part in parts]), ",".join([part[1] for part in parts])


@in_core
class PlainSubmits:
    """What `submit` tries first: a place in the open batch of the message's topic.

    Made on the loop's thread, which may not submit: it would wait for itself.
    """

    def __init__(self, lanes: "dict[str, Lane]") -> None:
        self._lanes = lanes
        self._made_on = threading.get_ident()
        self._stopped = False

    def add(self, message: Message, timeout: float | None) -> "SharedSend | None":
        """Do as `OpenPlaces.add` does; None also if there is no open batch, or on the loop."""
        if self._stopped or threading.get_ident() == self._made_on:
            return None
        try:
            places = self._lanes[message.topic].places
        except (AttributeError, TypeError, KeyError):
            return None
        if places is None:
            return None
        return places.add(message, timeout)  # type: ignore[return-value] # see `ThreadSharing`

    def stop(self) -> None:
        """Add nothing from now on."""
        self._stopped = True
