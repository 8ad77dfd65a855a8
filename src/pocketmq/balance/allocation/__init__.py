"""Allocation: which member of a consumer group consumes which queue of a topic.

The same answers as Java's strategies, computed by every member for itself. `allocate` is the way
in; strategies are values, made directly or by `balance.strategies.strategy_by_name`. STICKY, which
Java does not have, is in `balance.sticky`; here is only what such a strategy is: `GroupStrategy`.
"""

from pocketmq.balance.allocation.average import Average, AverageByCircle
from pocketmq.balance.allocation.consistent_hash import (
    ConsistentHash,
    HashFunction,
    md5_hash,
    md5_hashes,
    md5_joined,
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
    JAVA_STRATEGY_NAMES,
    StrategySettings,
    by_position,
    java_strategy_by_name,
)
from pocketmq.balance.allocation.strategy import (
    AllocationFunction,
    Configured,
    GroupStrategy,
    MemberUnknown,
    OwnRule,
    Strategy,
    allocate,
    check_input,
    is_group_strategy,
    may_own,
)

__all__ = [
    "JAVA_STRATEGY_NAMES",
    "AllocationFunction",
    "Average",
    "AverageByCircle",
    "Configured",
    "ConsistentHash",
    "GroupStrategy",
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
    "check_input",
    "is_group_strategy",
    "java_strategy_by_name",
    "may_own",
    "md5_hash",
    "md5_hashes",
    "md5_joined",
    "md5_nodes",
]
