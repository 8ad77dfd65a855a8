"""Inner batches that were popped as a whole, which Java's brokers do: one handle for many messages.

Each message of a batch has a handle of its own here, that nobody else knows. The batch is
acknowledged when all its messages are; if one is not, the broker redelivers all of them.
"""

from collections.abc import Sequence
from threading import Lock

import msgspec

from pocketmq.client.pop.popped import handle_of
from pocketmq.protocol import ReceivedMessage
from pocketmq.protocol.handles import PopHandle
from pocketmq.protocol.pulled import InnerMessage

Settled = tuple[str, PopHandle]
"""A topic's name on the wire, and the handle of a message of it."""


class _Wrapped:
    """A batch: the handle that the broker knows, and how many messages are not settled."""

    __slots__ = ("handle", "left", "until")

    def __init__(self, handle: PopHandle, until: float) -> None:
        self.handle = handle
        self.left = 0
        self.until = until


class WrappedBatches:
    """The popped batches of one consumer that are not settled. Any thread may call."""

    def __init__(self) -> None:
        self._by_handle: dict[PopHandle, _Wrapped] = {}  # in the order in which they were popped
        self._lock = Lock()

    def note(self, messages: Sequence[ReceivedMessage], now: float, until: float) -> None:
        """Take note of messages that are hidden until some time; older ones are forgotten."""
        inner = [each for each in messages if isinstance(each, InnerMessage)]
        if not inner:
            return
        batches: dict[tuple[int, int], _Wrapped] = {}
        with self._lock:
            for message in inner:
                own = handle_of(message)
                place = id(message.buffer), message.position
                batch = batches.get(place)
                if batch is None:
                    whole = msgspec.structs.replace(own, queue_offset=message.batch_offset)
                    batch = batches[place] = _Wrapped(whole, until)
                batch.left += 1
                self._by_handle[own] = batch
            for handle in [each for each, kept in self._by_handle.items() if kept.until < now]:
                del self._by_handle[handle]

    def settle(self, handles: Sequence[Settled]) -> Sequence[Settled]:
        """Return what is to be acknowledged: of a batch nothing before its last message is."""
        if not self._by_handle:
            return handles
        found: list[Settled] = []
        with self._lock:
            for topic, handle in handles:
                batch = self._by_handle.pop(handle, None)
                if batch is None:
                    found.append((topic, handle))
                    continue
                batch.left -= 1
                if not batch.left:
                    found.append((topic, batch.handle))
        return found

    def known_as(self, handle: PopHandle) -> PopHandle:
        """Return the handle by which the broker knows a message, or the batch it is in."""
        batch = self._by_handle.get(handle)
        return handle if batch is None else batch.handle

    def moved(self, handle: PopHandle, new: PopHandle, until: float) -> PopHandle:
        """Take note that a message was hidden for longer; return the handle it has now."""
        with self._lock:
            batch = self._by_handle.get(handle)
            if batch is None:
                return new
            batch.handle, batch.until = new, until
            return handle
