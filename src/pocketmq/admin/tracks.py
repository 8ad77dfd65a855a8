"""Who has consumed a message: every group of its topic, with what is known of it."""

from enum import Enum

import msgspec

from pocketmq.admin.groups import Groups
from pocketmq.admin.topics import Topics
from pocketmq.admin.wire import AdminWire
from pocketmq.errors import MQError
from pocketmq.model.kinds import ConsumeType, MessageModel
from pocketmq.model.queue import MessageQueue
from pocketmq.protocol.bodies.connections import ConsumerConnections
from pocketmq.protocol.received import ReceivedMessage


class TrackKind(Enum):
    """What became of a message in a group, by Java's names."""

    CONSUMED = "CONSUMED"
    CONSUMED_BUT_FILTERED = "CONSUMED_BUT_FILTERED"
    PULL = "PULL"
    NOT_CONSUME_YET = "NOT_CONSUME_YET"
    NOT_ONLINE = "NOT_ONLINE"
    CONSUME_BROADCASTING = "CONSUME_BROADCASTING"
    UNKNOWN = "UNKNOWN"


class Track(msgspec.Struct, frozen=True):
    """One group, and what became of a message there; `reason` says why more is not known."""

    group: str
    kind: TrackKind
    reason: str | None = None


class Tracks:
    """Follows messages into groups."""

    def __init__(self, wire: AdminWire, topics: Topics, groups: Groups) -> None:
        self._wire = wire
        self._topics = topics
        self._groups = groups

    async def of(self, message: ReceivedMessage) -> list[Track]:
        """Tell of each group that consumes a message's topic. Raises `RouteNotFound`."""
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
        own = [queue for queue in progress.queues if _holds(queue, message)]
        if not own and progress.missing:
            return Track(group, TrackKind.UNKNOWN, str(progress.missing[0]))
        offsets = [progress.queues[queue].consumer_offset for queue in own]
        if not any(offset > message.queue_offset for offset in offsets):
            return Track(group, TrackKind.NOT_CONSUME_YET)
        filtered = not _wants(view, message)
        return Track(group, TrackKind.CONSUMED_BUT_FILTERED if filtered else TrackKind.CONSUMED)


def _holds(queue: MessageQueue, message: ReceivedMessage) -> bool:
    place = (message.topic, message.queue_id, message.broker_name)
    return (queue.topic, queue.queue_id, queue.broker_name) == place


def _wants(view: ConsumerConnections, message: ReceivedMessage) -> bool:
    """Tell whether a group's tags include a message's; SQL is not looked at, as in Java."""
    subscription = view.subscription_table.get(message.topic)
    if subscription is None or not subscription.tags_set:
        return True
    return message.tag in subscription.tags_set or "*" in subscription.tags_set
