"""The cache of one owned queue: what was pulled, what is being consumed, what may be committed.

A pure object without clock or lock: times are arguments, and one owner calls it. Java keeps a
TreeMap; offsets arrive nearly in order, so here a dict holds the messages and a list their offsets
in order. Removed offsets stay in the list until they reach its head or outnumber the living, which
makes a batch cost a few dict operations per message and no search.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Generic, Protocol, TypeVar

import msgspec

from pocketmq.balance.consumer.limits import MIB
from pocketmq.balance.profile import Profile


class CachedMessage(Protocol):
    """What the cache reads of a message."""

    @property
    def queue_offset(self) -> int:
        """Its place in the queue."""
        ...

    @property
    def body_size(self) -> int:
        """The bytes of its body."""
        ...


M = TypeVar("M", bound=CachedMessage)

_SLACK = 64


def _is_rising(offsets: list[int]) -> bool:
    """Return whether each offset is larger than the one before it."""
    if not offsets or offsets == list(range(offsets[0], offsets[0] + len(offsets))):  # the usual
        return True
    return sorted(set(offsets)) == offsets


class ProcessQueueState(msgspec.Struct, frozen=True, kw_only=True):
    """A process queue as operators see it in a consumer's running info. Times are seconds."""

    cached_min_offset: int = 0
    cached_max_offset: int = 0
    cached_count: int = 0
    cached_size_mib: int = 0
    consuming_min_offset: int = 0
    consuming_max_offset: int = 0
    consuming_count: int = 0
    locked: bool
    unlock_tries: int
    last_lock: float
    dropped: bool
    last_pull: float
    last_consume: float


class ProcessQueue(Generic[M]):
    """The pulled messages of one queue that a consumer owns, and what may be committed."""

    def __init__(self, now: float) -> None:
        self.dropped = False
        self.locked = False
        self.last_lock = now
        self.last_pull = now
        self.last_consume = now
        self.unlock_tries = 0
        self.size = 0
        """Bytes of the cached bodies, those under a handler included."""
        self.count = 0
        """Cached messages, those under a handler included."""
        self.backlog = 0
        """How far the last pulled message was from the queue's end."""
        self._messages: dict[int, M] = {}
        self._order: list[int] = []
        self._head = 0
        self._consuming: dict[int, M] = {}
        self._dispatched = False
        self._newest = 0
        self._started: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._messages)

    def __contains__(self, message: CachedMessage) -> bool:
        return message.queue_offset in self._messages

    def put(self, messages: Sequence[M], max_offset: int | None = None) -> bool:
        """Cache pulled messages; return whether an orderly consumer must start a consume task.

        An offset that is cached already counts once; its message is replaced. `max_offset` is the
        queue's end according to the pull's answer.
        """
        cached, order = self._messages, self._order
        offsets = [message.queue_offset for message in messages]
        if (not order or (offsets and offsets[0] > order[-1])) and _is_rising(offsets):
            # The usual pull: all new, in order, behind everything cached. Anything else (a pull
            # that was sent twice, a seek back) takes the slow path, which keeps the list sorted.
            cached.update(zip(offsets, messages, strict=True))
            order += offsets
            self.count += len(offsets)
            self.size += sum([message.body_size for message in messages])
            self._newest = offsets[-1] if offsets else self._newest
        else:
            self._put_any(messages)
        if max_offset is not None and messages:
            backlog = max_offset - messages[-1].queue_offset
            if backlog > 0:
                self.backlog = backlog
        if not self._messages or self._dispatched:
            return False
        self._dispatched = True
        return True

    def put_before(self, messages: Sequence[M]) -> bool:
        """Cache messages that precede what was pulled already; return as `put` does."""
        newest = self._newest
        dispatch = self.put(messages)
        self._newest = max(newest, self._newest)
        return dispatch

    def remove(self, messages: Iterable[CachedMessage], now: float) -> int:
        """Remove consumed messages; return the offset to commit, or −1 if nothing was cached.

        That is the lowest offset still cached, or the one after the newest when none is left. A
        commit past an unfinished message would lose it if this process died: the next owner starts
        at the committed offset. So one slow handler keeps the offset back, and what was finished
        behind it is delivered again after a crash.
        """
        self.last_consume = now
        cached = self._messages
        if not cached:
            return -1
        take, started = cached.pop, self._started
        found = [message for message in messages if take(message.queue_offset, None) is not None]
        if started:
            for message in found:
                started.pop(message.queue_offset, None)
        sizes = [message.body_size for message in found]
        self.count -= len(sizes)
        self.size = self.size - sum(sizes) if self.count else 0
        if not cached:
            self._order.clear()
            self._head = 0
            return self._newest + 1
        if len(self._order) > 2 * (len(cached) + self._head + _SLACK):
            self._rebuild()
        return self.first_offset()

    def take(self, limit: int, now: float) -> list[M]:
        """Move the first messages to the consuming ones, for an orderly handler.

        When there are none, the next `put` asks for a consume task again.
        """
        self.last_consume = now
        cached, consuming = self._messages, self._consuming
        taken: list[M] = []
        order, index = self._order, self._head
        while cached and len(taken) < limit:
            offset = order[index]
            index += 1
            message = cached.pop(offset, None)
            if message is not None:
                consuming[offset] = message
                taken.append(message)
        self._move_head(index)
        if not taken:
            self._dispatched = False
        return taken

    def commit(self) -> int:
        """Finish the consuming messages; return the offset to commit, or −1 if there are none."""
        consuming = self._consuming
        if not consuming:
            return -1
        last = max(consuming)
        self.count -= len(consuming)
        if self.count == 0:
            self.size = 0
        else:
            self.size -= sum(message.body_size for message in consuming.values())
        consuming.clear()
        return last + 1

    def roll_back(self) -> None:
        """Put all consuming messages back."""
        for offset, message in self._consuming.items():
            self._put_back(offset, message)
        self._consuming.clear()

    def consume_again(self, messages: Iterable[M]) -> None:
        """Put these messages back, whether they were being consumed or not."""
        for message in messages:
            offset = message.queue_offset
            self._consuming.pop(offset, None)
            self._put_back(offset, message)

    def clear(self) -> None:
        """Discard everything, as when offsets are reset."""
        self._messages.clear()
        self._consuming.clear()
        self._started.clear()
        self._order.clear()
        self._head = 0
        self.count = self.size = self._newest = 0

    def cut(self, end: int) -> None:
        """Discard what is at offset `end` or above: its next owner handles it.

        `remove` returns `end` when nothing is left.
        """
        cached, gone = self._messages, []
        order = self._order
        while order and order[-1] >= end:
            message = cached.pop(order.pop(), None)
            if message is not None:
                gone.append(message)
        gone += [self._consuming.pop(offset) for offset in list(self._consuming) if offset >= end]
        self._head = min(self._head, len(order))
        self.count -= len(gone)
        self.size -= sum(message.body_size for message in gone)
        self._newest = end - 1

    def settled_below(self, end: float) -> bool:
        """Return whether nothing below an offset is cached or being consumed."""
        if self._messages and self.first_offset() < end:
            return False
        return not self._consuming or min(self._consuming) >= end

    def first_offset(self) -> int:
        """Return the lowest cached offset. Call it only if something is cached."""
        order, cached, head = self._order, self._messages, self._head
        while order[head] not in cached:
            head += 1
        self._move_head(head)
        return order[self._head]

    def last_offset(self) -> int:
        """Return the highest cached offset. Call it only if something is cached."""
        order, cached = self._order, self._messages
        while order[-1] not in cached:
            order.pop()
        return order[-1]

    @property
    def span(self) -> int:
        """The distance between the lowest and the highest cached offset.

        Counting messages is not enough: behind one stuck message a thousand may be finished, and
        the cache be nearly empty, while each of them would be delivered again after a crash.
        Pulling stops when the span exceeds its limit.
        """
        return self.last_offset() - self.first_offset() if self._messages else 0

    def mark_started(self, messages: Iterable[CachedMessage], now: float) -> None:
        """Note when a concurrent handler got these messages, for the expiry sweep."""
        self._started.update(dict.fromkeys([message.queue_offset for message in messages], now))

    def first_if_expired(self, timeout: float, now: float) -> M | None:
        """Return the first cached message if its handler has had it for longer than `timeout`."""
        if not self._messages:
            return None
        offset = self.first_offset()
        started = self._started.get(offset)
        if started is None or now - started <= timeout:
            return None
        return self._messages[offset]

    def lock_granted(self, now: float) -> None:
        """Note that the broker granted the queue's lock."""
        self.locked = True
        self.last_lock = now

    def lock_expired(self, profile: Profile, now: float) -> bool:
        """Return whether the broker may have given the lock to another member meanwhile."""
        return now - self.last_lock > profile.lock_max_age

    def pull_expired(self, profile: Profile, now: float) -> bool:
        """Return whether the last pull is too long ago."""
        return now - self.last_pull > profile.pull_max_idle

    def info(self) -> ProcessQueueState:
        """Describe the queue for operators."""
        cached, consuming = self._messages, self._consuming
        return ProcessQueueState(
            cached_min_offset=self.first_offset() if cached else 0,
            cached_max_offset=self.last_offset() if cached else 0,
            cached_count=len(cached),
            cached_size_mib=self.size // MIB,
            consuming_min_offset=min(consuming, default=0),
            consuming_max_offset=max(consuming, default=0),
            consuming_count=len(consuming),
            locked=self.locked,
            unlock_tries=self.unlock_tries,
            last_lock=self.last_lock,
            dropped=self.dropped,
            last_pull=self.last_pull,
            last_consume=self.last_consume,
        )

    def _move_head(self, head: int) -> None:
        """Skip offsets that are not cached any more, and drop them when they are many."""
        if head > _SLACK and head * 2 > len(self._order):
            del self._order[:head]
            head = 0
        self._head = head

    def _put_back(self, offset: int, message: M) -> None:
        if offset not in self._messages:
            self._enter(offset)
        self._messages[offset] = message

    def _enter(self, offset: int) -> None:
        """Insert an offset in order; it may still be in the list from before it was removed."""
        order = self._order
        if not order or offset > order[-1]:
            order.append(offset)
            return
        index = bisect_left(order, offset)
        if order[index] != offset:
            order.insert(index, offset)
        self._head = min(self._head, index)
        if len(order) > 2 * (len(self._messages) + _SLACK):
            self._rebuild(offset)

    def _put_any(self, messages: Sequence[M]) -> None:
        """Cache messages in any order, some of them perhaps cached already."""
        cached = self._messages
        for message in messages:
            offset = message.queue_offset
            if offset in cached:
                self._started.pop(offset, None)
            else:
                self.count += 1
                self.size += message.body_size
                self._newest = offset
                self._enter(offset)
            cached[offset] = message

    def _rebuild(self, *entering: int) -> None:
        """Drop the offsets of removed messages."""
        self._order = sorted({*self._messages, *entering})
        self._head = 0
