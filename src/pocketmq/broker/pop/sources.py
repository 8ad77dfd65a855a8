"""What a pop may take from: the checks on topic and group, and what both decide about it.

The checks have Java's order, codes and words (5.x). What follows from them is cached while
topics, groups and settings stay the same. Also in which order the queues of a topic are read:
from a random one on, or by priority (5.4): a queue's number is the priority of its messages;
see `broker.sending.targets`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from pocketmq.broker.core.refusals import MORE_HELP
from pocketmq.broker.groups.requests import group_named
from pocketmq.errors import ResponseCode, ServerError, server_error
from pocketmq.model import GroupConfig, Permission, TopicConfig, TopicKind
from pocketmq.net import Connection
from pocketmq.protocol.handles import TopicMark
from pocketmq.protocol.header import read_int64
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


_FACTOR = "priority.factor"
"""A group's attribute: the percentage of its pops that go by priority (Java: PRIORITY_FACTOR)."""
_ALWAYS = 100


def priority_factor(topic: TopicConfig | None, group: GroupConfig | None) -> int:
    """Return the percentage of pops that go by priority; 0 if the topic's type is another."""
    if topic is None or not topic.attributes:  # as most are
        return 0
    if TopicKind.read(topic.attributes) is not TopicKind.PRIORITY:
        return 0
    text = None if group is None else group.attributes.get(_FACTOR)
    factor = None if text is None else read_int64(text)
    return _ALWAYS if factor is None else factor


def queue_order(count: int, chance: int | None, *, ascending: bool) -> Sequence[int]:
    """Return the order of `count` queues: from the one at `chance` on, or by priority for None.

    With `ascending` a larger number is more urgent (Java: priorityOrderAsc).
    """
    if chance is not None:
        first = chance % count if count else 0
        return [*range(first, count), *range(first)]
    return range(count - 1, -1, -1) if ascending else range(count)


_CACHED = 4096


class PopSource(msgspec.Struct, frozen=True, gc=False):
    """A topic as a group pops from it."""

    queues: int
    by_priority: int
    """The percentage of pops that go by priority."""
    retries: list[tuple[TopicMark, str]]
    """The retry topics that there are, each with its mark."""


class PopSources:
    """The topics that groups of one broker pop from. Belongs to its loop."""

    def __init__(self, state: "BrokerState") -> None:
        self._state = state
        self._cached: dict[tuple[str, str], PopSource] = {}
        self._settings: tuple[object, object, object] | None = None  # those it was cached for

    def find(self, connection: Connection, header: pop.PopRequest) -> PopSource:
        """Return what a pop takes from. Raises `ServerError` if it may not."""
        state, key = self._state, (header.topic, header.consumer_group)
        if self._settings is not None:
            topics, groups, config = self._settings
            source = self._cached.get(key)
            if (
                source is not None
                and topics is state.topics.version
                and groups is state.groups.version
                and config is state.config
                and header.max_msg_nums <= MOST_MESSAGES
                and header.queue_id < source.queues
            ):
                return source
        return self._checked(connection, header, key)

    def _checked(
        self, connection: Connection, header: pop.PopRequest, key: tuple[str, str]
    ) -> PopSource:
        state = self._state
        topic = checked(state, connection, header)
        settings = state.topics.version, state.groups.version, state.config
        if (
            self._settings is None
            or len(self._cached) >= _CACHED
            or any(now is not before for now, before in zip(settings, self._settings, strict=True))
        ):
            self._cached.clear()
            self._settings = settings
        group = state.groups.get(header.consumer_group)
        source = self._cached[key] = PopSource(
            topic.read_queue_nums, priority_factor(topic, group), retry_topics(state, *key)
        )
        return source


def retry_topics(state: "BrokerState", topic: str, group: str) -> list[tuple[TopicMark, str]]:
    """Return the retry topics of a topic and a group that there are, each with its mark."""
    config, existing = state.config, state.topics.entries
    found = []
    if config.enable_retry_topic_v2:
        name = TopicMark.RETRY_V2.real_topic(topic, group)
        if name in existing:
            found.append((TopicMark.RETRY_V2, name))
    if not config.enable_retry_topic_v2 or config.retrieve_message_from_pop_retry_topic_v1:
        name = TopicMark.RETRY.real_topic(topic, group)
        if name in existing:
            found.append((TopicMark.RETRY, name))
    return found
