"""Writing what one event-loop iteration has appended, then letting its answers go.

All requests of an iteration are handled as they come. At its end their messages are written with
one call, and only then do the answers leave that promise they are stored; with synchronous flush
they leave after the sync, which `synced_answers` shares among them. This order guarantees that an
acknowledged message is stored: journal of pops, log, answers, then the pulls that waited for it.
Belongs to the broker's loop.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pocketmq.broker.config import BrokerConfig
from pocketmq.broker.core.answers import SendAnswers, answered_by
from pocketmq.broker.core.refusals import STORE_UNAVAILABLE
from pocketmq.broker.core.write_batch import Answers, SendBurst, WriteBatch
from pocketmq.broker.metrics.measures import Measures
from pocketmq.broker.statistics.counters import BrokerTotals, TopicStatistics
from pocketmq.broker.writing.synced_answers import SyncedAnswers, release
from pocketmq.errors import ResponseCode, StoreError
from pocketmq.net import Connection
from pocketmq.net.clock import WallClock
from pocketmq.protocol import Command
from pocketmq.store import MessageStore, QueueIndex
from pocketmq.store.appending import Run

logger = logging.getLogger("pocketmq.broker")

Arrivals: TypeAlias = Mapping[QueueIndex, int]
"""Queues that grew while pulls wait for them, each with the offset from which it is new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """Where a broker counts what it stores and answers."""

    traffic: BrokerTotals
    stats: TopicStatistics
    measures: Measures | None = None


class CommitLogWriter:
    """Writes the batch that handlers append to, and answers their requests.

    `before_write` is called when the batch has changes of pops, which must be in the log before
    the messages they refer to are handed out. `arrived` is called after each write that brought
    messages for pulls that wait.
    """

    def __init__(
        self,
        batch: WriteBatch,
        store: MessageStore,
        clock: WallClock,
        config: BrokerConfig,
        *,
        steady: Callable[[], float],
        answers: SendAnswers,
        counters: Counters,
    ) -> None:
        self.batch = batch
        self.config = config
        self.before_write: list[Callable[[], None]] = []
        self.arrived: list[Callable[[Arrivals], None]] = []
        self._store = store
        self._clock = clock
        self._steady = steady
        self._answers = answers
        self._counters = counters
        self._synced = SyncedAnswers(store, self._send)
        self._ending: asyncio.Handle | None = None
        self._latest: Connection | None = None  # the client that sent messages last

    @property
    def config(self) -> BrokerConfig:
        """The settings, of which one decides whether answers wait for a sync."""
        return self._config

    @config.setter
    def config(self, config: BrokerConfig) -> None:
        self._config = config
        self._syncs = config.sync_flush  # each send asks

    @property
    def overloaded(self) -> bool:
        """Whether more messages wait for a sync than the broker should promise to its senders."""
        return self._synced.messages > 0 and self._synced.exceeds(self.config)

    def schedule(self, connection: Connection) -> None:
        """Write soon what a connection's requests have appended.

        A single client that sends one message after another is answered at once: waiting would
        cost it two more iterations of the loop. Many clients share one write.
        """
        if self._ending is not None:
            return
        if connection is self._latest:
            self._write()
        else:
            self._latest = connection
            self._ending = asyncio.get_running_loop().call_soon(self._write)

    def takes_alone(self, connection: Connection) -> bool:
        """Whether a burst of a connection is all that there is to write, and is answered at once.

        So it is for a client that sends one message after another: `schedule` would write it now,
        and nothing else is collected.
        """
        batch = self.batch
        return not (
            connection is not self._latest
            or self._ending is not None
            or batch.messages
            or batch.notes
            or batch.held
            or batch.ready
            or batch.failed
            or self._synced.messages
            or self._syncs
            or self._counters.measures is not None
        )

    def write_alone(
        self,
        connection: Connection,
        runs: Sequence[Run],
        answers: bytes,
        now_ms: int,
        times: int | None = None,
    ) -> None:
        """Write a burst that was appended and answer it, without collecting it in the batch.

        `times` is the number of requests it came in; None: one per message.

        Only if `takes_alone` says so. What `WriteBatch` and `_write` do for it, in one step.
        """
        try:
            self._store.write()
        except StoreError as error:
            messages = sum(run[2] for run in runs)
            self._log_failure(messages, error)
            self._refuse({connection: [(SendBurst({}), answers)]})
            return
        if answers:  # first: the client goes on while the rest is done here
            connection.write_now(answers)
        elapsed_ms = self._clock.now_ms() - now_ms
        stored = messages = size = whole = 0
        arrivals: dict[QueueIndex, int] | None = None
        topic, stats = runs[0][0].topic, self._counters.stats
        for run in runs:
            queue, count = run[0], run[2]
            if queue.topic != topic:
                stats.was_stored(topic, messages, size, times or messages)
                stored, whole = stored + messages, whole + size
                topic, messages, size = queue.topic, 0, 0
            messages += count
            size += run[3]
            if queue.waiting:
                arrivals = arrivals or {}
                arrivals[queue] = queue.next_offset - count
        stats.was_stored(topic, messages, size, times or messages)
        self._counters.traffic.took(stored + messages, whole + size, elapsed_ms)
        if arrivals is not None:
            self._wake(arrivals)
        else:
            connection.answered = True

    def seal_alone(self) -> bool:
        """Write the changes of pops of a single request; False if that failed.

        Only if `takes_alone` said so before the request. What `_write` does for it, in one step.
        """
        self.batch.notes = 0
        try:
            for seal in self.before_write:
                seal()
            self._store.write()
        except StoreError as error:
            self._log_failure(0, error)
            return False
        return True

    def refuse_alone(self, connection: Connection, request: Command) -> None:
        """Answer a request whose changes could not be written."""
        self._refuse({connection: [(request, b"")]})

    def _log_failure(self, messages: int, error: StoreError) -> None:
        logger.warning(
            "write to the commit log failed: messages=%d error=%s; "
            "responding SERVICE_NOT_AVAILABLE",
            messages,
            error,
        )

    def forget(self, connection: Connection) -> None:
        """Hold no reference to a connection that was closed."""
        if self._latest is connection:
            self._latest = None

    def write_now(self) -> None:
        """Write and answer what this iteration has collected, now.

        Code that appends outside of a request (a delay that is over, …) calls it afterwards. Code
        that works on the store otherwise calls it before: if the store then fails and drops what
        was not written, no client's message is among it.
        """
        if self._ending is not None:
            self._ending.cancel()
        self._write()

    async def drained(self) -> None:
        """Wait until no answer waits for a sync; no longer than senders would."""
        await self._synced.drained()

    def _write(self) -> None:
        self._ending = None
        # Taken before the write: pops that it wakes put their changes into the next batch.
        batch = self.batch.take()
        try:
            if batch.notes:
                for seal in self.before_write:
                    seal()
            self._store.write()
        except StoreError as error:
            self._log_failure(batch.messages, error)
            batch.failed = True
        if batch.failed:
            self._refuse(batch.held)
            self._refuse(batch.ready)
            self._wake(batch.arrivals)  # what came after the failure may be stored all the same
            return
        if batch.messages:
            counters, elapsed_ms = self._counters, self._clock.now_ms() - batch.now_ms
            counters.traffic.took(batch.messages, batch.size, elapsed_ms)
            counters.stats.were_stored(batch.topics)
        self._release(batch)
        self._wake(batch.arrivals)

    def _release(self, batch: WriteBatch) -> None:
        config = self.config
        if batch.ready:
            self._send(batch.ready, batch.began)
        if not batch.held:
            return
        if not config.sync_flush:
            self._send(batch.held, batch.began)
        elif not self._synced.messages and batch.single and self._store.sync_if_quick():
            self._send(batch.held, batch.began)
            if self._latest is not None and not (batch.ready or batch.arrivals):
                self._latest.answered = self._latest in batch.held
        else:
            timeout = config.sync_flush_timeout / 1000
            self._synced.hold(batch.held, batch.messages, batch.size, timeout, batch.began)

    def _send(self, answers: Answers, began: float, code: int = 0) -> None:
        """Send answers, each connection's in one piece."""
        release(answers)
        measures = self._counters.measures
        if measures is not None:
            measures.began, measures.suspended = began, False
            now = self._steady()
            for entries in answers.values():
                for request, _ in entries:
                    if isinstance(request, SendBurst):
                        for asked, times in request.by_code.items():
                            measures.answered(asked, code, now, times)
                    else:
                        measures.answered(request.code, code, now)

    def _refuse(self, answers: Answers) -> None:
        for connection, entries in answers.items():
            for entry, frame in entries:
                requests = answered_by(frame) if isinstance(entry, SendBurst) else [entry]
                for request in requests:
                    self._counters.traffic.refused += 1
                    answer = self._answers.refused(
                        request, ResponseCode.SERVICE_NOT_AVAILABLE, STORE_UNAVAILABLE
                    )
                    connection.write(answer.encode())

    def _wake(self, arrivals: Arrivals) -> None:
        """Retry the pulls that new messages may be for."""
        if arrivals:
            for wake in self.arrived:
                wake(arrivals)
            if self.batch.notes:
                self._write()  # what was popped is journalled before its answers leave
