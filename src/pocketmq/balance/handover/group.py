"""The values of a member's side of the hand-over, and a scratch pad of them for one event.

`GroupDraft` is a group while one event is worked in; no one else sees it. `finish` makes a
value of it again, with what is to be done.
"""

from math import inf

import msgspec
from msgspec.structs import replace

from pocketmq.balance.consumer.instructions import Instruction
from pocketmq.balance.handover.events import LockPart
from pocketmq.balance.handover.instructions import Warn
from pocketmq.balance.handover.settings import HandoverSettings
from pocketmq.balance.handover.stay import Stay, Step
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
    earlier_at: float | None = None
    """When a process was heard that had this client id before this one; None: there is none."""
    id_taken: bool = False
    """That process is still listed: this one takes no queue."""
    later_boots: frozenset[str] = frozenset()
    """Boots of processes with this client id that came after this one."""
    stop_at: float | None = None
    """When the rest is released; None while the member is not stopping."""
    unheard: frozenset[str] = frozenset()
    """Buses that have not brought back the goodbye of a member that the others shall wait for."""
    bye_at: float = 0.0
    """When to say it there again."""
    left: bool = False
    down: dict[str, float] = {}
    """Brokers whose connection closed, with the time; until a renewal is answered."""
    unanswered: dict[str, float] = {}
    """Brokers that do not answer requests, with the time of the first that was not answered."""
    lost: frozenset[str] = frozenset()
    """Those of them that others are told of."""
    found: dict[str, float] = {}
    """Brokers that answer again, with the time; for a while."""
    shown_at: float = float("-inf")
    """When a list of members showed this one last."""
    renewing: dict[str, frozenset[tuple[MessageQueue, LockPart]]] = {}
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
    notice_at: float = float("-inf")
    """When a member was heard last that calls for another list."""
    wake_at: float | None = None

    def __hash__(self) -> int:
        return hash((self.settings, self.queues, frozenset(self.stays.items()), self.table.listed))


class Advanced(msgspec.Struct, frozen=True):
    """A group after an event, and what to do."""

    group: HandoverGroup
    instructions: tuple[Instruction, ...]


class GroupDraft:
    """The next group, and what to do; `finish` makes values of it."""

    def __init__(self, group: HandoverGroup, now: float) -> None:
        self.group = group
        self.now = now
        self.settings: HandoverSettings = group.settings
        self.table: Table = group.table
        self.target: Target = group.target
        self.stays: dict[MessageQueue, Stay] = dict(group.stays)
        self.claims: dict[MessageQueue, OpenClaim] = dict(group.claims)
        self.hold_off: dict[MessageQueue, float] = group.hold_off
        self.renewing: dict[str, frozenset[tuple[MessageQueue, LockPart]]] = dict(group.renewing)
        self.queues = group.queues
        self.absent: dict[MessageQueue, float] = group.absent
        self.started = group.started
        self.ready = group.ready
        self.earlier_at = group.earlier_at
        self.id_taken = group.id_taken
        self.later_boots = group.later_boots
        self.stop_at = group.stop_at
        self.unheard = group.unheard
        self.bye_at = group.bye_at
        self.left = group.left
        self.down = group.down
        self.unanswered = group.unanswered
        self.lost = group.lost
        self.found = group.found
        self.shown_at = group.shown_at
        self.greeted = group.greeted
        self.state_number = group.state_number
        self.claim_number = group.claim_number
        self.tell_table = group.tell_table
        self.tell_at = group.tell_at
        self.decide_at = group.decide_at
        self.beacon_at = group.beacon_at
        self.renew_at = group.renew_at
        self.listed_at = group.listed_at
        self.ask_at = group.ask_at
        self.notice_at = group.notice_at
        self.touched: set[MessageQueue] = set()
        self.instructions: list[Instruction] = []

    @property
    def stopping(self) -> bool:
        """Whether the application closes the member."""
        return self.stop_at is not None

    @property
    def brokers(self) -> list[str]:
        """The brokers of all queues, in a fixed order."""
        return sorted({queue.broker_name for queue in self.queues})

    def back_at(self, broker: str) -> float:
        """Return from when a broker may be asked for locks; `inf`: not before a list comes.

        That its connection is back may go unnoticed. But a member that no list shows is taken for
        gone, and its locks are freed: it must not go on before it is listed.
        """
        lost = self.down.get(broker)
        if lost is None:
            return self.now
        return lost + self.settings.times.renew_every if self.shown_at > lost else inf

    def add(self, *instructions: Instruction) -> None:
        """Do these next."""
        self.instructions.extend(instructions)

    def warn(self, text: str) -> None:
        """Let an operator know."""
        self.add(Warn(text))

    def apply(self, queue: MessageQueue, step: Step) -> None:
        """Carry on with a queue's next value, and do what it says."""
        self.touched.add(queue)
        if step.stay is None:
            self.stays.pop(queue, None)
        else:
            self.stays[queue] = step.stay
        self.instructions.extend(step.instructions)

    def decide_soon(self) -> None:
        """Decide once all events of this iteration of the event loop are in."""
        # Never later than planned: events without a pause must not put decisions off for good.
        if self.decide_at is None or self.decide_at > self.now:
            self.decide_at = self.now

    def ask_soon(self, at: float) -> None:
        """Ask for the members at this time, or earlier if that was planned."""
        self.ask_at = at if self.ask_at is None else min(self.ask_at, at)

    def tell_soon(self, at: float) -> None:
        """Report the state at this time, or earlier if that was planned."""
        self.tell_at = at if self.tell_at is None else min(self.tell_at, at)

    def finish(self, wake_at: float | None) -> Advanced:
        """Return the next group and the instructions."""
        group = replace(
            self.group,
            table=self.table,
            target=self.target,
            stays=self.stays,
            claims=self.claims,
            hold_off=self.hold_off,
            renewing=self.renewing,
            queues=self.queues,
            absent=self.absent,
            started=self.started,
            ready=self.ready,
            earlier_at=self.earlier_at,
            id_taken=self.id_taken,
            later_boots=self.later_boots,
            stop_at=self.stop_at,
            unheard=self.unheard,
            bye_at=self.bye_at,
            left=self.left,
            down=self.down,
            unanswered=self.unanswered,
            lost=self.lost,
            found=self.found,
            shown_at=self.shown_at,
            greeted=self.greeted,
            state_number=self.state_number,
            claim_number=self.claim_number,
            tell_table=self.tell_table,
            tell_at=self.tell_at,
            decide_at=self.decide_at,
            beacon_at=self.beacon_at,
            renew_at=self.renew_at,
            listed_at=self.listed_at,
            ask_at=self.ask_at,
            notice_at=self.notice_at,
            wake_at=wake_at,
        )
        return Advanced(group, tuple(self.instructions))
