"""Popping in a push consumer: queues that a broker wants to be popped (5.x), one loop for each.

The broker remembers who has which message, so nothing is cached under an offset: a message that is
handled is acknowledged by its handle, one that failed stays hidden a while longer and comes again.
Belongs to one event loop.
"""

import asyncio
import logging
from collections.abc import Sequence

from pocketmq.balance.consumer.popping import PopFacts, after_last_try, before_pop, hide_again
from pocketmq.balance.consumer.pulling import (
    BROKER_SUSPEND,
    PullLater,
    StopPulling,
    WaitReason,
    after_pull_error,
)
from pocketmq.client.group.held_queue import HeldQueue
from pocketmq.client.group.parts import Parts
from pocketmq.client.group.subscriptions import Subscribed
from pocketmq.client.pop.popped import Popped, handle_of
from pocketmq.client.pop.requests import PopRequests
from pocketmq.errors import BrokerNotFound, MQError, ServerError
from pocketmq.protocol.pop_handles import PopHandle
from pocketmq.protocol.received import ReceivedMessage

logger = logging.getLogger("pocketmq.client")

MOST_TRIES = 16


class Popping:
    """Pops the queues of one consumer."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._failing: set[HeldQueue] = set()

    def begin(self, held: HeldQueue, *, from_first: bool, after: float) -> None:
        """Pop a queue, first in `after` seconds."""
        parts = self._parts
        requests = PopRequests(parts.session, parts.group, ordered=False, from_first=from_first)
        settling = PopSettling(parts, held, requests)
        held.popped = settling
        held.pulling = parts.tasks.spawn(
            self._go_round(held, requests, settling, after), f"pop {held.queue.topic}"
        )

    async def _go_round(
        self, held: HeldQueue, requests: PopRequests, settling: "PopSettling", after: float
    ) -> None:
        parts, clock = self._parts, asyncio.get_running_loop().time
        await asyncio.sleep(after)
        while True:
            subscribed = parts.subscriptions.get(held.queue.topic)
            held.process.last_pull = clock()
            step = before_pop(
                PopFacts(
                    dropped=held.dropped,
                    running=parts.running,
                    paused=parts.suspended or held.paused,
                    waiting=settling.waiting,
                    limit=parts.options.pop_limit,
                    subscribed=subscribed is not None,
                )
            )
            if isinstance(step, StopPulling):
                self._failing.discard(held)
                return
            if isinstance(step, PullLater):
                await self._wait(held, step)
            elif subscribed is not None:
                pause = await self._pop(held, requests, settling, subscribed)
                await asyncio.sleep(pause)

    async def _wait(self, held: HeldQueue, step: PullLater) -> None:
        """Wait for a while; for handlers, or a paused queue, not longer than needed."""
        if step.reason not in (WaitReason.PAUSED, WaitReason.TOO_MANY_MESSAGES):
            await asyncio.sleep(step.after)
            return
        loop = asyncio.get_running_loop()
        held.freed = loop.create_future()
        timer = loop.call_later(step.after, held.wake)
        try:
            await held.freed
        finally:
            timer.cancel()
            held.freed = None

    async def _pop(
        self,
        held: HeldQueue,
        requests: PopRequests,
        settling: "PopSettling",
        subscribed: Subscribed,
    ) -> float:
        """Pop once; gives how long to wait before the next pop."""
        parts, queue, options = self._parts, held.queue, self._parts.options
        code: int | None = None
        try:
            popped = await requests.pop(
                queue.broker_name,
                subscribed.subscription,
                held.topic,
                most=options.pop_batch,
                invisible=options.pop_invisible,
                wait=BROKER_SUSPEND,
                queue_id=queue.queue_id,
            )
        except BrokerNotFound as error:
            self._complain(held, error)
            parts.session.routes.refresh_soon(queue.topic)
        except ServerError as error:
            self._complain(held, error)
            code = error.code
        except MQError as error:
            self._complain(held, error)
        else:
            self._failing.discard(held)
            messages = settling.take(popped, subscribed)
            if messages:
                parts.work.arrived(held, messages, dispatch=True)
            return options.pull_retry if popped.full else options.pull_interval
        return after_pull_error(queue, 0, code, options.pull_retry).after

    def _complain(self, held: HeldQueue, error: MQError) -> None:
        """Log the first failure of many in a row."""
        log = logger.debug if held in self._failing else logger.warning
        log("group %s: cannot pop %s: %s", self._parts.group, held.queue, error)
        self._failing.add(held)


class PopSettling:
    """The messages popped from one queue that are not settled, and how they are."""

    def __init__(self, parts: Parts, held: HeldQueue, requests: PopRequests) -> None:
        self._parts = parts
        self._held = held
        self._requests = requests
        self._until: dict[PopHandle, float] = {}  # the loop's time when others may get it
        self._acks: list[tuple[str, PopHandle]] = []
        self._now = asyncio.get_running_loop().time

    @property
    def waiting(self) -> int:
        """How many messages are not settled."""
        return len(self._until)

    def take(self, popped: Popped, subscribed: Subscribed) -> list[ReceivedMessage]:
        """Take messages in; those of other tags or with too many tries are acknowledged at once."""
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
        """Tell whether messages are still hidden from others."""
        now = self._now()
        return all(self._until.get(handle_of(message), 0.0) > now for message in messages)

    def lose(self, messages: Sequence[ReceivedMessage]) -> None:
        """Forget messages that are not handled; they come again."""
        self._settle(messages)

    def done(self, messages: Sequence[ReceivedMessage]) -> None:
        """Acknowledge messages that are still ours; others have them, or will, if not."""
        for handle in self._settle(messages):
            self._ack(handle)

    def again(self, messages: Sequence[ReceivedMessage], delay_level: int) -> None:
        """Hide messages for longer, or give them up after their last try."""
        most = self._parts.options.max_reconsume_times
        most = MOST_TRIES if most < 0 else most
        ours = set(self._settle(messages))
        for message in messages:
            handle, tries = handle_of(message), message.reconsume_times
            if handle not in ours:
                continue
            delay: float | None = hide_again(tries, delay_level)
            if tries >= most:
                age = self._parts.session.clock.now() - message.born_timestamp
                delay = after_last_try(age, tries)
            if delay is None:
                logger.warning("message %s failed too often and is given up", message.message_id)
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
        """Acknowledge a message, together with others of this turn of the loop."""
        if not self._acks:
            self._parts.tasks.spawn(self._send_acks(), "acks")
        self._acks.append((self._held.queue.topic, handle))

    async def _send_acks(self) -> None:
        acks, self._acks = self._acks, []
        try:
            await self._requests.ack(self._held.queue.broker_name, acks)
        except MQError as error:
            logger.warning("%d messages are not acknowledged and come again: %s", len(acks), error)

    async def _hide(self, handle: PopHandle, seconds: float) -> None:
        try:
            await self._requests.change_invisible(self._held.queue.topic, handle, seconds)
        except MQError as error:
            logger.warning("a message is not hidden for longer and comes again soon: %s", error)
