"""Rows of `java-producer.jsonl`: what RocketMQ's own classes do, written by `ProducerVectors.java`."""

import functools
from pathlib import Path
from typing import Any

import msgspec

from pocketmq.balance.profile import V4, V5, Profile
from pocketmq.model import MessageQueue

TOPIC = "T"
PROFILES: dict[str, Profile] = {"4.x": V4, "5.x": V5}

Row = dict[str, Any]


@functools.cache
def _all_rows() -> tuple[Row, ...]:
    path = Path(__file__).parents[2] / "vectors" / "java-producer.jsonl"
    return tuple(msgspec.json.decode(line) for line in path.read_bytes().splitlines())


def rows(kind: str) -> list[Row]:
    """Return the rows of one kind, of both client lines."""
    return [row for row in _all_rows() if row["kind"] == kind]


def queues_of(brokers: list[tuple[str, int]]) -> list[MessageQueue]:
    """Name the queues of a route with these brokers and counts."""
    return [MessageQueue(TOPIC, broker, i) for broker, count in brokers for i in range(count)]


def named(queue: MessageQueue) -> list[Any]:
    """Return a queue as the rows have it."""
    return [queue.broker_name, queue.queue_id]
