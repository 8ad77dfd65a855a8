"""Java's strategies by name. `balance.strategies` knows all, STICKY included."""

import msgspec

from pocketmq.balance.allocation import machine_room
from pocketmq.balance.allocation.average import Average, AverageByCircle
from pocketmq.balance.allocation.consistent_hash import JAVA_VIRTUAL_NODES, ConsistentHash
from pocketmq.balance.allocation.strategy import Configured, Strategy
from pocketmq.errors import AllocationInputInvalid, StrategyUnknown
from pocketmq.model import MessageQueue

NEARBY = "MACHINE_ROOM_NEARBY"
_PLAIN_NAMES = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "CONFIG", "MACHINE_ROOM")
JAVA_STRATEGY_NAMES = (*_PLAIN_NAMES, *(f"{NEARBY}-{name}" for name in _PLAIN_NAMES))


class StrategySettings(msgspec.Struct, frozen=True):
    """Settings that some strategies need; the others ignore them."""

    virtual_nodes: int = JAVA_VIRTUAL_NODES
    rooms: frozenset[str] = frozenset()
    resolver: machine_room.RoomResolver = machine_room.RoomInName()
    queues: tuple[MessageQueue, ...] = ()
    mixed: str = "AVG"
    """STICKY: the strategy of foreign members, which do not know STICKY."""


_NO_SETTINGS = StrategySettings()


def java_strategy_by_name(
    name: str,
    settings: StrategySettings = _NO_SETTINGS,
    known: tuple[str, ...] = JAVA_STRATEGY_NAMES,
) -> Strategy:
    """Return the strategy with the name that Java's `getName()` returns; case does not matter.

    `MACHINE_ROOM_NEARBY` alone stands for `MACHINE_ROOM_NEARBY-AVG`. Raises `StrategyUnknown`,
    which offers the `known` names, and `AllocationInputInvalid` for MACHINE_ROOM without rooms or a
    negative number of nodes.
    """
    wanted = name.upper()
    if wanted == NEARBY:
        return machine_room.MachineRoomNearby(Average(), settings.resolver)
    inner_name = wanted.removeprefix(NEARBY + "-")
    if inner_name not in _PLAIN_NAMES:
        raise StrategyUnknown(name, known, _nearest(wanted, known))
    inner = _plain(inner_name, settings)
    return (
        inner if inner_name == wanted else machine_room.MachineRoomNearby(inner, settings.resolver)
    )


def _plain(name: str, settings: StrategySettings) -> Strategy:
    match name:
        case "AVG":
            return Average()
        case "AVG_BY_CIRCLE":
            return AverageByCircle()
        case "CONSISTENT_HASH":
            return ConsistentHash(settings.virtual_nodes)
        case "CONFIG":
            return Configured(settings.queues)
        case _:
            if not settings.rooms:
                raise AllocationInputInvalid(
                    "MACHINE_ROOM needs `rooms`: the machine rooms whose queues are allocated"
                )
            return machine_room.MachineRoom(settings.rooms)


def _nearest(name: str, known: tuple[str, ...]) -> str | None:
    from difflib import get_close_matches  # slow to import, and only mistakes need it

    matches = get_close_matches(name[:100], known, n=1)
    return matches[0] if matches else None


def by_position(strategy: Strategy) -> bool:
    """Return whether shares depend only on brokers, queue ids and the members' positions.

    Groups that differ in the names of topics and members alone then have equal shares.
    """
    return isinstance(strategy, Average | AverageByCircle | machine_room.MachineRoom)
