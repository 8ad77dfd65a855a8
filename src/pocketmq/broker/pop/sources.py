"""What topics and groups decide about their pops, cached while their settings stay the same."""

from typing import TYPE_CHECKING

import msgspec

from pocketmq.broker.pop.queue_order import priority_factor
from pocketmq.broker.pop.request_checks import MOST_MESSAGES, checked
from pocketmq.net import Connection
from pocketmq.protocol.handles import TopicMark
from pocketmq.protocol.requests.pop import PopRequest

if TYPE_CHECKING:
    from pocketmq.broker.state import BrokerState

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

    def find(self, connection: Connection, header: PopRequest) -> PopSource:
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
        self, connection: Connection, header: PopRequest, key: tuple[str, str]
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
