"""One rebalance as its member reports it: the event that clients record and pipelines read.

Owns both forms of an event in topics and files. `RebalanceEvent.version` says which version it
is; fields are only ever added to it. Version 2 tells of hand-overs. A member writes a whole
`RebalanceEvent` first and then every so often, so that a reader that starts late, or misses
one, is right again soon; all others are changes, whose length depends on what changed and not
on the number of queues. A change is not a `RebalanceEvent`: a reader that has only whole events
refuses it instead of reading an empty assignment.
"""

from collections.abc import Collection
from typing import TypeVar

import msgspec

from pocketmq.model.java_strings import java_sorted
from pocketmq.model.queue import MessageQueue, sort_queues

_Queues = tuple[MessageQueue, ...]
T = TypeVar("T")

EVENT_VERSION = 2
WHOLE_EVERY = 32
"""One in this number of events of a topic is whole."""


class Handover(msgspec.Struct, frozen=True, kw_only=True):
    """One queue's way from a member to the next, as one of the two saw it."""

    queue: MessageQueue
    kind: str
    """`overlap`, `drain`, `orphan`, `foreign` or `lost`; see `HandoverKind`."""
    giver: str | None = None
    heir: str | None = None
    """Client ids; None where there is none, or it is not known."""
    offset: int | None = None
    """The first offset that the heir starts; what is below is finished by the giver."""
    stopped: float | None = None
    """When the giver stopped starting messages; told by the giver."""
    started: float | None = None
    """When the heir began to pull; told by the heir."""
    drained: float | None = None
    """When the giver had finished and stored the last of its messages; told by the giver."""


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
    """The queues owned and not dropped, before and after."""
    revoked: tuple[MessageQueue, ...] = ()
    assigned: dict[str, int] = {}
    """New queues, as `broker:queue id`, with their start offsets."""
    skipped: dict[str, str] = {}
    """Assigned queues that could not be taken, with the reason."""
    balanced: bool = True
    """Whether the owned queues are those of the assignment."""
    kept_because: str | None = None
    """Why the rebalance changed nothing, if it could not be decided."""
    mode: str = "java"
    """`java`: shares by a Java strategy, queues change hands as in Java. `sticky`: all members hand
    over without harm. `mixed`: so do ours, beside foreign members."""
    handovers: tuple[Handover, ...] = ()
    moved: int | None = None
    """Queues of the topic that got another owner; None where it is not known (mode `java`)."""
    minimum: int | None = None
    """How many had to, over all topics of the group; None where it is not known."""
    runs: int = 1
    """The number of runs in a row with the same result and no change; the first is described."""

    @property
    def changed(self) -> bool:
        """Whether queues were assigned or revoked."""
        return bool(self.revoked or self.assigned)

    def to_json(self) -> bytes:
        """Write the event as JSON."""
        return msgspec.json.encode(self)

    @classmethod
    def from_json(cls, text: bytes | str) -> "RebalanceEvent":
        """Read an event; fields of later versions are ignored.

        Raises `msgspec.ValidationError` or `msgspec.DecodeError` for anything else.
        """
        return msgspec.json.decode(text, type=cls)


class RebalanceChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A rebalance as its difference from the event that the member wrote before, of one topic.

    `event` has no `members`, `queues`, `before` and `after`; `completed` adds them.
    """

    follows: float
    """When the event before had `started`."""
    event: RebalanceEvent
    joined: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    """Members of the group that came and went."""
    added: _Queues = ()
    removed: _Queues = ()
    """Queues of the topic that came and went."""
    gained: _Queues = ()
    lost: _Queues = ()
    """Queues that this member took and released."""

    @property
    def group(self) -> str:
        """The group of the event."""
        return self.event.group

    @property
    def topic(self) -> str:
        """The topic of the event."""
        return self.event.topic

    @property
    def started(self) -> float:
        """When the rebalance began."""
        return self.event.started

    def completed(self, last: RebalanceEvent) -> RebalanceEvent:
        """Return the whole event; lists that did not change are those of `last`."""
        return msgspec.structs.replace(
            self.event,
            members=last.members
            if last.members is None or not (self.joined or self.left)
            else tuple(java_sorted({*last.members, *self.joined}.difference(self.left))),
            queues=None if last.queues is None else _put(last.queues, self.added, self.removed),
            before=last.after,
            after=_put(last.after, self.gained, self.lost),
        )

    @classmethod
    def between(cls, last: RebalanceEvent, event: RebalanceEvent) -> "RebalanceChange | None":
        """Return the difference; None if it would not lead from `last` to exactly this event."""
        if event.started <= last.started:
            return None
        joined, left = _differences(last.members, event.members)
        added, removed = _differences(last.queues, event.queues)
        gained, lost = _differences(last.after, event.after)
        change = cls(
            follows=last.started,
            event=msgspec.structs.replace(event, members=None, queues=None, before=(), after=()),
            joined=tuple(java_sorted(joined)),
            left=tuple(java_sorted(left)),
            added=tuple(sort_queues(added)),
            removed=tuple(sort_queues(removed)),
            gained=tuple(sort_queues(gained)),
            lost=tuple(sort_queues(lost)),
        )
        return change if change.completed(last) == event else None


_CHANGES = msgspec.json.Decoder(RebalanceChange)


def read_event(line: bytes) -> RebalanceEvent | RebalanceChange:
    """Read an event of either form; raises as `RebalanceEvent.from_json` does."""
    # Inside of a JSON text the quotes would be escaped, so this can only be the name of a field.
    if b'"follows":' in line:
        return _CHANGES.decode(line)
    return RebalanceEvent.from_json(line)


class EventWriter:
    """Writes one member's events: as changes where it can, whole where it must."""

    def __init__(self, whole_every: int = WHOLE_EVERY) -> None:
        self._whole_every = whole_every
        self._last: dict[str, RebalanceEvent] = {}
        self._changes: dict[str, int] = {}  # by topic, since its last whole event

    def written(self, event: RebalanceEvent) -> bytes:
        """Return an event as JSON."""
        topic = event.topic
        last = self._last.get(topic)
        self._last[topic] = event
        count = self._changes.get(topic, 0) + 1
        if last is not None and count < self._whole_every:
            change = RebalanceChange.between(last, event)
            if change is not None:
                self._changes[topic] = count
                return msgspec.json.encode(change)
        self._changes[topic] = 0
        return event.to_json()

    def lost(self, event: RebalanceEvent) -> None:
        """Note that an event did not reach its readers: the next of its topic is whole."""
        self._last.pop(event.topic, None)


def _put(queues: _Queues, more: _Queues, fewer: _Queues) -> _Queues:
    if not (more or fewer):
        return queues
    return tuple(sort_queues({*queues, *more}.difference(fewer)))


def _differences(last: Collection[T] | None, now: Collection[T] | None) -> tuple[set[T], set[T]]:
    """Return what came and what went."""
    before, after = set(last or ()), set(now or ())
    return after - before, before - after
