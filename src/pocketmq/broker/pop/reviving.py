"""What was not acknowledged in time: copied to the retry topic of group and topic, or given up.

The copy is like the message, with one more try on its count; after the last try of its group it
goes to the dead letters, where nobody consumes it unasked. (RocketMQ leaves that to its clients,
and goes on for ever with those that do not.) The copy is stored before the message counts as done,
and names it: a crash between the two does not make a second copy (see `copied`).
"""

import logging
from typing import TYPE_CHECKING

from pocketmq.broker.core.log_origins import origin_of_popped
from pocketmq.broker.pop.pops import Pops
from pocketmq.broker.pop.shelf import Shelf, Taken
from pocketmq.broker.retry.rules import PopOfFailed, is_given_up, retry_limit, retry_of_popped
from pocketmq.broker.saving import save_changes
from pocketmq.broker.writing.appending import place
from pocketmq.broker.writing.drafts import Placed
from pocketmq.errors import ServerError
from pocketmq.model.groups import GroupConfig
from pocketmq.model.names import dead_letter_topic
from pocketmq.protocol.handles import TopicMark
from pocketmq.protocol.property_text import decode_properties
from pocketmq.protocol.record_scan import RecordView

if TYPE_CHECKING:
    from pocketmq.broker.state import BrokerState

logger = logging.getLogger("pocketmq.broker")

_QUEUES = 1


def revive(state: "BrokerState", pops: Pops, taken: Taken, most: int) -> int:
    """Bring back what is still out of a pop, at most so many; give how many bytes that were.

    Raises `StoreError`; what was not brought back is still out then.
    """
    shelf, size = taken.shelf, 0
    group = state.groups.get(shelf.group)
    # Reading writes what was appended: copies made before go with the note that they were made,
    # or a crash would bring their messages back a second time.
    pops.seal()
    records = [(offset, _record(state, shelf, offset)) for offset in taken.out()[:most]]
    for offset, failed in records:
        if group is not None and failed is not None:
            size += failed.store_size
            copy = _send_again(state, pops, shelf, failed, group, taken.pop_time_ms)
            pops.table.copied(taken, offset, copy.position)
        else:
            place_of = shelf.topic, shelf.group, shelf.queue_id
            pops.table.settle(*place_of, taken.pop_time_ms, [offset])
        state.batch.notes += 1
    return size


def _record(state: "BrokerState", shelf: Shelf, offset: int) -> RecordView | None:
    """Give a popped message; None if the log does not keep it any more."""
    queue = state.store.queue(shelf.topic, shelf.queue_id)
    read = state.store.read(queue, offset, 1, 1)
    found = RecordView(bytes(read.pieces[0]), 0) if read.pieces else None
    if found is None or found.queue_offset != offset:
        logger.warning(
            "%s popped message %d of queue %d of %s, which is gone by now",
            shelf.group, offset, shelf.queue_id, shelf.topic,
        )  # fmt: skip
        return None
    return found


def _send_again(  # noqa: PLR0917 - one step of bringing a message back
    state: "BrokerState",
    pops: Pops,
    shelf: Shelf,
    failed: RecordView,
    group: GroupConfig,
    pop_time_ms: int,
) -> Placed:
    given_up = is_given_up(failed.reconsume_times, retry_limit(group))
    topic = dead_letter_topic(shelf.group) if given_up else retry_topic_of(state, shelf)
    if topic not in state.topics:
        made = state.topics.create_for_group(topic, _QUEUES, now_ms=state.batch.now_ms)
        if made is None:
            logger.error("there is no room for the topic %s", topic)
        save_changes(state)
        if not given_up and state.offsets.query(shelf.group, topic, 0) is None:
            state.offsets.commit(shelf.group, topic, 0, 0)
        pops.topics_changed()
    if state.measures is not None and not given_up:
        state.measures.revived.add((first_topic(shelf), shelf.group))
    pop = PopOfFailed(shelf.group, first_topic(shelf), pop_time_ms)
    draft = retry_of_popped(failed, topic, pop, given_up=given_up)
    draft.prepared_transaction_offset = origin_of_popped(failed.commit_log_offset)
    try:
        return place(state, draft, ())
    except ServerError:  # no room for a further property
        draft.properties = decode_properties(failed.property_bytes)
        return place(state, draft, ())


def retry_topic_of(state: "BrokerState", shelf: Shelf) -> str:
    """Give where a message goes that was popped from this queue; retries stay where they are."""
    if TopicMark.of(shelf.topic) is not TopicMark.NORMAL:
        return shelf.topic
    mark = TopicMark.RETRY_V2 if state.config.enable_retry_topic_v2 else TopicMark.RETRY
    return mark.real_topic(shelf.topic, shelf.group)


def first_topic(shelf: Shelf) -> str:
    """Give the topic a message was first popped from."""
    mark = TopicMark.of(shelf.topic)
    return shelf.topic.removeprefix(mark.real_topic("", shelf.group))
