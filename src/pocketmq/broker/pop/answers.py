"""Answers to pops, as frames. Messages follow the header as they lie in the log."""

import struct
from functools import lru_cache

from pocketmq.broker.pop.taking import REVIVE_QUEUE, PopBatch
from pocketmq.errors import ResponseCode
from pocketmq.protocol.command import Command
from pocketmq.protocol.frame import SerializeType, encode_frame
from pocketmq.protocol.handles import ORDERED_REVIVE_QUEUE
from pocketmq.protocol.peers import CURRENT_VERSION, Language
from pocketmq.protocol.requests.pop import NotificationResponse, PopRequest, PopResponse

UNSET = "not set any response code"
"""What Java says with success in some answers."""
NO_POP = PopResponse(pop_time=0, invisible_time=0, revive_qid=0, rest_num=0)
"""What a refused pop carries, as in Java: clients read it from some refusals, too."""
FOUND = "FOUND"
NOTHING = "NO_MESSAGE_IN_QUEUE"
_JSON = int(SerializeType.JSON)
_PREFIX = struct.Struct(">II").pack
_END = (
    f'"}},"flag":1,"language":"{Language.PYTHON.name}","opaque":%d,"remark":"{FOUND}",'
    f'"serializeTypeCurrentRPC":"JSON","version":{CURRENT_VERSION}}}'
)
_DONE = (
    f'{{"code":0,"flag":1,"language":"{Language.PYTHON.name}","opaque":%d,'
    f'"serializeTypeCurrentRPC":"JSON","version":{CURRENT_VERSION}}}'
).encode()


def pop_answer(
    request: Command, header: PopRequest, pop_time_ms: int, batch: PopBatch
) -> list[bytes | memoryview]:
    """Give the frame that brings messages, in pieces."""
    if request.serialize != _JSON:  # cannot be: no other form has room for the code
        return [_general(request, ResponseCode.SUCCESS, header, pop_time_ms, batch)]
    counts = f'","orderCountInfo":"{";".join(batch.order_counts)}' if header.order else ""
    text = (
        f"{_start(header.invisible_time, header.order)}{pop_time_ms}"
        f'","restNum":"{batch.rest}","startOffsetInfo":"{";".join(batch.starts)}'
        f'","msgOffsetInfo":"{";".join(batch.places)}{counts}{_END % request.opaque}'
    ).encode()
    size = len(text)
    return [_PREFIX(size + 4 + batch.size, size) + text, *batch.pieces]


def nothing_popped(
    request: Command, code: int, header: PopRequest, pop_time_ms: int, rest: int
) -> bytes:
    """Give the frame that says why there are no messages."""
    batch = PopBatch()
    batch.rest = rest
    return _general(request, code, header, pop_time_ms, batch)


def done(request: Command) -> bytes:
    """Give the frame that says that something was done, and no more."""
    if request.serialize != _JSON:
        return request.reply(ResponseCode.SUCCESS).encode()
    return encode_frame(_JSON, _DONE % request.opaque)


def notified(request: Command, *, found: bool, full: bool = False) -> bytes:
    """Give the frame that answers a notification."""
    header = NotificationResponse(has_msg=found, polling_full=full)
    return request.reply(ResponseCode.SUCCESS, UNSET, header).encode()


def _general(
    request: Command, code: int, header: PopRequest, pop_time_ms: int, batch: PopBatch
) -> bytes:
    response = PopResponse(
        pop_time=pop_time_ms,
        invisible_time=header.invisible_time,
        revive_qid=ORDERED_REVIVE_QUEUE if header.order else REVIVE_QUEUE,
        rest_num=batch.rest,
        start_offset_info=";".join(batch.starts),
        msg_offset_info=";".join(batch.places),
        order_count_info=";".join(batch.order_counts) if header.order else None,
    )
    remark = FOUND if code == ResponseCode.SUCCESS else NOTHING
    return request.reply(code, remark, response, b"".join(batch.pieces)).encode()


@lru_cache(maxsize=64)
def _start(invisible_ms: int, ordered: bool) -> str:  # noqa: FBT001 - a key of the cache
    queue_id = ORDERED_REVIVE_QUEUE if ordered else REVIVE_QUEUE
    return (
        f'{{"code":0,"extFields":{{"invisibleTime":"{invisible_ms}","reviveQid":"{queue_id}",'
        '"popTime":"'
    )
