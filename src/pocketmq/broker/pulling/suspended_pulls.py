"""Pulls that wait for messages: which ones to retry, and when.

Pure bookkeeping with `now` as an argument (any steady clock); `long_polling` retries them and
has the timer. As in Java a pull is retried when a message arrives that its tags may match, when
it times out, and every five seconds if its queue has grown at all: then a consumer learns that
it can skip what does not match. A pull of a logical queue of a static topic has a
`LogicalPull`, by which its answer is converted, whether it waited or not. Belongs to the
broker's loop.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from pocketmq.balance.static_topics.answers import Pulled, logical_answer
from pocketmq.model.topics import MappedRange
from pocketmq.net import Connection
from pocketmq.protocol import Command
from pocketmq.protocol.requests.reading import PullRequest, PullResponse
from pocketmq.store import QueueIndex

SWEEP_PERIOD = 5.0
CLOGGED_RETRY = 0.05
"""Seconds until a pull is retried whose client has not taken earlier answers."""
_ROUNDING = 0.25
_OVERHEAD = 1024
"""Bytes that a waiting pull counts for besides its fields."""

NEVER = float("inf")

K = TypeVar("K")


class LogicalPull(msgspec.Struct, frozen=True):
    """A pull of a logical queue: its ranges, and the one that is read."""

    parts: Sequence[MappedRange]
    part: MappedRange
    asked: int
    """The offset in the physical queue."""

    def answer(
        self, request: Command, pulled: Pulled, remark: str | None, body: bytes, more: PullResponse
    ) -> Command:
        """Build the response from what the physical queue answered; flags are those of `more`."""
        found = logical_answer(self.parts, self.part, self.asked, pulled)
        header = msgspec.structs.replace(
            more,
            next_begin_offset=found.next_offset,
            min_offset=found.min_offset,
            max_offset=found.max_offset,
            offset_delta=found.delta,
        )
        return request.reply(found.code, remark, header, body)


class SuspendedPull:
    """A pull that waits for messages."""

    __slots__ = (
        "checked", "codes", "connection", "deadline", "header", "lane", "logical", "queue",
        "request", "since", "size", "sql",
    )  # fmt: skip

    def __init__(
        self,
        connection: Connection,
        request: Command,
        header: PullRequest,
        queue: QueueIndex,
        codes: frozenset[int] | None,
        *,
        sql: bool,
    ) -> None:
        self.connection = connection
        self.request = request
        self.header = header
        self.queue = queue
        self.codes = codes  # tag codes it wants; None for all
        self.sql = sql  # whether the messages themselves decide
        self.checked = header.queue_offset  # messages before this one do not match
        self.size = _OVERHEAD + request.size + len(header.subscription or "")
        self.deadline = NEVER
        self.since = 0.0
        self.lane = 0.0
        self.logical: LogicalPull | None = None
        """How a pull of a logical queue is answered; None for others."""


class SuspendedPulls:
    """All pulls that wait on one broker."""

    def __init__(
        self,
        *,
        limit: int = 100_000,
        connection_limit: int = 20_000,
        size_limit: int = 128 << 20,
        connection_size_limit: int = 32 << 20,
    ) -> None:
        self._limit = limit
        self._connection_limit = connection_limit
        self._size_limit = size_limit
        self._connection_size_limit = connection_size_limit
        self._by_queue: dict[QueueIndex, dict[SuspendedPull, None]] = {}
        self._by_connection: dict[Connection, dict[SuspendedPull, None]] = {}
        self._sizes: dict[Connection, int] = {}
        self._lanes: dict[
            float, dict[SuspendedPull, None]
        ] = {}  # same length of wait: due in order
        self._passed: dict[SuspendedPull, None] = {}  # their queues have grown
        self._sweep_at = NEVER
        self._size = 0
        self._count = 0
        self.wake_at = NEVER
        """No pull is due before this time."""

    def __len__(self) -> int:
        return self._count

    def hold(self, pull: SuspendedPull, wait: float, now: float) -> bool:
        """Suspend a pull for `wait` seconds; return False if too many wait already."""
        connection = pull.connection
        mine = self._by_connection.get(connection, ())
        size = self._sizes.get(connection, 0) + pull.size
        if (
            self._count >= self._limit
            or len(mine) >= self._connection_limit
            or self._size + pull.size > self._size_limit
            or size > self._connection_size_limit
        ):
            return False
        pull.lane = -(-wait // _ROUNDING) * _ROUNDING
        pull.since = now
        pull.deadline = now + pull.lane  # not `wait`: a lane must be due in order
        self._by_queue.setdefault(pull.queue, {})[pull] = None
        self._by_connection.setdefault(connection, {})[pull] = None
        self._lanes.setdefault(pull.lane, {})[pull] = None
        self._sizes[connection] = size
        self._size += pull.size
        self._count += 1
        pull.queue.waiting += 1
        self.wake_at = min(self.wake_at, pull.deadline)
        return True

    def take_arrived(
        self,
        queue: QueueIndex,
        tags: Iterable[int],
        found: Callable[[SuspendedPull], bool],
        now: float,
    ) -> list[SuspendedPull]:
        """Return the pulls for which messages with these tag codes are a reason to retry.

        `found` reads the messages themselves, for pulls that need it. The others stay.
        """
        ready = []
        for pull in self._by_queue.get(queue, ()):
            if queue.next_offset <= pull.header.queue_offset:
                continue
            if pull.sql:
                matching = found(pull)
                pull.checked = queue.next_offset
            else:
                matching = pull.codes is None or not pull.codes.isdisjoint(tags)
            if matching:
                ready.append(pull)
            else:
                self._pass(pull, now + SWEEP_PERIOD)
        for pull in ready:
            self.remove(pull)
        return ready

    def take_due(self, now: float) -> list[SuspendedPull]:
        """Return the pulls that timed out, and those whose queues have grown long enough ago."""
        ready = []
        for lane in tuple(self._lanes.values()):
            for pull in lane:
                if pull.deadline > now:
                    break
                ready.append(pull)
        if self._sweep_at <= now:
            passed, self._passed = self._passed, {}
            self._sweep_at = NEVER
            ready += [pull for pull in passed if pull.deadline > now]
        for pull in ready:
            self.remove(pull)
        firsts = [next(iter(lane)).deadline for lane in self._lanes.values()]
        self.wake_at = min(self._sweep_at, *firsts) if firsts else self._sweep_at
        return ready

    def put_back(self, pull: SuspendedPull, now: float) -> None:
        """Suspend a pull again whose client must take earlier answers first; retry soon."""
        if self.hold(pull, max(pull.deadline - now, 2 * CLOGGED_RETRY), now):
            self._pass(pull, now + CLOGGED_RETRY)

    def drop(self, connection: Connection) -> None:
        """Forget the pulls of a connection that is gone."""
        for pull in tuple(self._by_connection.get(connection, ())):
            self.remove(pull)

    def queues(self) -> list[QueueIndex]:
        """List the queues for which pulls wait."""
        return list(self._by_queue)

    def take_queue(self, queue: QueueIndex) -> list[SuspendedPull]:
        """Return every pull of a queue and keep none."""
        pulls = list(self._by_queue.get(queue, ()))
        for pull in pulls:
            self.remove(pull)
        return pulls

    def close(self) -> list[SuspendedPull]:
        """Return every pull and keep none from now on."""
        self._limit = 0
        return [pull for queue in self.queues() for pull in self.take_queue(queue)]

    def remove(self, pull: SuspendedPull) -> None:
        """Forget one pull."""
        _discard(self._by_queue, pull.queue, pull)
        _discard(self._lanes, pull.lane, pull)
        if _discard(self._by_connection, pull.connection, pull):
            del self._sizes[pull.connection]
        else:
            self._sizes[pull.connection] -= pull.size
        self._passed.pop(pull, None)
        self._size -= pull.size
        self._count -= 1
        pull.queue.waiting -= 1

    def _pass(self, pull: SuspendedPull, sweep_at: float) -> None:
        self._passed[pull] = None
        self._sweep_at = min(self._sweep_at, sweep_at)
        self.wake_at = min(self.wake_at, self._sweep_at)


def _discard(table: dict[K, dict[SuspendedPull, None]], key: K, pull: SuspendedPull) -> bool:
    """Take a pull out of one entry; return whether the entry went with it."""
    pulls = table[key]
    del pulls[pull]
    if pulls:
        return False
    del table[key]
    return True
