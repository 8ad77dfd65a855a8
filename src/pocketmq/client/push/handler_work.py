"""What concurrent and orderly work have in common: handler calls, counters, reports.

Belongs to one event loop.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence

from pocketmq.client.group.held_queue import HeldQueue
from pocketmq.client.push.calls import DirectCall, KnownHandlers, direct_result
from pocketmq.client.push.consume_hooks import ConsumeHook, HookCaller
from pocketmq.client.push.handlers import Failure, Handler
from pocketmq.client.push.jobs import Duty, Job, JobPart
from pocketmq.client.push.requeue import Requeue
from pocketmq.client.push.runners import Runners
from pocketmq.client.push.running_info import HOUR_STEP, MINUTE_STEP, HandlingStats, running_info
from pocketmq.client.push.threads import Threads
from pocketmq.client.push.work import Consuming
from pocketmq.errors import ResponseCode, SystemFailure
from pocketmq.protocol import ReceivedMessage
from pocketmq.protocol.requests.client_calls import DirectConsumeResult, RunningInfo

logger = logging.getLogger("pocketmq.client")


class HandlerWork:
    """Calls the handlers of one consumer; its two kinds decide for what, and what follows."""

    orderly = False

    def __init__(self, consuming: Consuming) -> None:
        options, session = consuming.options, consuming.session
        self.consuming = consuming
        self.stats = HandlingStats()
        self.watch = HookCaller(
            consuming.group, session.options.namespace, session.clock, options.consume_timeout
        )
        self.handlers = KnownHandlers(consuming)
        self.requeue = Requeue(consuming)
        self.stopping = False
        self._threads: Threads | None = None
        self._runners: Runners | None = None
        self._timers: dict[asyncio.TimerHandle, HeldQueue] = {}
        self._direct: set[DirectCall] = set()

    def start(self) -> None:
        """Start the timers."""
        tasks = self.consuming.tasks
        tasks.every(MINUTE_STEP, self._read_minute, "consume rates", first_after=MINUTE_STEP)
        tasks.every(HOUR_STEP, self._read_hour, "hourly consume rates", first_after=0.0)

    def add_hook(self, hook: ConsumeHook) -> None:
        """Call a hook around all handler calls from now on."""
        self.watch.hooks.append(hook)

    def taken(self, held: HeldQueue) -> None:
        """Prepare for a new queue."""

    def dropped(self, held: HeldQueue) -> None:
        """Cancel what was to be done later for a queue."""
        for timer in [timer for timer, of in self._timers.items() if of is held]:
            del self._timers[timer]
            timer.cancel()

    def resumed(self, held: HeldQueue) -> None:
        """Continue a queue whose fence was lifted."""
        raise NotImplementedError

    def pulled(self, held: HeldQueue, count: int, elapsed: float) -> None:
        """Count a pull of `count` messages that took `elapsed` seconds."""
        stats = self.stats.of(held.queue.topic)
        stats.pull_rt.add(elapsed * 1000)
        if count:
            stats.pulled.add(count)

    async def consume_directly(
        self, message: ReceivedMessage, broker_name: str | None
    ) -> DirectConsumeResult:
        """Handle one message now, beside the queues; raises `SystemFailure` without a handler."""
        clock = self.consuming.session.clock
        call = DirectCall(self.consuming, message, broker_name)
        handler = self.handlers.of(call.message.topic)
        if handler is None:
            remark = f"no handler for topic {call.message.topic} in this consumer"
            raise SystemFailure(ResponseCode.SYSTEM_ERROR, remark)
        began_ms = clock.now_ms()
        call.handler = handler
        self._direct.add(call)
        try:
            self.give(handler, (call,))
            failure = await call.ended
        finally:
            self._direct.discard(call)
        spent_ms = max(0, clock.now_ms() - began_ms)
        return direct_result(failure, spent_ms, orderly=self.orderly)

    async def running_info(self, *, with_stacks: bool) -> RunningInfo:
        """Return a report about the consumer."""
        tasks = () if self._runners is None else self._runners.tasks()
        return running_info(
            self.consuming,
            self.stats,
            orderly=self.orderly,
            stacks_of=tasks if with_stacks else None,
        )

    async def stop(self, wait: float) -> None:
        """Start no more calls, wait for those in flight, and end everything."""
        self.stopping = True
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        for call in self._direct:
            call.give_up()
        callers = [caller for caller in (self._threads, self._runners) if caller is not None]
        for caller in callers:
            caller.halt()
        late = sum(await asyncio.gather(*(caller.stop(wait) for caller in callers)))
        if late:
            logger.warning(
                "stopped with handlers in flight: group=%s calls=%d waited=%g s; their messages "
                "are redelivered",
                self.consuming.group, late, wait,
            )  # fmt: skip

    # For the two kinds of work

    def log_failure(self, messages: Sequence[ReceivedMessage], failure: Failure) -> None:
        """Log a call that did not settle its messages; a retry that was asked for is no problem."""
        group, topic, first = self.consuming.group, messages[0].topic, messages[0].message_id
        named = f"id={first}" if len(messages) == 1 else f"count={len(messages)} first={first}"
        if failure.requested:
            logger.info("handler requested retry: group=%s topic=%s %s", group, topic, named)
            return
        logger.warning(
            "messages not handled: group=%s topic=%s %s: %s",
            group, topic, named, failure.reason, exc_info=failure.error,
        )  # fmt: skip

    def give(self, handler: Handler, jobs: Sequence[Duty], *, later: bool = False) -> None:
        """Do jobs where their handler belongs; `finished` is called with each in the end.

        With `later` coroutines begin an iteration of the loop later.
        """
        if self.stopping:
            for job in jobs:
                self.conclude(job)
            return
        caller = self._runners if handler.is_async else self._threads
        if caller is None:
            caller = self._new_caller(handler)
        if isinstance(caller, Runners):
            caller.give(jobs, later=later)
        else:
            caller.give(jobs)

    def finished(self, jobs: Sequence[Job | JobPart]) -> None:
        """Settle jobs that are done."""
        raise NotImplementedError

    def conclude(self, job: Duty | JobPart) -> None:
        """Report the outcome of a call beside the queues to its operator."""
        if isinstance(job, DirectCall):
            job.conclude()

    def later(self, held: HeldQueue, after: float, callback: Callable[[], None]) -> None:
        """Do something for a queue in `after` seconds, unless it or the consumer ends before."""

        def run() -> None:
            del self._timers[timer]
            callback()

        if not self.stopping and not held.dropped:
            timer = asyncio.get_running_loop().call_later(after, run)
            self._timers[timer] = held

    def under_way(self) -> Iterator[tuple[object, float]]:
        """Return the jobs in flight, and for how many seconds."""
        for caller in (self._threads, self._runners):
            if caller is not None:
                for job, nanoseconds in caller.under_way():
                    yield job, nanoseconds / 1e9

    def _new_caller(self, handler: Handler) -> Threads | Runners:
        consuming = self.consuming
        name, clock = f"handlers of {consuming.group}", consuming.session.clock
        if handler.is_async:
            self._runners = Runners(name, consuming.options.threads, clock, self.finished)
            return self._runners
        self._threads = Threads(name, consuming.options.threads, clock, self.finished)
        return self._threads

    async def _read_minute(self) -> None:
        self.stats.read_minute(self.consuming.now())

    async def _read_hour(self) -> None:
        self.stats.read_hour(self.consuming.now())
