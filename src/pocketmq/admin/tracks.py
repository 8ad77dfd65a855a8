"""Which groups have consumed a message, of those that consume its topic."""

from enum import Enum

import msgspec

from pocketmq.admin.groups import Groups
from pocketmq.admin.topics import Topics
from pocketmq.admin.wire import AdminWire
from pocketmq.errors import MQError
from pocketmq.model import ConsumeType, MessageModel, MessageQueue
from pocketmq.protocol import ReceivedMessage
from pocketmq.protocol.requests.groups import ConsumerConnections


class TrackKind(Enum):
    """The state of a message in a group, by Java's names."""

    CONSUMED = "CONSUMED"
    CONSUMED_BUT_FILTERED = "CONSUMED_BUT_FILTERED"
    PULL = "PULL"
    NOT_CONSUME_YET = "NOT_CONSUME_YET"
    NOT_ONLINE = "NOT_ONLINE"
    CONSUME_BROADCASTING = "CONSUME_BROADCASTING"
    UNKNOWN = "UNKNOWN"


class Track(msgspec.Struct, frozen=True):
    """The state of a message in one group; `reason` says why it is not known better."""

    group: str
    kind: TrackKind
    reason: str | None = None


class Tracks:
    """Finds the state of messages in groups."""

    def __init__(self, wire: AdminWire, topics: Topics, groups: Groups) -> None:
        self._wire = wire
        self._topics = topics
        self._groups = groups

    async def of(self, message: ReceivedMessage) -> list[Track]:
        """Return the state in each group that consumes the topic. Raises `RouteNotFound`."""
        consumers = (await self._topics.consumers(message.topic)).some()
        groups = sorted({group for names in consumers.values() for group in names})
        tracks = await self._wire.together(groups, lambda group: self._track(message, group))
        return [
            Track(group, TrackKind.UNKNOWN, str(track)) if isinstance(track, MQError) else track
            for group, track in zip(groups, tracks, strict=True)
        ]

    async def _track(self, message: ReceivedMessage, group: str) -> Track:
        views = (await self._groups.connections(group)).some().values()
        online = [view for view in views if view.connection_set]
        if not online:
            return Track(group, TrackKind.NOT_ONLINE, "no member is connected")
        view = online[0]
        if view.consume_type is ConsumeType.CONSUME_ACTIVELY:
            return Track(group, TrackKind.PULL)
        if view.message_model is MessageModel.BROADCASTING:
            return Track(group, TrackKind.CONSUME_BROADCASTING)
        progress = await self._groups.progress(group, message.topic)
        own = MessageQueue(message.topic, message.broker_name, message.queue_id)
        reached = progress.queues.get(own)
        if reached is None and progress.missing:
            return Track(group, TrackKind.UNKNOWN, str(progress.missing[0]))
        if reached is None or reached.consumer_offset <= message.queue_offset:
            return Track(group, TrackKind.NOT_CONSUME_YET)
        filtered = not _wants(view, message)
        return Track(group, TrackKind.CONSUMED_BUT_FILTERED if filtered else TrackKind.CONSUMED)


def _wants(view: ConsumerConnections, message: ReceivedMessage) -> bool:
    """Return whether a group's tags include a message's; SQL is ignored, as in Java."""
    subscription = view.subscription_table.get(message.topic)
    if subscription is None or not subscription.tags_set:
        return True
    return message.tag in subscription.tags_set or "*" in subscription.tags_set
