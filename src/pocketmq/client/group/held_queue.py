"""A queue this member holds: its cache, where its pulling stands, and who works on it.

Belongs to one event loop; only the loop's thread touches it. The engine makes and drops held
queues, the work room takes messages out of their cache. Times are the loop's.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from pocketmq.balance.consumer.process_queue import ProcessQueue
from pocketmq.balance.consumer.rebalance import OwnedQueue
from pocketmq.client.damage import Suspicion
from pocketmq.model.kinds import MessageRequestMode
from pocketmq.model.names import is_retry_topic
from pocketmq.model.queue import MessageQueue
from pocketmq.protocol.received import ReceivedMessage


class PoppedMessages(Protocol):
    """What is told how handlers of popped messages fared."""

    def has(self, messages: Sequence[ReceivedMessage]) -> bool:
        """Tell whether messages are still hidden from others; any thread may ask."""

    def lose(self, messages: Sequence[ReceivedMessage]) -> None:
        """Forget messages that are not handled; they come again."""

    def done(self, messages: Sequence[ReceivedMessage]) -> None:
        """Acknowledge messages."""

    def again(self, messages: Sequence[ReceivedMessage], delay_level: int) -> None:
        """Let messages come again; level 0 leaves the time to their tries."""


class HeldQueue:
    """One holding of one queue: taken anew, a queue gets a new one."""

    __slots__ = (
        "_idle",
        "at_work",
        "before",
        "freed",
        "mode",
        "next_offset",
        "paused",
        "popped",
        "process",
        "pulling",
        "queue",
        "retries",
        "start_checked",
        "suggested",
        "suspicion",
        "topic",
        "waiting",
        "wake_below",
    )

    def __init__(
        self,
        queue: MessageQueue,
        topic: str,
        next_offset: int,
        now: float,
        mode: MessageRequestMode = MessageRequestMode.PULL,
    ) -> None:
        self.queue = queue
        """With the names of the wire."""
        self.topic = topic
        """As the application calls it, without a namespace."""
        self.process: ProcessQueue[ReceivedMessage] = ProcessQueue(now)
        self.mode = mode
        self.popped: PoppedMessages | None = None
        """Set if it is popped: what settles its messages instead of an offset."""
        self.retries = is_retry_topic(queue.topic)
        """Whether it brings messages of any topic back; each message says under which one."""
        self.next_offset = next_offset
        """Where the next pull begins."""
        self.waiting = 0
        """Messages behind those that were pulled last, as the broker told then."""
        self.suggested = 0
        """The id of the broker process to pull from, as the last answer suggested."""
        self.suspicion = Suspicion()
        """The damaged record in front of it, if there is any."""
        self.paused = False
        """The application wants no more pulls; what is cached is still handled."""
        self.start_checked = False
        """Orderly: whether the start offset was read again under the lock."""
        self.pulling: asyncio.Task[None] | None = None
        """The loop that pulls it."""
        self.freed: asyncio.Future[None] | None = None
        """Set while the puller waits for room in the cache."""
        self.wake_below = 0
        """With no more messages cached than these, there is room again."""
        self.at_work = 0
        """Handler calls under way."""
        self.before: HeldQueue | None = None
        """The holding before this one, as long as one of its handlers may still be at work."""
        self._idle: list[asyncio.Future[None]] = []

    @property
    def dropped(self) -> bool:
        """Whether the holding has ended: what its handlers still return is ignored."""
        return self.process.dropped

    def begin_work(self) -> None:
        """Count a handler call in; the queue is not given away before `end_work`."""
        self.at_work += 1

    def end_work(self) -> None:
        """Count a handler call out, whether it succeeded or not."""
        self.at_work -= 1
        if self.at_work == 0 and self._idle:
            waiting, self._idle = self._idle, []
            for future in waiting:
                if not future.done():
                    future.set_result(None)

    def made_room(self) -> None:
        """Let a puller go on that waits for room; call it after messages left the cache."""
        if self.freed is not None and self.process.count <= self.wake_below:
            self.wake()

    def wake(self) -> None:
        """Let a puller look again that waits for room, or because the queue is paused."""
        freed = self.freed
        if freed is not None and not freed.done():
            freed.set_result(None)

    async def until_idle(self, timeout: float) -> bool:  # noqa: ASYNC109 - not an error
        """Wait until no handler works on the queue, also of the holding before; False if longer."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        if self.before is not None:
            if not await self.before.until_idle(timeout):
                return False
            self.before = None
            timeout = max(0.0, deadline - loop.time())
        if self.at_work == 0:
            return True
        future = loop.create_future()
        self._idle.append(future)
        await asyncio.wait({future}, timeout=timeout)
        if future.done():
            return True
        self._idle.remove(future)
        return False

    def owned(self) -> OwnedQueue:
        """Give what decisions look at."""
        process = self.process
        return OwnedQueue(
            self.queue,
            process.last_pull,
            process.dropped,
            len(process) > 0,
            process.last_lock,
            self.mode,
        )

    def __repr__(self) -> str:
        queue, process = self.queue, self.process
        state = "dropped" if process.dropped else "paused" if self.paused else "held"
        return (
            f"<{state} {queue.topic}@{queue.broker_name}:{queue.queue_id}, "
            f"next {self.next_offset}, {process.count} cached>"
        )
