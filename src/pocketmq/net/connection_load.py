"""How loaded a connection is, as its owner sees it: what is unsent, what waits, what memory allows.

Owns nothing: it asks the parts of a connection. Belongs to the connection's event loop.
"""

from pocketmq.net.held_memory import HeldMemory
from pocketmq.net.inbox import Inbox
from pocketmq.net.outbox import Outbox
from pocketmq.net.shared import Shared
from pocketmq.net.watch import ConnectionWatch


class ConnectionLoad:
    """The part of a connection that tells its owner when to do less for the peer."""

    __slots__ = ()

    _outbox: Outbox
    _inbox: Inbox
    _memory: HeldMemory | None
    _shared: Shared
    _watch: ConnectionWatch
    _resumed_at: float

    @property
    def unsent(self) -> int:
        """Bytes the peer has not taken yet."""
        return self._outbox.unsent

    @property
    def clogged(self) -> bool:
        """Whether more than `limits.write_high` bytes are unsent.

        New requests wait by themselves then. Check this before writing answers that were held.
        """
        return self._outbox.clogged

    @property
    def crowded(self) -> bool:
        """Whether no large answer should be made for this peer now; see `put_back`."""
        memory, outbox = self._memory, self._outbox
        if memory is None or not memory.budget.tight:
            return outbox.clogged
        return bool(outbox.unsent) or memory.budget.used >= memory.budget.limit

    @property
    def pressed(self) -> bool:
        """Whether answers should be no larger than they have to be."""
        return self._memory is not None and self._memory.budget.tight

    def trust(self) -> None:
        """Note that the peer has authenticated: its memory counts with that of trusted peers."""
        if self._memory is not None and self._shared.budget is not None:
            self._memory.move_to(self._shared.budget)

    @property
    def waiting(self) -> int:
        """Requests that were read and are not handed over yet."""
        return len(self._inbox)

    @property
    def waiting_since(self) -> float:
        """Since when, by the loop's clock, what is handed over now could have been.

        While the peer itself does not take its answers, its requests do not count as waiting.
        """
        return max(self._watch.last_read, self._resumed_at)

    @property
    def last_read(self) -> float:
        """When the last byte came from the peer, by the loop's clock."""
        return self._watch.last_read
