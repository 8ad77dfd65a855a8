"""Positions of a pull consumer in its queues: seek, commit, and questions about offsets.

Queues here have the names of the wire. Belongs to one event loop.
"""

import asyncio
from collections.abc import Collection, Mapping

from pocketmq.balance.consumer.lite_pull import NONE, auto_commit, check_seek, commit_step
from pocketmq.balance.consumer.offsets import NO_OFFSET
from pocketmq.client.group.confirmed_offsets import ConfirmedOffsets
from pocketmq.client.pull.cache import PullQueue
from pocketmq.client.pull.pulling import LitePullLoop
from pocketmq.client.pull.queues import PullParts
from pocketmq.client.questions.offsets import commit, committed, end_offset, first_offset, offset_at
from pocketmq.client.session import ask_session
from pocketmq.errors import InvalidInput
from pocketmq.model import MessageModel, MessageQueue

FIRST_COMMIT_AFTER = 1.0
"""Seconds until polled messages are noted if none were when the automatic commit was due."""


class Positions:
    """The offsets of one pull consumer. What asks a broker raises `MQError` if none answers."""

    def __init__(self, parts: PullParts, pulling: LitePullLoop) -> None:
        self._parts = parts
        self._pulling = pulling
        self._commit_due = float("-inf")

    def assigned(self, queue: MessageQueue) -> PullQueue:
        """Return an assigned queue; raises `InvalidInput` if it is not."""
        found = self._parts.queues.pulled.get(queue)
        if found is None or found.dropped or not found.assigned:
            raise InvalidInput(
                f"{queue} is not assigned to this consumer (now); see assignment(), and assign() "
                "for queues of your own choice"
            )
        return found

    # Where to continue

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """Continue from an offset that the queue holds; raises `InvalidInput` for another."""
        self._kept(queue)
        low, high = await asyncio.gather(self.first(queue), self.end(queue))
        check_seek(offset, low, high)
        self.go_to(self._kept(queue), offset)

    def _kept(self, queue: MessageQueue) -> PullQueue:
        """Return an assigned queue that is not given away; raises `InvalidInput` otherwise."""
        found = self.assigned(queue)
        if found.given:
            raise InvalidInput(f"{queue} is being handed over to another member; cannot seek it")
        return found

    def go_to(self, assigned: PullQueue, offset: int) -> None:
        """Discard what is cached of a queue and pull it from an offset, unless it is paused."""
        assigned.process.clear()
        self._parts.cache.drop(assigned)
        assigned.change(seek_offset=offset, consume_offset=offset)
        assigned.before_last = offset
        # Anew and last: an answer in flight is from before the seek and must not be cached.
        self._pulling.begin(assigned)

    # What is done

    def note_if_due(self) -> None:
        """Note what was polled so far, if the automatic commit is due."""
        options = self._parts.options
        if not options.auto_commit:
            return
        if isinstance(self._parts.offsets, ConfirmedOffsets):
            self.note_polled()  # stored every `commit_interval`
            return
        now = asyncio.get_running_loop().time()
        commit = auto_commit(self._commit_due, now, options.auto_commit_interval)
        self._commit_due = commit.deadline
        if commit.due and not self.note_polled():
            # Java waits for a whole interval, though messages may have come by the next poll.
            self._commit_due = min(now + FIRST_COMMIT_AFTER, commit.deadline)

    def note_polled(self) -> bool:
        """Note what was polled so far of all queues; the timer or the end stores it.

        Return whether anything was.
        """
        self._settle()
        table, noted = self._parts.offsets.table, False
        for assigned in self._parts.assigned():
            step = commit_step(assigned.queue, assigned.position, dropped=assigned.dropped)
            if step is not None:
                table.advance(step.queue, step.offset, increase_only=step.increase_only)
                noted = True
        return noted

    def polled(self, queues: Collection[MessageQueue] | None) -> dict[MessageQueue, int]:
        """Return the offsets after the last polled messages, of these or all queues."""
        self._settle()
        if queues is None:
            some = [each for each in self._parts.assigned() if self._may_commit(each)]
        else:
            some = [self.assigned(queue) for queue in queues]
        return {each.queue: each.position.consume_offset for each in some
                if each.position.consume_offset != NONE}  # fmt: skip

    def _may_commit(self, held: PullQueue) -> bool:
        store = self._parts.offsets
        gone = isinstance(store, ConfirmedOffsets) and store.finished(held.queue)
        return not held.dropped and not gone

    def _settle(self) -> None:
        self._parts.cache.settle(asyncio.get_running_loop().time())

    async def commit(self, offsets: Mapping[MessageQueue, int]) -> None:
        """Store offsets now; returns when the brokers have them."""
        parts = self._parts
        for queue, offset in offsets.items():
            if offset < 0:
                raise InvalidInput(
                    f"an offset to commit must be 0 or more, not {offset} (for {queue})"
                )
            if not self._may_commit(self.assigned(queue)):
                raise InvalidInput(f"{queue} is not assigned to this consumer any more")
        for queue, offset in offsets.items():
            parts.offsets.table.update(queue, offset, increase_only=False)
        if parts.options.model is MessageModel.BROADCASTING:
            await parts.offsets.persist_all(offsets.keys())
            return
        outcomes = await asyncio.gather(
            *(self._store(queue, offset) for queue, offset in offsets.items()),
            return_exceptions=True,
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    async def _store(self, queue: MessageQueue, offset: int) -> None:
        store = self._parts.offsets
        if isinstance(store, ConfirmedOffsets):
            # Nothing else: by now another member may have the queue, and its own offset.
            await store.commit(self.assigned(queue), offset)
            return
        await ask_session(self._parts.session, commit(self._parts.group, queue, offset))

    async def committed(self, queue: MessageQueue) -> int | None:
        """Return the group's offset, also one that is not stored yet; None if there is none."""
        parts = self._parts
        noted = parts.offsets.table.read(queue)
        if noted != NO_OFFSET:
            return noted
        if parts.options.model is MessageModel.BROADCASTING:
            stored = await parts.offsets.read(queue)
            return None if stored < 0 else stored
        return await ask_session(parts.session, committed(parts.group, queue))

    # What queues hold

    async def first(self, queue: MessageQueue) -> int:
        """Return the first offset that a queue still holds."""
        return await ask_session(self._parts.session, first_offset(queue))

    async def end(self, queue: MessageQueue) -> int:
        """Return the offset that the next message will get."""
        return await ask_session(self._parts.session, end_offset(queue))

    async def at_time(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """Return the offset of the first message stored at or after a time."""
        question = offset_at(queue, timestamp_ms, self._parts.group)
        return await ask_session(self._parts.session, question)
