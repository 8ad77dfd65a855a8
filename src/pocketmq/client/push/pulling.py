"""Pulling for a push consumer: pulled messages are cached and handed to handlers.

Whether to pull and what an answer means is `balance.consumer.pulling`. Belongs to one event loop.
"""

import logging
from collections.abc import Awaitable, Callable
from functools import partial

from pocketmq.balance.consumer import pulling
from pocketmq.balance.consumer.instructions import Instruction, UpdateOffset
from pocketmq.balance.profile import Profile
from pocketmq.client.addresses import BrokerProcess
from pocketmq.client.consumer_options import PushConsumerOptions
from pocketmq.client.group.held_queue import HeldQueue, log_name
from pocketmq.client.group.offsets import start_offset
from pocketmq.client.group.pulling import AskedPull, PullLoop, PullResult
from pocketmq.client.group.subscriptions import SubscribedTopic
from pocketmq.client.push.straight import StraightPulls
from pocketmq.client.push.work import FEW, PushParts
from pocketmq.client.questions.pulling import (
    ANSWERS,
    NO_COMMIT,
    PullNumbers,
    PullSpec,
    PullTemplate,
)
from pocketmq.errors import BrokerNotFound
from pocketmq.model import MessageQueue, PullFlag
from pocketmq.protocol import Command, RequestCode

logger = logging.getLogger("pocketmq.client")

Correct = Callable[[HeldQueue, int, float], None]
"""Called for a queue that was pulled outside what its broker holds."""

_PULL = int(RequestCode.PULL_MESSAGE)


class PushPullLoop(PullLoop[HeldQueue]):
    """Pulls the queues of one push consumer."""

    def __init__(self, parts: PushParts) -> None:
        super().__init__(parts.session, parts.group, parts.tasks)
        self._parts = parts
        self.correct: Correct = lambda *_: None
        """Set by `PushHoldings`."""

    def next_step(self, held: HeldQueue) -> Instruction:
        """Decide whether to pull now; a pull that is put off counts as one, as in Java."""
        if not held.dropped:
            held.process.last_pull = self._now()
        return pulling.before_pull(self._facts(held))

    def _facts(self, held: HeldQueue) -> pulling.PullFacts:
        parts, process = self._parts, held.process
        return pulling.PullFacts(
            queue=held.queue,
            limits=parts.limits,
            dropped=not held.may_start,
            running=parts.running,
            paused=parts.suspended or held.paused,
            count=process.count,
            size=process.size,
            span=process.span,
            orderly=parts.options.orderly,
            locked=process.locked,
            start_checked=held.start_checked,
            delayed=held.delayed,
            subscribed=parts.subscriptions.get(held.queue.topic) is not None,
            retry_after_error=parts.options.pull_retry,
        )

    def wake_below(self, held: HeldQueue, reason: pulling.WaitReason) -> int:
        """Return the number of cached messages at which a waiting loop is woken."""
        if reason is not pulling.WaitReason.TOO_MANY_MESSAGES:
            return super().wake_below(held, reason)
        most = self._parts.limits.count
        # The next pull may bring many at once, even more than the most.
        return max(most - (self._parts.options.pull_batch or pulling.CATCH_UP_BATCH), most // 2)

    async def find_start(self, held: HeldQueue) -> float:
        """Read a queue's offset again, orderly under the lock or else after a start delay.

        Its last owner may have stored a later one since the queue was taken; without this, the last
        messages it handled would be handled twice.
        """
        parts, queue = self._parts, held.queue
        stored = await parts.offsets.read(queue)
        if held.delayed and not parts.options.orderly:
            held.delayed = False
            if stored >= 0:
                held.next_offset = stored
            # Else the offset from before the delay holds: one that is found anew, such as the end
            # of the queue, would pass over what was sent in between.
            return 0.0
        offset = await start_offset(parts.session, queue, stored, parts.start)
        if offset is None:
            return pulling.start_check_failed(self._facts(held)).after
        held.start_checked, held.delayed = True, False
        held.next_offset = offset
        return 0.0

    async def ask(self, held: HeldQueue, step: Instruction) -> PullResult | None:  # noqa: ARG002 - PullNow
        """Pull from the queue's next offset; several times, as long as answers are usual."""
        parts = self._parts
        subscribed = parts.subscriptions.get(held.queue.topic)
        assert subscribed is not None  # or `next_step` had put the pull off
        straight = self._straight(held, subscribed)
        if straight is None:
            asked = AskedPull(held.next_offset, subscribed, parts.options.damaged)
            return await self.pull(held, asked, parts.subscriptions)
        pulls, address = straight
        answer = await pulls.ask()
        if answer is None:
            return None
        self._session.calls.accepted(answer, address, _PULL, ANSWERS)
        asked = AskedPull(held.next_offset, subscribed, parts.options.damaged)
        return self.read(held, asked, answer, parts.subscriptions)

    def _straight(
        self, held: HeldQueue, subscribed: SubscribedTopic
    ) -> tuple[StraightPulls, str] | None:
        """Return what pulls a queue the short way, and the address; None if it cannot be."""
        parts, addresses, options = self._parts, self._session.addresses, self._parts.options
        if options.orderly or options.pull_interval > 0 or held.retries or held.gate is not None:
            return None
        template = self.written(held, subscribed)
        try:
            place = addresses.for_reading(addresses.holder(held.queue), held.suggested)
        except BrokerNotFound:
            return None
        row = self._session.brokers.row_at(
            place.address, _PULL, template, timeout=pulling.PULL_TIMEOUT
        )
        if row is None:
            return None
        numbers = partial(self.numbers, held, template, place)
        return StraightPulls(parts, held, row, numbers), place.address

    def template(self, queue: MessageQueue, subscribed: SubscribedTopic) -> PullTemplate:
        """Write the pull requests of a queue for a subscription."""
        parts = self._parts
        return push_template(parts.group, queue, subscribed, parts.options, parts.profile)

    def numbers(
        self, held: HeldQueue, template: PullTemplate, place: BrokerProcess, offset: int
    ) -> PullNumbers:
        """Return what one pull asks for, with the noted offset to be committed by the way."""
        parts = self._parts
        noted = parts.offsets.table.read(held.queue)
        commit = pulling.commit_with_pull(parts.options.model, noted, to_slave=not place.is_master)
        if held.gate is not None:
            commit = NO_COMMIT  # STICKY: each is confirmed, one after another
        capacity = parts.limits.count - held.process.count
        count = pulling.pull_size(parts.options.pull_batch, held.waiting, capacity)
        return template.numbers(offset, 1 if held.suspicion.alone else count, commit)

    def send(
        self, address: str, template: PullTemplate, numbers: PullNumbers
    ) -> Awaitable[Command]:
        """Send a pull."""
        return self._session.brokers.repeat_at(
            address, _PULL, template, numbers, timeout=pulling.PULL_TIMEOUT, accept=ANSWERS
        )

    def take(self, held: HeldQueue, answer: PullResult) -> float | None:
        """Carry out what an answer leads to; return the seconds to wait before the next pull."""
        parts, process, messages = self._parts, held.process, answer.messages
        took = self._now() - process.last_pull  # noted right before the request
        steps = pulling.after_pull(
            parts.profile,
            pulling.PullAnswer(
                queue=held.queue,
                status=answer.status,
                asked=answer.asked,
                next_offset=answer.next_offset,
                first_offset=messages[0].queue_offset if messages else None,
                cached_count=process.count,
                pull_interval=parts.options.pull_interval,
            ),
        )
        wait: float | None = None
        for step in steps:
            if isinstance(step, pulling.PullAgain):
                held.next_offset, wait = step.offset, step.after
            elif isinstance(step, pulling.CacheMessages):
                dispatch = process.put(messages, answer.max_offset)
                parts.work.arrived(held, messages, dispatch=dispatch)
            elif isinstance(step, UpdateOffset):
                parts.offsets.table.update(
                    step.queue, step.offset, increase_only=step.increase_only
                )
            elif isinstance(step, pulling.CorrectOffset):
                self.correct(held, step.offset, step.after)
            elif isinstance(step, pulling.ReportOddOffsets):
                logger.warning(
                    "broker returned offsets before the requested one: %s requested=%d next=%d "
                    "first=%s",
                    log_name(step.queue), step.asked, step.next_offset, step.first_offset,
                )  # fmt: skip
        if messages:
            parts.work.pulled(held, len(messages), took)
        return wait

    def hands_over_first(self, answer: PullResult) -> bool:
        """Return whether handlers start with what a pull brought before the next is prepared."""
        return 0 < len(answer.messages) <= FEW

    def after_error(self, held: HeldQueue, code: int | None) -> float:
        """Return the seconds to wait after a pull that failed."""
        retry = self._parts.options.pull_retry
        return pulling.after_pull_error(held.queue, held.next_offset, code, retry).after


def push_template(
    group: str,
    queue: MessageQueue,
    subscribed: SubscribedTopic,
    options: PushConsumerOptions,
    profile: Profile,
) -> PullTemplate:
    """Write a push consumer's pull requests of a queue."""
    subscription = subscribed.subscription
    by_class = subscription.class_filter_mode
    posted = options.subscription_in_pull and not by_class
    modern = profile.line != "4.x"
    flags = PullFlag.SUSPEND
    if posted:
        flags |= PullFlag.SUBSCRIPTION
    if by_class:
        flags |= PullFlag.CLASS_FILTER
    wanted = PullSpec(
        group,
        options.pull_batch or pulling.PULL_BATCH,
        (options.pull_batch_bytes or pulling.PULL_BYTES) if modern else None,
        expression=subscription.sub_string if posted else None,
        expression_type=subscription.expression_type,
        version=subscribed.wanted_since,
        flags=flags,
        suspend=pulling.BROKER_SUSPEND,
        names_broker=modern,
    )
    more = pulling.CATCH_UP_BYTES if modern and options.pull_batch_bytes is None else None
    return PullTemplate(queue, wanted, more)
