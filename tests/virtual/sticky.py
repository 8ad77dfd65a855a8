"""A group with STICKY in virtual time, and what must hold at every moment.

S1: no two members start messages of a queue at the same time. S2: every message below the stored
offset was handled. S3: no message is handled twice. S4: the stored offset never goes back. All four
hold while nothing fails; S2 always does.
"""

import asyncio
from collections import Counter
from pathlib import Path

from pocketmq.client.group.held_queue import HoldState
from pocketmq.model import MessageQueue
from pocketmq.protocol import ReceivedMessage
from tests.virtual.world import TOPIC, Person, World


class StickyWorld(World):
    """A world that watches over its group."""

    def __init__(self, seed: int, directory: Path, settings: dict[str, object]) -> None:
        super().__init__(seed, directory, {**settings, "strategy": "STICKY"})
        self.calm = False
        """Whether nothing fails, so that S1, S3 and S4 must hold."""
        self.finished: dict[MessageQueue, set[int]] = {}
        self.broken: list[str] = []
        """What did not hold."""
        self.last_stored: dict[MessageQueue, int] = {}
        """Offset of each queue that was stored last."""
        self._sound: dict[MessageQueue, int] = {}  # everything before it is finished

    async def handled(self, person: Person, message: ReceivedMessage) -> None:
        queue = MessageQueue(TOPIC, message.broker_name, message.queue_id)
        if self.calm:
            self._check_owners(queue)
        await super().handled(person, message)
        done = self.finished.setdefault(queue, set())
        if self.calm and message.queue_offset in done:
            self._note(f"S3: {queue} {message.queue_offset} twice: {self.seen[message.keys[0]]}")
        done.add(message.queue_offset)

    def fair_shares(self) -> dict[str, set[MessageQueue]]:
        """Return what members have, if that is even."""
        shares = {member.name: member.queues() for member in self.members}
        counts = [len(queues) for queues in shares.values()]
        assert max(counts) - min(counts) <= 1, shares
        return shares

    def stored(self, queue: MessageQueue, offset: int) -> None:
        """Check every offset, the moment it is stored."""
        done = self.finished.get(queue, set())
        missing = [place for place in range(self._sound.get(queue, 0), offset) if place not in done]
        if missing:
            self._note(f"S2: {queue} stored {offset}, not handled: {missing}")
        else:
            self._sound[queue] = max(self._sound.get(queue, 0), offset)
        if self.calm and offset < self.last_stored.get(queue, 0):
            self._note(f"S4: {queue} went back from {self.last_stored[queue]} to {offset}")
        self.last_stored[queue] = offset

    def _check_owners(self, queue: MessageQueue) -> None:
        owners = []
        for person in self.members:
            member = person.consumer._life.member
            held = None if member is None else member.parts.queues.pulled.get(queue)
            if held is not None and held.state is HoldState.OWNED:
                owners.append(person.name)
        if len(owners) > 1:
            self._note(f"S1: {queue} is started by {owners}")

    def _note(self, what: str) -> None:
        if len(self.broken) < 20 and what not in self.broken:
            self.broken.append(f"{asyncio.get_running_loop().time():.3f} {what}")

    def moves(self) -> Counter[str]:
        """Count the hand-overs that members report, by kind, as their heirs saw them."""
        found: Counter[str] = Counter()
        for person in self.members:
            for event in person.consumer.history:
                for each in event.handovers:
                    if each.started is not None:
                        found[each.kind] += 1
        return found
