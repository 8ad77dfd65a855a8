"""What the requests of one event-loop iteration leave to be done once their messages are written.

Handlers put answers here that promise a message is stored, and the queues that grew;
`CommitLogWriter` takes all of it, writes, and lets the answers go. Belongs to the broker's loop.
"""

from typing import TypeAlias

import msgspec

from pocketmq.net import Connection
from pocketmq.protocol import Command
from pocketmq.store import QueueIndex


class SendBurst(msgspec.Struct, frozen=True, gc=False):
    """Plain sends of one read that were stored together; their answers are JSON, side by side."""

    by_code: dict[int, int]
    """How many of the answers are to requests of a code."""


Answers: TypeAlias = dict[Connection, list[tuple[Command | SendBurst, bytes]]]
"""Frames by connection, each with the request it answers; those of a burst are one piece."""


class WriteBatch:
    """The appends of one event-loop iteration, and the answers that wait for them."""

    __slots__ = (
        "arrivals", "began", "failed", "held", "last", "messages", "notes", "now_ms", "overloaded",
        "ready", "size", "topics",
    )  # fmt: skip

    def __init__(self) -> None:
        self.now_ms = 0
        self.began = 0.0  # by the loop's clock, when its first request came; 0 without metrics
        self.overloaded = False  # too much waits for a sync: refuse sends
        self.ready: Answers = {}  # leave once written
        self.held: Answers = {}  # leave once written, and synced if the broker syncs
        self.messages = 0
        self.size = 0
        self.notes = 0  # changes for the journal of pops
        self.arrivals: dict[QueueIndex, int] = {}  # queues with waiting pulls, new from
        self.last: tuple[QueueIndex, int] | None = None  # the latest append, and where it ended
        self.failed = False  # the store has dropped what this batch appended
        self.topics: dict[str, list[int]] = {}  # messages, bytes and batches of each

    def answer_stored(
        self,
        connection: Connection,
        request: Command | SendBurst,
        frame: bytes,
        *,
        wait: bool = True,
    ) -> None:
        """Answer when the messages appended so far are safe.

        `wait=False` is for senders that do not want to wait for a sync (property WAIT).
        """
        answers = self.held if wait else self.ready
        try:
            answers[connection].append((request, frame))
        except KeyError:
            answers[connection] = [(request, frame)]

    def appended(self, queue: QueueIndex, count: int, size: int, times: int = 1) -> None:
        """Record new messages at the end of a queue, which came in `times` requests."""
        self.messages += count
        self.size += size
        counts = self.topics.get(queue.topic)
        if counts is None:
            self.topics[queue.topic] = [count, size, times]
        else:
            counts[0] += count
            counts[1] += size
            counts[2] += times
        end = queue.next_offset
        self.last = queue, end
        if queue.waiting and queue not in self.arrivals:
            self.arrivals[queue] = end - count

    @property
    def single(self) -> bool:
        """Whether only one request waits for a sync."""
        if len(self.held) != 1:
            return False
        ((request, _), *more) = next(iter(self.held.values()))
        if isinstance(request, SendBurst):
            return not more and sum(request.by_code.values()) == 1
        return not more

    def check_dropped(self) -> None:
        """Check, right after the store refused something, whether it dropped what was not written.

        A store that cannot write drops all that was appended since its last write. The queues
        shrink by that; the end of the latest append tells. Without this check senders would get
        a receipt for a message that is gone.
        """
        if self.last is not None and self.last[0].next_offset < self.last[1]:
            self.failed = True

    def take(self) -> "WriteBatch":
        """Return what was collected, and start empty."""
        taken = WriteBatch()
        taken.now_ms = self.now_ms
        taken.began, self.began = self.began, 0.0
        taken.ready, self.ready = self.ready, taken.ready
        taken.held, self.held = self.held, taken.held
        taken.arrivals, self.arrivals = self.arrivals, taken.arrivals
        taken.messages, self.messages = self.messages, 0
        taken.size, self.size = self.size, 0
        taken.notes, self.notes = self.notes, 0
        taken.topics, self.topics = self.topics, taken.topics
        taken.last, self.last = self.last, None
        taken.failed, self.failed = self.failed, False
        return taken
