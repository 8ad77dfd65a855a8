"""What applications can do to the queues of a push consumer: pause, resume, seek, commit.

Every method raises `ClientClosed` if the consumer is not running.
"""

from collections.abc import Iterable, Sequence

import msgspec

from pocketmq.client.group.life import ConsumerLife
from pocketmq.client.group.subscriptions import Subscriptions
from pocketmq.client.push.member import PushMember
from pocketmq.errors import InvalidInput
from pocketmq.model import MessageQueue

SEEK_PATIENCE = 3.0
"""Seconds for which a seek waits for a handler call on an orderly queue."""


class PushSteering:
    """What an application can do to the queues of a running push consumer."""

    def __init__(self, names: Subscriptions, life: ConsumerLife[PushMember]) -> None:
        self._names = names
        self._life = life

    def pause(self, what: str | MessageQueue | Iterable[MessageQueue] | None = None) -> None:
        """Pull no more of a topic, of queues, or of anything; what is cached is still handled.

        Queues that are assigned later stay paused, too.
        """
        member = self._life.running()
        member.holdings.pauses.pause(self._wire(what))
        _apply_pauses(member)

    def resume(self, what: str | MessageQueue | Iterable[MessageQueue] | None = None) -> None:
        """Pull again of a topic, of queues, or of everything."""
        member = self._life.running()
        member.holdings.pauses.resume(self._wire(what))
        _apply_pauses(member)

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """Continue a queue from an offset; its cached messages are discarded.

        Raises `InvalidInput` if the queue is not this member's.
        """
        member = self._life.here()
        wire = msgspec.structs.replace(queue, topic=self._names.wire(queue.topic))
        held = member.parts.queues.pulled.get(wire)
        if offset < 0:
            raise InvalidInput(f"an offset must be 0 or more, not {offset}")
        if held is None or held.dropped:
            raise InvalidInput(f"{queue} is not assigned to this consumer now")
        if not await member.holdings.restart(held, offset, SEEK_PATIENCE):
            raise InvalidInput(f"{queue} was revoked meanwhile")

    async def commit(self) -> None:
        """Store the offsets of all queues now, without waiting for brokers to confirm."""
        await self._life.here().persist_offsets()

    def _wire(
        self, what: str | MessageQueue | Iterable[MessageQueue] | None
    ) -> str | Sequence[MessageQueue] | None:
        if what is None:
            return None
        if isinstance(what, str):
            return self._names.wire(what)
        queues = (what,) if isinstance(what, MessageQueue) else what
        return [
            msgspec.structs.replace(queue, topic=self._names.wire(queue.topic)) for queue in queues
        ]


def _apply_pauses(member: PushMember) -> None:
    for held in member.parts.queues:
        held.paused = held.queue in member.holdings.pauses
        held.wake()
