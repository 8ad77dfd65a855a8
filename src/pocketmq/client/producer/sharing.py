"""When messages that share batches leave: alone at once, or with those that came meanwhile.

Those that may travel together share a *lane*, which has one open batch (see `lanes`). It leaves

* at once (with `linger`, after that time) if no batch of its lane is in flight, or a moment later
  if threads submit more than there is capacity for: the next ones are about to come;
* otherwise when the last of those has ended: whatever came meanwhile travels together;
* in any case when it is full, when something follows that cannot join it, or when it has waited for
  `PATIENCE`: a broker that hangs must not hold the messages for other ones.

A lane whose queue is chosen keeps the order of its messages: it has one batch in flight at a time,
whatever waits, because brokers of Java keep no order of requests that come at once.

Everything but adding belongs to one event loop.
"""

import asyncio
from collections.abc import Callable

from pocketmq.balance.producer.plan import SendMode
from pocketmq.client.producer.choices import Choice
from pocketmq.client.producer.lanes import Lane, SharedLanes
from pocketmq.client.producer.requests import Outgoing
from pocketmq.client.producer.sending import Sending
from pocketmq.client.producer.shared_batches import Entry, LoopBatch, SharedBatch, Taker
from pocketmq.client.producer.trips import Start, Trip, send_one_by_one
from pocketmq.errors import SendFailed
from pocketmq.model import Message


class Sharing(SharedLanes):
    """The lanes of one producer, and when their batches leave; `start` sends what leaves."""

    def __init__(self, sending: Sending, start: Start) -> None:
        super().__init__(sending)
        self.on_done: Callable[[object], None] = lambda _: None
        """Called with each batch that has ended."""
        self.on_held: Callable[[object], None] = lambda _: None
        """Called with each full batch that has to wait in its lane, and ..."""
        self.on_released: Callable[[object], None] = lambda _: None
        """... when it waits no longer."""
        self._start = start
        self._linger = sending.options.linger or 0.0
        self._loop = asyncio.get_running_loop()
        self.soon: Callable[[Callable[[], None]], object] = self._loop.call_soon
        self.woken = False
        """Whether `leave_due` will be called soon."""

    # Adding, on the loop

    def add_plain(self, lane: Lane, taker: Taker, message: Message, timeout: float | None) -> None:
        """Add a message with nothing but a body to its lane's open batch, as `add` does."""
        if timeout is not None:
            self._sending.limit(timeout)
        size = self.plain_size + len(message.body)
        with self.lock:
            batch = lane.open
            if (  # as `fits` has it
                batch is None
                or batch.size + size > self.most_bytes
                or batch.timeout != timeout
                or len(batch.messages) >= self.most
            ):
                deadline = self.clock() + self._sending.limit(timeout)
                batch = self.open_batch(lane, timeout, deadline)
            assert isinstance(batch, LoopBatch)
            batch.messages.append(message)
            batch.takers.append(taker)
            batch.size += size
        if self._full or self._begun:
            self.leave_due()

    def add(
        self,
        lane: Lane,
        taker: Taker,
        message: Message,
        given: Outgoing | Entry,
        timeout: float | None,
        *,
        choice: Choice | None = None,
    ) -> None:
        """Add a message to its lane's open batch.

        `given` is what it was prepared to; an `Outgoing` travels alone. Raises `ClientClosed`.
        """
        limit = self._sending.limit(timeout)
        with self.lock:
            alone = isinstance(given, Outgoing)
            size = len(given.body) if isinstance(given, Outgoing) else len(given[1])
            batch = lane.open
            if alone or not self.fits(batch, size, timeout):
                batch = self.open_batch(lane, timeout, self.clock() + limit)
            assert isinstance(batch, LoopBatch)
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
        hold = self._patience if lane.in_flight else max(self._linger, batch.hold)
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
