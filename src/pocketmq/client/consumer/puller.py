"""Pulling: one loop for each held queue, which goes round until the queue is dropped.

Whether to pull and what an answer means is `balance.consumer.pulling`; this room asks brokers,
fills caches and waits. Belongs to one event loop.
"""

import asyncio
import logging
from collections.abc import Callable

from pocketmq.balance.consumer.instructions import ReadOffset, UpdateOffset
from pocketmq.balance.consumer.pulling import (
    CATCH_UP_BATCH,
    PULL_TIMEOUT,
    BeforePull,
    CacheMessages,
    CorrectOffset,
    PullAgain,
    PullAnswer,
    PullFacts,
    PullLater,
    PullNow,
    PullStatus,
    ReportOddOffsets,
    WaitReason,
    after_pull,
    after_pull_error,
    before_pull,
    commit_with_pull,
    pull_size,
    start_check_failed,
)
from pocketmq.balance.consumer.start_offset import StartRule
from pocketmq.client.addresses import BrokerProcess
from pocketmq.client.consumer.held import HeldQueue
from pocketmq.client.consumer.parts import Parts
from pocketmq.client.consumer.pull_request import (
    Asked,
    Pulled,
    PullTemplate,
    read_answer,
)
from pocketmq.client.consumer.start_offsets import start_offset
from pocketmq.client.questions.pulling import ANSWERS, STATUS
from pocketmq.errors import BrokerNotFound, MQError, ServerError
from pocketmq.model.names import is_retry_topic
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.command import Command
from pocketmq.protocol.requests.pulling import PullResponse

logger = logging.getLogger("pocketmq.client")

Correct = Callable[[HeldQueue, int, float], None]
"""What is called for a queue that was pulled outside what its broker holds."""

_PULL = int(RequestCode.PULL_MESSAGE)
_NEEDS_ROOM = frozenset(
    {WaitReason.TOO_MANY_MESSAGES, WaitReason.TOO_MANY_BYTES, WaitReason.SPAN_TOO_LONG}
)


class Puller:
    """Pulls the queues of one consumer."""

    def __init__(self, parts: Parts, start: StartRule, correct: Correct) -> None:
        self._parts = parts
        self._start = start
        self._correct = correct
        self._failing: set[HeldQueue] = set()

    def begin(self, held: HeldQueue, after: float) -> None:
        """Pull a queue from its `next_offset` on, first in `after` seconds."""
        held.pulling = self._parts.tasks.spawn(
            self._go_round(held, after), f"pull {held.queue.topic} {held.queue.queue_id}"
        )

    def end(self, held: HeldQueue) -> None:
        """Stop pulling at once; an answer under way is dropped."""
        self._failing.discard(held)
        if held.pulling is not None:
            held.pulling.cancel()

    async def _go_round(self, held: HeldQueue, after: float) -> None:
        template: PullTemplate | None = None
        loop = asyncio.get_running_loop()
        await asyncio.sleep(after)
        while True:
            subscribed = self._parts.subscriptions.get(held.queue.topic)
            if not held.process.dropped:
                held.process.last_pull = loop.time()
            step = self._before(held, subscribed=subscribed is not None)
            if isinstance(step, PullNow) and subscribed is not None:
                if template is None or template.subscribed is not subscribed:
                    parts = self._parts
                    template = PullTemplate(
                        parts.group, held, subscribed, parts.options, parts.profile
                    )
                wait = await self._pull(held, template)
                if wait is None:
                    return
                if wait:
                    await asyncio.sleep(wait)
            elif isinstance(step, PullLater):
                await self._wait(held, step)
            elif isinstance(step, ReadOffset):
                await self._check_start(held)
            else:
                return

    def _before(self, held: HeldQueue, *, subscribed: bool) -> BeforePull:
        return before_pull(self._facts(held, subscribed=subscribed))

    def _facts(self, held: HeldQueue, *, subscribed: bool) -> PullFacts:
        parts, process = self._parts, held.process
        return PullFacts(
            queue=held.queue,
            limits=parts.limits,
            dropped=process.dropped,
            running=parts.running,
            paused=parts.suspended or held.paused,
            count=process.count,
            size=process.size,
            span=process.span,
            orderly=parts.options.orderly,
            locked=process.locked,
            start_checked=held.start_checked,
            subscribed=subscribed,
            retry_after_error=parts.options.pull_retry,
        )

    async def _wait(self, held: HeldQueue, step: PullLater) -> None:
        """Wait for a while; for room in the cache, or a paused queue, not longer than needed."""
        if step.reason not in _NEEDS_ROOM and step.reason is not WaitReason.PAUSED:
            await asyncio.sleep(step.after)
            return
        count, parts = held.process.count, self._parts
        most = parts.limits.count
        # The next pull may bring many at once, even more than the most.
        few = max(most - (parts.options.pull_batch or CATCH_UP_BATCH), most // 2)
        held.wake_below = few if step.reason is WaitReason.TOO_MANY_MESSAGES else count * 3 // 4
        loop = asyncio.get_running_loop()
        held.freed = loop.create_future()
        timer = loop.call_later(step.after, held.wake)
        try:
            await held.freed
        finally:
            timer.cancel()
            held.freed = None

    async def _check_start(self, held: HeldQueue) -> None:
        """Read an orderly queue's offset again now that it is locked: its last owner has stored."""
        parts = self._parts
        offset = await start_offset(parts.session, parts.offsets, held.queue, self._start)
        if offset is None:
            await asyncio.sleep(start_check_failed(self._facts(held, subscribed=True)).after)
            return
        held.start_checked = True
        held.next_offset = offset

    async def _pull(self, held: HeldQueue, template: PullTemplate) -> float | None:
        """Pull once; gives how long to wait before the next pull, None if there shall be none."""
        asked = held.next_offset
        began = asyncio.get_running_loop().time()
        code: int | None = None
        try:
            place = await self._place(held)
            answer = await self._ask(held, template, place)
            header = answer.header(PullResponse)
            held.suggested = header.suggest_which_broker_id
            held.waiting = header.max_offset - header.next_begin_offset
            pulled = self._read(asked, answer, header, held, template)
        except ServerError as error:
            self._complain(held, error)
            code = error.code
        except MQError as error:
            self._complain(held, error)
        else:
            self._failing.discard(held)
            if pulled.messages:
                took = asyncio.get_running_loop().time() - began
                self._parts.work.pulled(held, len(pulled.messages), took)
            return self._take(held, STATUS[answer.code], asked, pulled, header.max_offset)
        return after_pull_error(held.queue, asked, code, self._parts.options.pull_retry).after

    async def _place(self, held: HeldQueue) -> BrokerProcess:
        session, name = self._parts.session, held.queue.broker_name
        try:
            return session.addresses.for_reading(name, held.suggested)
        except BrokerNotFound:
            await session.fetch_routes([held.queue.topic])
        return session.addresses.for_reading(name, held.suggested)

    async def _ask(self, held: HeldQueue, template: PullTemplate, place: BrokerProcess) -> Command:
        parts = self._parts
        noted = parts.offsets.table.read(held.queue)
        commit = commit_with_pull(parts.options.model, noted, to_slave=not place.is_master)
        room = parts.limits.count - held.process.count
        count = pull_size(parts.options.pull_batch, held.waiting, room)
        if held.suspicion.alone:
            count = 1
        fields = template.fields(held.next_offset, count, commit)
        return await parts.session.brokers.call_at(
            place.address, _PULL, fields, timeout=PULL_TIMEOUT, accept=ANSWERS
        )

    def _read(
        self,
        offset: int,
        answer: Command,
        header: PullResponse,
        held: HeldQueue,
        template: PullTemplate,
    ) -> Pulled:
        if STATUS[answer.code] is not PullStatus.FOUND:
            return Pulled([], header.next_begin_offset)
        asked = Asked(offset, template.subscribed, self._parts.options.damaged)
        return read_answer(asked, answer, header, held, self._parts.subscriptions)

    def _take(
        self, held: HeldQueue, status: PullStatus, asked: int, pulled: Pulled, max_offset: int
    ) -> float | None:
        """Carry out what an answer leads to; gives the wait before the next pull."""
        parts, process, messages = self._parts, held.process, pulled.messages
        steps = after_pull(
            parts.profile,
            PullAnswer(
                queue=held.queue,
                status=status,
                asked=asked,
                next_offset=pulled.next_offset,
                first_offset=messages[0].queue_offset if messages else None,
                cached_count=process.count,
                pull_interval=parts.options.pull_interval,
            ),
        )
        wait: float | None = None
        for step in steps:
            if isinstance(step, PullAgain):
                held.next_offset, wait = step.offset, step.after
            elif isinstance(step, CacheMessages):
                dispatch = process.put(messages, max_offset)
                parts.work.arrived(held, messages, dispatch=dispatch)
            elif isinstance(step, UpdateOffset):
                parts.offsets.table.update(
                    step.queue, step.offset, increase_only=step.increase_only
                )
            elif isinstance(step, CorrectOffset):
                self._correct(held, step.offset, step.after)
            elif isinstance(step, ReportOddOffsets):
                logger.warning("%s: odd offsets in an answer: %s", held.queue, step)
        return wait

    def _complain(self, held: HeldQueue, error: MQError) -> None:
        """Log the first failure of many in a row, and look for a broker that moved."""
        quiet = held in self._failing or is_retry_topic(held.queue.topic)
        log = logger.debug if quiet else logger.warning
        log("group %s: cannot pull %s: %s", self._parts.group, held.queue, error)
        self._failing.add(held)
        if error.refresh_route:
            self._parts.session.routes.refresh_soon(held.queue.topic)
