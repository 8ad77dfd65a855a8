"""What one connection makes its server hold in memory, and how fast its peer moves bytes.

These are the figures by which `budget` decides. Belongs to the connection's event loop. It refers
to its connection until `release`, which ends the reference cycle between the two.
"""

from typing import TYPE_CHECKING

from pocketmq.net.inbox import Inbox
from pocketmq.net.outbox import Outbox
from pocketmq.protocol.frame import FrameReader

if TYPE_CHECKING:
    from pocketmq.net.budget import MemoryBudget
    from pocketmq.net.connection import Connection

SMALL_FRAME = 64 * 1024
"""A frame up to this size is read whatever the pressure."""


class HeldMemory:
    """The memory that a server holds for one connection, as its budget counts it."""

    __slots__ = (
        "_connection", "_inbox", "_outbox", "_reader", "budget", "counted", "frame", "frame_at",
        "frame_mark", "granted", "mark", "marked_at", "paused", "unsent",
    )  # fmt: skip

    def __init__(
        self,
        budget: "MemoryBudget",
        connection: "Connection",
        reader: FrameReader,
        inbox: Inbox,
        outbox: Outbox,
    ) -> None:
        self.budget = budget
        self.counted = False  # whether the budget counts anything for this connection
        self.frame = 0  # bytes read and not handed over, as last counted
        self.unsent = 0  # bytes of answers not taken yet, as last counted
        self.granted = False  # may read on under pressure
        self.paused = False  # must not read on until there is memory
        self.mark = 0  # bytes moved when the present window began
        self.marked_at = 0.0
        self.frame_mark = 0  # the same for the unfinished frame
        self.frame_at = 0.0
        self._connection = connection
        self._reader = reader
        self._inbox = inbox
        self._outbox = outbox

    # What the connection calls

    def update(self, *, finished: bool = False) -> None:
        """Report to the budget what is held now; `finished`: a frame was completed by this read."""
        frame, unsent = self._reader.buffered + self._inbox.size, self._outbox.unsent
        if frame or unsent or self.counted:
            self.counted = bool(frame or unsent)
            self.budget.note(self, frame, unsent, finished=finished)

    def move_to(self, budget: "MemoryBudget") -> None:
        """Count for another budget from now on."""
        before, self.budget = self.budget, budget
        if before is not budget:
            before.forget(self)
            self.update()

    def release(self) -> None:
        """Count for nothing any more, and let go of the connection."""
        self.budget.forget(self)
        self.counted = False
        del self._connection

    # What the budget asks

    @property
    def size(self) -> int:
        """Bytes held in all, as last counted."""
        return self.frame + self.unsent

    @property
    def read_bytes(self) -> int:
        """Bytes that were read and are not handed over yet."""
        return self._reader.buffered + self._inbox.size

    @property
    def unsent_bytes(self) -> int:
        """Bytes of answers that the peer has not taken yet."""
        return self._outbox.unsent

    @property
    def is_large_frame(self) -> bool:
        """Whether the unfinished frame is not a small one."""
        return self._reader.wanted > SMALL_FRAME and not self._connection.closed

    @property
    def awaits_frame(self) -> bool:
        """Whether a frame has begun and this side reads the rest as it comes."""
        return self._reader.buffered > 0 and not self._inbox.deaf

    @property
    def awaits_peer(self) -> bool:
        """Whether the peer must act next: take answers, or send the rest of a frame."""
        return bool(self.unsent) or (self.awaits_frame and not self.paused)

    @property
    def missing(self) -> int:
        """Bytes that the unfinished frame lacks."""
        return self._reader.missing

    @property
    def taken(self) -> int:
        """Bytes that the peer has taken so far."""
        return self._outbox.taken

    @property
    def received(self) -> int:
        """Bytes that the peer has sent so far."""
        return self._connection.received

    @property
    def moved(self) -> int:
        """Bytes that went either way so far."""
        return self._connection.received + self._outbox.taken

    def pause_reading(self, paused: bool) -> None:  # noqa: FBT001 - a switch
        """Stop reading for lack of memory, or read on."""
        self.paused = paused
        self._inbox.starved = paused
        self._inbox.steer_reading(self._connection)

    def resume_requests(self) -> None:
        """Hand over requests that were put back: there is memory for their answers."""
        self._connection.resume_requests()

    def cut_off(self, reason: str) -> None:
        """Abort the connection, and log why."""
        self._connection.cut_off(reason)
