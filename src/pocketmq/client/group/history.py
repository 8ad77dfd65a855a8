"""What became of each rebalance: the memory of the last events, for people and pipelines."""

from collections import deque
from collections.abc import Callable

import msgspec

from pocketmq.balance.consumer.rebalance import RebalanceDecision
from pocketmq.balance.consumer.round import RoundOutcome
from pocketmq.model.queue import MessageQueue, sort_queues
from pocketmq.model.rebalance_event import RebalanceEvent


class History:
    """The last rebalances of a consumer."""

    def __init__(self, size: int) -> None:
        self._events: deque[RebalanceEvent] = deque(maxlen=size)
        self._listeners: list[Callable[[RebalanceEvent], None]] = []

    def listen(self, listener: Callable[[RebalanceEvent], None]) -> None:
        """Have a function called with every event that says something new."""
        self._listeners.append(listener)

    @property
    def events(self) -> tuple[RebalanceEvent, ...]:
        """What is remembered, the oldest first."""
        return tuple(self._events)

    def record(self, event: RebalanceEvent) -> None:
        """Remember an event; one that repeats the topic's last is only counted."""
        last = next((e for e in reversed(self._events) if e.topic == event.topic), None)
        if last is not None and _repeats(event, last):
            self._events[self._events.index(last)] = msgspec.structs.replace(
                last, runs=last.runs + 1
            )
            return
        self._events.append(event)
        for listener in self._listeners:
            listener(event)


def described(
    event: RebalanceEvent, decision: RebalanceDecision, outcome: RoundOutcome
) -> RebalanceEvent:
    """Complete an event with what was decided and what came of it."""
    return msgspec.structs.replace(
        event,
        queues=decision.all_queues,
        revoked=tuple(sort_queues(set(outcome.released))),
        assigned={short(queue): offset for queue, offset in outcome.acquired.items()},
        skipped={short(queue): reason.value for queue, reason in outcome.skipped.items()},
        balanced=outcome.balanced,
        kept_because=None
        if decision.keep_reason is None
        else f"{decision.keep_reason.value}: {decision.error}"
        if decision.error
        else decision.keep_reason.value,
    )


def short(queue: MessageQueue) -> str:
    """Give a queue's name inside its topic."""
    return f"{queue.broker_name}:{queue.queue_id}"


def _repeats(event: RebalanceEvent, last: RebalanceEvent) -> bool:
    return not event.changed and (
        event.members == last.members
        and event.queues == last.queues
        and event.before == last.after
        and event.after == last.after
        and event.skipped == last.skipped
        and event.balanced == last.balanced
        and event.kept_because == last.kept_because
    )
