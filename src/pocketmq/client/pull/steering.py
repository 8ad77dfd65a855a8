"""What applications can do to the queues of a pull consumer: pause, resume, seek, commit, ask.

Queues have the application's names here. Methods that ask a broker raise `MQError` if none answers
in time; all but pausing raise `ClientClosed` if the consumer is not running.
"""

from collections.abc import Iterable, Mapping

from pocketmq.client.group.life import ConsumerLife
from pocketmq.client.pull.member import PullMember
from pocketmq.client.pull.queues import PullSetup
from pocketmq.model import MessageQueue
from pocketmq.model.names import check_topic


class PullSteering:
    """What an application can do to the queues of a pull consumer."""

    def __init__(self, setup: PullSetup, life: ConsumerLife[PullMember], patience: float) -> None:
        self._setup = setup
        self._life = life
        self._patience = patience

    def pause(self, what: str | Iterable[MessageQueue] | None = None) -> None:
        """Pull no more of a topic, of some queues, or at all; what is cached can be polled."""
        self._setup.pauses.pause(self._setup.wire_any(what))
        self._apply_pauses()

    def resume(self, what: str | Iterable[MessageQueue] | None = None) -> None:
        """Pull a topic, some queues, or everything again."""
        self._setup.pauses.resume(self._setup.wire_any(what))
        self._apply_pauses()

    async def commit(
        self, what: Mapping[MessageQueue, int] | Iterable[MessageQueue] | None = None
    ) -> None:
        """Store offsets now: after everything polled, of some queues, or as given.

        Returns when brokers have it. Raises `InvalidInput` for queues that are not assigned (any
        more), and the error of a broker that refused it. With STICKY a queue counts as given away
        when `on_revoked` has returned, and while its lease is in doubt `TransportError` is raised:
        the offset is stored as soon as the lease is renewed.
        """
        positions = self._life.here().positions
        if isinstance(what, Mapping):
            offsets = {self._setup.wire(queue): offset for queue, offset in what.items()}
        else:
            some = None if what is None else [self._setup.wire(queue) for queue in what]
            offsets = positions.polled(some)
        await positions.commit(offsets)

    async def committed(self, queue: MessageQueue) -> int | None:
        """Return the group's offset in a queue; None if it has none."""
        return await self._life.here().positions.committed(self._setup.wire(queue))

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """Continue from an offset that the queue holds, or from its end.

        Raises `InvalidInput` for any other, and for a queue that is not assigned (yet), or about to
        be another member's.
        """
        await self._life.here().positions.seek(self._setup.wire(queue), offset)

    async def seek_to_begin(self, queue: MessageQueue) -> None:
        """Continue from the first message that the queue holds."""
        positions, wire = self._life.here().positions, self._setup.wire(queue)
        await positions.seek(wire, await positions.first(wire))

    async def seek_to_end(self, queue: MessageQueue) -> None:
        """Continue with messages to come."""
        positions, wire = self._life.here().positions, self._setup.wire(queue)
        await positions.seek(wire, await positions.end(wire))

    async def offset_for_time(self, queue: MessageQueue, timestamp: float) -> int:
        """Return the offset of the first message stored at a time (since 1970) or later.

        Without such a message it is the queue's end. Brokers before 5.3 return a message that is
        near in time; there the exact one is found by reading some messages.
        """
        timestamp_ms = round(timestamp * 1000)
        return await self._life.here().positions.at_time(self._setup.wire(queue), timestamp_ms)

    async def queues(self, topic: str) -> list[MessageQueue]:
        """List a topic's queues; raises `RouteNotFound`, `NameServersUnreachable`."""
        member = self._life.here()
        check_topic(topic)
        return list(await self._setup.watch.queues(member.session.routes, topic, self._patience))

    def _apply_pauses(self) -> None:
        if self._life.current is not None:
            self._life.current.apply_pauses()
