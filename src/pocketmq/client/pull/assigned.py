"""The queues a pull consumer reads, whether shared out or assigned by hand, and where each stands.

Belongs to one event loop. Decides nothing: what a pull, a poll or a seek does to the offsets is in
`balance.consumer.lite_pull`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator

import msgspec

from pocketmq.balance.consumer.lite_pull import NONE, AssignedState
from pocketmq.client.group.held_queue import HeldQueue
from pocketmq.model.queue import MessageQueue


class AssignedQueue:
    """One assignment of one queue: given up and assigned anew, a queue gets a new one."""

    __slots__ = ("before_last", "held", "state")

    def __init__(self, held: HeldQueue) -> None:
        self.held = held
        self.state = AssignedState()
        self.before_last = NONE
        """The offset to commit as it was before the last poll of this queue."""

    @property
    def queue(self) -> MessageQueue:
        """With the names of the wire."""
        return self.held.queue

    @property
    def dropped(self) -> bool:
        """Whether the assignment has ended: what is cached of it is not polled any more."""
        return self.held.process.dropped

    def change(self, **fields: int | bool) -> None:
        """Change the state."""
        self.state = msgspec.structs.replace(self.state, **fields)

    def end(self) -> None:
        """Stop pulling, and let nothing that is cached be polled."""
        self.held.process.dropped = True
        if self.held.pulling is not None:
            self.held.pulling.cancel()


class Assignment:
    """All assigned queues of a consumer, by the names of the wire."""

    def __init__(self) -> None:
        self._queues: dict[MessageQueue, AssignedQueue] = {}

    def __len__(self) -> int:
        return len(self._queues)

    def __iter__(self) -> Iterator[AssignedQueue]:
        return iter(tuple(self._queues.values()))

    def get(self, queue: MessageQueue) -> AssignedQueue | None:
        """Give an assigned queue."""
        return self._queues.get(queue)

    def queues(self) -> tuple[MessageQueue, ...]:
        """List the assigned queues."""
        return tuple(self._queues)

    def update(
        self,
        queues: Collection[MessageQueue],
        hold: Callable[[MessageQueue], HeldQueue],
        topic: str | None = None,
    ) -> list[AssignedQueue]:
        """Let the assignment (of one topic, if given) be exactly these; gives the new ones."""
        wanted = set(queues)
        self._end(
            each
            for each in self
            if each.dropped or (each.queue not in wanted and topic in (None, each.queue.topic))
        )
        new = [
            AssignedQueue(hold(queue))
            for queue in dict.fromkeys(queues)
            if queue not in self._queues
        ]
        self._queues.update({each.queue: each for each in new})
        return new

    def remove_topic(self, topic: str) -> None:
        """Give a topic up."""
        self._end(each for each in self if each.queue.topic == topic)

    def clear(self) -> None:
        """Give everything up."""
        self._end(self)

    def _end(self, some: Iterable[AssignedQueue]) -> None:
        for each in some:
            each.end()
            del self._queues[each.queue]
