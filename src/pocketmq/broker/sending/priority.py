"""Priorities: which queue of its topic a message with one goes to, by Java's rule (5.4).

A priority is the number of a queue; pops of a topic whose type is PRIORITY read the queues in that
order (see `broker.pop.taking`). As in Java the topic's type does not matter here: gRPC proxies
check it before they send.
"""

from pocketmq.errors import ResponseCode, server_error
from pocketmq.model import TopicConfig, property_names
from pocketmq.model.topic_kinds import TopicKind, kind_of
from pocketmq.protocol.header import read_int64

_INT32 = 2**31


def queue_of(config: TopicConfig, queue_id: int, properties: dict[str, str]) -> int:
    """Return a message's queue: that of its priority, or the one its sender chose.

    A message that is delayed, ordered or in a transaction loses its priority, as in Java.
    Raises `ServerError` if the topic has no queue to write to.
    """
    text = properties.get(property_names.PRIORITY)
    priority = None if text is None else read_int64(text)
    if priority is None or not 0 <= priority < _INT32:
        return queue_id  # stored as any other property
    if kind_of(properties) is not TopicKind.PRIORITY:
        del properties[property_names.PRIORITY]
        return queue_id
    if config.write_queue_nums <= 0:
        raise server_error(
            ResponseCode.INVALID_PARAMETER,
            f"the topic[{config.topic_name}] has no queue to write to",
        )
    return min(priority, config.write_queue_nums - 1)
