"""Allocation: which member of a consumer group consumes which queue of a topic.

The same answers as Java's strategies, computed by every member for itself. `allocate` is the way
in; strategies are values, made directly or by `balance.strategies.strategy_by_name`. STICKY, which
Java does not have, is in `balance.sticky`; here is only what such a strategy is: `GroupStrategy`.
"""

from pocketmq.balance.allocation.average import Average, AverageByCircle
from pocketmq.balance.allocation.consistent_hash import ConsistentHash, md5_hash
from pocketmq.balance.allocation.machine_room import (
    MachineRoom,
    MachineRoomNearby,
    RoomInName,
    RoomTable,
)
from pocketmq.balance.allocation.registry import (
    JAVA_STRATEGY_NAMES,
    StrategySettings,
    java_strategy_by_name,
)
from pocketmq.balance.allocation.strategy import (
    Configured,
    GroupStrategy,
    MemberUnknown,
    OwnRule,
    Strategy,
    allocate,
    is_group_strategy,
)

__all__ = [
    "JAVA_STRATEGY_NAMES",
    "Average",
    "AverageByCircle",
    "Configured",
    "ConsistentHash",
    "GroupStrategy",
    "MachineRoom",
    "MachineRoomNearby",
    "MemberUnknown",
    "OwnRule",
    "RoomInName",
    "RoomTable",
    "Strategy",
    "StrategySettings",
    "allocate",
    "is_group_strategy",
    "java_strategy_by_name",
    "md5_hash",
]
