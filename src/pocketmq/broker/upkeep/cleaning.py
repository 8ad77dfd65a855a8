"""Deleting old messages: by age, on request (329, 306, 316), and early if the disk is nearly full.

Retention deletes old files; a disk that is nearly full makes it delete files whatever their age.
Which groups lose messages by that is logged.
"""

import logging
from collections.abc import Iterable
from itertools import islice

from pocketmq.broker.saving import submit_offsets
from pocketmq.broker.state import BrokerState, Handler
from pocketmq.errors import ResponseCode
from pocketmq.net import Connection
from pocketmq.protocol import Command, RequestCode
from pocketmq.store import MessageStore
from pocketmq.store.retention import Reason

logger = logging.getLogger("pocketmq.broker")

_TOPICS = 1000
"""Topics whose messages are counted at most: counting must stay short on a full disk."""
_NAMED = 10
"""Topics and groups that are named."""

Lowest = dict[tuple[str, int], int]
"""The oldest offset of queues by topic and queue id."""


def clean_store(state: BrokerState, *, asked: bool = False) -> int:
    """Delete expired files; log a warning if a full disk made others be deleted.

    Return how many were deleted. `asked`: an operator requested it, whatever the hour.
    """
    store = state.store
    full = 1 - store.disk.free_ratio() > store.options.disk_force_ratio
    before = _lowest(store) if full else {}
    first = store.log.first
    dropped = store.clean(state.clock.now_ms(), asked=asked)
    if any(drop.reason is Reason.NO_SPACE for drop in dropped):
        _warn(state, before, store.log.first - first)
    return len(dropped)


def _lowest(store: MessageStore) -> Lowest:
    return {
        (topic, queue.queue_id): queue.min_offset
        for topic in islice(store.queues.topics(), _TOPICS)
        for queue in store.queues.of(topic)
    }


def _warn(state: BrokerState, before: Lowest, size: int) -> None:
    gone: dict[tuple[str, int], tuple[int, int]] = {}
    for (topic, queue_id), low in before.items():
        queue = state.store.queue(topic, queue_id)
        if queue is not None and queue.min_offset > low:
            gone[topic, queue_id] = low, queue.min_offset
    messages = sum(high - low for low, high in gone.values())
    topics = sorted({topic for topic, _ in gone})
    unread = _unread(state, gone)
    logger.warning(
        "messages deleted because the disk is nearly full, whatever their age: bytes=%d "
        "messages=%d topics=%s unread_by_groups=%s; free some space on the disk",
        size, messages, _listed(topics), _listed(unread),
    )  # fmt: skip


def _unread(state: BrokerState, gone: dict[tuple[str, int], tuple[int, int]]) -> list[str]:
    """Return the groups that had not consumed what is gone, with how much of it."""
    found: list[tuple[int, str]] = []
    for (topic, group), offsets in state.offsets.committed.items():
        count = 0
        for queue_id, offset in offsets.items():
            low, high = gone.get((topic, queue_id), (0, 0))
            count += max(0, high - max(low, offset))
        if count:
            found.append((count, f"{group}/{topic}:{count}"))
    return [text for _, text in sorted(found, reverse=True)]


def _listed(words: Iterable[str]) -> str:
    listed = list(words)
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return (",".join(listed[:_NAMED]) or "none") + more


_TRIMMED_AT_ONCE = 1000
"""Topics whose index is trimmed while the caller waits; the rest is trimmed later."""


def delete_old_messages(state: BrokerState, connection: Connection, request: Command) -> Command:
    """Delete what is older than `fileReservedTime`, whatever the hour."""
    state.writer.write_now()  # a store that fails here must not drop clients' messages
    dropped = clean_store(state, asked=True)
    logger.info("old log files deleted: count=%d by=%s", dropped, connection.remote_address)
    return request.reply(ResponseCode.SUCCESS)


def trim_queues(state: BrokerState, _: Connection, request: Command) -> Command:
    """Free the index space of messages that are no longer kept."""
    state.writer.write_now()
    state.store.queues.trim(_TRIMMED_AT_ONCE)
    return request.reply(ResponseCode.SUCCESS)


def delete_unused_topics(state: BrokerState, connection: Connection, request: Command) -> Command:
    """Delete the queues of topics that this broker no longer has."""
    state.writer.write_now()
    for topic in state.store.queues.topics():
        if topic not in state.topics and not state.topics.is_system(topic):
            logger.info("unused queues deleted: topic=%s by=%s", topic, connection.remote_address)
            state.store.delete_topic(topic)
            state.offsets.remove_topic(topic)
    submit_offsets(state)
    return request.reply(ResponseCode.SUCCESS)


HANDLERS: dict[RequestCode, Handler] = {
    RequestCode.DELETE_EXPIRED_COMMITLOG: delete_old_messages,
    RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE: trim_queues,
    RequestCode.CLEAN_UNUSED_TOPIC: delete_unused_topics,
}
