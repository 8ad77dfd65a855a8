"""The values of a member's side of the hand-over, and what is reported of them."""

import msgspec

from pocketmq.balance.consumer.instructions import Instruction
from pocketmq.balance.handover.events import Part
from pocketmq.balance.handover.settings import HandoverSettings
from pocketmq.balance.handover.stay import Stay
from pocketmq.balance.handover.table import Table
from pocketmq.model import MessageQueue


class OpenClaim(msgspec.Struct, frozen=True):
    """A claim of another member that was not answered yet."""

    heir: str
    number: int
    at: float


class Target(msgspec.Struct, frozen=True):
    """The owner that each queue is to have, and what it was computed from."""

    owners: dict[MessageQueue, str] = {}
    foreign: dict[MessageQueue, str] = {}
    """The shares of foreign members, which are part of `owners`."""
    members: tuple[str, ...] = ()
    inputs: tuple[object, ...] | None = None
    minimum: int = 0
    """How many queues had to move when it was computed."""


class HandoverGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A member's view of its group, and the queues it has; hashable, and never changed in place."""

    settings: HandoverSettings
    table: Table = Table()
    queues: frozenset[MessageQueue] = frozenset()
    absent: dict[MessageQueue, float] = {}
    """Queues that lost their route, with the time until which they keep their owners."""
    stays: dict[MessageQueue, Stay] = {}
    claims: dict[MessageQueue, OpenClaim] = {}
    target: Target = Target()
    started: float | None = None
    ready: bool = False
    """Whether the member knows the others' queues, and may take and claim some."""
    twin: float | None = None
    """When another process was heard that had this client id before this one."""
    double: bool = False
    """That process is listed: this one takes nothing."""
    later: frozenset[str] = frozenset()
    """Boots of processes with this client id that came after this one."""
    stop_at: float | None = None
    """When the rest is released; None while the member is not stopping."""
    left: bool = False
    down: dict[str, float] = {}
    """Brokers whose connection closed, with the time; until a renewal is answered."""
    shown_at: float = float("-inf")
    """When a list of members showed this one last."""
    renewing: dict[str, frozenset[tuple[MessageQueue, Part]]] = {}
    hold_off: dict[MessageQueue, float] = {}
    """Queues that a foreign member had, with the time from which they may be taken."""
    greeted: frozenset[str] = frozenset()
    """Brokers on whose bus the member has said hello."""
    state_number: int = 0
    claim_number: int = 0
    tell_table: bool = False
    tell_at: float | None = None
    decide_at: float | None = None
    beacon_at: float = 0.0
    renew_at: float = 0.0
    listed_at: float = float("-inf")
    """When the list of members was asked for last."""
    ask_at: float | None = None
    """When to ask for it again; None: with the next beacon."""
    voice_at: float = float("-inf")
    """When a member was heard last that calls for another list."""
    wake_at: float | None = None

    def __hash__(self) -> int:
        return hash((self.settings, self.queues, frozenset(self.stays.items()), self.table.listed))


class Advanced(msgspec.Struct, frozen=True):
    """A group after an event, and what to do."""

    group: HandoverGroup
    instructions: tuple[Instruction, ...]
