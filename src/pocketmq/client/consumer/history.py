"""What became of each rebalance: events for people and pipelines.

Owns the form of an event and the memory of the last ones. `RebalanceEvent.version` says which form
it is; fields are only ever added to it.
"""

from collections import deque
from collections.abc import Callable

import msgspec

from pocketmq.balance.consumer.rebalance import RebalanceDecision
from pocketmq.balance.consumer.round import RoundOutcome
from pocketmq.model.queue import MessageQueue, sort_queues

EVENT_VERSION = 1


class RebalanceEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One rebalance of one topic by one member, as it happened.

    As JSON (`to_json`) each field has the name it has here; queues are objects with `topic`,
    `brokerName` and `queueId`. Times are seconds since 1970, durations seconds.
    """

    version: int = EVENT_VERSION
    group: str
    client_id: str
    topic: str
    strategy: str
    trigger: str
    """What called for it: `start`, `timer`, `members changed`, `route changed`, `stop` …; several
    that came together are joined by commas."""
    started: float
    """When it began."""
    asked: float = 0.0
    """How long it took to learn the route and the members."""
    carried_out: float = 0.0
    """How long it took to release and take queues."""
    members: tuple[str, ...] | None = None
    """The group's members, sorted as strategies see them; None if not asked for, or not known."""
    queues: tuple[MessageQueue, ...] | None = None
    """The topic's queues; None if not known, or if the broker made the assignment."""
    before: tuple[MessageQueue, ...] = ()
    after: tuple[MessageQueue, ...] = ()
    """The queues held and not dropped, before and after."""
    revoked: tuple[MessageQueue, ...] = ()
    assigned: dict[str, int] = {}
    """New queues, as `broker:queue id`, with their start offsets."""
    skipped: dict[str, str] = {}
    """Queues of the share that could not be taken, with the reason."""
    balanced: bool = True
    """Whether what is held is what shall be held."""
    kept_because: str | None = None
    """Why everything was left as it is, if so."""
    runs: int = 1
    """How many runs in a row changed nothing and found the same; the first one is described."""

    @property
    def changed(self) -> bool:
        """Whether queues came or went."""
        return bool(self.revoked or self.assigned)

    def to_json(self) -> bytes:
        """Write the event as JSON."""
        return msgspec.json.encode(self)

    @classmethod
    def from_json(cls, text: bytes | str) -> "RebalanceEvent":
        """Read an event; fields of later versions are passed over.

        Raises `msgspec.ValidationError` or `msgspec.DecodeError` for anything else.
        """
        return msgspec.json.decode(text, type=cls)


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
