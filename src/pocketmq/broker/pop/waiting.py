"""Pops and notifications that wait for messages (long polling): which to try next, which time out.

Each waits in the line of its topic, group and queue (or any queue). Lines watch the queues their
messages come by, retry topics included, through the counter that pulls use, too. Pure bookkeeping
with `now` as an argument (any monotonic clock). Belongs to the broker's loop.
"""

from collections.abc import Iterable
from itertools import count
from typing import TypeAlias, TypeVar

from pocketmq.broker.pulling.selection import Selection
from pocketmq.net import Connection
from pocketmq.protocol import Command
from pocketmq.protocol.requests.pop import NotificationRequest, PopRequest
from pocketmq.store import QueueIndex

ANY_QUEUE = -1
NEVER = float("inf")
SIZE_LIMIT = 128 << 20
"""Bytes of all requests that wait."""
_ROUNDING = 0.05
_OVERHEAD = 1024
"""Bytes that a waiting request is estimated to need besides its fields."""

K = TypeVar("K")
Key: TypeAlias = tuple[str, str, int]
"""Topic, group, and queue id or -1."""


class HeldPop:
    """A pop or a notification that waits."""

    __slots__ = (
        "connection", "deadline", "header", "lane", "line", "number", "request", "selection",
        "size",
    )  # fmt: skip

    def __init__(
        self,
        connection: Connection,
        request: Command,
        header: PopRequest | NotificationRequest,
        selection: Selection,
    ) -> None:
        self.connection = connection
        self.request = request
        self.header = header
        self.selection = selection
        self.size = _OVERHEAD + request.size + len(header.exp or "")
        self.deadline = NEVER
        self.lane = 0.0
        self.number = 0  # the lower it is, the longer this one has waited
        self.line: Line | None = None


class Line:
    """Requests that wait for the same messages, first come first served."""

    __slots__ = ("key", "notifications", "pops", "queues")

    def __init__(self, key: Key) -> None:
        self.key = key
        self.pops: dict[HeldPop, None] = {}
        self.notifications: dict[HeldPop, None] = {}
        self.queues: list[QueueIndex] = []

    def __len__(self) -> int:
        return len(self.pops) + len(self.notifications)


class WaitingPops:
    """All pops and notifications that wait on one broker."""

    def __init__(self) -> None:
        self.lines: dict[Key, Line] = {}
        self._by_queue: dict[QueueIndex, dict[Line, None]] = {}
        self._by_connection: dict[Connection, dict[HeldPop, None]] = {}
        self._lanes: dict[float, dict[HeldPop, None]] = {}  # same length of wait: due in order
        self._count = 0
        self._size = 0
        self._numbers = count(1)

    def __len__(self) -> int:
        return self._count

    def line(self, key: Key) -> Line:
        """Return the line for a key; call `watch` for one that is new."""
        return self.lines.get(key) or Line(key)

    def watch(self, line: Line, queues: Iterable[QueueIndex]) -> None:
        """Let a line watch these queues, and no others."""
        self._unwatch(line)
        line.queues = list(queues)
        for queue in line.queues:
            queue.waiting += 1
            self._by_queue.setdefault(queue, {})[line] = None

    def hold(self, held: HeldPop, line: Line, wait: float, now: float) -> None:
        """Let a request wait for `wait` seconds."""
        held.lane = max(-(-wait // _ROUNDING), 1.0) * _ROUNDING
        held.deadline = now + held.lane
        held.line = line
        held.number = next(self._numbers)
        self.lines[line.key] = line
        _places(held, line)[held] = None
        self._by_connection.setdefault(held.connection, {})[held] = None
        self._lanes.setdefault(held.lane, {})[held] = None
        self._count += 1
        self._size += held.size

    def has_room_for(self, held: HeldPop) -> bool:
        """Return whether one more request fits into the memory for waiting ones."""
        return self._size + held.size <= SIZE_LIMIT

    def watching(self, queue: QueueIndex) -> list[Line]:
        """Return the lines that want to know of messages in a queue."""
        return list(self._by_queue.get(queue, ()))

    @property
    def wake_at(self) -> float:
        """When the first one's time is over."""
        if not self._lanes:
            return NEVER
        return min([next(iter(lane)).deadline for lane in self._lanes.values()])

    def take_due(self, now: float) -> list[HeldPop]:
        """Return those whose time is over."""
        due = []
        for lane in tuple(self._lanes.values()):
            for held in lane:
                if held.deadline > now:
                    break
                due.append(held)
        for held in due:
            self.remove(held)
        return due

    def of(self, connection: Connection) -> int:
        """Return how many wait of one connection."""
        return len(self._by_connection.get(connection, ()))

    def take_group(self, connection: Connection, group: str) -> list[HeldPop]:
        """Remove and return those of one connection that wait for one group."""
        waiting = self._by_connection.get(connection, ())
        leaving = [held for held in waiting if held.header.consumer_group == group]
        for held in leaving:
            self.remove(held)
        return leaving

    def drop(self, connection: Connection) -> None:
        """Forget those of a connection that is gone."""
        for held in tuple(self._by_connection.get(connection, ())):
            self.remove(held)

    def take_all(self) -> list[HeldPop]:
        """Return everyone and keep none."""
        everyone = [
            held for line in self.lines.values() for held in (*line.pops, *line.notifications)
        ]
        for held in everyone:
            self.remove(held)
        return everyone

    def remove(self, held: HeldPop) -> None:
        """Forget one."""
        line = held.line
        if line is None:
            return
        held.line = None
        del _places(held, line)[held]
        if not len(line):
            self._unwatch(line)
            del self.lines[line.key]
        _discard(self._by_connection, held.connection, held)
        _discard(self._lanes, held.lane, held)
        self._count -= 1
        self._size -= held.size

    def _unwatch(self, line: Line) -> None:
        for queue in line.queues:
            queue.waiting -= 1
            lines = self._by_queue[queue]
            del lines[line]
            if not lines:
                del self._by_queue[queue]
        line.queues = []


def _places(held: HeldPop, line: Line) -> dict[HeldPop, None]:
    return line.pops if isinstance(held.header, PopRequest) else line.notifications


def _discard(table: dict[K, dict[HeldPop, None]], key: K, held: HeldPop) -> None:
    waiting = table[key]
    del waiting[held]
    if not waiting:
        del table[key]
