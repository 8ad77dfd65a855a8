"""One rebalance as its member reports it: the event that clients record and pipelines read.

Owns the form of an event. `RebalanceEvent.version` says which form it is; fields are only ever
added to it. Version 2 tells of hand-overs.
"""

import msgspec

from pocketmq.model.queue import MessageQueue

EVENT_VERSION = 2


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
