"""A queue that this member owns: its cache, its read position, its state, and handler calls on it.

All attributes belong to the event loop's thread, with two exceptions that handler threads may read
without a lock: `may_start` and `process.locked`. Each is a single attribute that the loop alone
writes, so a thread sees the old value or the new one, never something in between. `gate` has a lock
of its own. Times are the loop's.
"""

import asyncio
from collections.abc import Sequence
from enum import Enum
from math import inf
from typing import Protocol

from pocketmq.balance.consumer.facts import OwnedQueue
from pocketmq.balance.consumer.process_queue import ProcessQueue
from pocketmq.client.damage import Suspicion
from pocketmq.client.group.start_gate import StartGate
from pocketmq.client.group.subscriptions import SubscribedTopic
from pocketmq.client.questions.pulling import PullTemplate
from pocketmq.model import MessageQueue, MessageRequestMode
from pocketmq.model.names import is_retry_topic
from pocketmq.protocol import ReceivedMessage


def log_name(queue: MessageQueue) -> str:
    """Return a queue as log lines name it."""
    return f"topic={queue.topic} queue={queue.broker_name}:{queue.queue_id}"


class HoldState(Enum):
    """How far a queue is this member's; see `HeldQueue.enter` for what a state allows."""

    READ = "read"
    """Read without being taken in a rebalance: assigned by hand, or its offset was not found."""
    OWNED = "owned"
    """Taken in a rebalance."""
    DRAINING = "draining"
    """Given away by STICKY: what was started is finished and committed, nothing else is started."""
    FENCED = "fenced"
    """The lease of a STICKY queue is in doubt: nothing is started or committed; the cache stays."""
    DROPPED = "dropped"
    """Ended: nothing is asked for, and late results of handlers are ignored. An orderly queue stays
    in the table in this state until its last handler call has ended and its lock is given back."""


_LEAVING = frozenset({HoldState.DRAINING, HoldState.DROPPED})
_STARTING = frozenset({HoldState.READ, HoldState.OWNED})


class PoppedMessages(Protocol):
    """What settles popped messages after their handlers."""

    def has(self, messages: Sequence[ReceivedMessage]) -> bool:
        """Return whether messages are still hidden from other consumers; any thread may ask."""

    def lose(self, messages: Sequence[ReceivedMessage]) -> None:
        """Forget messages that are not handled; the broker redelivers them."""

    def done(self, messages: Sequence[ReceivedMessage]) -> None:
        """Acknowledge messages."""

    def again(
        self, messages: Sequence[ReceivedMessage], delay_level: int, wait: float | None = None
    ) -> None:
        """Requeue messages; level 0 derives the delay from their number of tries.

        `wait`, if given, is the delay in seconds.
        """


class HeldQueue:
    """One stay of a queue with this member: taken again, the queue gets a new object."""

    __slots__ = (
        "_idle",
        "_settled",
        "at_work",
        "before",
        "delayed",
        "failing",
        "gate",
        "may_start",
        "mode",
        "next_offset",
        "parked",
        "paused",
        "popped",
        "process",
        "queue",
        "retries",
        "start_checked",
        "state",
        "subscribed",
        "suggested",
        "suspicion",
        "task",
        "template",
        "topic",
        "waiting",
        "wake_below",
        "woken",
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
        self.state = HoldState.OWNED
        self.may_start = True
        """Whether messages may be asked for and handler calls begun; handler threads read it."""
        self.gate: StartGate | None = None
        """STICKY: where handler calls begin, in the place of `may_start`."""
        self.parked: list[ReceivedMessage] = []
        """Cached messages whose calls were turned away while the queue was fenced."""
        self.popped: PoppedMessages | None = None
        """Set if the queue is popped: settles its messages instead of an offset."""
        self.retries = is_retry_topic(queue.topic)
        """Whether it redelivers messages of any topic; each message carries its topic's name."""
        self.next_offset = next_offset
        """Where the next pull begins."""
        self.waiting = 0
        """Messages behind those that were pulled last, by the broker's answer."""
        self.suggested = 0
        """The id of the broker process to pull from, as the last answer suggested."""
        self.subscribed: SubscribedTopic | None = None
        self.template: PullTemplate | None = None
        """The pull request of this queue for `subscribed`, written once."""
        self.suspicion = Suspicion()
        """The damaged record in front of it, if there is any."""
        self.paused = False
        """The application wants no more pulls; cached messages are still handled."""
        self.start_checked = False
        """Orderly: whether the start offset was read again under the lock."""
        self.delayed = False
        """Whether `next_offset` is from before a start delay, and to be read again after it."""
        self.task: asyncio.Task[None] | None = None
        """The queue loop."""
        self.failing = False
        """Whether the last request failed: only the first failure in a row is a warning."""
        self.woken: asyncio.Future[None] | None = None
        """Set while the queue loop waits for capacity, or because the queue is paused."""
        self.wake_below = 0
        """With no more messages cached than these, the cache has capacity again."""
        self.at_work = 0
        """Handler calls in flight."""
        self.before: HeldQueue | None = None
        """The stay before this one, as long as one of its handler calls may still be in flight."""
        self._idle: list[asyncio.Future[None]] = []
        self._settled: list[tuple[float, asyncio.Future[None]]] = []

    @property
    def mine(self) -> bool:
        """Whether it is this member's and stays so, as far as known."""
        return self.state not in _LEAVING

    @property
    def dropped(self) -> bool:
        """Whether the stay has ended: what its handlers still return is ignored."""
        return self.process.dropped

    def enter(self, state: HoldState) -> None:
        """Change the state; `Holdings` alone does so.

        `may_start` and `dropped` are two questions: the first ends work that has not begun, the
        second makes void what is finished. Dropping answers both at once, as Java does.
        """
        self.state = state
        self.may_start = state in _STARTING
        self.process.dropped = state is HoldState.DROPPED
        if self.gate is not None:
            if state is HoldState.FENCED or state is HoldState.DROPPED:
                self.gate.fence()
            else:
                self.gate.lift()
        if self._settled:
            self._report_settled()

    def begin_work(self) -> None:
        """Count a handler call in; the queue's lock is not released before `end_work`."""
        self.at_work += 1

    def end_work(self) -> None:
        """Count a handler call out, whether it succeeded or not."""
        self.at_work -= 1
        if self.at_work == 0 and self._idle:
            waiting, self._idle = self._idle, []
            for future in waiting:
                if not future.done():
                    future.set_result(None)

    def capacity_freed(self) -> None:
        """Wake a queue loop that waits for capacity; call it after messages left the cache."""
        if self.woken is not None and self.process.count <= self.wake_below:
            self.wake()
        if self._settled:
            self._report_settled()

    def wake(self) -> None:
        """Let a queue loop check again that waits for capacity, or because of a pause."""
        woken = self.woken
        if woken is not None and not woken.done():
            woken.set_result(None)

    async def until_settled(self, end: float = inf) -> None:
        """Wait until no message below an offset is cached or being handled, or it is dropped."""
        if not self.dropped and not self.process.settled_below(end):
            future = asyncio.get_running_loop().create_future()
            self._settled.append((end, future))
            await future

    def _report_settled(self) -> None:
        waiting, self._settled = self._settled, []
        for end, future in waiting:
            if not self.dropped and not self.process.settled_below(end):
                self._settled.append((end, future))
            elif not future.done():
                future.set_result(None)

    async def until_idle(self, timeout: float) -> bool:  # noqa: ASYNC109 - not an error
        """Wait until no handler call is in flight, of the stay before either; False if longer."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        if self.before is not None:  # its call is on the same queue, and must end first, too
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
        """Return what rebalance decisions need."""
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
        state = "paused" if self.paused and not process.dropped else self.state.value
        return (
            f"<{state} {queue.topic}@{queue.broker_name}:{queue.queue_id}, "
            f"next {self.next_offset}, {process.count} cached>"
        )
