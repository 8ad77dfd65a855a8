"""Questions about offsets: the bounds of a queue, the offset of a time, a group's progress."""

from contextlib import suppress

from pocketmq.client.calls import SUCCESS
from pocketmq.client.questions.asking import Question, ask
from pocketmq.client.questions.pulling import PULL_TIMEOUT, PullSpec, pull_once
from pocketmq.errors import MessageMalformed, ResponseCode
from pocketmq.model import MessageQueue
from pocketmq.protocol import RecordView
from pocketmq.protocol.peers import VersionGate
from pocketmq.protocol.record_scan import scan_records
from pocketmq.protocol.requests import offsets as rows

_TRIES = 5
_OFFSET_OR_NONE = SUCCESS | {int(ResponseCode.QUERY_NOT_FOUND)}


def first_offset(queue: MessageQueue) -> Question[int]:
    """Return the first offset that a queue still holds."""
    header = rows.GetMinOffsetRequest(
        topic=queue.topic, queue_id=queue.queue_id, bname=queue.broker_name
    )
    answer = yield from ask(queue, rows.GET_MIN_OFFSET, header)
    return answer.header().offset


def end_offset(queue: MessageQueue, *, readable: bool = True) -> Question[int]:
    """Return the offset that the next message will get.

    Java's brokers index messages a little later than they store them: without `readable` those
    that cannot be pulled yet count, too.
    """
    header = rows.GetMaxOffsetRequest(
        topic=queue.topic, queue_id=queue.queue_id, committed=readable, bname=queue.broker_name
    )
    answer = yield from ask(queue, rows.GET_MAX_OFFSET, header)
    return answer.header().offset


def first_stored(queue: MessageQueue) -> Question[int]:
    """Return when a queue's first message was stored, in milliseconds; -1 if it has none."""
    header = rows.GetEarliestStoreTimeRequest(
        topic=queue.topic, queue_id=queue.queue_id, bname=queue.broker_name
    )
    answer = yield from ask(queue, rows.GET_EARLIEST_MSG_STORETIME, header)
    return answer.header().timestamp


def first_message(queue: MessageQueue) -> Question[tuple[int, int]]:
    """Return the first offset that a queue still holds, and when that message was stored.

    The broker may delete messages between two requests, so both are asked for until they agree;
    the time is -1 if the queue is empty, or they never do.
    """
    first = yield from first_offset(queue)
    for _ in range(_TRIES):
        stored = yield from first_stored(queue)
        again = yield from first_offset(queue)
        if again == first:
            return first, stored
        first = again
    return first, -1


def bounds(queue: MessageQueue) -> Question[tuple[int, int]]:
    """Return a queue's first offset and the one after its last message."""
    end = yield from end_offset(queue)
    return (yield from first_offset(queue)), end


def near_offset(queue: MessageQueue, time_ms: int) -> Question[int]:
    """Return what a broker calls the offset of a time.

    Brokers before 5.3 return the message that is nearest in time, or the last one.
    """
    offset, _ = yield from _search(queue, time_ms)
    return offset


def offset_at(queue: MessageQueue, time_ms: int, group: str) -> Question[int]:
    """Return the offset of the first message stored at or after a time, or the queue's end.

    Messages of brokers before 5.3 are looked at one by one, about 20 for a million, in the name of
    `group`: a broker of theirs returns the message that is nearest in time, or the last.
    """
    offset, version = yield from _search(queue, time_ms)
    if version >= VersionGate.EXACT_TIMES:
        return offset
    first, end = yield from bounds(queue)
    return (yield from _first_at_or_after(queue, time_ms, range(first, end), group))


def committed(
    group: str, queue: MessageQueue, *, zero_if_none: bool | None = None
) -> Question[int | None]:
    """Return how far a group has come in a queue; None if its broker has no note of it.

    Without `zero_if_none` set to False, brokers return 0 for a queue that still has its first
    message in memory.
    """
    header = rows.QueryConsumerOffsetRequest(
        consumer_group=group,
        topic=queue.topic,
        queue_id=queue.queue_id,
        set_zero_if_not_found=zero_if_none,
        bname=queue.broker_name,
    )
    answer = yield from ask(queue, rows.QUERY_CONSUMER_OFFSET, header, accept=_OFFSET_OR_NONE)
    return answer.header().offset if answer.code == ResponseCode.SUCCESS else None


def commit(group: str, queue: MessageQueue, offset: int) -> Question[None]:
    """Store how far a group has come in a queue."""
    yield from ask(queue, rows.UPDATE_CONSUMER_OFFSET, commit_header(group, queue, offset))


def commit_header(group: str, queue: MessageQueue, offset: int) -> rows.UpdateConsumerOffsetRequest:
    """Return the fields that store an offset, also for those who wait for no answer."""
    return rows.UpdateConsumerOffsetRequest(
        consumer_group=group,
        topic=queue.topic,
        queue_id=queue.queue_id,
        commit_offset=offset,
        bname=queue.broker_name,
    )


def _search(queue: MessageQueue, time_ms: int) -> Question[tuple[int, int]]:
    """Return the offset that a broker has for a time, and the broker's version."""
    header = rows.SearchOffsetRequest(
        topic=queue.topic,
        queue_id=queue.queue_id,
        timestamp=time_ms,
        bname=queue.broker_name,
    )
    answer = yield from ask(queue, rows.SEARCH_OFFSET_BY_TIMESTAMP, header)
    return answer.header().offset, answer.version


def _first_at_or_after(
    queue: MessageQueue, time_ms: int, offsets: range, group: str
) -> Question[int]:
    """Bisect by the store times of messages, which never decrease in a queue."""
    low, high = offsets.start, offsets.stop
    while low < high:
        middle = (low + high) // 2
        stored = yield from _store_time(queue, range(middle, offsets.stop), group)
        if stored is not None and stored < time_ms:
            low = middle + 1
        else:
            high = middle
    return low


def _store_time(queue: MessageQueue, offsets: range, group: str) -> Question[int | None]:
    """Return the store time of the first readable message of a range; None if there is none."""
    offset = offsets.start
    while offset < offsets.stop:
        wanted = PullSpec(group, count=1)
        pulled = yield from pull_once(queue, offset, wanted, newest=True, timeout=PULL_TIMEOUT)
        with suppress(MessageMalformed, StopIteration):
            position, *_ = next(scan_records(pulled.records))
            return RecordView(pulled.records, position).store_timestamp_ms
        # Deleted meanwhile, damaged, or nothing is there: ask for the next one.
        offset = max(offset + 1, pulled.next_offset)
    return None
