"""Allocation: which member of a consumer group consumes which queue of a topic.

The same answers as Java's strategies, computed by every member for itself. `allocate` is the way
in; strategies are values, made directly or by `strategy_by_name`.
"""

from pocketmq.balance.allocation.average import Average, AverageByCircle
from pocketmq.balance.allocation.consistent_hash import (
    ConsistentHash,
    HashFunction,
    md5_hash,
    md5_hashes,
    md5_nodes,
)
from pocketmq.balance.allocation.machine_room import (
    MachineRoom,
    MachineRoomNearby,
    RoomInName,
    RoomResolver,
    RoomTable,
)
from pocketmq.balance.allocation.registry import (
    STRATEGY_NAMES,
    StrategySettings,
    by_position,
    strategy_by_name,
)
from pocketmq.balance.allocation.strategy import (
    AllocationFunction,
    Configured,
    MemberUnknown,
    OwnRule,
    Strategy,
    allocate,
)

__all__ = [
    "STRATEGY_NAMES",
    "AllocationFunction",
    "Average",
    "AverageByCircle",
    "Configured",
    "ConsistentHash",
    "HashFunction",
    "MachineRoom",
    "MachineRoomNearby",
    "MemberUnknown",
    "OwnRule",
    "RoomInName",
    "RoomResolver",
    "RoomTable",
    "Strategy",
    "StrategySettings",
    "allocate",
    "by_position",
    "md5_hash",
    "md5_hashes",
    "md5_nodes",
    "strategy_by_name",
]
