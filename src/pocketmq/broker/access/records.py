"""Requests that name a record by its place in the commit log: the record's own topic decides.

Whatever topic such a request names, the place may be that of any other record.
"""

from collections.abc import Callable
from typing import Protocol

from pocketmq.broker.access.needs import PUB, UPDATE, Need, topic_resource
from pocketmq.broker.access.rules import Action
from pocketmq.errors import InvalidInput
from pocketmq.model import properties as names
from pocketmq.model.names import HALF_TOPIC, TRANSACTION_GAVE_UP_TOPIC, is_system_topic
from pocketmq.protocol.command import Command
from pocketmq.protocol.header import read_int64
from pocketmq.protocol.message_ids import parse_offset_id
from pocketmq.protocol.property_text import find_property
from pocketmq.protocol.record_scan import RecordView
from pocketmq.store import QueueIndex


class Records(Protocol):
    """What is asked of a store; `MessageStore` has it."""

    def record_at(self, position: int) -> bytes | None:
        """Give the record that begins at a position of the log, if one does."""
        ...

    def queue(self, topic: str, queue_id: int) -> QueueIndex | None:
        """Give a queue, if there is one."""
        ...


def at_offset(key: str) -> Callable[[Command], int | None]:
    """Return what reads a place from a field."""
    return lambda request: read_int64(request.ext.get(key, ""))


def at_message_id(request: Command) -> int | None:
    """Read a place from a message's offset id."""
    try:
        return parse_offset_id(request.ext.get("msgId", "")).commit_log_offset
    except InvalidInput:
        return None


def needs_on_record(
    records: Records, position: int, actions: tuple[Action, ...]
) -> list[Need] | None:
    """Give what is needed on the topic of the record at a position; nothing if there is none.

    A message's body can look like a record that reaches into the next ones. So a record counts
    only if its queue has it at that position. None for any other: only super users may read it,
    not those with a rule for all topics, whom another rule may deny the topic it reaches into.
    """
    found = records.record_at(position) if position >= 0 else None
    if found is None:
        return []
    record = RecordView(found, 0)
    topic = record.topic_bytes.decode("utf-8", "replace")
    queue = records.queue(topic, record.queue_id)
    if queue is None or queue.position(record.queue_offset) != position:
        return None
    real = find_property(record.property_bytes, names.REAL_TOPIC.encode())
    if topic in _HALF and real is not None and actions in _PRODUCERS:
        return [Need(topic_resource(real.decode("utf-8", "replace")), actions)]
    needs = [Need(topic_resource(topic), actions)]
    if is_system_topic(topic) and real is not None:  # it waits there for its time
        needs.append(Need(topic_resource(real.decode("utf-8", "replace")), actions))
    return needs


_HALF = (HALF_TOPIC, TRANSACTION_GAVE_UP_TOPIC)
_PRODUCERS = (PUB, UPDATE)
"""What producers do, and who manages their topic: neither has a right on the topics above."""
