"""A member's view of its group's balance: who shall own which queue, and how far that is.

Owns the form in which a member reports the stages of its queues to operators.
"""

from collections.abc import Mapping
from enum import Enum

import msgspec

from pocketmq.model.queue import MessageQueue

LONGEST_STAGES = 4 << 20
"""The largest text of stages that is read, in characters; 10 000 queues take a tenth of it."""

HANDOVER_MARK = "@pm"


class BalanceMode(Enum):
    """How the members of a group share queues."""

    JAVA = "java"
    """Each decides alone by a Java strategy; queues change hands as in Java."""
    STICKY = "sticky"
    """All members hand queues over without messages twice, and move the fewest."""
    MIXED = "mixed"
    """Foreign members keep their shares by a Java strategy; ours divide the rest."""


class QueueStage(Enum):
    """Where a queue is on its way to this member, or from it."""

    WANTED = "wanted"
    """It is to be this member's; another one has it, or its locks are not granted yet."""
    CLAIMED = "claimed"
    """Its owner was asked for it."""
    TAKING = "taking"
    """Its locks are asked for, or its offset is read."""
    RUNNING = "running"
    """Messages are pulled and handled."""
    BEHIND_BARRIER = "behind barrier"
    """Messages are handled, but nothing is committed before the giver has finished."""
    FILLING_HOLE = "filling hole"
    """The giver is gone; this member handles what it left unfinished."""
    DRAINING = "draining"
    """No message is started any more; those in flight are finished."""
    FENCED = "fenced"
    """The lease is in doubt: nothing is started or committed."""


class GroupBalance(msgspec.Struct, frozen=True, kw_only=True):
    """The balance of a group as one member sees it."""

    group: str
    client_id: str
    strategy: str
    mode: BalanceMode
    reason: str = ""
    """Why the mode is not `sticky` although the strategy is STICKY."""
    members: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    """Those that do not speak the hand-over protocol."""
    target: dict[MessageQueue, str] = {}
    """The owner that each queue is to have; empty where it is not known."""
    owners: dict[MessageQueue, str] = {}
    """The owner of each queue as far as members told."""
    stages: dict[MessageQueue, QueueStage] = {}
    """The queues of this member, and those on their way to it."""


def handover_version(client_id: str) -> int | None:
    """Return the version of the hand-over protocol that a client id is marked with; None if none.

    Ids of members that hand queues over end in `@pm` and the version; all others are foreign.
    """
    _, mark, version = client_id.rpartition(HANDOVER_MARK)
    known = bool(mark) and version.isascii() and version.isdigit() and len(version) < 10
    return int(version) if known else None


_STAGES = {stage.value: stage for stage in QueueStage}
_TEXTS = msgspec.json.Decoder(dict[str, str])


def stages_text(stages: Mapping[MessageQueue, QueueStage]) -> str:
    """Write stages as JSON: an object of `topic@broker:queue id` and the stage's value."""
    named = {
        f"{queue.topic}@{queue.broker_name}:{queue.queue_id}": stage.value
        for queue, stage in stages.items()
    }
    return msgspec.json.encode(named).decode()


def stages_read(text: str) -> dict[MessageQueue, QueueStage] | None:
    """Read what `stages_text` wrote; None if it is malformed or too long.

    Stages that a later version has added are left out.
    """
    if len(text) > LONGEST_STAGES:
        return None
    try:
        named = _TEXTS.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    stages = {}
    for name, value in named.items():
        topic, _, place = name.partition("@")
        broker, _, number = place.rpartition(":")
        if not (topic and broker and number.isascii() and number.isdigit() and len(number) < 11):
            return None
        stage = _STAGES.get(value)
        if stage is not None:
            stages[MessageQueue(topic, broker, int(number))] = stage
    return stages
