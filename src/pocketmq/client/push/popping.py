"""Popping in a push consumer: queues that a broker wants to be popped (5.x).

The broker remembers which consumer has which message, so nothing is cached under an offset: a
handled message is acknowledged by its handle, a failed one stays hidden for longer and is then
redelivered. Belongs to one event loop.
"""

import asyncio
import logging
from collections.abc import Sequence

from pocketmq.balance.consumer.instructions import Instruction
from pocketmq.balance.consumer.popping import PopFacts, after_last_try, before_pop, hide_again
from pocketmq.balance.consumer.pulling import BROKER_SUSPEND, after_pull_error
from pocketmq.client.group.held_queue import HeldQueue
from pocketmq.client.group.queue_loop import QueueLoop
from pocketmq.client.group.subscriptions import SubscribedTopic
from pocketmq.client.pop.popped import PopResult, handle_of
from pocketmq.client.pop.requests import PopRequests
from pocketmq.client.push.work import PushParts
from pocketmq.errors import MQError
from pocketmq.protocol import ReceivedMessage
from pocketmq.protocol.handles import PopHandle

logger = logging.getLogger("pocketmq.client")

MOST_TRIES = 16
_SHORTEST = 0.01
"""Seconds for which a message is hidden at least."""


class PopLoop(QueueLoop[HeldQueue, PopResult]):
    """Pops the queues of one consumer."""

    verb = "pop"

    def __init__(self, parts: PushParts) -> None:
        super().__init__(parts.session, parts.group, parts.tasks)
        self._parts = parts
        self._requests = {
            from_first: PopRequests(
                parts.session, parts.group, ordered=False, from_first=from_first
            )
            for from_first in (False, True)
        }

    def open(self, held: HeldQueue, *, from_first: bool, after: float) -> None:
        """Pop a queue, first in `after` seconds."""
        held.popped = PopSettling(self._parts, held, self._requests[from_first])
        self.begin(held, after)

    def next_step(self, held: HeldQueue) -> Instruction:
        """Decide whether to pop now."""
        parts = self._parts
        held.process.last_pull = self._now()
        return before_pop(
            PopFacts(
                dropped=not held.may_start,
                running=parts.running,
                paused=parts.suspended or held.paused,
                waiting=_settling(held).waiting,
                limit=parts.options.pop_limit,
                subscribed=parts.subscriptions.get(held.queue.topic) is not None,
            )
        )

    async def ask(self, held: HeldQueue, step: Instruction) -> PopResult:  # noqa: ARG002 - PullNow
        """Pop once."""
        queue, options = held.queue, self._parts.options
        held.subscribed = subscribed = self._parts.subscriptions.get(queue.topic)
        assert subscribed is not None  # or `next_step` had put the pop off
        return await _settling(held).requests.pop(
            queue,
            subscribed.subscription,
            held.topic,
            most=options.pop_batch,
            invisible=options.pop_invisible,
            wait=BROKER_SUSPEND,
        )

    def take(self, held: HeldQueue, answer: PopResult) -> float:
        """Hand messages to handlers; return the seconds to wait before the next pop."""
        options = self._parts.options
        assert held.subscribed is not None
        messages = _settling(held).take(answer, held.subscribed)
        if messages:
            self._parts.work.arrived(held, messages, dispatch=True)
        return options.pull_retry if answer.full else options.pull_interval

    def after_error(self, held: HeldQueue, code: int | None) -> float:
        """Return the seconds to wait after a pop that failed."""
        return after_pull_error(held.queue, 0, code, self._parts.options.pull_retry).after


def _settling(held: HeldQueue) -> "PopSettling":
    assert isinstance(held.popped, PopSettling)
    return held.popped


class PopSettling:
    """The unsettled messages popped from one queue, and how they are settled."""

    def __init__(self, parts: PushParts, held: HeldQueue, requests: PopRequests) -> None:
        self._parts = parts
        self._held = held
        self.requests = requests
        self._until: dict[PopHandle, float] = {}  # the loop's time when another consumer may get it
        self._acks: list[tuple[str, PopHandle]] = []
        self._now = asyncio.get_running_loop().time

    @property
    def waiting(self) -> int:
        """The number of messages that are not settled."""
        return len(self._until)

    def take(self, popped: PopResult, subscribed: SubscribedTopic) -> list[ReceivedMessage]:
        """Take messages in; acknowledge at once those of other tags or with too many tries."""
        most = self._parts.options.max_reconsume_times
        most = MOST_TRIES if most < 0 else most
        wanted: list[ReceivedMessage] = []
        for message in popped.messages:
            handle = handle_of(message)
            if subscribed.tags.matches_tag(message.tag) and message.reconsume_times <= most:
                self._until[handle] = popped.hidden_until
                wanted.append(message)
            else:
                self._ack(handle)
        return wanted

    def has(self, messages: Sequence[ReceivedMessage]) -> bool:
        """Return whether messages are still hidden from other consumers."""
        now = self._now()
        return all(self._until.get(handle_of(message), 0.0) > now for message in messages)

    def lose(self, messages: Sequence[ReceivedMessage]) -> None:
        """Forget messages that are not handled; the broker redelivers them."""
        self._settle(messages)

    def done(self, messages: Sequence[ReceivedMessage]) -> None:
        """Acknowledge messages that are still hidden; the broker redelivers the rest."""
        for handle in self._settle(messages):
            self._ack(handle)

    def again(
        self, messages: Sequence[ReceivedMessage], delay_level: int, wait: float | None = None
    ) -> None:
        """Hide messages for longer, or discard them after their last try.

        For `wait` seconds, if that is given.
        """
        most = self._parts.options.max_reconsume_times
        most = MOST_TRIES if most < 0 else most
        ours = set(self._settle(messages))
        for message in messages:
            handle, tries = handle_of(message), message.reconsume_times
            if handle not in ours:
                continue
            delay: float | None = (
                hide_again(tries, delay_level) if wait is None else max(wait, _SHORTEST)
            )
            if tries >= most:
                age = self._parts.session.clock.now() - message.born_timestamp
                delay = after_last_try(age, tries)
            if delay is None:
                logger.warning(
                    "discarding message after %d tries: id=%s", tries, message.message_id
                )
                self._ack(handle)
            else:
                self._parts.tasks.spawn(self._hide(handle, delay), "hide a message")

    def _settle(self, messages: Sequence[ReceivedMessage]) -> list[PopHandle]:
        now = self._now()
        settled = [handle_of(message) for message in messages]
        ours = [handle for handle in settled if self._until.pop(handle, 0.0) > now]
        self._held.wake()
        return ours

    def _ack(self, handle: PopHandle) -> None:
        """Acknowledge a message, together with others of this event-loop iteration."""
        if not self._acks:
            self._parts.tasks.spawn(self._send_acks(), "acks")
        self._acks.append((self._held.queue.topic, handle))

    async def _send_acks(self) -> None:
        acks, self._acks = self._acks, []
        try:
            await self.requests.ack(self._held.queue.broker_name, acks)
        except MQError as error:
            logger.warning(
                'ack failed: messages=%d error="%s"; the broker redelivers', len(acks), error
            )

    async def _hide(self, handle: PopHandle, seconds: float) -> None:
        try:
            await self.requests.change_invisible(self._held.queue.topic, handle, seconds)
        except MQError as error:
            logger.warning(
                'extending invisible time failed: error="%s"; the message is redelivered soon',
                error,
            )
