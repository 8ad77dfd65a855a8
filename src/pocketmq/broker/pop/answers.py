"""Answers to pops and peeks, as frames. Messages follow the header as they lie in the log.

A peek returns what a pop would find, without taking it.
"""

import random
import struct
from functools import lru_cache
from typing import TYPE_CHECKING

from pocketmq.broker.pop import taking
from pocketmq.broker.pop.single_messages import single_messages
from pocketmq.broker.pop.sources import MOST_MESSAGES, retry_topics
from pocketmq.broker.pop.table import PopTable
from pocketmq.errors import ResponseCode
from pocketmq.model import TopicConfig
from pocketmq.protocol import Command
from pocketmq.protocol.frame import Buffer
from pocketmq.protocol.handles import ORDERED_REVIVE_QUEUE
from pocketmq.protocol.peers import CURRENT_VERSION, Language
from pocketmq.protocol.requests import pop
from pocketmq.store import QueueRead

if TYPE_CHECKING:
    from pocketmq.broker.state import BrokerState


UNSET = "not set any response code"
"""What Java says with success in some answers."""
NO_POP = pop.PopResponse(pop_time=0, invisible_time=0, revive_qid=0, rest_num=0)
"""What a refused pop carries, as in Java: clients read it from some refusals, too."""
FOUND = "FOUND"
NOTHING = "NO_MESSAGE_IN_QUEUE"
_PREFIX = struct.Struct(">II").pack
_END = (
    f'"}},"flag":1,"language":"{Language.PYTHON.name}","opaque":%d,"remark":"{FOUND}",'
    f'"serializeTypeCurrentRPC":"JSON","version":{CURRENT_VERSION}}}'
)


def pop_answer(
    opaque: int, header: pop.PopRequest, pop_time_ms: int, batch: taking.PopBatch
) -> list[bytes | memoryview]:
    """Return the frame that brings messages, in pieces: JSON, as the code fits no other form."""
    counts = f'","orderCountInfo":"{";".join(batch.order_counts)}' if header.order else ""
    text = (
        f"{_start(header.invisible_time, header.order)}{pop_time_ms}"
        f'","restNum":"{batch.rest}","startOffsetInfo":"{";".join(batch.starts)}'
        f'","msgOffsetInfo":"{";".join(batch.places)}{counts}{_END % opaque}'
    ).encode()
    size = len(text)
    return [_PREFIX(size + 4 + batch.size, size) + text, *batch.pieces]


def nothing_popped(
    request: Command, code: int, header: pop.PopRequest, pop_time_ms: int, rest: int
) -> bytes:
    """Return the frame that says why there are no messages."""
    batch = taking.PopBatch()
    batch.rest = rest
    return _general(request, code, header, pop_time_ms, batch)


def notified(request: Command, *, found: bool, full: bool = False) -> bytes:
    """Return the frame that answers a notification."""
    header = pop.NotificationResponse(has_msg=found, polling_full=full)
    return request.reply(ResponseCode.SUCCESS, UNSET, header).encode()


def _general(
    request: Command, code: int, header: pop.PopRequest, pop_time_ms: int, batch: taking.PopBatch
) -> bytes:
    response = pop.PopResponse(
        pop_time=pop_time_ms,
        invisible_time=header.invisible_time,
        revive_qid=ORDERED_REVIVE_QUEUE if header.order else taking.REVIVE_QUEUE,
        rest_num=batch.rest,
        start_offset_info=";".join(batch.starts),
        msg_offset_info=";".join(batch.places),
        order_count_info=";".join(batch.order_counts) if header.order else None,
    )
    remark = FOUND if code == ResponseCode.SUCCESS else NOTHING
    return request.reply(code, remark, response, b"".join(batch.pieces)).encode()


@lru_cache(maxsize=64)
def _start(invisible_ms: int, ordered: bool) -> str:  # noqa: FBT001 - a key of the cache
    queue_id = ORDERED_REVIVE_QUEUE if ordered else taking.REVIVE_QUEUE
    return (
        f'{{"code":0,"extFields":{{"invisibleTime":"{invisible_ms}","reviveQid":"{queue_id}",'
        '"popTime":"'
    )


def peeked(
    state: "BrokerState",
    table: PopTable,
    request: Command,
    header: pop.PeekRequest,
    topic: TopicConfig,
) -> list[Buffer]:
    """Return the frame that shows messages, in pieces."""
    group = header.consumer_group
    start = random.randrange(100)  # noqa: S311 - where to begin is no secret
    places = [
        (header.topic, (start + step) % topic.read_queue_nums)
        for step in range(topic.read_queue_nums)
    ]
    if header.queue_id >= 0:
        places = [(header.topic, header.queue_id)]
    places += [(name, 0) for _, name in retry_topics(state, header.topic, group)]
    pieces: list[Buffer] = []
    rest = 0
    most = min(header.max_msg_nums, MOST_MESSAGES)
    for name, queue_id in places:
        read, left = _read(state, table, group, name, queue_id, most - len(pieces))
        rest += left
        if read is not None:
            pieces += read.pieces
    code = ResponseCode.SUCCESS if pieces else ResponseCode.PULL_NOT_FOUND
    response = pop.PopResponse(pop_time=0, invisible_time=0, revive_qid=0, rest_num=rest)
    remark = "FOUND" if pieces else "NO_MESSAGE_IN_QUEUE"
    return request.reply(code, remark, response).encode_pieces(pieces)


def _read(  # noqa: PLR0917 - a place
    state: "BrokerState", table: PopTable, group: str, topic: str, queue_id: int, most: int
) -> tuple[QueueRead | None, int]:
    """Return what a pop would find in a queue, and how much is there with it."""
    queue = state.store.queue(topic, queue_id)
    if queue is None:
        return None, 0
    offset = table.cursor(topic, group, queue_id)
    if offset is None:
        offset = taking.first_offset(queue, topic, 0)
    left = max(queue.next_offset - offset, 0)
    if most <= 0:
        return None, left
    size = state.config.max_transfer_bytes_on_message_in_memory
    read = state.store.read(queue, offset, most, size)
    if not read.pieces and read.next_offset != offset:
        offset = read.next_offset
        read = state.store.read(queue, offset, most, size)
    return single_messages(read, offset, most, size), left
