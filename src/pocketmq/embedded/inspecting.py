"""What tests want to know of a cluster: which messages a topic has; and to begin afresh.

Works with any cluster's address. Blocking; each call has connections of its own, so that it works
whatever was restarted before.
"""

import time

from pocketmq.blocking.admin import Admin
from pocketmq.blocking.record_reader import RecordReader
from pocketmq.client.options import ClientOptions
from pocketmq.errors import InvalidInput, RouteNotFound
from pocketmq.model import MessageQueue
from pocketmq.model.names import SYSTEM_GROUPS, is_system_group, is_system_topic
from pocketmq.protocol import DeliveryContext, ReceivedMessage
from pocketmq.protocol.pulled import decode_pulled

_PATIENCE = 5.0
"""Seconds for which servers that do not answer are asked again."""
_PAUSE = 0.01
"""Seconds between two looks; nothing tells that a message was stored."""


def stored_messages(address: str, topic: str) -> list[ReceivedMessage]:
    """Return the messages of a topic in the order in which they were stored; see `Cluster`."""
    with _reader(address) as reader:
        return _messages(reader, topic)


def wait_for_messages(
    address: str, topic: str, count: int, timeout: float
) -> list[ReceivedMessage]:
    """Return the messages as soon as there are `count`; raises `TimeoutError`; see `Cluster`."""
    if count < 0:
        raise InvalidInput(f"count must be the number of messages to wait for, not {count}")
    deadline = time.monotonic() + timeout
    with _reader(address) as reader:
        while (stored := _stored(reader, topic)) < count:
            if time.monotonic() >= deadline:
                raise TimeoutError(
                    f"topic {topic!r} has {stored} of {count} messages after {timeout:g} s"
                )
            time.sleep(_PAUSE)
        return _messages(reader, topic)


def delete_all(address: str) -> None:
    """Delete every topic and group of applications, with messages and offsets."""
    with Admin(address) as admin:
        masters = [place for place in admin.brokers.all() if place.is_master]
        kept = {name for place in masters for name in admin.topics.system_names(place.address)}
        for cluster in sorted({place.cluster for place in masters}):
            for topic in admin.topics.names(cluster):
                if topic not in kept and not is_system_topic(topic):
                    admin.topics.delete(topic, cluster).all()
            groups = {name for each in admin.groups.configs(cluster).all() for name in each}
            for group in sorted(groups - SYSTEM_GROUPS):
                if not is_system_group(group):
                    admin.groups.delete(group, cluster, offsets=True).all()


def _reader(address: str) -> RecordReader:
    return RecordReader(ClientOptions(name_servers=address), patience=_PATIENCE)


def _queues(reader: RecordReader, topic: str) -> list[MessageQueue]:
    try:
        return reader.queues(topic, patience=0.0)
    except RouteNotFound:
        return []


def _stored(reader: RecordReader, topic: str) -> int:
    bounds = [reader.bounds(queue) for queue in _queues(reader, topic)]
    return sum(each.end - each.first for each in bounds)


def _messages(reader: RecordReader, topic: str) -> list[ReceivedMessage]:
    found: list[ReceivedMessage] = []
    for queue in _queues(reader, topic):
        delivery = DeliveryContext(
            broker_name=queue.broker_name, queue_id=queue.queue_id, topic=topic
        )
        bounds = reader.bounds(queue)
        offset = bounds.first
        while offset < bounds.end:
            pulled = reader.pull(queue, offset)
            found += decode_pulled(pulled.records, delivery)
            if pulled.next_offset <= offset:
                break
            offset = pulled.next_offset
    found.sort(key=lambda one: (one.store_timestamp_ms, one.commit_log_offset))
    return found
