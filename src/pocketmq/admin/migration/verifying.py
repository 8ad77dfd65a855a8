"""Verifying a migration: every message of the source is on the target, once, unchanged, in order.

Both sides are read again, message by message; the recorded progress is not trusted.
"""

from collections.abc import AsyncIterator

import msgspec

from pocketmq.admin.migration.copies import DELAYED_ORIGIN, digest, origin_of
from pocketmq.admin.migration.copying import delayed_key
from pocketmq.admin.migration.ledger import MigrationLedger, QueueState
from pocketmq.admin.migration.side import Side
from pocketmq.admin.reading import PageStatus
from pocketmq.errors import TopicNotFound
from pocketmq.model import MessageQueue
from pocketmq.protocol import ReceivedMessage

_MASK = (1 << 64) - 1


class CopyVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison of a source queue and its copy."""

    source: MessageQueue
    target: MessageQueue
    messages: int
    """Messages in the source."""
    copies: int
    """Messages of the source that are on the target, each counted once."""
    duplicates: int
    """Copies beyond the first."""
    missing: int
    """Messages of the source, up to the last copy, that are not on the target."""
    different: int
    """Copies that differ from the original for a consumer."""
    behind: int
    """Messages that the source received after the last copy."""
    gone: int
    """Copies whose original the source has deleted."""
    moved: int
    """Messages of the source that were moved while delayed, and so are not copies."""
    others: int
    """Messages of the target that are not copies, such as from producers that have moved."""
    source_digest: str
    target_digest: str

    @property
    def sound(self) -> bool:
        """Whether nothing is missing and nothing is changed."""
        return not (self.missing or self.different)


class Verifying:
    """Compares queues."""

    def __init__(self, source: Side, target: Side, ledger: MigrationLedger) -> None:
        self._source = source
        self._target = target
        self._ledger = ledger

    async def queue(self, state: QueueState) -> CopyVerdict:
        """Compare a queue with its copy, both read from start to end."""
        tally = _Tally()
        originals = _messages(self._source, state.source, state.next or 0)
        async for copy in _messages(self._target, state.target, None):
            origin = origin_of(copy)
            place = (self._ledger.migration, state.source.broker_name, state.source.queue_id)
            if origin is None or origin[:3] != place:
                if origin is None or origin.migration != self._ledger.migration:
                    self._count_other(copy, tally)
                continue
            if origin.offset < tally.next:
                tally.duplicates += 1
                continue
            await self._advance(originals, tally, origin.offset, copy)
        if tally.waiting is not None:
            self._miss(tally.waiting, tally)
        async for original in originals:
            self._miss(original, tally)
        source = state.source
        bounds = (await self._source.held(source.topic, source.broker_name)).get(source)
        end = bounds.max_offset if bounds is not None else 0
        return CopyVerdict(
            source=state.source,
            target=state.target,
            messages=tally.messages,
            copies=tally.copies,
            duplicates=tally.duplicates,
            missing=tally.missing,
            different=tally.different,
            behind=max(end - (state.next or 0), 0),
            gone=tally.gone,
            moved=tally.moved,
            others=tally.others,
            source_digest=f"{tally.source:016x}",
            target_digest=f"{tally.target:016x}",
        )

    async def _advance(
        self,
        originals: AsyncIterator[ReceivedMessage],
        tally: "_Tally",
        offset: int,
        copy: ReceivedMessage,
    ) -> None:
        """Read the source up to the original of a copy, and compare the two."""
        tally.next = offset + 1
        while tally.waiting is not None or not tally.ended:
            original = tally.waiting or await anext(originals, None)
            tally.waiting = None
            if original is None:
                tally.ended = True
                break
            if original.queue_offset > offset:
                tally.waiting = original
                break
            if original.queue_offset == offset:
                tally.compare(original, copy)
                return
            self._miss(original, tally)
        tally.gone += 1

    def _count_other(self, message: ReceivedMessage, tally: "_Tally") -> None:
        """Count a message that is not a copy: one that was moved while delayed, or another.

        A moved one without a record was moved again, or copied when due, and so is there twice.
        """
        waited = message.get_property(DELAYED_ORIGIN)
        if waited is None or not waited.startswith(f"{self._ledger.migration}/"):
            tally.others += 1
        elif waited in tally.waited or not self._ledger.moved_delayed(delayed_key(message)):
            tally.duplicates += 1
        else:
            tally.waited.add(waited)

    def _miss(self, original: ReceivedMessage, tally: "_Tally") -> None:
        tally.messages += 1
        if self._ledger.moved_delayed(delayed_key(original)):
            tally.moved += 1
        else:
            tally.missing += 1
            tally.source = (tally.source + digest(original)) & _MASK


class _Tally:
    """The counts so far."""

    def __init__(self) -> None:
        self.next = 0
        self.waiting: ReceivedMessage | None = None
        self.ended = False
        self.waited: set[str] = set()
        self.messages = self.copies = self.duplicates = self.missing = self.different = 0
        self.gone = self.moved = self.others = 0
        self.source = self.target = 0

    def compare(self, original: ReceivedMessage, copy: ReceivedMessage) -> None:
        """Count a message that is on both sides."""
        self.messages += 1
        self.copies += 1
        mine, theirs = digest(original), digest(copy)
        self.different += mine != theirs
        self.source = (self.source + mine) & _MASK
        self.target = (self.target + theirs) & _MASK


async def _messages(
    side: Side, queue: MessageQueue, end: int | None
) -> AsyncIterator[ReceivedMessage]:
    """Yield the messages of a queue, up to an offset or to its end."""
    offset = 0
    while end is None or offset < end:
        try:
            status, messages, told = await side.read(queue, offset)
        except TopicNotFound:  # deleted meanwhile
            return
        for message in messages:
            if end is not None and message.queue_offset >= end:
                return
            yield message
        if status is PageStatus.NO_NEW_MSG or told.next_offset <= offset:
            return
        offset = told.next_offset
