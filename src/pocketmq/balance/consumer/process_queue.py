"""The cache of one owned queue: what was pulled, what is being consumed, what may be committed.

A pure object without clock or lock: times are arguments, and one owner calls it. Messages that a
handler has are still cached for a concurrent consumer, which names those that are done; an orderly
consumer takes them from the front, and all that it took are done at once.
"""

from collections.abc import Iterable, Sequence
from typing import Generic

import msgspec

from pocketmq.balance.consumer.limits import MIB
from pocketmq.balance.consumer.offset_runs import CachedMessage, M, OffsetRuns
from pocketmq.balance.profile import Profile


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
        self._cached: OffsetRuns[M] = OffsetRuns()
        self._consuming: OffsetRuns[M] = OffsetRuns()
        self._dispatched = False
        self._newest = 0
        self._started: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._cached)

    def __contains__(self, message: CachedMessage) -> bool:
        return message.queue_offset in self._cached

    def put(self, messages: Sequence[M], max_offset: int | None = None) -> bool:
        """Cache pulled messages; return whether an orderly consumer must start a consume task.

        An offset that is cached already counts once; its message is replaced. `max_offset` is the
        queue's end according to the pull's answer. A list is kept: do not change it afterwards.
        """
        size = self._cached.add(messages)
        if size is None:
            self._put_any(messages)
        elif messages:
            self.count += len(messages)
            self.size += size
            self._newest = messages[-1].queue_offset
        if max_offset is not None and messages:
            backlog = max_offset - messages[-1].queue_offset
            if backlog > 0:
                self.backlog = backlog
        if not self._cached or self._dispatched:
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
        cached, started = self._cached, self._started
        if not cached:
            return -1
        if started:
            messages = list(messages)
            for message in messages:
                if message in self:
                    started.pop(message.queue_offset, None)
        count, size = cached.remove(messages)
        self.count -= count
        self.size = self.size - size if self.count else 0
        return cached.first if cached else self._newest + 1

    def take(self, limit: int, now: float) -> list[M]:
        """Move the first messages to the consuming ones, for an orderly handler.

        When there are none, the next `put` asks for a consume task again.
        """
        self.last_consume = now
        taken = self._cached.move(limit, self._consuming)
        if not taken:
            self._dispatched = False
        return taken

    def commit(self) -> int:
        """Finish the consuming messages; return the offset to commit, or −1 if there are none."""
        consuming = self._consuming
        if not consuming:
            return -1
        last = consuming.last
        self.count -= len(consuming)
        self.size = self.size - consuming.size if self.count else 0
        consuming.clear()
        return last + 1

    def roll_back(self) -> None:
        """Put all consuming messages back."""
        self._cached.put(list(self._consuming))
        self._consuming.clear()

    def consume_again(self, messages: Iterable[M]) -> None:
        """Put these messages back, whether they were being consumed or not."""
        again = list(messages)
        self._consuming.remove(again)
        self._cached.put(again)

    def clear(self) -> None:
        """Discard everything, as when offsets are reset."""
        self._cached.clear()
        self._consuming.clear()
        self._started.clear()
        self.count = self.size = self._newest = 0

    def cut(self, end: int) -> None:
        """Discard what is at offset `end` or above: its next owner handles it.

        `remove` returns `end` when nothing is left.
        """
        for messages in (self._cached, self._consuming):
            count, size = messages.cut(end)
            self.count -= count
            self.size -= size
        self._newest = end - 1

    def settled_below(self, end: float) -> bool:
        """Return whether nothing below an offset is cached or being consumed."""
        if self._cached and self._cached.first < end:
            return False
        return not self._consuming or self._consuming.first >= end

    def first_offset(self) -> int:
        """Return the lowest cached offset. Call it only if something is cached."""
        return self._cached.first

    @property
    def span(self) -> int:
        """The distance between the lowest and the highest cached offset.

        Counting messages is not enough: behind one stuck message a thousand may be finished, and
        the cache be nearly empty, while each of them would be delivered again after a crash.
        Pulling stops when the span exceeds its limit.
        """
        return self._cached.last - self._cached.first if self._cached else 0

    def mark_started(self, messages: Iterable[CachedMessage], now: float) -> None:
        """Note when a concurrent handler got these messages, for the expiry sweep."""
        self._started.update(dict.fromkeys([message.queue_offset for message in messages], now))

    def first_if_expired(self, timeout: float, now: float) -> M | None:
        """Return the first cached message if its handler has had it for longer than `timeout`."""
        if not self._cached:
            return None
        started = self._started.get(self._cached.first)
        if started is None or now - started <= timeout:
            return None
        return self._cached.first_message

    def lock_granted(self, now: float) -> None:
        """Note that the broker granted the queue's lock."""
        self.locked = True
        self.last_lock = now

    def lock_expired(self, profile: Profile, now: float) -> bool:
        """Return whether the broker may have given the lock to another member meanwhile."""
        return now - self.last_lock > profile.lock_max_age

    def info(self) -> ProcessQueueState:
        """Describe the queue for operators."""
        cached, consuming = self._cached, self._consuming
        return ProcessQueueState(
            cached_min_offset=cached.first if cached else 0,
            cached_max_offset=cached.last if cached else 0,
            cached_count=len(cached),
            cached_size_mib=self.size // MIB,
            consuming_min_offset=consuming.first if consuming else 0,
            consuming_max_offset=consuming.last if consuming else 0,
            consuming_count=len(consuming),
            locked=self.locked,
            unlock_tries=self.unlock_tries,
            last_lock=self.last_lock,
            dropped=self.dropped,
            last_pull=self.last_pull,
            last_consume=self.last_consume,
        )

    def _put_any(self, messages: Sequence[M]) -> None:
        """Cache messages in any order, some of them perhaps cached already."""
        for message in messages:
            if self._cached.set(message):
                self.count += 1
                self.size += message.body_size
                self._newest = message.queue_offset
            else:
                self._started.pop(message.queue_offset, None)
