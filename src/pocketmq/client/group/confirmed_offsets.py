"""Offsets of a STICKY consumer: stored soon after they change, one at a time, and confirmed.

A broker applies offsets in any order, so a queue has at most one in flight, and none travels with a
pull: the last commit of an owner must be the last one that counts. Behind a barrier nothing is
committed, and never past a message that is not finished (`low`). A fenced queue commits nothing,
and what is in flight then is called back as far as it was not sent. Belongs to one event loop.
"""

import asyncio
import logging
from collections.abc import Awaitable, Collection, Mapping
from typing import TypeVar

from pocketmq.balance.consumer.offsets import NO_OFFSET, OFFSET_UNKNOWN, NotedOffsets
from pocketmq.client.group.held_queue import HeldQueue, HoldState, log_name
from pocketmq.client.questions.asking import Question
from pocketmq.client.questions.offsets import commit, committed
from pocketmq.client.session import Session, ask_session
from pocketmq.client.tasks import Tasks
from pocketmq.errors import InvalidInput, MQError, TransportError
from pocketmq.model import MessageQueue

logger = logging.getLogger("pocketmq.client")

T = TypeVar("T")

_COMMITTING = frozenset({HoldState.OWNED, HoldState.DRAINING})
_LAST_WAIT = 1.0
"""Seconds for commits in flight when the consumer stops."""


class _Line:
    """The commits of one stay of a queue."""

    __slots__ = (
        "busy", "failing", "foreign", "highest", "hole", "last", "opened", "stored", "unsure"
    )  # fmt: skip

    def __init__(self, start: int, *, opened: bool) -> None:
        # Brokers may answer 0 where nothing is stored. It is stored then: once the first messages
        # have expired they would say "none", and the group would begin at the end of the queue.
        self.stored = start or NO_OFFSET
        """What the broker has, as far as this member wrote or read it."""
        self.highest = start
        """The highest offset that was sent, whether it was confirmed or not."""
        self.opened = asyncio.Event()
        """Set unless the queue is behind a barrier."""
        if opened:
            self.opened.set()
        self.hole: int | None = None
        """The first offset that the owner before left unfinished and that is not cached yet."""
        self.last = False
        """Whether the next owner was told where it starts, and nothing else is committed."""
        self.foreign = False
        """Whether the next owner may be at work already, and commit."""
        self.busy: asyncio.Task[Exception | None] | None = None
        """The commit in flight; its result is why it failed."""
        self.failing = False
        self.unsure = False
        """Whether the last commit may have been carried out, though there was no answer."""


class ConfirmedOffsets:
    """An `OffsetStore` whose commits are awaited; `HandoverQueues` opens and closes its lines."""

    def __init__(self, session: Session, group: str) -> None:
        self.table = NotedOffsets()
        self.held: Mapping[MessageQueue, HeldQueue] = {}
        """The member's queues."""
        self._session = session
        self._group = group
        self._tasks = Tasks(f"{session.client_id}: offsets of {group}")
        self._lines: dict[MessageQueue, _Line] = {}

    # As `OffsetStore`

    def load(self) -> None:
        """Do nothing: brokers are asked queue by queue."""

    async def read(self, queue: MessageQueue) -> int:
        """Return the stored offset, `NO_OFFSET` or `OFFSET_UNKNOWN`; nothing is noted."""
        try:
            offset = await self._ask(committed(self._group, queue))
        except Exception as error:  # whatever it is, a hand-over waits for the next attempt
            logger.info(
                'reading offset failed: group=%s %s error="%s"; retrying',
                self._group, log_name(queue), error,
                exc_info=None if isinstance(error, MQError) else error,
            )  # fmt: skip
            return OFFSET_UNKNOWN  # a refusal, too: only "not found" means that there is none
        return NO_OFFSET if offset is None else offset

    def persist(self, queue: MessageQueue) -> None:
        """Commit one queue soon, if its offset has changed."""
        self._commit_if_due(queue)

    async def persist_all(self, held: Collection[MessageQueue]) -> None:
        """Commit these queues, and wait for the answers."""
        tasks = [task for queue in held if (task := self._commit_if_due(queue)) is not None]
        if tasks:
            await asyncio.wait(tasks)

    async def persist_last(self, held: Collection[MessageQueue]) -> None:
        """Do the same before the end, within a limit."""
        try:
            async with asyncio.timeout(_LAST_WAIT):
                await self.persist_all(held)
        except TimeoutError:
            logger.warning(
                "stopped before the broker confirmed the last offsets: group=%s; "
                "messages may be redelivered",
                self._group,
            )

    # The stay of a queue

    def open(self, queue: MessageQueue, offset: int, *, barrier: bool) -> None:
        """Begin a stay at an offset; behind a barrier nothing is committed until `lift`."""
        self.table.forget(queue)
        self.table.update(queue, offset, increase_only=False)
        self._lines[queue] = _Line(offset, opened=not barrier)

    def close(self, queue: MessageQueue) -> None:
        """End a stay: nothing is committed any more."""
        self.halt(queue)
        self._lines.pop(queue, None)
        self.table.forget(queue)

    def halt(self, queue: MessageQueue) -> None:
        """Call back the commit in flight: it may wait for a connection, and must not be sent."""
        line = self._lines.get(queue)
        if line is not None and line.busy is not None:
            line.unsure = True
            line.busy.cancel()

    def to_foreign(self, queue: MessageQueue) -> None:
        """Commit nothing more by the way, and the last offset only if it is above the stored one.

        A next owner that does not wait for this one may have committed more.
        """
        if (line := self._lines.get(queue)) is not None:
            line.foreign = True

    def finished(self, queue: MessageQueue) -> bool:
        """Return whether the next owner knows where it starts."""
        line = self._lines.get(queue)
        return line is not None and line.last

    def finish(self, queue: MessageQueue, offset: int) -> None:
        """Keep to the offset where the next owner starts, whatever is noted or asked for later."""
        if (line := self._lines.get(queue)) is not None:
            line.last = True
            self.table.freeze(queue, offset)

    def lift(self, queue: MessageQueue) -> None:
        """Commit from now on."""
        if (line := self._lines.get(queue)) is not None:
            line.opened.set()

    def open_hole(self, queue: MessageQueue, first: int) -> None:
        """Commit from now on, but not past `first` before `move_hole`."""
        if (line := self._lines.get(queue)) is not None:
            line.hole = line.stored = first
            line.opened.set()

    def move_hole(self, queue: MessageQueue, first: int | None) -> None:
        """Let commits go up to `first`, where what is cached allows it; None: the hole is full."""
        if (line := self._lines.get(queue)) is not None:
            line.hole = first

    def low(self, held: HeldQueue) -> int:
        """Return the offset below which every message of a queue is finished."""
        noted = self.table.read(held.queue)
        line = self._lines.get(held.queue)
        if line is None or line.hole is None:
            return noted
        # What was noted before the hole was opened is past it.
        first = held.process.first_offset() if len(held.process) else noted
        return min(noted, line.hole, first)

    async def settle(self, held: HeldQueue, offset: int) -> bool | None:
        """Store the last offset of a stay; False if the broker did not confirm it.

        None: nothing was sent, because the queue was fenced meanwhile. Waits for the barrier and
        for the commit in flight.
        """
        line = await self._when_free(held)
        if line is None:
            return False
        if held.state not in _COMMITTING:
            return None
        if line.stored == offset:
            return True
        task = self._start(held.queue, line, offset)
        await asyncio.wait({task})
        return not task.cancelled() and task.result() is None

    async def commit(self, held: HeldQueue, offset: int) -> None:
        """Store an offset that the application wants stored.

        Raises `InvalidInput` if the queue was given away, `TransportError` if it is fenced, and the
        error of a broker that refused it.
        """
        line = await self._when_free(held)
        if line is None or line.last:
            raise InvalidInput(f"{held.queue} is not assigned to this consumer any more")
        if held.state not in _COMMITTING:
            raise TransportError(
                held.queue.broker_name,
                f"no offset of {held.queue} is stored until this member's lease is renewed",
            )
        if line.stored == offset:
            return
        task = self._start(held.queue, line, offset)
        await asyncio.wait({task})
        if task.cancelled():
            raise TransportError(
                held.queue.broker_name,
                f"it is unknown whether the offset of {held.queue} was stored",
            )
        if (error := task.result()) is not None:
            raise error

    async def _when_free(self, held: HeldQueue) -> _Line | None:
        """Wait for the barrier and the commit in flight; None if the stay ended meanwhile."""
        line = self._lines.get(held.queue)
        if line is None:
            return None
        await line.opened.wait()
        while line.busy is not None:
            await asyncio.wait({line.busy})
        ours = self._lines.get(held.queue) is line and self.held.get(held.queue) is held
        return line if ours else None

    async def recheck(self, queue: MessageQueue) -> bool | None:
        """Compare the stored offset with this stay's commits; return whether it was overtaken.

        None if that is not known: without an answer, or if a commit began meanwhile. An offset that
        was lost, as by a slave that was promoted, is committed again.
        """
        line = self._lines.get(queue)
        if line is None:
            return None
        while line.busy is not None:
            await asyncio.wait({line.busy})
        found = await self.read(queue)
        if found == OFFSET_UNKNOWN or self._lines.get(queue) is not line or line.busy is not None:
            return None
        if found > line.highest:
            return True
        # Behind a barrier it is the giver who commits, and has not come so far yet.
        if found < line.stored and line.opened.is_set():
            logger.warning(
                "stored offset went back: group=%s %s stored=%d committed=%d; committing again",
                self._group, log_name(queue), found, line.stored,
            )  # fmt: skip
            line.stored = found
            self._commit_if_due(queue)
        return False

    async def store(self, queue: MessageQueue, offset: int) -> bool:
        """Store where a queue starts; False if the broker did not confirm it."""
        return await self._send(queue, offset, None) is None

    async def commit_changed(self) -> None:
        """Commit what has changed since the last time, without waiting."""
        for queue in self._lines:
            self._commit_if_due(queue)

    def _commit_if_due(self, queue: MessageQueue) -> asyncio.Task[Exception | None] | None:
        """Begin a commit if one is due; return the one in flight."""
        line, held = self._lines.get(queue), self.held.get(queue)
        if line is None or held is None:
            return None
        ready = line.busy is None and line.opened.is_set() and not line.foreign
        if ready and held.state in _COMMITTING:
            low = self.low(held)
            # Lower only after a seek or a reset.
            if low >= 0 and low != line.stored:
                return self._start(queue, line, low)
        return line.busy

    def _start(
        self, queue: MessageQueue, line: _Line, offset: int
    ) -> asyncio.Task[Exception | None]:
        line.busy = self._tasks.spawn(self._send(queue, offset, line), f"commit {queue}")
        line.busy.add_done_callback(lambda _: setattr(line, "busy", None))
        return line.busy

    async def _send(self, queue: MessageQueue, offset: int, line: _Line | None) -> Exception | None:
        """Commit an offset; return why that failed."""
        try:
            if line is None or not await self._is_ahead(queue, line, offset):
                if line is not None:
                    line.highest = max(line.highest, offset)
                await self._ask(commit(self._group, queue, offset))
        except Exception as error:  # whatever it is, a hand-over waits for the outcome
            failing = line is not None and line.failing
            logger.log(
                logging.DEBUG if failing else logging.WARNING,
                'offset not stored: group=%s %s offset=%s error="%s"; retrying',
                self._group, log_name(queue), offset, error,
                exc_info=None if isinstance(error, MQError) else error,
            )  # fmt: skip
            if line is not None:
                line.failing = line.unsure = True
            return error
        if line is not None:
            line.stored, line.failing, line.unsure = offset, False, False
        return None

    async def _is_ahead(self, queue: MessageQueue, line: _Line, offset: int) -> bool:
        """Return whether the next owner may commit, and the broker has this offset or a later one.

        One of ours does so when the last offset of this owner is stored, which may have happened
        without an answer. A lower one is what the application wants. Raises `MQError`.
        """
        held = self.held.get(queue)
        given = held is not None and held.state is HoldState.DRAINING
        if not line.foreign and not (line.unsure and given and offset >= line.highest):
            return False
        stored = await self._ask(committed(self._group, queue))
        return stored is not None and stored >= offset

    def _ask(self, question: Question[T]) -> Awaitable[T]:
        """Ask a queue's master: what its slave has is from before, and what it takes is lost."""
        return ask_session(self._session, question, master_only=True)
