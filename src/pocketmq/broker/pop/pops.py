"""A broker's pops as its handlers and its log writer see them: take, wait, wake, settle.

A request that waits is served as soon as a message comes, a lock is released, or it times out, in
the order they came. Timers are `redelivery`'s (`PopLifecycle`). Belongs to the broker's loop.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from pocketmq.broker.core.refusals import FAILED
from pocketmq.broker.pop.answers import NO_POP, nothing_popped, notified, pop_answer
from pocketmq.broker.pop.journal import Journal
from pocketmq.broker.pop.sources import PopSource, PopSources, retry_topics
from pocketmq.broker.pop.table import PopTable
from pocketmq.broker.pop.taking import PopBatch, Taking
from pocketmq.broker.pop.waiting import ANY_QUEUE, HeldPop, Line, WaitingPops
from pocketmq.broker.pulling.selection import Selection
from pocketmq.errors import ResponseCode, ServerError, StoreError
from pocketmq.net import Connection
from pocketmq.protocol.requests.pop import NotificationRequest, PopRequest
from pocketmq.store import QueueIndex

if TYPE_CHECKING:
    from pocketmq.broker.state import BrokerState

logger = logging.getLogger("pocketmq.broker")


def _ignore(_: float) -> None:
    """Do nothing: no callback is set."""


class Pops:
    """The pops of one broker."""

    def __init__(self, state: "BrokerState") -> None:
        self._state = state
        self.journal = Journal(state.store, state.config.broker_cluster_name)
        self.table = PopTable(state.offsets, self.journal)
        self.waiting = WaitingPops()
        self.sources = PopSources(state)
        self.wake_by: Callable[[float], None] = _ignore
        """Called with the time, by the monotonic clock, at which `serve_due` must be called."""
        self.sealed: Callable[[int], None] = _ignore
        """Called with the number of changes that were appended to the journal."""
        self._open = True
        self._unfinished: dict[Line, None] = {}  # not all messages could be filtered at once

    # What handlers call

    def find(
        self, source: PopSource, header: PopRequest, selection: Selection
    ) -> tuple[Taking, PopBatch]:
        """Find messages; the caller passes them to `note` next. Raises `StoreError`."""
        taking = Taking(self._state, self.table, source, header, selection)
        return taking, taking.run()

    def note(self, taking: Taking, batch: PopBatch) -> None:
        """Take what was found."""
        if batch.count:
            state = self._state
            taking.note()
            state.batch.notes += 1
            state.traffic.pulls_found += 1
            state.traffic.messages_out += batch.count

    def take(self, source: PopSource, header: PopRequest, selection: Selection) -> PopBatch:
        """Find messages and take them. Raises `StoreError`."""
        taking, batch = self.find(source, header, selection)
        self.note(taking, batch)
        return batch

    def available(self, header: NotificationRequest) -> int:
        """Return the number of messages to take, without filtering them."""
        state, group, topic = self._state, header.consumer_group, header.topic
        names = [topic] if header.order else [topic, *_retries(state, topic, group)]
        found = 0
        for name in names:
            config = state.topics.get(name)
            queue_ids = range(0 if config is None else config.read_queue_nums)
            if name == topic and header.queue_id >= 0:
                queue_ids = range(header.queue_id, header.queue_id + 1)
            for queue_id in queue_ids:
                queue = state.store.queue(name, queue_id)
                if queue is not None:
                    found += self._left(queue, header)
        return found

    def _left(self, queue: QueueIndex, header: NotificationRequest) -> int:
        topic, group, queue_id = queue.topic, header.consumer_group, queue.queue_id
        if header.order:
            locked = self.table.locked(topic, group, queue_id)
            if locked and locked.pop.is_blocked(header.attempt_id, self._state.batch.now_ms):
                return 0
        start = self.table.cursor(topic, group, queue_id)
        return max(queue.next_offset - (queue.min_offset if start is None else start), 0)

    def hold(self, held: HeldPop, wait: float, *, unfinished: bool = False) -> bool:
        """Let a request wait; False if too many wait already.

        `unfinished`: there are messages that have not been filtered yet.
        """
        state, header, waiting = self._state, held.header, self.waiting
        config = state.config
        key = header.topic, header.consumer_group, max(header.queue_id, ANY_QUEUE)
        line = waiting.line(key)
        if (
            not self._open
            or held.connection.closed
            or len(waiting) >= config.max_pop_polling_size
            or len(line) > config.pop_polling_size
            or waiting.of(held.connection) >= config.max_suspended_pulls_of_connection
            or not waiting.has_room_for(held)
        ):
            return False
        if not line.queues:
            self._watch(line)
        waiting.hold(held, line, wait, state.steady())
        self.wake_by(held.deadline)
        if unfinished:
            self._continue_soon(line)
        return True

    def waiting_for(self, topic: str, group: str, queue_id: int) -> int:
        """Return how many pops wait for a queue."""
        line = self.waiting.lines.get((topic, group, queue_id))
        return 0 if line is None else len(line.pops)

    def unlocked(self, topic: str, group: str, queue_id: int) -> None:
        """Serve requests that wait for a queue that was locked."""
        for each in (ANY_QUEUE, queue_id):
            line = self.waiting.lines.get((topic, group, each))
            if line is not None:
                self._serve(line)

    def forget(self, topic: str | None = None, group: str | None = None) -> None:
        """Drop what is in flight of a topic, or of a group, that was deleted."""
        self.table.forget(topic, group)
        self._state.batch.notes += 1

    # What the log writer calls

    def seal(self) -> None:
        """Append the changes of this iteration to the journal; raises `StoreError`."""
        self.sealed(self.journal.seal(self._state.batch.now_ms))

    def arrived(self, queue: QueueIndex) -> None:
        """Serve requests that wait for messages of a queue."""
        by_group: dict[str, list[Line]] = {}
        for line in self.waiting.watching(queue):
            by_group.setdefault(line.key[1], []).append(line)
        for lines in by_group.values():
            self._serve(*lines)

    def topics_changed(self) -> None:
        """Update which queues each line watches."""
        for line in self.waiting.lines.values():
            self._watch(line)

    def leave(self, connection: Connection, group: str) -> None:
        """Answer the waiting requests of a client that leaves a group."""
        for held in self.waiting.take_group(connection, group):
            self._answer_last(held)

    def clock_was_set_back(self) -> None:
        """Limit how long messages stay hidden that were popped in what is the future now."""
        self._state.batch.now_ms = now_ms = self._state.clock.now_ms()
        self.table.all_in_flight.limit_waits(now_ms)
        self.wake_by(self._state.steady())

    def drop(self, connection: Connection) -> None:
        """Drop the requests of a connection that is closed."""
        self.waiting.drop(connection)

    def serve_due(self) -> None:
        """Answer requests that have timed out."""
        self._state.batch.now_ms = self._state.clock.now_ms()
        for held in self.waiting.take_due(self._state.steady()):
            self._answer_last(held)

    def close(self) -> None:
        """Answer all waiting requests; none waits from now on."""
        self._open = False
        for held in self.waiting.take_all():
            self._answer_last(held)

    # Inside

    def _watch(self, line: Line) -> None:
        state = self._state
        topic, group, queue_id = line.key
        queues = []
        for name in (topic, *_retries(state, topic, group)):
            config = state.topics.get(name)
            every = range(0 if config is None else config.read_queue_nums)
            wanted = every if name != topic or queue_id == ANY_QUEUE else (queue_id,)
            queues += [state.store.make_queue(name, each) for each in wanted if each in every]
        self.waiting.watch(line, queues)

    def _serve(self, *lines: Line) -> None:
        """Serve the lines of one group, the request that has waited longest first."""
        try:
            hopeful = [*lines]
            while (held := _first(hopeful)) is not None:
                line = held.line
                assert line is not None
                if not self._try(held, line):
                    hopeful.remove(line)
            for line in lines:
                self._notify(line)
        except Exception:
            topic, group, _ = lines[0].key
            logger.exception("serving waiting pops failed: topic=%s group=%s", topic, group)

    def _notify(self, line: Line) -> None:
        """Notify as many clients as there are messages for.

        All requests of such a client are answered: it may have stopped waiting for its first one.
        """
        notified_clients: set[Connection] = set()
        enough = False
        for held in list(line.notifications):
            assert isinstance(held.header, NotificationRequest)
            if held.connection not in notified_clients:
                enough = enough or self.available(held.header) <= len(notified_clients)
                if enough:
                    continue
                notified_clients.add(held.connection)
            self.waiting.remove(held)
            self._answer(held, ResponseCode.SUCCESS, notified(held.request, found=True))

    def _try(self, held: HeldPop, line: Line) -> bool:
        """Answer a request if there is something for it; return whether there may be more."""
        header = held.header
        assert isinstance(header, PopRequest)
        try:
            source = self.sources.find(held.connection, header)
            batch = self.take(source, header, held.selection)
        except (ServerError, StoreError) as error:
            self.waiting.remove(held)
            if isinstance(error, StoreError):
                self._state.batch.check_dropped()
            code = error.code if isinstance(error, ServerError) else ResponseCode.SYSTEM_ERROR
            remark = error.remark if isinstance(error, ServerError) else FAILED
            self._answer(held, code, held.request.reply(code, remark, NO_POP).encode())
            return True
        if not batch.count:
            if batch.unfinished:
                self._continue_soon(line)
            return False
        self.waiting.remove(held)
        answer = pop_answer(held.request.opaque, header, self._state.batch.now_ms, batch)
        self._answer(held, ResponseCode.SUCCESS, *answer)
        return batch.rest > 0

    def _answer_last(self, held: HeldPop) -> None:
        """Answer a request that has timed out, with whatever there is."""
        header, now_ms = held.header, self._state.batch.now_ms
        if isinstance(header, NotificationRequest):
            found = self.available(header) > 0
            self._answer(held, ResponseCode.SUCCESS, notified(held.request, found=found))
        else:
            code, rest = ResponseCode.POLLING_TIMEOUT, 0
            self._answer(held, code, nothing_popped(held.request, code, header, now_ms, rest))

    def _answer(self, held: HeldPop, code: int, *pieces: bytes | memoryview) -> None:
        held.connection.write(*pieces)
        measures = self._state.measures
        if measures is not None:
            measures.began, measures.suspended = held.deadline - held.lane, True
            measures.answered(held.request.code, code, self._state.steady())

    def _continue_soon(self, line: Line) -> None:
        """Try again after other requests were served: not all messages could be filtered."""
        if not self._unfinished:
            asyncio.get_running_loop().call_soon(self._continue)
        self._unfinished[line] = None

    def _continue(self) -> None:
        unfinished, self._unfinished = self._unfinished, {}
        self._state.batch.now_ms = self._state.clock.now_ms()
        for line in unfinished:
            if len(line):
                self._serve(line)
        self._state.writer.write_now()  # writes what was noted outside of a request


def _ready(line: Line) -> HeldPop | None:
    """Return the first pop of a line whose client reads its answers."""
    for held in line.pops:
        if not held.connection.clogged:
            return held
    return None


def _first(lines: list[Line]) -> HeldPop | None:
    """Return the pop that has waited longest of those that can be answered."""
    if len(lines) == 1:
        return _ready(lines[0])
    ready = [held for held in map(_ready, lines) if held is not None]
    return min(ready, key=_number, default=None)


def _number(held: HeldPop) -> int:
    return held.number


def _retries(state: "BrokerState", topic: str, group: str) -> list[str]:
    return [name for _, name in retry_topics(state, topic, group)]
