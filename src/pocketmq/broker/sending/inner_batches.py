"""Batches to topics with `queue.type=BatchCQ`: each is stored as one record, as in Java.

Only a batch with an id of its own is: those of 4.x producers are stored message by message, and so
is a single message.
"""

from pocketmq import errors
from pocketmq.broker.state import BrokerState
from pocketmq.broker.writing.appending import append_inner, message_illegal
from pocketmq.broker.writing.drafts import REDIRECTING, SendTarget, born_host
from pocketmq.model import SysFlag, property_names
from pocketmq.net import Connection
from pocketmq.protocol import Command
from pocketmq.protocol.property_text import decode_properties, encode_properties
from pocketmq.protocol.record_scan import tags_code
from pocketmq.protocol.records import Record
from pocketmq.protocol.requests.sending import SendRequest

_COMPRESSED = int(SysFlag.COMPRESSED)
_REMOVED = (
    property_names.INNER_NUM,
    property_names.INNER_BASE,
    property_names.POP_CHECKPOINT,
)
_ELSEWHERE_FIRST = tuple(
    name for name in REDIRECTING if name != property_names.TRANSACTION_PREPARED
)


def take_inner(
    state: BrokerState,
    connection: Connection,
    request: Command,
    header: SendRequest,
    target: SendTarget,
) -> bytes:
    """Store a batch; return the answer's frame. Raises `ServerError`, `StoreError`."""
    limit = state.config.max_message_size
    properties = decode_properties((header.properties or "").encode("utf-8", "replace"))
    if any(name in properties for name in _ELSEWHERE_FIRST):
        raise message_illegal(limit)  # it would be kept in a topic of other queues first
    if header.sys_flag & _COMPRESSED:
        raise message_illegal(limit)  # Java stores it, and no consumer can read it
    unique_key = properties[property_names.UNIQUE_KEY]
    for name in _REMOVED:
        properties.pop(name, None)
    queue = target.queue
    try:
        text = encode_properties(properties | decode_properties(state.stamp.encode()))
        like = Record(
            topic=target.topic,
            body=b"",
            property_bytes=text,
            queue_id=queue.queue_id,
            flag=header.flag,
            sys_flag=header.sys_flag | target.sys_flag,
            born_timestamp_ms=header.born_timestamp,
            born_host=born_host(connection),
            reconsume_times=header.reconsume_times or 0,
        )
        stored = append_inner(state, queue, request.body, like, tags_code(text))
    except errors.InvalidInput as error:
        raise message_illegal(limit) from error
    except errors.MessageMalformed as error:
        raise errors.server_error(errors.ResponseCode.MESSAGE_ILLEGAL, str(error)) from error
    return state.send_answers.inner_batch(
        request, queue.queue_id, stored.queue_offset, stored.positions[0], unique_key
    )
