"""The messages that wait to share batches: lanes, and the open batch of each.

Messages of one topic, one queue choice and one kind of send share a *lane*, which has one open
batch. Adding is guarded by `lock`, because the threads of `pocketmq.blocking` add, too. When a
batch leaves is decided by `sharing`; here it is only put where that one looks.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from pocketmq.balance.producer.plan import SendMode
from pocketmq.balance.producer.selectors import pinned
from pocketmq.client.producer.choices import Choice
from pocketmq.client.producer.requests import Outgoing
from pocketmq.client.producer.sending import Sending
from pocketmq.client.producer.shared_batches import Entry, LoopBatch, SharedBatch, as_entry
from pocketmq.errors import ClientClosed
from pocketmq.model import Message, MessageQueue
from pocketmq.model.names import is_retry_topic
from pocketmq.protocol.batch import plain_overhead

PATIENCE = 0.05
"""Seconds that an open batch waits for one in flight at most."""
_MOST_LANES = 4096  # topics come from applications: idle lanes are dropped above this
_LONGEST_TOPIC = 127  # bytes, in a batch

MakeBatch: TypeAlias = Callable[[str, float | None, float, float], SharedBatch]


class Places(Protocol):
    """Places of an open batch that were granted in advance."""

    def add(self, message: Message, timeout: float | None, /) -> object | None:
        """Add a message with nothing but a body; return its future, None if it has to wait."""


class Lane:
    """Messages that may share batches, of one topic. `queue` is the one chosen, if one was."""

    __slots__ = (
        "alone", "in_flight", "make", "mode", "open", "places", "queue", "queues", "timer", "topic",
        "waiting",
    )  # fmt: skip

    def __init__(
        self, topic: str, mode: SendMode, make: MakeBatch, queue: MessageQueue | None = None
    ) -> None:
        self.topic = topic
        self.mode = mode
        self.make = make
        self.queue = queue
        self.queues: Sequence[MessageQueue] = ()
        """Those of which `queue` was chosen."""
        self.alone = is_retry_topic(topic) or len(topic.encode()) > _LONGEST_TOPIC
        """Whether its messages cannot share batches."""
        self.open: SharedBatch | None = None
        self.places: Places | None = None
        """Those of the open batch, if places are granted in advance."""
        self.waiting: dict[SharedBatch, asyncio.TimerHandle] = {}
        """Full batches that follow one in flight, of a chosen queue; with timers of their ends."""
        self.in_flight = 0
        self.timer: asyncio.TimerHandle | None = None

    def choice(self) -> Choice | None:
        """Return the choice of a batch's queue."""
        queue, topic = self.queue, self.topic
        return None if queue is None else lambda queues: pinned(queues, queue, topic)


class SharedLanes:
    """The lanes of one producer. All methods are called with the lock held."""

    def __init__(self, sending: Sending) -> None:
        options = sending.options
        self.lock = threading.Lock()
        self.most = max(1, options.window // 2)
        """Messages of one batch: so that two of them fit into the window."""
        self.most_bytes = min(options.batch_bytes, options.max_message_size)
        self.id_size = len(sending.preparing.ids.next_id(0))
        self.plain_size = plain_overhead(self.id_size)
        """Bytes of an entry besides its body, if a message has nothing else."""
        self.alone_from = min(options.compress_from, self.most_bytes + 1 - self.plain_size)
        """Bodies of this size and more travel alone: batches are never compressed."""
        self.make_plain: MakeBatch = LoopBatch
        """Makes the batches of messages whose queue is not chosen."""
        self.plain: dict[SendMode, dict[str, Lane]] = {mode: {} for mode in SendMode}
        """The lanes of those, by their callers' topics."""
        self.clock = sending.now
        self.closed = False
        self.pending: set[SharedBatch] = set()
        """Batches with messages whose outcome is still to come."""
        self._sending = sending
        self._patience = max(options.linger or 0.0, PATIENCE)
        self._lanes: dict[tuple[str, SendMode, MessageQueue | None], Lane] = {}
        self._open: dict[Lane, None] = {}  # those with an open batch
        self._full: deque[tuple[Lane, SharedBatch]] = deque()  # leave now, in this order
        self._begun: deque[Lane] = deque()  # have a new open batch, and none in flight

    def lane(self, topic: str, mode: SendMode, queue: MessageQueue | None = None) -> Lane:
        """Return the lane of a topic, by its name on the wire, and of a queue if one is chosen."""
        key = (topic, mode, queue)
        lane = self._lanes.get(key)
        if lane is None:
            if len(self._lanes) >= _MOST_LANES:
                self._drop_idle()
            make = self.make_plain if queue is None else LoopBatch
            lane = self._lanes[key] = Lane(topic, mode, make, queue)
        return lane

    def plain_lane(self, topic: str, mode: SendMode) -> Lane:
        """Return the lane of a topic, by its caller's name; raises as `wire_topic` does."""
        lanes = self.plain[mode]
        lane = lanes.get(topic)
        if lane is None:
            lane = lanes[topic] = self.lane(self._sending.preparing.wire_topic(topic), mode)
        return lane

    def _drop_idle(self) -> None:
        kept = self._lanes = {
            key: lane
            for key, lane in self._lanes.items()
            if lane.open is not None or lane.in_flight
        }
        for mode, lanes in self.plain.items():
            for topic in [t for t, each in lanes.items() if (each.topic, mode, None) not in kept]:
                del lanes[topic]

    def is_plain(self, message: Message) -> bool:
        """Return whether a message has nothing but a body, of a size for batches."""
        return (
            not (message.tag or message.keys or message.properties or message.flag)
            and message.priority is None
            and 0 < len(message.body) < self.alone_from
        )

    def given(self, lane: Lane, outgoing: Outgoing) -> Outgoing | Entry:
        """Return what a prepared message is in a batch; itself if it has to travel alone."""
        entry = None if lane.alone else as_entry(outgoing)
        return outgoing if entry is None or len(entry[1]) > self.most_bytes else entry

    def fits(self, batch: SharedBatch | None, size: int, timeout: float | None) -> bool:
        """Return whether a message of `size` bytes can join an open batch."""
        return (
            batch is not None
            and batch.size + size <= self.most_bytes
            and batch.timeout == timeout
            and len(batch.messages) < self.most
        )

    def open_batch(self, lane: Lane, timeout: float | None, deadline: float) -> SharedBatch:
        """Open a new batch; the one that was open leaves. The caller wakes the loop."""
        if self.closed:
            raise ClientClosed(f"producer of group {self._sending.options.group}")
        self.seal(lane)
        now = self.clock()
        if not lane.in_flight or deadline - now < 4 * self._patience:
            self._begun.append(lane)
        batch = lane.open = lane.make(lane.topic, timeout, now, deadline)
        self._open[lane] = None
        self.pending.add(batch)
        return batch

    def seal(self, lane: Lane) -> None:
        """Let the open batch of a lane leave."""
        batch = lane.open
        if batch is not None:
            batch.closed()
            # An interrupt (KeyboardInterrupt) comes before all of these steps or after them.
            del self._open[lane]
            lane.open = lane.places = None
            self._full.append((lane, batch))

    def _close(self, lane: Lane) -> None:
        batch, lane.open, lane.places = lane.open, None, None
        del self._open[lane]
        if batch is not None:
            batch.closed()

    def seal_all(self) -> None:
        """Let all open batches leave: nothing will join them."""
        for lane in list(self._open):
            self.seal(lane)

    @property
    def several_open(self) -> bool:
        """Whether more than one lane has an open batch."""
        return len(self._open) > 1

    @property
    def is_due(self) -> bool:
        """Whether something waits for `leave_due`."""
        return bool(self._full or self._begun)
