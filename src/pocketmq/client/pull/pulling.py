"""Pulling for a pull consumer: its queues' loops, and what STICKY's hand-over asks of them.

A queue's loop fills the cache ahead of `poll`. Whether to pull and what an answer means is
`balance.consumer.lite_pull`. Belongs to one event loop.
"""

import logging
from collections.abc import Awaitable, Sequence

from pocketmq.balance.consumer import lite_pull
from pocketmq.balance.consumer.instructions import Instruction
from pocketmq.balance.consumer.offsets import NO_OFFSET
from pocketmq.balance.consumer.pulling import CacheMessages, PullStatus, StopPulling
from pocketmq.client.addresses import BrokerProcess
from pocketmq.client.group.confirmed_offsets import ConfirmedOffsets
from pocketmq.client.group.held_queue import log_name
from pocketmq.client.group.listeners import QueueListeners
from pocketmq.client.group.offsets import start_offset
from pocketmq.client.group.pulling import AskedPull, PullLoop, PullResult
from pocketmq.client.group.subscriptions import SubscribedTopic
from pocketmq.client.pull.cache import PulledBatch, PullQueue
from pocketmq.client.pull.queues import PullParts
from pocketmq.client.questions.pulling import ANSWERS, PullNumbers, PullSpec, PullTemplate
from pocketmq.errors import RequestNotSupported
from pocketmq.model import MASTER_ID, MessageQueue, PullFlag
from pocketmq.protocol import Command, ReceivedMessage, RequestCode
from pocketmq.protocol.filter import is_tag_kind

logger = logging.getLogger("pocketmq.client")

_PULL = int(RequestCode.LITE_PULL_MESSAGE)
_PLAIN_PULL = int(RequestCode.PULL_MESSAGE)
_FLAGS = PullFlag.SUSPEND | PullFlag.SUBSCRIPTION | PullFlag.LITE_PULL
_ANY_SIZE = 2**31 - 1


class LitePullLoop(PullLoop[PullQueue]):
    """Pulls the queues of one pull consumer."""

    def __init__(self, parts: PullParts) -> None:
        super().__init__(parts.session, parts.group, parts.tasks)
        self._parts = parts
        self._plain: set[str] = set()  # addresses of brokers that have no pulls of this kind

    def next_step(self, held: PullQueue) -> Instruction:
        """Decide whether to pull now, and from where."""
        step = lite_pull.before_lite_pull(self._facts(held))
        marks = self._parts.profile.lite_pull_marks_pull
        if marks and not held.position.paused and not isinstance(step, StopPulling):
            held.process.last_pull = self._now()
        return step

    def _facts(self, held: PullQueue) -> lite_pull.LitePullFacts:
        process, parts = held.process, self._parts
        return lite_pull.LitePullFacts(
            queue=held.queue,
            state=held.position,
            limits=parts.options.limits,
            dropped=not held.may_start,
            cached_batches=len(parts.cache),
            pull_batch=parts.options.pull_batch,
            count=process.count,
            size=process.size,
            span=process.span,
        )

    async def find_start(self, held: PullQueue) -> float:
        """Find where a queue starts; return the seconds to wait before the next try, 0 if found."""
        parts, queue = self._parts, held.queue
        stored = parts.offsets.table.read(queue)
        if stored == NO_OFFSET:
            stored = await parts.offsets.read(queue)
        offset = await start_offset(parts.session, queue, stored, parts.start)
        if offset is None:
            return lite_pull.lite_start_failed(queue, stored).after
        held.change(pull_offset=offset)
        return 0.0

    def ask(self, held: PullQueue, step: Instruction) -> Awaitable[PullResult]:
        """Pull from the offset of the step."""
        assert isinstance(step, lite_pull.PullFrom)
        held.position = step.state
        if step.offset != step.state.pull_offset:
            # Sought: to be tried again from here if the pull fails.
            held.change(pull_offset=step.offset)
        parts = self._parts
        subscribed = parts.subscribed(held.queue.topic)
        asked = AskedPull(step.offset, subscribed, parts.options.damaged)
        return self.pull(held, asked, parts.subscriptions)

    def template(self, queue: MessageQueue, subscribed: SubscribedTopic) -> PullTemplate:
        """Write the pull requests of a queue for a subscription."""
        options, subscription = self._parts.options, subscribed.subscription
        modern = self._parts.profile.line != "4.x"
        by_tags = is_tag_kind(subscription.expression_type)
        wanted = PullSpec(
            self._parts.group,
            options.pull_batch,
            _ANY_SIZE if modern else None,
            expression=subscription.sub_string,
            expression_type=subscription.expression_type,
            version=0 if by_tags else subscription.sub_version,
            flags=_FLAGS,
            suspend=options.suspend,
            names_broker=modern,
        )
        return PullTemplate(queue, wanted)

    def numbers(
        self,
        held: PullQueue,
        template: PullTemplate,
        place: BrokerProcess,  # noqa: ARG002 - a pull consumer commits nothing by the way
        offset: int,
    ) -> PullNumbers:
        """Return what one pull asks for."""
        return template.numbers(
            offset, 1 if held.suspicion.alone else self._parts.options.pull_batch
        )

    async def send(self, address: str, template: PullTemplate, numbers: PullNumbers) -> Command:
        """Pull as 5.x clients do; brokers of 4.x have plain pulls alone."""
        timeout = self._parts.options.pull_timeout
        plain = address in self._plain or self._parts.profile.line == "4.x"
        code = _PLAIN_PULL if plain else _PULL
        repeat_at = self._session.brokers.repeat_at
        try:
            return await repeat_at(
                address, code, template, numbers, timeout=timeout, accept=ANSWERS
            )
        except RequestNotSupported:
            if plain:
                raise
        self._plain.add(address)
        return await repeat_at(
            address, _PLAIN_PULL, template, numbers, timeout=timeout, accept=ANSWERS
        )

    def take(self, held: PullQueue, answer: PullResult) -> float | None:
        """Carry out what an answer leads to; return the seconds to wait before the next pull."""
        process, messages = held.process, answer.messages
        if answer.status is PullStatus.OFFSET_ILLEGAL:
            logger.warning(
                "offset out of range: %s offset=%s; resuming from the broker's offset %s",
                log_name(held.queue), answer.asked, answer.next_offset,
            )  # fmt: skip
        steps = lite_pull.after_lite_pull(
            lite_pull.LitePullAnswer(
                queue=held.queue,
                status=answer.status,
                next_offset=answer.next_offset,
                found=len(messages),
                seek_offset=held.position.seek_offset,
                dropped=process.dropped,
            )
        )
        wait = 0.0
        for step in steps:
            if isinstance(step, CacheMessages):
                process.put(messages)
                self._parts.cache.put(PulledBatch(held, messages))
            elif isinstance(step, lite_pull.SetPullOffset):
                held.change(pull_offset=step.offset)
            elif isinstance(step, lite_pull.ScheduleTask):
                wait = step.after
        return wait

    def after_error(self, held: PullQueue, code: int | None) -> float:
        """Return the seconds to wait after a pull that failed."""
        return lite_pull.after_lite_pull_error(held.queue, code).after


class PullHandled:
    """A `Handled` for polls: how a pull consumer's queues take part in STICKY's hand-over.

    The application has no handlers that could be waited for; what it polled last is done when it
    polls again. So a queue that is given away is not polled any more, the next poll is awaited,
    then the application's listener; the position after that is where the next owner starts.
    """

    waits = True

    def __init__(
        self,
        parts: PullParts,
        pulling: LitePullLoop,
        listeners: QueueListeners,
    ) -> None:
        assert isinstance(parts.offsets, ConfirmedOffsets)
        self._commits = parts.offsets
        self._parts = parts
        self._pulling = pulling
        self._listeners = listeners
        self.closing = False
        """There are no more polls to wait for."""
        self.told: set[MessageQueue] = set()
        """Queues whose listener was called."""

    def begin(self, held: PullQueue, offset: int) -> None:
        """Pull from an offset."""
        held.assigned = True
        held.change(pull_offset=offset, paused=held.queue in self._parts.setup.pauses)
        self._pulling.begin(held)

    def resume(self, held: PullQueue) -> None:
        """Continue after a fence, with what is cached."""
        self._parts.cache.wake()
        if held.may_start:
            self._pulling.begin(held)

    async def finish(self, held: PullQueue) -> int:
        """Wait for the next poll and for the listener; return where the next owner starts."""
        parts, cache = self._parts, self._parts.cache
        if parts.options.auto_commit and not self.closing:
            await cache.until_polled(held, parts.options.drain_wait)
        if not self.closing:
            parts.note_done(held)  # all but what was polled last, if that is not done yet
        self.told.add(held.queue)
        await self._listeners.revoked_and_done([parts.setup.shown(held.queue)], parts.tasks)
        return self._commits.table.read(held.queue)

    async def pull(self, held: PullQueue, offset: int) -> PullResult:
        """Pull once from the master, beside the queue's own loop."""
        parts = self._parts
        subscribed = parts.subscribed(held.queue.topic)
        asked = AskedPull(offset, subscribed, parts.options.damaged)
        held.suggested = MASTER_ID  # a slave may not have it yet
        return await self._pulling.pull(held, asked, parts.subscriptions)

    def arrived(self, held: PullQueue, messages: Sequence[ReceivedMessage]) -> None:
        """Cache messages of a hole, to be polled."""
        held.process.put_before(messages)
        self._parts.cache.put(PulledBatch(held, list(messages)))
