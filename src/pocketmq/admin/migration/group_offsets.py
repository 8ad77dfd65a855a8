"""Moving groups: from their offsets in the source to the same messages on the target.

An offset on the target only ever moves forward, and never past a message the group has not
consumed. Each one is read back after it is set, and the message before it is checked.
"""

import asyncio

import msgspec

from pocketmq.admin.migration import copies, copying
from pocketmq.admin.migration.ledger import MigrationLedger, QueueState
from pocketmq.admin.migration.offset_map import Position, position
from pocketmq.admin.migration.side import Side
from pocketmq.errors import CannotMigrate
from pocketmq.model import MessageQueue

_POLL = 0.1


class QueueMove(msgspec.Struct, frozen=True):
    """The offset of a group in a source queue, and where it resumes in the target's."""

    source: MessageQueue
    target: MessageQueue
    committed: int | None
    offset: int
    again: int
    """Consumed messages that will be redelivered."""
    not_copied: int
    """Consumed messages that are not copied yet: they will be redelivered, too."""


class GroupMove(msgspec.Struct, frozen=True):
    """The outcome of moving a group."""

    group: str
    queues: tuple[QueueMove, ...]
    source_members: int
    """Members that still consume in the source: what they consume now is redelivered."""
    target_members: int
    """Members that already consume on the target; then nothing was set."""

    @property
    def moved(self) -> bool:
        """Whether offsets were set."""
        return self.target_members == 0

    @property
    def again(self) -> int:
        """Consumed messages that will be redelivered."""
        return sum(each.again + each.not_copied for each in self.queues)


class GroupOffsets:
    """Moves the offsets of groups."""

    def __init__(
        self, source: Side, target: Side, ledger: MigrationLedger, patience: float
    ) -> None:
        self._source = source
        self._target = target
        self._ledger = ledger
        self._patience = patience

    async def move(self, group: str) -> GroupMove:
        """Set a group's offsets on the target. Raises `CannotMigrate` if they are not kept."""
        here = await self._source.members(group)
        there = await self._target.members(group)
        moves: dict[MessageQueue, QueueMove] = {}
        for topic in await self._topics(group):
            for each in await self._queues(group, topic):
                known = moves.get(each.target)
                moves[each.target] = each if known is None else _lower(known, each)
        queues = tuple(moves.values())
        if not there:
            for each in queues:
                await self._set(group, each)
        return GroupMove(group, queues, here, there)

    async def _topics(self, group: str) -> list[str]:
        found = (await self._source.groups.topics(group)).all()
        return sorted({topic for names in found for topic in names})

    async def _queues(self, group: str, topic: str) -> list[QueueMove]:
        states = [each for each in self._ledger.queues() if each.source.topic == topic]
        reached = [await self._reached(group, each) for each in states]
        if all(offset is None for offset in reached):
            return []
        return [
            await self._queue(state, committed)
            for state, committed in zip(states, reached, strict=True)
        ]

    async def _reached(self, group: str, state: QueueState) -> int | None:
        """Return a group's committed offset, at most the end of the queue.

        Raises `CannotMigrate` if the queue was recreated: its offsets now mean other messages.
        """
        queue = state.source
        committed = await self._source.committed(group, queue)
        if not committed:
            return committed
        held = (await self._source.held(queue.topic, queue.broker_name)).get(queue)
        if held is None:
            return committed
        copying.check_end(queue, state.next, held.max_offset)
        return min(committed, held.max_offset)

    async def _queue(self, state: QueueState, committed: int | None) -> QueueMove:
        state = await self._caught_up(state, committed or 0)
        stretches = self._ledger.stretches(state.id)
        first = (await self._target.read(state.target, 0))[2].min_offset
        found = position(stretches, committed, first)
        await self._prove(state, committed, found, first)
        behind = 0 if committed is None else max(committed - (state.next or 0), 0)
        return QueueMove(state.source, state.target, committed, found.offset, found.again, behind)

    async def _caught_up(self, state: QueueState, committed: int) -> QueueState:
        """Wait for a running copy to reach the group's offset, up to the patience."""
        deadline = asyncio.get_running_loop().time() + self._patience
        while (state.next or 0) < committed and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(_POLL)
            state = next(each for each in self._ledger.queues() if each.id == state.id)
        return state

    async def _prove(
        self, state: QueueState, committed: int | None, found: Position, first: int
    ) -> None:
        """Check the message before the offset: the group must have consumed it."""
        if committed is None or found.offset <= first:
            return
        _, messages, _ = await self._target.read(state.target, found.offset - 1)
        origin = copies.origin_of(messages[0]) if messages else None
        if (
            origin is None
            or origin.migration != self._ledger.migration
            or origin.offset >= committed
        ):
            subject = f"the offset {committed} of {state.source}"
            reason = f"before {found.offset} of {state.target} is {origin}"
            raise CannotMigrate(subject, reason)

    async def _set(self, group: str, move: QueueMove) -> None:
        known = await self._target.committed(group, move.target)
        if known is not None and known >= move.offset:
            return  # it is already further
        await self._target.commit(group, move.target, move.offset)
        stored = await self._target.committed(group, move.target)
        if stored != move.offset:
            subject = f"the offset {move.offset} of group {group!r} in {move.target}"
            raise CannotMigrate(subject, f"the target's broker returned {stored}")


def _lower(one: QueueMove, other: QueueMove) -> QueueMove:
    """Return the move that skips nothing, of two queues that go to the same one."""
    low, high = sorted((one, other), key=lambda each: each.offset)
    more = high.again + high.not_copied + high.offset - low.offset
    return msgspec.structs.replace(low, again=low.again + more)
