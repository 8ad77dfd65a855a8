"""Allocations computed by RocketMQ's own classes, computed again.

`java-allocation.jsonl` was made with consumeridcs {room0, room2} for MACHINE_ROOM, and for NEARBY
with AVG inside and the room before the first `@` of broker names and member ids.
`java-allocation-more.jsonl` comes from `java/AllocationVectors.java`, run on RocketMQ 5.5.0 and
4.9.7 with equal results; each of its lines says its own settings.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pocketmq.balance import allocation
from pocketmq.errors import AllocationInputInvalid
from pocketmq.model import MessageQueue, sort_queues
from pocketmq.model.java_strings import java_hash, java_sorted

VECTORS = Path(__file__).parent.parent / "vectors"
EXPECTED_COUNTS = {
    "java-allocation.jsonl": {
        "AVG": 1000,
        "AVG_BY_CIRCLE": 1000,
        "CONSISTENT_HASH": 1000,
        "MACHINE_ROOM": 1000,
        "NEARBY": 1000,
    },
    "java-allocation-more.jsonl": {
        "AVG": 393,
        "AVG_BY_CIRCLE": 393,
        "CONSISTENT_HASH": 558,
        "CONFIG": 83,
        "MACHINE_ROOM": 225,
        "MACHINE_ROOM_NEARBY-AVG": 178,
        "MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE": 178,
        "MACHINE_ROOM_NEARBY-CONSISTENT_HASH": 228,
        "MACHINE_ROOM_NEARBY-CONFIG": 49,
    },
}


def strategies(line: dict[str, Any]) -> dict[str, allocation.Strategy]:
    """Make the strategies with a line's settings."""
    config = tuple(MessageQueue(line["topic"], *queue) for queue in line.get("config", ()))
    place = java_hash if line.get("hash") == "hashCode" else allocation.md5_hash
    ring = allocation.ConsistentHash(line.get("virtualNodes", 10), place)
    plain: list[allocation.Strategy] = [
        allocation.Average(),
        allocation.AverageByCircle(),
        ring,
        allocation.Configured(config),
    ]
    nearby = [allocation.MachineRoomNearby(inner, allocation.RoomInName()) for inner in plain]
    rooms = allocation.MachineRoom(frozenset(line.get("rooms", {"room0", "room2"})))
    by_name = {strategy.name: strategy for strategy in [*plain, *nearby, rooms]}
    return by_name | {"NEARBY": nearby[0]}


@pytest.mark.parametrize("file", EXPECTED_COUNTS)
def test_every_line_of_java_is_computed_equally(file: str) -> None:
    checked: Counter[str] = Counter()
    for number, text in enumerate((VECTORS / file).read_text().splitlines(), 1):
        line = json.loads(text)
        queues = [MessageQueue(line["topic"], *queue) for queue in line["mqs"]]
        for name, strategy in strategies(line).items():
            if name not in line:
                continue
            where = f"{file} line {number} {name}"
            checked[name] += 1
            if isinstance(line[name], dict):
                with pytest.raises(AllocationInputInvalid):
                    allocation.allocate(strategy, "g", line["cid"], queues, line["cids"])
                continue
            share = allocation.allocate(strategy, "g", line["cid"], queues, line["cids"])
            assert [[q.broker_name, q.queue_id] for q in share] == line[name], where
            if "CONFIG" not in name and line["cid"] in line["cids"]:
                ordered = sort_queues(queues)
                owners = strategy.allocate_all(ordered, java_sorted(line["cids"]))
                owned = [
                    q for q, owner in zip(ordered, owners, strict=True) if owner == line["cid"]
                ]
                assert set(owned) == set(share), where
    assert dict(checked) == EXPECTED_COUNTS[file]
