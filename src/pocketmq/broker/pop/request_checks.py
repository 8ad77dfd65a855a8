"""Whether a pop may be served, in Java's order, codes and words (5.x)."""

from typing import TYPE_CHECKING

from pocketmq.broker.core.refusals import MORE_HELP
from pocketmq.broker.groups.finding import group_named
from pocketmq.errors import ResponseCode, ServerError, server_error
from pocketmq.model import Permission, TopicConfig
from pocketmq.net import Connection
from pocketmq.protocol.requests import pop

if TYPE_CHECKING:
    from pocketmq.broker.state import BrokerState

_READ = int(Permission.READ)
MOST_MESSAGES = 32
"""Messages of one pop, as in Java."""
LATE_MS = 500
"""Milliseconds past its deadline in which a pop is still accepted."""


def checked(
    state: "BrokerState",
    connection: Connection,
    header: pop.PopRequest | pop.NotificationRequest | pop.PeekRequest,
) -> TopicConfig:
    """Return the topic that messages are wanted of. Raises `ServerError`."""
    popping = isinstance(header, pop.PopRequest)
    if not state.config.broker_permission & _READ:
        verb = "pop" if popping else "peeking"
        raise _forbidden(f"the broker[{_host(state)}] {verb} message is forbidden")
    if isinstance(header, pop.PopRequest) and header.max_msg_nums > MOST_MESSAGES:
        raise server_error(
            ResponseCode.INVALID_PARAMETER,
            f"the broker[{_host(state)}] pop message's num is greater than {MOST_MESSAGES}",
        )
    topic = existing_topic(state, header.topic)
    if not topic.perm & _READ:
        raise _forbidden(f"the topic[{header.topic}] peeking message is forbidden")
    if header.queue_id >= topic.read_queue_nums:
        raise server_error(
            ResponseCode.INVALID_PARAMETER, _illegal_queue(connection, header, topic)
        )
    name = header.consumer_group
    group = group_named(state, name)
    if not group.consume_enable:
        raise _forbidden(f"subscription group no permission, {name}")
    if not state.groups.may_read(name, header.topic):
        raise _forbidden(f"the consumer group[{name}] is forbidden for topic[{header.topic}]")
    return topic


def checked_place(
    state: "BrokerState",
    connection: Connection,
    header: pop.AckRequest | pop.ChangeInvisibleTimeRequest,
) -> tuple[int, int]:
    """Return the bounds of the queue a popped message lies in. Raises `ServerError`."""
    topic = existing_topic(state, header.topic)
    if not 0 <= header.queue_id < topic.read_queue_nums:
        raise server_error(ResponseCode.MESSAGE_ILLEGAL, _illegal_queue(connection, header, topic))
    queue = state.store.queue(header.topic, header.queue_id)
    return (0, 0) if queue is None else (queue.min_offset, queue.next_offset)


def existing_topic(state: "BrokerState", name: str) -> TopicConfig:
    """Return a topic's set-up; raises `ServerError` if there is none."""
    topic = state.topics.get(name)
    if topic is None:
        raise server_error(
            ResponseCode.TOPIC_NOT_EXIST,
            f"topic[{name}] not exist, apply first please! {MORE_HELP}",
        )
    return topic


def too_late(state: "BrokerState") -> ServerError:
    """Make the refusal of a pop whose time was over when it came."""
    return server_error(
        ResponseCode.POLLING_TIMEOUT,
        f"the broker[{_host(state)}] pop message is timeout too much",
    )


def _illegal_queue(
    connection: Connection,
    header: pop.PopRequest
    | pop.NotificationRequest
    | pop.PeekRequest
    | pop.AckRequest
    | pop.ChangeInvisibleTimeRequest,
    topic: TopicConfig,
) -> str:
    return (
        f"queueId[{header.queue_id}] is illegal, topic:[{header.topic}] "
        f"topicConfig.readQueueNums:[{topic.read_queue_nums}] "
        f"consumer:[/{connection.remote_address}]"
    )


def _forbidden(remark: str) -> ServerError:
    return server_error(ResponseCode.NO_PERMISSION, remark)


def _host(state: "BrokerState") -> str:
    return state.address.rpartition(":")[0]
