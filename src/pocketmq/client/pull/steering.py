"""What applications can do to a pull consumer's queues: pause, resume, seek, commit, ask.

Queues have the application's names here. What asks a broker raises `MQError` if none answers in
time, and everything but pausing `ClientClosed` if the consumer is not running.
"""

from collections.abc import Iterable, Mapping

from pocketmq.client.pull.member import PullMember
from pocketmq.client.pull.queues import PullSetup
from pocketmq.model.names import check_topic
from pocketmq.model.queue import MessageQueue


class PullSteering:
    """The steering of a pull consumer, which says what is running."""

    def __init__(self, wishes: PullSetup, patience: float) -> None:
        self._wishes = wishes
        self._patience = patience
        self._running: PullMember | None = None

    def _started(self) -> PullMember:
        raise NotImplementedError

    def pause(self, what: str | Iterable[MessageQueue] | None = None) -> None:
        """Pull no more of a topic, of some queues, or at all; what is cached can be polled."""
        self._wishes.pauses.pause(self._wishes.wire_any(what))
        self._apply_pauses()

    def resume(self, what: str | Iterable[MessageQueue] | None = None) -> None:
        """Pull a topic, some queues, or everything again."""
        self._wishes.pauses.resume(self._wishes.wire_any(what))
        self._apply_pauses()

    async def commit(
        self, what: Mapping[MessageQueue, int] | Iterable[MessageQueue] | None = None
    ) -> None:
        """Store how far this consumer has come: everything polled, of some queues, or as given.

        Back when the brokers have it. Raises `InvalidInput` for queues that are not assigned (any
        more), and the error of a broker that did not take it.
        """
        positions = self._started().positions
        if isinstance(what, Mapping):
            offsets = {self._wishes.wire(queue): offset for queue, offset in what.items()}
        else:
            some = None if what is None else [self._wishes.wire(queue) for queue in what]
            offsets = positions.polled(some)
        await positions.commit(offsets)

    async def committed(self, queue: MessageQueue) -> int | None:
        """Give the group's offset in a queue; None if it has none."""
        return await self._started().positions.committed(self._wishes.wire(queue))

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """Go on from an offset that the queue holds, or from its end.

        Raises `InvalidInput` for any other, and for a queue that is not assigned (yet).
        """
        await self._started().positions.seek(self._wishes.wire(queue), offset)

    async def seek_to_begin(self, queue: MessageQueue) -> None:
        """Go on from the first message that the queue holds."""
        positions, wire = self._started().positions, self._wishes.wire(queue)
        await positions.seek(wire, await positions.first(wire))

    async def seek_to_end(self, queue: MessageQueue) -> None:
        """Go on with messages to come."""
        positions, wire = self._started().positions, self._wishes.wire(queue)
        await positions.seek(wire, await positions.end(wire))

    async def offset_for_time(self, queue: MessageQueue, timestamp: float) -> int:
        """Return the offset of the first message stored at a time (since 1970) or later.

        Without such a message it is the queue's end. Brokers before 5.3 return a message that is
        near in time; there the exact one is found by looking at some messages.
        """
        timestamp_ms = round(timestamp * 1000)
        return await self._started().positions.at_time(self._wishes.wire(queue), timestamp_ms)

    async def queues(self, topic: str) -> list[MessageQueue]:
        """List a topic's queues; raises `RouteNotFound`, `NameServersUnreachable`."""
        running = self._started()
        check_topic(topic)
        return list(await self._wishes.watch.queues(running.session.routes, topic, self._patience))

    def _apply_pauses(self) -> None:
        if self._running is not None:
            self._running.apply_pauses()
