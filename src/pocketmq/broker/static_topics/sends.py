"""Sends to a logical queue (10, 310, 320): stored in the leader's physical queue."""

from functools import partial

import msgspec

from pocketmq.balance.static_topics.ranges import shown
from pocketmq.broker.sending.requests import send as plain_send
from pocketmq.broker.state import Answer, BrokerState, Handler
from pocketmq.broker.static_topics.logical import LogicalHandler, LogicalQueue, rewritten
from pocketmq.model.kinds import TRANSACTION_MASK
from pocketmq.net import Connection
from pocketmq.protocol import Command, RequestCode
from pocketmq.protocol.command import read_command
from pocketmq.protocol.frame import FrameReader


def send(
    state: BrokerState, connection: Connection, request: Command, queue: LogicalQueue, _: Handler
) -> Answer:
    """Store a message in the physical queue; the receipt has the logical one."""
    long_names = request.code == RequestCode.SEND_MESSAGE
    number, flags = ("queueId", "sysFlag") if long_names else ("e", "f")
    text = request.ext.get(flags, "")
    # The end of a transaction names the offset of the half message, which is not in this queue.
    half = text.isdecimal() and bool(int(text) & TRANSACTION_MASK)
    there = rewritten(request, {number: queue.leader.queue_id})
    return plain_send(state, connection, there, partial(_receipt, queue, half=half))


def _receipt(queue: LogicalQueue, frame: bytes, *, half: bool) -> bytes:
    (read,) = FrameReader(limit=len(frame)).feed(frame)
    answer = read_command(read)
    fields = dict(answer.ext) | {"queueId": str(queue.number)}
    if not half:
        fields["queueOffset"] = str(shown(queue.leader, int(fields["queueOffset"])))
    return msgspec.structs.replace(answer, ext_fields=fields).encode()


LOGICAL: dict[RequestCode, LogicalHandler] = {
    RequestCode.SEND_MESSAGE: send,
    RequestCode.SEND_MESSAGE_V2: send,
    RequestCode.SEND_BATCH_MESSAGE: send,
}
