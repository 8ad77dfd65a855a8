"""Pulling for a pull consumer: one task for each assigned queue fills the cache ahead of `poll`.

Whether to pull and what an answer means is `balance.consumer.lite_pull`; this room asks brokers and
waits. Belongs to one event loop.
"""

import asyncio
import logging

from pocketmq.balance.consumer.instructions import AskMaxOffset, SearchOffset, UseOffset
from pocketmq.balance.consumer.lite_pull import (
    LitePullAnswer,
    LitePullFacts,
    PullFrom,
    ScheduleTask,
    SetPullOffset,
    after_lite_pull,
    after_lite_pull_error,
    before_lite_pull,
    lite_start_failed,
)
from pocketmq.balance.consumer.pulling import (
    CacheMessages,
    PullLater,
    PullStatus,
    StopPulling,
    WaitReason,
)
from pocketmq.balance.consumer.start_offset import NO_OFFSET, after_answer, start_step
from pocketmq.client.addresses import BrokerProcess
from pocketmq.client.consumer.held import HeldQueue
from pocketmq.client.consumer.pull_request import Asked, Pulled, read_answer
from pocketmq.client.consumer.start_offsets import answer_to
from pocketmq.client.consumer.subscriptions import Subscribed
from pocketmq.client.pull.assigned import AssignedQueue
from pocketmq.client.pull.cache import Batch
from pocketmq.client.pull.parts import PullParts
from pocketmq.client.questions.pulling import ANSWERS, STATUS
from pocketmq.errors import BrokerNotFound, MQError, RequestNotSupported, ServerError
from pocketmq.model.flags import PullFlag
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.command import Command
from pocketmq.protocol.filter import is_tag_kind
from pocketmq.protocol.requests.pulling import PullRequest, PullResponse

logger = logging.getLogger("pocketmq.client")

_PULL = int(RequestCode.LITE_PULL_MESSAGE)
_PLAIN_PULL = int(RequestCode.PULL_MESSAGE)
_FLAGS = int(PullFlag.SUSPEND | PullFlag.SUBSCRIPTION | PullFlag.LITE_PULL)
_ANY_SIZE = 2**31 - 1


class Pulling:
    """The pull tasks of one consumer."""

    def __init__(self, parts: PullParts) -> None:
        self._parts = parts
        self._failing: set[AssignedQueue] = set()
        self._plain: set[str] = set()  # addresses of brokers that know no pulls of this kind

    def begin(self, assigned: AssignedQueue) -> None:
        """Start the pull task of a queue, in the place of the one it has."""
        held = assigned.held
        if held.pulling is not None:
            held.pulling.cancel()
        name = f"pull {held.queue.topic} {held.queue.queue_id}"
        held.pulling = self._parts.tasks.spawn(self._go_round(assigned), name)

    async def _go_round(self, assigned: AssignedQueue) -> None:
        held, parts = assigned.held, self._parts
        template = _Template(parts, held)
        loop = asyncio.get_running_loop()
        while True:
            step = before_lite_pull(self._facts(assigned))
            if isinstance(step, StopPulling):
                self._failing.discard(assigned)
                return
            if not assigned.state.paused and parts.profile.lite_pull_marks_pull:
                held.process.last_pull = loop.time()
            if isinstance(step, PullLater):
                await self._wait(held, step)
                continue
            if isinstance(step, PullFrom):
                assigned.state = step.state
                if step.offset != step.state.pull_offset:
                    # Sought: to be tried again from here if the pull fails.
                    assigned.change(pull_offset=step.offset)
                wait = await self._pull(assigned, template, step.offset)
            else:
                wait = await self._start(assigned)
            if wait:
                await asyncio.sleep(wait)

    def _facts(self, assigned: AssignedQueue) -> LitePullFacts:
        process, parts = assigned.held.process, self._parts
        return LitePullFacts(
            queue=assigned.queue,
            state=assigned.state,
            limits=parts.options.limits,
            dropped=process.dropped,
            cached_batches=len(parts.cache),
            pull_batch=parts.options.pull_batch,
            count=process.count,
            size=process.size,
            span=process.span,
        )

    async def _wait(self, held: HeldQueue, step: PullLater) -> None:
        """Wait for a while, not longer than until there is room or the application resumes."""
        if step.reason is not WaitReason.PAUSED:
            held.wake_below = held.process.count * 3 // 4
        loop = asyncio.get_running_loop()
        held.freed = loop.create_future()
        timer = loop.call_later(step.after, held.wake)
        try:
            await held.freed
        finally:
            timer.cancel()
            held.freed = None
            held.wake_below = -1

    async def _start(self, assigned: AssignedQueue) -> float:
        """Find where a queue begins; gives how long to wait before the next try, 0 if found."""
        parts, queue = self._parts, assigned.queue
        stored = parts.offsets.table.read(queue)
        if stored == NO_OFFSET:
            stored = await parts.offsets.read(queue)
        step = start_step(queue, stored, parts.start)
        if isinstance(step, AskMaxOffset | SearchOffset):
            step = after_answer(queue, await answer_to(parts.session, step))
        if not isinstance(step, UseOffset):
            return lite_start_failed(queue, stored).after
        assigned.change(pull_offset=step.offset)
        return 0.0

    async def _pull(self, assigned: AssignedQueue, template: "_Template", offset: int) -> float:
        """Pull once; gives how long to wait before the next pull."""
        code: int | None = None
        try:
            status, pulled = await self._ask(assigned.held, template, offset)
        except ServerError as error:
            self._complain(assigned, error)
            code = error.code
        except MQError as error:
            self._complain(assigned, error)
        else:
            self._failing.discard(assigned)
            return self._take(assigned, status, pulled)
        return after_lite_pull_error(assigned.queue, code).after

    async def _ask(
        self, held: HeldQueue, template: "_Template", offset: int
    ) -> tuple[PullStatus, Pulled]:
        parts = self._parts
        subscribed = parts.subscribed(held.queue.topic)
        place = await self._place(held)
        fields = template.fields(subscribed, offset)
        if held.suspicion.alone:
            fields["maxMsgNums"] = "1"
        answer = await self._call(place.address, fields)
        header = answer.header(PullResponse)
        held.suggested = header.suggest_which_broker_id
        status = STATUS[answer.code]
        if status is not PullStatus.FOUND:
            if status is PullStatus.OFFSET_ILLEGAL:
                logger.warning("%s does not hold offset %s; it is pulled from %s on",
                    held.queue, offset, header.next_begin_offset)  # fmt: skip
            return status, Pulled([], header.next_begin_offset)
        asked = Asked(offset, subscribed, parts.options.damaged)
        return status, read_answer(asked, answer, header, held, parts.subscriptions)

    async def _call(self, address: str, fields: dict[str, str]) -> Command:
        """Pull as 5.x clients do; brokers of 4.x know plain pulls alone."""
        timeout = self._parts.options.pull_timeout
        plain = address in self._plain or self._parts.profile.line == "4.x"
        code = _PLAIN_PULL if plain else _PULL
        call_at = self._parts.session.brokers.call_at
        try:
            return await call_at(address, code, fields, timeout=timeout, accept=ANSWERS)
        except RequestNotSupported:
            if plain:
                raise
        self._plain.add(address)
        return await call_at(address, _PLAIN_PULL, fields, timeout=timeout, accept=ANSWERS)

    async def _place(self, held: HeldQueue) -> BrokerProcess:
        session, name = self._parts.session, held.queue.broker_name
        try:
            return session.addresses.for_reading(name, held.suggested)
        except BrokerNotFound:
            await session.fetch_routes([held.queue.topic])
        return session.addresses.for_reading(name, held.suggested)

    def _take(self, assigned: AssignedQueue, status: PullStatus, pulled: Pulled) -> float:
        """Carry out what an answer leads to; gives the wait before the next pull."""
        process, messages = assigned.held.process, pulled.messages
        steps = after_lite_pull(
            LitePullAnswer(
                queue=assigned.queue,
                status=status,
                next_offset=pulled.next_offset,
                found=len(messages),
                seek_offset=assigned.state.seek_offset,
                dropped=process.dropped,
            )
        )
        wait = 0.0
        for step in steps:
            if isinstance(step, CacheMessages):
                process.put(messages)
                self._parts.cache.put(Batch(assigned, messages))
            elif isinstance(step, SetPullOffset):
                assigned.change(pull_offset=step.offset)
            elif isinstance(step, ScheduleTask):
                wait = step.after
        return wait

    def _complain(self, assigned: AssignedQueue, error: MQError) -> None:
        """Log the first failure of many in a row, and look for a broker that moved."""
        log = logger.debug if assigned in self._failing else logger.warning
        log("group %s: cannot pull %s: %s", self._parts.group, assigned.queue, error)
        self._failing.add(assigned)
        if error.refresh_route:
            self._parts.session.routes.refresh_soon(assigned.queue.topic)


class _Template:
    """The fields of one queue's pull requests; few change from one to the next."""

    def __init__(self, parts: PullParts, held: HeldQueue) -> None:
        self._parts = parts
        self._held = held
        self._subscribed: Subscribed | None = None
        self._fields: dict[str, str] = {}

    def fields(self, subscribed: Subscribed, offset: int) -> dict[str, str]:
        """Give the fields of a pull from an offset."""
        if subscribed is not self._subscribed:
            self._fields = self._write(subscribed)
            self._subscribed = subscribed
        return {**self._fields, "queueOffset": str(offset)}

    def _write(self, subscribed: Subscribed) -> dict[str, str]:
        parts, held, subscription = self._parts, self._held, subscribed.subscription
        modern = parts.profile.line != "4.x"
        by_tags = is_tag_kind(subscription.expression_type)
        return PullRequest(
            consumer_group=parts.group,
            topic=held.queue.topic,
            queue_id=held.queue.queue_id,
            queue_offset=0,
            max_msg_nums=parts.options.pull_batch,
            sys_flag=_FLAGS,
            commit_offset=0,
            suspend_timeout_millis=round(parts.options.suspend * 1000),
            subscription=subscription.sub_string,
            sub_version=0 if by_tags else subscription.sub_version,
            expression_type=subscription.expression_type,
            max_msg_bytes=_ANY_SIZE if modern else None,
            bname=held.queue.broker_name if modern else None,
        ).to_ext()
