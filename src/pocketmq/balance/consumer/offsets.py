"""A consumer's offsets: where a queue starts, what is noted between commits, and resets.

Owns the rule of `ConsumeFromWhere` for what the offset store may answer, not how it is asked.

A reset while consuming (220, pushed by a broker): the consumer pauses, and waits until its handlers
are idle, so that none commits an old offset over the new one. Then it commits the new offsets and
releases the queues; its next rebalance takes them again.
"""

from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from pocketmq.balance.consumer import instructions
from pocketmq.balance.profile import Profile
from pocketmq.errors import ResponseCode
from pocketmq.model import ConsumeFromWhere, ConsumeType, MessageQueue
from pocketmq.model.names import is_retry_topic

NO_OFFSET = -1
"""The store answered that this group has no offset for the queue."""
OFFSET_UNKNOWN = -2
"""The store could not be read. Never confuse it with `NO_OFFSET`: starting at the end of the
queue because a broker timed out would skip messages for good."""
_LAST = frozenset(
    {
        ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
        ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST,
        ConsumeFromWhere.CONSUME_FROM_MIN_OFFSET,
        ConsumeFromWhere.CONSUME_FROM_MAX_OFFSET,
    }
)
_DEPRECATED = _LAST - {ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET}
SETTLE_TIME = 10.0
"""Seconds between the pause and the commit of a reset."""


class StartRule(msgspec.Struct, frozen=True):
    """Where a group without an offset starts, and which kind of consumer asks."""

    consume_from: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    timestamp_ms: int = 0
    consume_type: ConsumeType = ConsumeType.CONSUME_PASSIVELY


StartStep = (
    instructions.UseOffset
    | instructions.AskMaxOffset
    | instructions.SearchOffset
    | instructions.SkipQueue
)


def read_step(queue: MessageQueue, rule: StartRule) -> instructions.ReadOffset:
    """Return how to read the group's offset: pull consumers look in memory first."""
    return instructions.ReadOffset(
        queue, memory_first=rule.consume_type is ConsumeType.CONSUME_ACTIVELY
    )


def offset_after_refusal(profile: Profile, code: int) -> int:
    """Return what a broker's refusal to return the offset means: none stored, or unknown.

    4.x takes every refusal as 'none stored', 5.x only QUERY_NOT_FOUND. A broken connection or a
    timeout is `OFFSET_UNKNOWN` in both.
    """
    if profile.refusal_means_no_offset or code == ResponseCode.QUERY_NOT_FOUND:
        return NO_OFFSET
    return OFFSET_UNKNOWN


def start_step(queue: MessageQueue, stored: int, rule: StartRule) -> StartStep:
    """Decide from the stored offset (or `NO_OFFSET`, `OFFSET_UNKNOWN`) where the queue starts."""
    if rule.consume_type is ConsumeType.CONSUME_ACTIVELY and rule.consume_from in _DEPRECATED:
        return instructions.SkipQueue(
            queue, instructions.SkipReason.OFFSET_UNKNOWN
        )  # Java's pull consumer knows three values
    if stored >= 0:
        return instructions.UseOffset(queue, stored)
    if stored != NO_OFFSET:
        return instructions.SkipQueue(queue, instructions.SkipReason.OFFSET_UNKNOWN)
    retry = is_retry_topic(queue.topic)
    if rule.consume_from in _LAST:
        return instructions.UseOffset(queue, 0) if retry else instructions.AskMaxOffset(queue)
    if rule.consume_from is ConsumeFromWhere.CONSUME_FROM_TIMESTAMP:
        return (
            instructions.AskMaxOffset(queue)
            if retry
            else instructions.SearchOffset(queue, rule.timestamp_ms)
        )
    # From the first message: if the queue starts later, the broker corrects the first pull.
    return instructions.UseOffset(queue, 0)


def after_answer(
    queue: MessageQueue, offset: int | None
) -> instructions.UseOffset | instructions.SkipQueue:
    """Decide from the broker's answer to `AskMaxOffset` or `SearchOffset`; `None` = none came."""
    if offset is None or offset < 0:
        return instructions.SkipQueue(queue, instructions.SkipReason.OFFSET_ANSWER_FAILED)
    return instructions.UseOffset(queue, offset)


class NotedOffsets:
    """Offsets of handled messages by queue, between two commits (Java: OffsetStore's table).

    One owner calls it; persisting is the shell's. An offset may only fall where a caller says so
    (`increase_only=False`: orderly commits, seeks, resets); concurrent handlers finish in any
    order, and a late result must not take the group back.
    """

    def __init__(self) -> None:
        self._offsets: dict[MessageQueue, int] = {}
        self._frozen: set[MessageQueue] = set()
        self.when_advanced: Callable[[], None] | None = None
        """Called once, the next time that handled messages are noted."""

    def __len__(self) -> int:
        return len(self._offsets)

    def read(self, queue: MessageQueue) -> int:
        """Return the noted offset, or `NO_OFFSET`."""
        return self._offsets.get(queue, NO_OFFSET)

    def update(self, queue: MessageQueue, offset: int, *, increase_only: bool) -> None:
        """Note an offset; a frozen one stays, and `increase_only` never goes back."""
        if queue in self._frozen:
            return
        noted = self._offsets.get(queue)
        if noted is None or not increase_only or offset > noted:
            self._offsets[queue] = offset

    def advance(self, queue: MessageQueue, offset: int, *, increase_only: bool) -> None:
        """Note an offset as `update` does, because messages before it were handled."""
        self.update(queue, offset, increase_only=increase_only)
        notify, self.when_advanced = self.when_advanced, None
        if notify is not None:
            notify()

    def freeze(self, queue: MessageQueue, offset: int) -> None:
        """Note an offset that later updates do not change until it is forgotten."""
        self._offsets[queue] = offset
        self._frozen.add(queue)

    def forget(self, queue: MessageQueue) -> None:
        """Drop what is noted of the queue, frozen or not."""
        self._offsets.pop(queue, None)
        self._frozen.discard(queue)

    def to_persist(self, owned: Collection[MessageQueue]) -> dict[MessageQueue, int]:
        """Return what to send to the store for the owned queues, and forget all others.

        With no queue owned nothing is sent and nothing is forgotten, as in Java.
        """
        if not owned:
            return {}
        owned = frozenset(owned)
        for queue in [queue for queue in self._offsets if queue not in owned]:
            self.forget(queue)
        return dict(self._offsets)

    def of_topic(self, topic: str | None) -> dict[MessageQueue, int]:
        """Return the noted offsets of a topic, or of all topics for a blank one."""
        wanted = topic if topic and topic.strip() else None
        return {q: offset for q, offset in self._offsets.items() if wanted in (None, q.topic)}


class PauseConsumer(instructions.Instruction, frozen=True):
    """Stop pulling and rebalancing."""


class ResumeConsumer(instructions.Instruction, frozen=True):
    """Pull and rebalance again, starting with a rebalance now."""


def begin_reset(
    topic: str, offsets: Mapping[MessageQueue, int], owned: Iterable[MessageQueue]
) -> tuple[instructions.Instruction, ...]:
    """Return what to do before the wait of `SETTLE_TIME`."""
    steps: list[instructions.Instruction] = [PauseConsumer()]
    for queue in _touched(topic, offsets, owned):
        steps += (instructions.DropQueue(queue), instructions.ClearQueue(queue))
    return tuple(steps)


def finish_reset(
    topic: str, offsets: Mapping[MessageQueue, int], owned: Iterable[MessageQueue]
) -> tuple[instructions.Instruction, ...]:
    """Return what to do after the wait, with the queues owned by then.

    The queue leaves the table even if its release has to wait for a handler.
    """
    steps: list[instructions.Instruction] = []
    for queue in _touched(topic, offsets, owned):
        note = instructions.UpdateOffset(queue, offsets[queue], increase_only=False)
        steps += (note, instructions.ReleaseQueue(queue), instructions.RemoveQueue(queue))
    return (*steps, ResumeConsumer())


def _touched(
    topic: str, offsets: Mapping[MessageQueue, int], owned: Iterable[MessageQueue]
) -> list[MessageQueue]:
    return [queue for queue in owned if queue.topic == topic and queue in offsets]
