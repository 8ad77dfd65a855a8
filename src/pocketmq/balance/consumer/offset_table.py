"""The offsets a consumer noted in memory, between what handlers finish and what is persisted."""

from collections.abc import Callable, Collection

from pocketmq.balance.consumer.start_offset import NO_OFFSET
from pocketmq.model.queue import MessageQueue


class OffsetTable:
    """Noted offsets by queue. One owner; persisting is the shell's."""

    def __init__(self) -> None:
        self._offsets: dict[MessageQueue, int] = {}
        self._frozen: set[MessageQueue] = set()
        self.when_advanced: Callable[[], None] | None = None
        """Called the next time that handled messages are noted, and forgotten then."""

    def __len__(self) -> int:
        return len(self._offsets)

    def read(self, queue: MessageQueue) -> int:
        """Give the noted offset, or `NO_OFFSET`."""
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
        told, self.when_advanced = self.when_advanced, None
        if told is not None:
            told()

    def freeze(self, queue: MessageQueue, offset: int) -> None:
        """Note an offset for good: later updates are ignored until it is forgotten."""
        self._offsets[queue] = offset
        self._frozen.add(queue)

    def forget(self, queue: MessageQueue) -> None:
        """Drop what is noted of the queue, frozen or not."""
        self._offsets.pop(queue, None)
        self._frozen.discard(queue)

    def to_persist(self, held: Collection[MessageQueue]) -> dict[MessageQueue, int]:
        """Give what to send to the store for the held queues, and forget all others.

        With no queue held nothing is sent and nothing is forgotten, as in Java.
        """
        if not held:
            return {}
        held = frozenset(held)
        for queue in [queue for queue in self._offsets if queue not in held]:
            self.forget(queue)
        return dict(self._offsets)

    def of_topic(self, topic: str | None) -> dict[MessageQueue, int]:
        """Give the noted offsets of a topic, or of all topics for a blank one."""
        wanted = topic if topic and topic.strip() else None
        return {q: offset for q, offset in self._offsets.items() if wanted in (None, q.topic)}
