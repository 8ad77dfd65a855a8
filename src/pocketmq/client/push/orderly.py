"""Orderly work: one call at a time for each queue, in order, under the broker's lock.

When the next messages may be taken, and what a result means, is decided in
`balance.consumer.orderly`; here it is carried out. A queue's messages are taken in sequences of
several calls, so that quick handlers are not slowed down by switching between loop and thread;
before each call of a sequence it is checked that the queue and its lock are still ours. Belongs to
one event loop. What order must hold:
- A queue has at most one sequence in flight, over all its stays with this member (`_at_work`).
- A result counts only if the queue was not dropped meanwhile; otherwise the next owner has it.
- The offset moves only over messages whose call succeeded, and never past a failed one.
"""

from collections.abc import Sequence

from pocketmq.balance.consumer import orderly as rules
from pocketmq.client.clock import stopwatch
from pocketmq.client.group.held_queue import HeldQueue
from pocketmq.client.push.calls import CallSequence, Pace
from pocketmq.client.push.handler_work import HandlerWork
from pocketmq.client.push.handlers import NO_HANDLER, Failure
from pocketmq.client.push.jobs import Job, JobPart
from pocketmq.client.push.work import Consuming
from pocketmq.model import MessageModel, MessageQueue
from pocketmq.protocol import ReceivedMessage


class OrderlyWork(HandlerWork):
    """Hands messages to handlers queue by queue."""

    orderly = True

    def __init__(self, consuming: Consuming) -> None:
        super().__init__(consuming)
        self._pace: dict[HeldQueue, Pace] = {}
        # A queue that was lost and taken again may still have a handler call of its last stay in
        # flight (Java: MessageQueueLock, which outlives stays); the new stay waits for its end.
        self._at_work: set[MessageQueue] = set()
        self._next: dict[MessageQueue, HeldQueue] = {}
        self._locking = consuming.model is MessageModel.CLUSTERING

    def arrived(
        self,
        held: HeldQueue,
        messages: Sequence[ReceivedMessage],  # noqa: ARG002 - the cache has them
        *,
        dispatch: bool,
        asked: bool = False,  # noqa: ARG002 - for concurrent work
    ) -> None:
        """Start handling a queue, unless that is in progress."""
        if dispatch:
            self._begin(held)

    def dropped(self, held: HeldQueue) -> None:
        """Forget a queue that was dropped."""
        super().dropped(held)
        self._pace.pop(held, None)
        if self._next.get(held.queue) is held:
            del self._next[held.queue]

    def resumed(self, held: HeldQueue) -> None:
        """Continue with what is cached."""
        self._begin(held)

    def _begin(self, held: HeldQueue) -> None:
        self._go_on(held, None)

    def _go_on(self, held: HeldQueue, began: float | None) -> None:
        """Take the next sequence of a queue, or do what is due before; `began` is its task's."""
        if self.stopping or (held.gate is not None and not held.may_start):
            return  # a fenced queue goes on with `resumed`, a draining one does not
        consuming, process = self.consuming, held.process
        now = consuming.now()
        step = rules.next_batch(
            consuming.profile,
            rules.TaskFacts(
                queue=held.queue,
                model=consuming.model,
                dropped=process.dropped,
                locked=process.locked,
                lock_expired=held.gate is None and process.lock_expired(consuming.profile, now),
                now=now,
                began=began,
            ),
        )
        if isinstance(step, rules.EndTask):
            return
        if isinstance(step, rules.ConsumeLater):
            self.later(held, step.after, lambda: self._begin(held))
        elif isinstance(step, rules.RelockThenConsume):
            self.later(held, step.after, lambda: self._relock(held))
        else:
            self._take(held, now if began is None else began, now)

    def _take(self, held: HeldQueue, began: float, now: float) -> None:
        consuming, process = self.consuming, held.process
        if held.queue in self._at_work:
            self._next[held.queue] = held
            return
        pace = self._pace.setdefault(held, Pace())
        most = consuming.options.handler_batch
        calls = 1 if held.retries else pace.calls
        handler = None if held.retries else self.handlers.of(held.topic)
        size = most if handler is None or handler.batch else 1
        messages = process.take(size * calls, now)
        if not messages:
            return
        if held.retries:
            handler = self.handlers.of(messages[0].topic)
            size = most if handler is not None and handler.batch else 1
            count = _same_topic(messages[:size])
            process.consume_again(messages[count:])
            messages = messages[:count]
        if handler is None:
            self._failed(held, messages, NO_HANDLER, began)
            return
        held.begin_work()
        self._at_work.add(held.queue)
        sequence = CallSequence(
            held,
            handler,
            messages,
            size=size,
            began=began,
            watch=self.watch,
            now=stopwatch(consuming.session.clock),
            lock_life=process.last_lock + consuming.profile.lock_max_age - now
            if self._locking and held.gate is None  # with STICKY, a fence comes before that
            else None,
        )
        self.give(handler, (sequence,))

    def finished(self, jobs: Sequence[Job | JobPart]) -> None:
        """Settle sequences that have ended."""
        for job in jobs:
            if isinstance(job, CallSequence):
                self._settle(job)
            else:
                self.conclude(job)

    def _settle(self, sequence: CallSequence) -> None:
        held, process = sequence.held, sequence.held.process
        self._at_work.discard(held.queue)
        pace = self._pace.get(held)
        if pace is not None:
            pace.learn(sequence.calls, sequence.took)
        stats = self.stats.of(held.queue.topic)
        if sequence.calls:
            stats.consume_rt.add(sequence.took / 1e6, sequence.calls)
        if held.dropped:
            # The result is void: the next owner starts from the stored offset.
            # A new stay of the same queue that had to wait for this call may begin now.
            held.end_work()
            if (following := self._next.pop(held.queue, None)) is not None:
                self._begin(following)
            return
        done, failed, rest = sequence.outcome()
        if failed or rest:
            process.consume_again((*failed, *rest))
        if done:
            stats.ok.add(len(done))
            self._commit(held)
        if sequence.failure is not None:
            # Taken again: the decision is about messages that are being consumed.
            again = process.take(len(failed), self.consuming.now())
            # Before the call is counted out: the work that a failure leads to must not find a
            # hand-over that has gone on.
            self._failed(held, again, sequence.failure, sequence.began)
            held.end_work()
        else:
            held.end_work()
            self._go_on(held, sequence.began)

    def _failed(
        self, held: HeldQueue, messages: Sequence[ReceivedMessage], failure: Failure, began: float
    ) -> None:
        options = self.consuming.options
        self.stats.of(held.queue.topic).failed.add(len(messages))
        self.log_failure(messages, failure)
        answer = rules.OrderlyAnswer(
            queue=held.queue,
            status=None,
            suspend=failure.wait,
            suspend_default=options.suspend_queue,
            max_reconsume=options.max_reconsume_times if failure.limit is None else failure.limit,
        )
        spent = rules.exhausted(answer, messages)
        if spent:
            held.begin_work()  # a hand-over waits until they are dead letters
            self.consuming.tasks.spawn(
                self._set_aside(held, answer, messages, spent, began), "set messages aside"
            )
        else:
            self._carry_out(held, rules.after_handler(answer, messages), messages, began)

    async def _set_aside(
        self,
        held: HeldQueue,
        answer: rules.OrderlyAnswer,
        messages: Sequence[ReceivedMessage],
        spent: Sequence[ReceivedMessage],
        began: float,
    ) -> None:
        """Send messages that failed too often to the retry topic, which makes them dead letters."""
        limit = rules.max_reconsume_times(answer.max_reconsume)
        step = self.consuming.profile.exhausted_reconsume_step
        try:
            not_sent = [
                message.queue_offset
                for message in spent
                if not await self.requeue.set_aside(
                    message, max(message.reconsume_times + step, 0 if limit else 1), limit
                )
            ]
        finally:
            held.end_work()
        if not self.stopping:
            self._carry_out(held, rules.after_handler(answer, messages, not_sent), messages, began)

    def _carry_out(
        self,
        held: HeldQueue,
        decision: rules.OrderlyDecision,
        messages: Sequence[ReceivedMessage],
        began: float,
    ) -> None:
        for step in decision.instructions:
            if isinstance(step, rules.RaiseReconsume):
                messages = [
                    message.with_reconsume_times(message.reconsume_times + 1)
                    if message.queue_offset in step.offsets
                    else message
                    for message in messages
                ]
            elif isinstance(step, rules.ConsumeBatchAgain):
                held.process.consume_again(messages)
            elif isinstance(step, rules.ConsumeLater):
                self.later(held, step.after, lambda: self._begin(held))
            elif isinstance(step, rules.CommitBatch):
                self._commit(held)
        if decision.go_on:
            self._go_on(held, began)

    def _commit(self, held: HeldQueue) -> None:
        step = rules.commit_step(held.queue, held.process.commit(), dropped=held.dropped)
        if step is not None:
            self.consuming.note_offset(step.queue, step.offset, increase_only=step.increase_only)
        held.capacity_freed()

    def _relock(self, held: HeldQueue) -> None:
        self.consuming.tasks.spawn(self._ask_for_lock(held), "lock a queue")

    async def _ask_for_lock(self, held: HeldQueue) -> None:
        granted = await self.consuming.lock(held)
        step = rules.after_relock(held.queue, granted=granted)
        self.later(held, step.after, lambda: self._begin(held))


def _same_topic(messages: Sequence[ReceivedMessage]) -> int:
    """Count the messages at the front that are of one topic."""
    topic = messages[0].topic
    return next((n for n, one in enumerate(messages) if one.topic != topic), len(messages))
