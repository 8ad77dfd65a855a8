"""The offsets of logical queues, from those of the physical queues they consist of."""

from collections.abc import Iterable, Mapping

from pocketmq.admin.gathered import ServerPlace
from pocketmq.admin.wire import AdminWire
from pocketmq.balance.static_topics import ranges
from pocketmq.balance.static_topics.checks import led_queues
from pocketmq.model import MessageQueue
from pocketmq.model.topics import GLOBAL_SCOPE, MappedTopicConfig, logical_broker
from pocketmq.protocol.requests import topics as rows
from pocketmq.protocol.requests.stats import OffsetRange, QueueProgress

_FAR = 1 << 62


async def mapped_configs(
    wire: AdminWire, topic: str, places: Iterable[ServerPlace]
) -> dict[str, MappedTopicConfig]:
    """Return a topic's set-up with its mapping on those brokers that have it."""
    header = rows.GET_TOPIC_CONFIG.header(topic=topic, lo=True)
    found = await wire.read_each(places, rows.GET_TOPIC_CONFIG, header)
    return {each.place.broker: each.value for each in found}


def logical_offsets(
    topic: str,
    configs: Mapping[str, MappedTopicConfig],
    held: Mapping[MessageQueue, OffsetRange],
) -> dict[MessageQueue, OffsetRange]:
    """Return the bounds of a static topic's logical queues, as far as brokers have answered."""
    found = {}
    for number, parts in led_queues(configs.values(), whole=False).items():
        first, last = ranges.holding(parts, 0), ranges.holding(parts, _FAR)
        if first is None or last is None:
            continue
        low = held.get(MessageQueue(topic, first.bname or "", first.queue_id))
        high = held.get(MessageQueue(topic, last.bname or "", last.queue_id))
        if low is not None and high is not None:
            found[_name(topic, configs, number)] = OffsetRange(
                min_offset=max(0, ranges.shown(first, low.min_offset)),
                max_offset=max(0, ranges.exactly(last, high.max_offset)),
                last_update_timestamp=high.last_update_timestamp,
            )
    return found


def logical_progress(
    topic: str,
    configs: Mapping[str, MappedTopicConfig],
    known: Mapping[MessageQueue, QueueProgress],
) -> dict[MessageQueue, QueueProgress]:
    """Return a group's progress in logical queues: in the newest range that has an offset."""
    found = {}
    for number, parts in led_queues(configs.values(), whole=False).items():
        last = ranges.holding(parts, _FAR)
        end = None if last is None else known.get(_at(topic, last.bname, last.queue_id))
        if last is None or end is None:
            continue
        for part in reversed(parts):
            here = known.get(_at(topic, part.bname, part.queue_id))
            if here is not None and here.consumer_offset >= 0 and part.logic_offset >= 0:
                break
        else:
            part, here = parts[0], None
        committed = -1 if here is None else ranges.exactly(part, here.consumer_offset)
        pulled = -1 if here is None else ranges.exactly(part, here.pull_offset)
        found[_name(topic, configs, number)] = QueueProgress(
            broker_offset=ranges.exactly(last, end.broker_offset),
            consumer_offset=committed,
            pull_offset=pulled,
            last_timestamp=0 if here is None else here.last_timestamp,
        )
    return found


def _at(topic: str, broker: str | None, queue_id: int) -> MessageQueue:
    return MessageQueue(topic, broker or "", queue_id)


def _name(topic: str, configs: Mapping[str, MappedTopicConfig], number: int) -> MessageQueue:
    scopes = [each.mapping_detail.scope for each in configs.values() if each.mapping_detail]
    return MessageQueue(topic, logical_broker(scopes[0] if scopes else GLOBAL_SCOPE), number)
