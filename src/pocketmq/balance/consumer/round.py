"""One rebalance of one topic, step by step: revoke, release, lock, find offsets, start, notify.

    round = RebalanceRound(facts, decide(facts))
    todo = deque(round.begin())
    while todo:
        event = carry_out(todo.popleft())
        if event is not None:
            todo.extend(round.handle(event))
    round.outcome                                   # now set

Instructions given together may be carried out one after another (as Java does) or side by side;
only the events must come one at a time. A round ends by itself when every queue is settled.

Revoked queues are settled before new ones are taken: a queue whose pull expired is revoked and
assigned in one round, and must not be taken again before its old process queue is released.
"""

import msgspec

from pocketmq.balance.consumer import instructions
from pocketmq.balance.consumer.facts import OwnedQueue, QueueChange, RebalanceFacts, follow_change
from pocketmq.balance.consumer.offsets import StartStep, after_answer, read_step, start_step
from pocketmq.balance.consumer.rebalance import RebalanceDecision
from pocketmq.balance.consumer.release import (
    ReleaseFacts,
    ReleaseStep,
    begin_release,
    finish_release,
)
from pocketmq.model import ConsumeFromWhere, ConsumeType, MessageQueue, MessageRequestMode


class QueueIdled(msgspec.Struct, frozen=True):
    """The wait of `AwaitIdle` is over, with or without success."""

    queue: MessageQueue
    idle: bool


class LockAnswered(msgspec.Struct, frozen=True):
    """The broker granted or refused a lock; no answer counts as a refusal."""

    queue: MessageQueue
    granted: bool


class OffsetRead(msgspec.Struct, frozen=True):
    """The group's offset is known, or that it is unknown (`NO_OFFSET`, `OFFSET_UNKNOWN`)."""

    queue: MessageQueue
    offset: int


class OffsetAnswered(msgspec.Struct, frozen=True):
    """The broker answered `AskMaxOffset` or `SearchOffset`; `None` = it did not."""

    queue: MessageQueue
    offset: int | None


RoundEvent = QueueIdled | LockAnswered | OffsetRead | OffsetAnswered


class RoundOutcome(msgspec.Struct, frozen=True):
    """How a round ended."""

    changed: bool
    balanced: bool
    released: tuple[MessageQueue, ...]
    acquired: dict[MessageQueue, int]
    """New queues with their start offsets."""
    skipped: dict[MessageQueue, instructions.SkipReason]


class RebalanceRound:
    """The state of one rebalance of one topic. One owner calls it; it never waits."""

    def __init__(self, facts: RebalanceFacts, decision: RebalanceDecision) -> None:
        self.decision = decision
        self.outcome: RoundOutcome | None = None
        self._facts = facts
        self._owned = {
            owned.queue: owned for owned in facts.owned if owned.mode is MessageRequestMode.PULL
        }
        self._releasing: dict[MessageQueue, ReleaseFacts] = {}
        self._taking: set[MessageQueue] = set()
        self._released: list[instructions.RevokeQueue] = []
        self._acquired: dict[MessageQueue, int] = {}
        self._skipped: dict[MessageQueue, instructions.SkipReason] = {}

    @property
    def finished(self) -> bool:
        """Whether every queue is settled and `outcome` is set."""
        return self.outcome is not None

    def begin(self) -> list[instructions.Instruction]:
        """Return the first instructions."""
        if self.decision.keep_reason is not None:
            self.outcome = RoundOutcome(
                changed=False, balanced=self.decision.balanced, released=(), acquired={}, skipped={}
            )
            return list(self.decision.instructions)
        modes = (instructions.SubscribePopRetry, instructions.UnsubscribePopRetry)
        steps: list[instructions.Instruction] = []
        steps += (step for step in self.decision.instructions if isinstance(step, modes))
        steps += self._revoke()
        return steps if self._releasing else [*steps, *self._take()]

    def handle(self, event: RoundEvent) -> list[instructions.Instruction]:
        """Return what follows from an event; events of queues that are settled change nothing."""
        if isinstance(event, QueueIdled):
            return self._idled(event)
        queue = event.queue
        if queue not in self._taking:
            return []
        if isinstance(event, LockAnswered):
            if event.granted:
                return self._look_up(queue)
            steps = self._step(instructions.SkipQueue(queue, instructions.SkipReason.LOCK_DENIED))
        elif isinstance(event, OffsetRead):
            steps = self._step(start_step(queue, event.offset, self._facts.member.start))
        else:
            steps = self._step(after_answer(queue, event.offset))
        return steps if self._taking else [*steps, *self._conclude()]

    def _revoke(self) -> list[instructions.Instruction]:
        profile = self._facts.member.profile
        drops = [instructions.DropQueue(item.queue, item.mode) for item in self.decision.revoked]
        releases = [self._release(item) for item in self.decision.revoked]
        # A release may wait for a handler. 5.x marks every revoked queue dropped before the first
        # such wait, so that no other one is pulled or committed meanwhile although its new owner
        # has it.
        if profile.drop_before_release:
            return [*drops, *(step for steps in releases for step in steps)]
        return [
            step for drop, steps in zip(drops, releases, strict=True) for step in (drop, *steps)
        ]

    def _release(self, item: instructions.RevokeQueue) -> list[instructions.Instruction]:
        if item.mode is MessageRequestMode.POP:
            self._released.append(item)
            return [instructions.RemoveQueue(item.queue, item.mode)]
        facts = self._release_facts(self._owned[item.queue])
        step = begin_release(self._facts.member.profile, facts)
        if step.released is None:
            self._releasing[item.queue] = facts
        return self._after_release(item.queue, step)

    def _release_facts(self, owned: OwnedQueue) -> ReleaseFacts:
        member = self._facts.member
        return ReleaseFacts(
            queue=owned.queue,
            model=member.model,
            orderly=member.orderly,
            consume_type=member.consume_type,
            dropped=True,
            cached=owned.cached,
            last_lock=owned.last_lock,
            now=self._facts.now,
        )

    def _after_release(
        self, queue: MessageQueue, step: ReleaseStep
    ) -> list[instructions.Instruction]:
        steps = list(step.instructions)
        if step.released:
            self._released += [
                item
                for item in self.decision.revoked
                if item.queue == queue and item.mode is MessageRequestMode.PULL
            ]
            del self._owned[queue]
            steps.append(instructions.RemoveQueue(queue))
        return steps

    def _idled(self, event: QueueIdled) -> list[instructions.Instruction]:
        facts = self._releasing.pop(event.queue, None)
        if facts is None:
            return []
        step = finish_release(self._facts.member.profile, facts, idle=event.idle)
        steps = self._after_release(event.queue, step)
        return steps if self._releasing else [*steps, *self._take()]

    def _take(self) -> list[instructions.Instruction]:
        locks = self._facts.member.locks
        steps: list[instructions.Instruction] = []
        for queue in self.decision.assigned:
            if queue in self._owned:
                self._skipped[queue] = instructions.SkipReason.STILL_OWNED
                continue
            self._taking.add(queue)
            steps += [instructions.LockQueue(queue)] if locks else self._look_up(queue)
        return steps if self._taking else [*steps, *self._conclude()]

    def _look_up(self, queue: MessageQueue) -> list[instructions.Instruction]:
        # What this client noted of the queue is from the last time it owned the queue: another
        # member may have committed further since.
        return [instructions.ForgetOffset(queue), read_step(queue, self._facts.member.start)]

    def _step(self, step: StartStep) -> list[instructions.Instruction]:
        queue = step.queue
        if isinstance(step, instructions.UseOffset):
            self._taking.discard(queue)
            self._acquired[queue] = step.offset
            return [instructions.AddQueue(queue)]
        if isinstance(step, instructions.SkipQueue):
            self._taking.discard(queue)
            self._skipped[queue] = step.reason
        return [step]

    def _conclude(self) -> list[instructions.Instruction]:
        member, decision = self._facts.member, self.decision
        profile = member.profile
        steps: list[instructions.Instruction] = []
        again = profile.lock_denied_interval
        denied = {
            q for q, why in self._skipped.items() if why is instructions.SkipReason.LOCK_DENIED
        }
        if denied and again is not None:
            # A prompt owner unlocks a queue about now. If it has not at the second try, a handler
            # is at work or the owner is dead, and brokers log every refusal.
            pause = None if denied <= self._facts.denied else self._facts.pause
            steps.append(instructions.RebalanceAgain(again if pause is None else min(pause, again)))
        acquired = {q: self._acquired[q] for q in decision.assigned if q in self._acquired}
        delay = self._facts.start_delay
        if member.consume_type is ConsumeType.CONSUME_PASSIVELY:
            steps += [
                instructions.StartPulling(queue, offset, delay)
                for queue, offset in acquired.items()
            ]
        from_first = member.start.consume_from is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
        for queue in decision.assigned_pop:
            steps.append(instructions.AddQueue(queue, MessageRequestMode.POP))
            steps.append(instructions.StartPopping(queue, from_first, delay))
        changed = bool(self._released or acquired or decision.assigned_pop)
        if changed:
            owned_count = len(self._owned) + len(acquired)
            change = QueueChange(
                decision.topic,
                decision.all_queues,
                decision.target,
                owned_count,
                self._facts.now,
                delay,
            )
            steps += follow_change(profile, member.consume_type, member.limits, change)
        self.outcome = RoundOutcome(
            changed=changed,
            balanced=self._working(acquired) == frozenset(decision.target),
            released=tuple(item.queue for item in self._released),
            acquired=acquired,
            skipped=dict(self._skipped),
        )
        return steps

    def _working(self, acquired: dict[MessageQueue, int]) -> frozenset[MessageQueue]:
        decision = self.decision
        kept = frozenset(decision.kept) - frozenset(decision.lingering)
        new = {q for q in (*acquired, *decision.assigned_pop) if q.topic == decision.topic}
        return kept | new
