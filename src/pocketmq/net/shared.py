"""What all connections of one server or dialer have in common."""

from dataclasses import dataclass, field

from pocketmq.net.budget import MemoryBudget
from pocketmq.net.limits import Limits
from pocketmq.protocol.command import OpaqueCounter

_READ = 256 * 1024


def _room() -> memoryview:
    return memoryview(bytearray(_READ))


@dataclass(slots=True)
class Shared:
    """Belongs to one event loop."""

    limits: Limits
    budget: MemoryBudget | None = None
    """Memory for the peers of a server; a client chooses its own peers and has none."""
    strangers: MemoryBudget | None = None
    """The part of it for peers that have not authenticated, if they have to."""
    opaque: OpaqueCounter = field(default_factory=OpaqueCounter)
    room: memoryview = field(default_factory=_room)
    """Where every read goes first. One is enough, as a read is handled before the next is made;
    letting asyncio allocate as much for each small read costs it more than all the rest."""
