"""A group while one event is worked in: a scratch pad that no one else sees."""

from math import inf

from msgspec.structs import replace

from pocketmq.balance.consumer.instructions import Instruction
from pocketmq.balance.handover.events import Part
from pocketmq.balance.handover.group import Advanced, HandoverGroup, OpenClaim, Target
from pocketmq.balance.handover.instructions import Warn
from pocketmq.balance.handover.settings import HandoverSettings
from pocketmq.balance.handover.stay import Stay, Step
from pocketmq.balance.handover.table import Table
from pocketmq.model import MessageQueue


class Draft:
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
        self.renewing: dict[str, frozenset[tuple[MessageQueue, Part]]] = dict(group.renewing)
        self.queues = group.queues
        self.absent: dict[MessageQueue, float] = group.absent
        self.started = group.started
        self.ready = group.ready
        self.twin = group.twin
        self.double = group.double
        self.later = group.later
        self.stop_at = group.stop_at
        self.left = group.left
        self.down = group.down
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
        self.voice_at = group.voice_at
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
        """Decide once all events of this turn of the loop are in."""
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
            twin=self.twin,
            double=self.double,
            later=self.later,
            stop_at=self.stop_at,
            left=self.left,
            down=self.down,
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
            voice_at=self.voice_at,
            wake_at=wake_at,
        )
        return Advanced(group, tuple(self.instructions))
