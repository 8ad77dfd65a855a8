"""A member's view of its group's balance: who shall own which queue, and how far that is."""

from enum import Enum

import msgspec

from pocketmq.model.queue import MessageQueue


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
