"""What all connections of one server or dialer have in common."""

from dataclasses import dataclass, field

from pocketmq.net.limits import Limits
from pocketmq.protocol.command import OpaqueCounter

_READ = 256 * 1024


def _room() -> memoryview:
    return memoryview(bytearray(_READ))


@dataclass(frozen=True, slots=True)
class Shared:
    """Belongs to one event loop."""

    limits: Limits
    opaque: OpaqueCounter = field(default_factory=OpaqueCounter)
    room: memoryview = field(default_factory=_room)
    """Where every read goes first. One is enough, as a read is handled before the next is made;
    letting asyncio allocate as much for each small read costs it more than all the rest."""
