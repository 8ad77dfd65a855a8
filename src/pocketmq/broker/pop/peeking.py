"""Peeking: what a pop would give, without taking it."""

import random
from typing import TYPE_CHECKING

from pocketmq.broker.pop.table import PopTable
from pocketmq.broker.pop.taking import MOST_MESSAGES, first_offset, retry_topics
from pocketmq.errors import ResponseCode
from pocketmq.model.topics import TopicConfig
from pocketmq.protocol.command import Command
from pocketmq.protocol.frame import Buffer
from pocketmq.protocol.requests.pop import PeekRequest, PopResponse
from pocketmq.store import QueueRead

if TYPE_CHECKING:
    from pocketmq.broker.state import BrokerState


def peeked(
    state: "BrokerState", table: PopTable, request: Command, header: PeekRequest, topic: TopicConfig
) -> list[Buffer]:
    """Give the frame that shows messages, in pieces."""
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
    response = PopResponse(pop_time=0, invisible_time=0, revive_qid=0, rest_num=rest)
    remark = "FOUND" if pieces else "NO_MESSAGE_IN_QUEUE"
    return request.reply(code, remark, response).encode_pieces(pieces)


def _read(  # noqa: PLR0917 - a place
    state: "BrokerState", table: PopTable, group: str, topic: str, queue_id: int, most: int
) -> tuple[QueueRead | None, int]:
    """Give what a pop would find in a queue, and how much is there with it."""
    queue = state.store.queue(topic, queue_id)
    if queue is None:
        return None, 0
    offset = table.cursor(topic, group, queue_id)
    if offset is None:
        offset = first_offset(queue, topic, 0)
    left = max(queue.next_offset - offset, 0)
    if most <= 0:
        return None, left
    size = state.config.max_transfer_bytes_on_message_in_memory
    read = state.store.read(queue, offset, most, size)
    if not read.pieces and read.next_offset != offset:
        read = state.store.read(queue, read.next_offset, most, size)
    return read, left
