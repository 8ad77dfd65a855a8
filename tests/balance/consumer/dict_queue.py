"""The cache of one queue as it was before runs: a dict and a sorted list. The tests' model."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from pocketmq.balance.consumer.limits import MIB
from pocketmq.balance.consumer.process_queue import ProcessQueueState
from tests.balance.consumer.shapes import Msg


class DictQueue:
    """Message by message, without a thought for speed."""

    def __init__(self, now: float) -> None:
        self.dropped = False
        self.locked = False
        self.last_lock = now
        self.last_pull = now
        self.last_consume = now
        self.unlock_tries = 0
        self.size = 0
        self.count = 0
        self.backlog = 0
        self._messages: dict[int, Msg] = {}
        self._order: list[int] = []
        self._head = 0
        self._consuming: dict[int, Msg] = {}
        self._dispatched = False
        self._newest = 0
        self._started: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._messages)

    def __contains__(self, message: Msg) -> bool:
        return message.queue_offset in self._messages

    def put(self, messages: Sequence[Msg], max_offset: int | None = None) -> bool:
        self._put_any(messages)
        if max_offset is not None and messages:
            backlog = max_offset - messages[-1].queue_offset
            if backlog > 0:
                self.backlog = backlog
        if not self._messages or self._dispatched:
            return False
        self._dispatched = True
        return True

    def put_before(self, messages: Sequence[Msg]) -> bool:
        newest = self._newest
        dispatch = self.put(messages)
        self._newest = max(newest, self._newest)
        return dispatch

    def remove(self, messages: Iterable[Msg], now: float) -> int:
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
        if len(self._order) > 2 * (len(cached) + self._head + 64):
            self._rebuild()
        return self.first_offset()

    def take(self, limit: int, now: float) -> list[Msg]:
        self.last_consume = now
        cached, consuming = self._messages, self._consuming
        taken: list[Msg] = []
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
        for offset, message in self._consuming.items():
            self._put_back(offset, message)
        self._consuming.clear()

    def consume_again(self, messages: Iterable[Msg]) -> None:
        for message in messages:
            offset = message.queue_offset
            self._consuming.pop(offset, None)
            self._put_back(offset, message)

    def clear(self) -> None:
        self._messages.clear()
        self._consuming.clear()
        self._started.clear()
        self._order.clear()
        self._head = 0
        self.count = self.size = self._newest = 0

    def cut(self, end: int) -> None:
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
        if self._messages and self.first_offset() < end:
            return False
        return not self._consuming or min(self._consuming) >= end

    def first_offset(self) -> int:
        order, cached, head = self._order, self._messages, self._head
        while order[head] not in cached:
            head += 1
        self._move_head(head)
        return order[self._head]

    def last_offset(self) -> int:
        order, cached = self._order, self._messages
        while order[-1] not in cached:
            order.pop()
        return order[-1]

    @property
    def span(self) -> int:
        return self.last_offset() - self.first_offset() if self._messages else 0

    def mark_started(self, messages: Iterable[Msg], now: float) -> None:
        self._started.update(dict.fromkeys([message.queue_offset for message in messages], now))

    def first_if_expired(self, timeout: float, now: float) -> Msg | None:
        if not self._messages:
            return None
        offset = self.first_offset()
        started = self._started.get(offset)
        if started is None or now - started <= timeout:
            return None
        return self._messages[offset]

    def info(self) -> ProcessQueueState:
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
        if head > 64 and head * 2 > len(self._order):
            del self._order[:head]
            head = 0
        self._head = head

    def _put_back(self, offset: int, message: Msg) -> None:
        if offset not in self._messages:
            self._enter(offset)
        self._messages[offset] = message

    def _enter(self, offset: int) -> None:
        order = self._order
        if not order or offset > order[-1]:
            order.append(offset)
            return
        index = bisect_left(order, offset)
        if order[index] != offset:
            order.insert(index, offset)
        self._head = min(self._head, index)
        if len(order) > 2 * (len(self._messages) + 64):
            self._rebuild(offset)

    def _put_any(self, messages: Sequence[Msg]) -> None:
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
        self._order = sorted({*self._messages, *entering})
        self._head = 0
