"""When messages that share batches leave: alone at once, or with those that came meanwhile.

Messages of one topic, one queue choice and one kind of send share a *lane*, which has one open
batch. It leaves

* at once (with `linger`, after that time) if no batch of its lane is in flight;
* otherwise when the last of those has ended: whatever came meanwhile travels together;
* in any case when it is full, when something follows that cannot join it, or when it has waited for
  `PATIENCE`: a broker that hangs must not hold the messages for other ones.

A lane whose queue is chosen keeps the order of its messages: it has one batch in flight at a time,
whatever waits, because brokers of Java keep no order of requests that come at once.

Adding is guarded by `lock`, because the threads of `pocketmq.blocking` add, too; everything else
belongs to one event loop.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias

from pocketmq.balance.producer.plan import SendMode
from pocketmq.balance.producer.selectors import pinned
from pocketmq.client.producer.choices import Choice
from pocketmq.client.producer.requests import Outgoing
from pocketmq.client.producer.sending import Sending
from pocketmq.client.producer.shared_batches import Entry, LoopBatch, SharedBatch, as_entry
from pocketmq.client.producer.takers import Taker
from pocketmq.client.producer.trips import Start, Trip, send_one_by_one
from pocketmq.errors import ClientClosed, SendFailed
from pocketmq.model import Message, MessageQueue
from pocketmq.model.names import is_retry_topic
from pocketmq.protocol.batch import batch_entry

PATIENCE = 0.05
"""Seconds that an open batch waits for one in flight at most."""
_MOST_LANES = 4096  # topics come from applications: idle lanes are dropped above this
_LONGEST_TOPIC = 127  # bytes, in a batch

MakeBatch: TypeAlias = Callable[[str, float | None, float, float], SharedBatch]


class Lane:
    """Messages that may share batches, of one topic. `queue` is the one chosen, if one was."""

    __slots__ = (
        "alone", "in_flight", "make", "mode", "open", "queue", "queues", "timer", "topic",
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
        self.waiting: dict[SharedBatch, asyncio.TimerHandle] = {}
        """Full batches that follow one in flight, of a chosen queue; with timers of their ends."""
        self.in_flight = 0
        self.timer: asyncio.TimerHandle | None = None

    def choice(self) -> Choice | None:
        """Return the choice of a batch's queue."""
        queue, topic = self.queue, self.topic
        return None if queue is None else lambda queues: pinned(queues, queue, topic)


class Sharing:
    """The lanes of one producer; `start` sends what leaves."""

    def __init__(self, sending: Sending, start: Start) -> None:
        options = sending.options
        self.lock = threading.Lock()
        self.most = max(1, options.window // 2)
        """Messages of one batch: so that two of them fit into the window."""
        self.most_bytes = min(options.batch_bytes, options.max_message_size)
        sample = batch_entry(Message("t", b"x"), sending.preparing.ids.next_id(0))
        self.plain_size = sample.encoded_size() - 1
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
        self.on_done: Callable[[object], None] = lambda _: None
        """Called with each batch that has ended."""
        self.on_held: Callable[[object], None] = lambda _: None
        """Called with each full batch that has to wait in its lane, and ..."""
        self.on_released: Callable[[object], None] = lambda _: None
        """... when it waits no longer."""
        self._sending = sending
        self._start = start
        self._linger = options.linger or 0.0
        self._patience = max(self._linger, PATIENCE)
        self._loop = asyncio.get_running_loop()
        self.soon: Callable[[Callable[[], None]], object] = self._loop.call_soon
        self._lanes: dict[tuple[str, SendMode, MessageQueue | None], Lane] = {}
        self._open: dict[Lane, None] = {}  # those with an open batch
        self._full: deque[tuple[Lane, SharedBatch]] = deque()  # leave now, in this order
        self._begun: deque[Lane] = deque()  # have a new open batch, and none in flight
        self.woken = False
        """Whether `leave_due` will be called soon."""

    # Adding: with the lock held

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
        if lane.open is not None:
            self._full.append((lane, lane.open))
            self._close(lane)

    def _close(self, lane: Lane) -> None:
        lane.open = None
        del self._open[lane]

    def seal_all(self) -> None:
        """Let all open batches leave: nothing will join them."""
        for lane in list(self._open):
            self.seal(lane)

    @property
    def is_due(self) -> bool:
        """Whether something waits for `leave_due`."""
        return bool(self._full or self._begun)

    # The same on the loop

    def add(
        self,
        lane: Lane,
        taker: Taker,
        message: Message,
        given: Outgoing | Entry | None,
        timeout: float | None,
        *,
        choice: Choice | None = None,
    ) -> None:
        """Add a message to its lane's open batch.

        `given` is what it was prepared to, None for a plain body; an `Outgoing` travels alone.
        Raises `ClientClosed`.
        """
        limit = self._sending.limit(timeout)
        with self.lock:
            alone = isinstance(given, Outgoing)
            if given is None:
                size = self.plain_size + len(message.body)
            else:
                size = len(given.body) if isinstance(given, Outgoing) else len(given[1])
            batch = lane.open
            if alone or not self.fits(batch, size, timeout):
                batch = self.open_batch(lane, timeout, self.clock() + limit)
            assert isinstance(batch, LoopBatch)
            if given is not None:
                entry = (given, b"") if isinstance(given, Outgoing) else given
                batch.entries[len(batch.messages)] = entry
            batch.messages.append(message)
            batch.takers.append(taker)
            if choice is not None:
                batch.choices.append(choice)
            batch.size += size
            if alone:
                self.seal(lane)
        if self._full or self._begun:
            self.leave_due()

    def add_chosen(
        self,
        taker: Taker,
        outgoing: Outgoing,
        choice: Choice,
        timeout: float | None,
        mode: SendMode,
    ) -> bool:
        """Add a message whose queue its caller chose; False if the topic's queues are not known.

        Raises what the choice does.
        """
        publication = self._sending.publishing.ready(outgoing.topic)
        if publication is None:
            return False
        queues = publication.queues
        chosen = choice(queues)
        with self.lock:
            lane = self.lane(outgoing.topic, mode, chosen)
            changed = lane.queues is not queues and lane.queues != queues
            if changed:
                self.seal(lane)
        if changed:
            self.leave_due()
        lane.queues = queues
        given = self.given(lane, outgoing)
        self.add(lane, taker, outgoing.messages[0], given, timeout, choice=choice)
        return True

    # Leaving

    def leave_due(self) -> None:
        """Send the batches that are full, and look at those that were opened."""
        # The order matters for threads: they append, then look at the flag.
        self.woken = False
        while self._full:
            self._leave(*self._full.popleft())
        while self._begun:
            self._look_at(self._begun.popleft())

    def leave_all(self) -> set[SharedBatch]:
        """Send everything that waits for company; return the batches that have not ended."""
        with self.lock:
            self.seal_all()
        self.leave_due()
        with self.lock:
            return set(self.pending)

    def close(self) -> None:
        """Take nothing more."""
        with self.lock:
            self.closed = True

    def _look_at(self, lane: Lane) -> None:
        """Send the open batch of a lane if it has waited long enough; else set a timer."""
        with self.lock:
            batch = lane.open
            wait = self._patience if batch is None else self._wait_of(lane, batch)
            if batch is not None and wait <= 0:
                self._close(lane)
        if batch is not None and wait <= 0:
            self._leave(lane, batch)
        elif batch is not None or lane.in_flight:
            self._look_in(lane, wait)

    def _wait_of(self, lane: Lane, batch: SharedBatch) -> float:
        """Return the seconds that an open batch still waits: a quarter of its time at most."""
        if lane.in_flight and lane.queue is not None:
            return batch.deadline - self.clock()
        hold = self._patience if lane.in_flight else self._linger
        return batch.opened + min(hold, (batch.deadline - batch.opened) / 4) - self.clock()

    def _look_in(self, lane: Lane, wait: float) -> None:
        """Look at a lane after a number of seconds, or earlier."""
        if lane.timer is not None:
            if lane.timer.when() <= self._loop.time() + wait:
                return
            lane.timer.cancel()
        lane.timer = self._loop.call_later(wait, self._look_again, lane)

    def _look_again(self, lane: Lane) -> None:
        lane.timer = None
        self._look_at(lane)

    def _leave(self, lane: Lane, batch: SharedBatch) -> None:
        if lane.in_flight and lane.queue is not None:
            left = batch.deadline - self.clock()
            lane.waiting[batch] = self._loop.call_later(left, self._give_up, lane, batch)
            self.on_held(batch)
            return
        lane.in_flight += 1
        if lane.timer is None:
            lane.timer = self._loop.call_later(self._patience, self._look_again, lane)
        batch.drop_cancelled()
        if not batch.messages:
            self.ended(lane)
            self.done(batch)
            return
        try:
            self._send(lane, batch)
        except Exception as error:  # noqa: BLE001 - for the futures: their lane must go on
            self.ended(lane)
            batch.fail(error)
            self.done(batch)

    def _give_up(self, lane: Lane, batch: SharedBatch) -> None:
        """Fail a batch that has waited in its lane until its time was over."""
        del lane.waiting[batch]
        self.on_released(batch)
        batch.fail(self._too_late(batch))
        self.done(batch)

    def _too_late(self, batch: SharedBatch) -> SendFailed:
        elapsed = self._sending.limit(batch.timeout) + self.clock() - batch.deadline
        return SendFailed(batch.messages[0].topic, None, 0, elapsed, None)

    def _send(self, lane: Lane, batch: SharedBatch) -> None:
        left = batch.deadline - self.clock()
        if left <= 0:
            raise self._too_late(batch)
        if lane.queue is not None and not self._holds(lane):
            assert isinstance(batch, LoopBatch)
            singles = [batch.entries[at][0] for at in range(len(batch.messages))]
            send_one_by_one(
                self, lane, batch, self._start, list(zip(singles, batch.choices, strict=True))
            )
            return
        outgoing = batch.pack(self._sending.preparing)
        trip = Trip(self, lane, batch, outgoing, self._start)
        self._start(trip, outgoing, lane.choice(), left, lane.mode)

    def _holds(self, lane: Lane) -> bool:
        """Return whether the choices of a lane's messages still hold: its queues are the same."""
        publication = self._sending.publishing.ready(lane.topic)
        return publication is not None and (
            publication.queues is lane.queues or publication.queues == lane.queues
        )

    def ended(self, lane: Lane) -> None:
        """Take note that a batch of a lane is not in flight any more."""
        with self.lock:
            lane.in_flight -= 1
        if lane.in_flight:
            return
        if lane.timer is not None:
            lane.timer.cancel()
            lane.timer = None
        if lane.waiting:
            batch = next(iter(lane.waiting))
            lane.waiting.pop(batch).cancel()
            self.on_released(batch)
            self._leave(lane, batch)
        elif lane.open is not None:
            self._look_at(lane)

    def done(self, batch: SharedBatch) -> None:
        """Take note that all messages of a batch have their outcomes."""
        self.pending.discard(batch)
        self.on_done(batch)
