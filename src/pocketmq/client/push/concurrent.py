"""Concurrent work: every message as soon as a handler is free, whatever its queue.

What a result means is decided in `balance.consumer.concurrent`; here it is carried out. Calls that
succeeded are settled together, queue by queue; a failed one has a task of its own that requeues its
messages. Belongs to one event loop.

Messages finish in any order, but the offset of a queue is the lowest one that is not finished: what
is stored never passes a message that a crash would lose. So a message that is being requeued stays
in the cache until the broker has it.
"""

import asyncio
import logging
from collections.abc import Sequence
from operator import attrgetter

from pocketmq.balance.consumer import concurrent as rules
from pocketmq.balance.consumer.concurrent import SWEEP_DELAY_LEVEL, ExpirySweep
from pocketmq.balance.consumer.handling import RESUBMIT_AFTER
from pocketmq.client.group.held_queue import HeldQueue, HoldState
from pocketmq.client.push.handler_work import HandlerWork
from pocketmq.client.push.handlers import NO_HANDLER, Failure
from pocketmq.client.push.jobs import Job, JobPart
from pocketmq.client.push.slices import BegunCall, Slice, SlicePart
from pocketmq.client.push.work import FEW, Consuming
from pocketmq.protocol import ReceivedMessage

logger = logging.getLogger("pocketmq.client")


class ConcurrentWork(HandlerWork):
    """Hands messages to handlers side by side."""

    def __init__(self, consuming: Consuming) -> None:
        super().__init__(consuming)
        self._returns: set[asyncio.Task[None]] = set()
        # As many at once as Java's threads could have in flight.
        self._turn = asyncio.Semaphore(consuming.options.threads)

    def start(self) -> None:
        """Start the timers."""
        super().start()
        timeout = self.consuming.options.consume_timeout
        self.consuming.tasks.every(timeout, self._sweep, "overdue messages", first_after=timeout)

    def arrived(
        self,
        held: HeldQueue,
        messages: Sequence[ReceivedMessage],
        *,
        dispatch: bool = True,  # noqa: ARG002 - for orderly work
        asked: bool = False,
    ) -> None:
        """Hand messages that are cached to their handler.

        Where they are many the next pull, which is about to be sent, leaves before coroutines have
        them: the broker works on it meanwhile.
        """
        size, later = self.consuming.options.handler_batch, len(messages) > FEW and not asked
        for handler, share in self.handlers.shares(held, messages):
            if handler is None:
                for message in share:
                    self._unwanted(held, message)
            elif share:
                self.give(handler, (Slice(held, handler, share, size, self.watch),), later=later)

    def finished(self, jobs: Sequence[Job | JobPart]) -> None:
        """Settle calls that have ended."""
        done: dict[HeldQueue, list[ReceivedMessage]] = {}
        for job in jobs:
            if not isinstance(job, SlicePart):
                self.conclude(job)
                continue
            held, outcome = job.of.held, job.take()
            if outcome.calls:
                stats = self.stats.of(held.queue.topic)
                stats.consume_rt.add(outcome.took / 1e6, outcome.calls)
            if held in done:
                done[held] += outcome.done
            elif outcome.done:
                done[held] = outcome.done
            for messages in outcome.skipped:
                self._skipped(held, messages)
            for messages, failure in outcome.failed:
                self._failed(held, messages, failure)
        for held, messages in done.items():
            self._settle(held, messages)

    def resumed(self, held: HeldQueue) -> None:
        """Hand out what was turned away while the queue was fenced."""
        parked, held.parked = held.parked, []
        if again := [message for message in parked if message in held.process]:
            # Threads give them back in any order, but the gate goes by the last one of a batch.
            again.sort(key=attrgetter("queue_offset"))
            self.arrived(held, again)

    def _skipped(self, held: HeldQueue, messages: Sequence[ReceivedMessage]) -> None:
        if held.popped is not None:
            held.popped.lose(messages)
        elif held.gate is not None:
            self._turned_away(held, messages)

    def _turned_away(self, held: HeldQueue, messages: Sequence[ReceivedMessage]) -> None:
        """Keep messages whose call could not begin, unless they are the next owner's now."""
        held.parked += [message for message in messages if message in held.process]
        if not held.dropped and held.state is not HoldState.FENCED:
            self.resumed(held)  # the fence was lifted before this was reported

    def _unwanted(self, held: HeldQueue, message: ReceivedMessage) -> None:
        """Requeue a message without a handler, where a handler might begin it."""
        if held.gate is None or held.gate.enter(message.queue_offset):
            self._failed(held, (message,), NO_HANDLER)
        elif held.state is HoldState.FENCED:
            held.parked.append(message)

    async def stop(self, wait: float) -> None:
        """Start no more calls, wait for those in flight and for messages being requeued."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait
        await super().stop(wait)
        if self._returns:
            await asyncio.wait(self._returns, timeout=max(0.0, deadline - loop.time()))

    def _failed(
        self, held: HeldQueue, messages: Sequence[ReceivedMessage], failure: Failure
    ) -> None:
        process, consuming = held.process, self.consuming
        if failure.only is not None:
            done = [one for at, one in enumerate(messages) if at not in failure.only]
            messages = [one for at, one in enumerate(messages) if at in failure.only]
            self._settle(held, done)
        answer = rules.ConcurrentAnswer(
            status=rules.ConcurrentStatus.CONSUME_SUCCESS if failure.done else None,
            ack_index=failure.done - 1,
            dropped=held.dropped,
        )
        self.log_failure(messages, failure)
        if held.popped is not None:
            self._settle_popped(held, messages[: failure.done], messages[failure.done :], failure)
            return
        cached = [message.queue_offset for message in messages if message in process]
        verdict = rules.judge(consuming.profile, consuming.model, messages, answer, cached)
        if verdict.ignored:
            return
        for message in verdict.given_up:
            logger.warning(
                "discarding failed broadcast message: group=%s id=%s",
                consuming.group, message.message_id,
            )  # fmt: skip
        if verdict.send_back:
            task = consuming.tasks.spawn(
                self._give_back(held, messages, verdict, failure), "send back"
            )
            self._returns.add(task)
            task.add_done_callback(self._returns.discard)
        else:
            self._count(held, verdict)
            self._remove(held, messages, ())

    async def _give_back(
        self,
        held: HeldQueue,
        messages: Sequence[ReceivedMessage],
        verdict: rules.BatchVerdict[ReceivedMessage],
        failure: Failure,
    ) -> None:
        async def send(message: ReceivedMessage) -> bool:
            async with self._turn:
                return await self.requeue.send_back(
                    message, failure.delay_level, held.queue.broker_name, failure.limit
                )

        # Whatever goes wrong, the messages have to be settled: one left over would stop the offset
        # of its queue, and in the end its pulls.
        sent = await asyncio.gather(*map(send, verdict.send_back), return_exceptions=True)
        failed = [one for one, ok in zip(verdict.send_back, sent, strict=True) if ok is not True]
        for message, error in zip(verdict.send_back, sent, strict=True):
            if isinstance(error, BaseException):
                logger.error(
                    "requeueing failed: group=%s message=%s; passing it to the handler again in "
                    "%g s",
                    self.consuming.group, message.message_id, RESUBMIT_AFTER,
                    exc_info=error,
                )  # fmt: skip
        self._count(held, verdict)
        self._remove(held, messages, failed)

    def _settle(self, held: HeldQueue, messages: Sequence[ReceivedMessage]) -> None:
        """Take messages out that are all done: there is nothing to `judge`."""
        if held.popped is not None:
            self._settle_popped(held, messages, ())
            return
        if held.process.dropped:
            return
        if messages:
            self.stats.of(held.queue.topic).ok.add(len(messages))
        self._take_out(held, messages)

    def _take_out(self, held: HeldQueue, messages: Sequence[ReceivedMessage]) -> None:
        offset = held.process.remove(messages, self.consuming.now())
        step = rules.commit_step(held.queue, offset, dropped=held.process.dropped)
        if step is not None:
            self.consuming.note_offset(step.queue, step.offset, increase_only=step.increase_only)
        held.capacity_freed()

    def _settle_popped(
        self,
        held: HeldQueue,
        done: Sequence[ReceivedMessage],
        failed: Sequence[ReceivedMessage],
        failure: Failure = NO_HANDLER,
    ) -> None:
        """Acknowledge popped messages that are done; hide those that failed for longer."""
        assert held.popped is not None
        stats = self.stats.of(held.queue.topic)
        if done:
            stats.ok.add(len(done))
            held.popped.done(done)
        if failed:
            stats.failed.add(len(failed))
            wait: float | None = None
            if failure.limit is not None:
                failed, wait = self._set_aside(held, failed, failure.limit), failure.wait
            held.popped.again(failed, failure.delay_level, wait)

    def _set_aside(
        self, held: HeldQueue, messages: Sequence[ReceivedMessage], limit: int
    ) -> list[ReceivedMessage]:
        """Make popped messages that had `limit` retries dead letters; return the others."""
        for message in messages:
            if message.reconsume_times >= limit:
                task = self.consuming.tasks.spawn(self._bury(held, message), "set a message aside")
                self._returns.add(task)
                task.add_done_callback(self._returns.discard)
        return [message for message in messages if message.reconsume_times < limit]

    async def _bury(self, held: HeldQueue, message: ReceivedMessage) -> None:
        """Send a copy whose retries are used up, which the broker makes a dead letter; then ack."""
        assert held.popped is not None
        if await self.requeue.send_copy(message, message.reconsume_times + 1, 0):
            held.popped.done((message,))
        else:
            held.popped.again((message,), 0)

    def _count(self, held: HeldQueue, verdict: rules.BatchVerdict[ReceivedMessage]) -> None:
        stats = self.stats.of(held.queue.topic)
        if verdict.succeeded:
            stats.ok.add(verdict.succeeded)
        if verdict.failed:
            stats.failed.add(verdict.failed)

    def _remove(
        self,
        held: HeldQueue,
        messages: Sequence[ReceivedMessage],
        not_sent: Sequence[ReceivedMessage],
    ) -> None:
        settlement = rules.settle(messages, not_sent)
        self._take_out(held, settlement.remove)
        if settlement.again and not held.dropped:
            again = [one.with_reconsume_times(one.reconsume_times + 1) for one in settlement.again]
            self.later(held, RESUBMIT_AFTER, lambda: self.arrived(held, again))

    async def _sweep(self) -> None:
        """Requeue what is overdue in all queues; what cannot be sent is tried again next time.

        The rule is `ExpirySweep` of `balance.consumer.concurrent`. When a handler got its messages
        is noted only now, from the calls in flight, so that it costs nothing per message.
        """
        now = self.consuming.now()
        for job, seconds in self.under_way():
            if isinstance(job, BegunCall):
                job.held.process.mark_started(job.messages, now - seconds)
        for held in list(self.consuming.held().values()):
            if not held.dropped and held.state is not HoldState.FENCED:
                await self._sweep_queue(held)

    async def _sweep_queue(self, held: HeldQueue) -> None:
        consuming = self.consuming
        timeout = consuming.options.consume_timeout
        overdue = ExpirySweep(held.process, timeout)
        while (message := overdue.next(consuming.now())) is not None:
            broker = held.queue.broker_name
            if not await self.requeue.send_back(message, SWEEP_DELAY_LEVEL, broker):
                return
            logger.warning(
                "handler timeout: group=%s message=%s timeout=%g s; requeued",
                consuming.group, message.message_id, timeout,
            )  # fmt: skip
            overdue.sent(message, consuming.now())
            held.capacity_freed()
