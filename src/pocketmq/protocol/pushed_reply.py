"""A reply as its broker pushes it, made into a message like any other."""

from pocketmq.errors import InvalidInput, MessageMalformed
from pocketmq.model import property_names
from pocketmq.protocol.hosts import encode_host
from pocketmq.protocol.property_text import decode_properties
from pocketmq.protocol.received import DeliveryContext, ReceivedMessage, revive
from pocketmq.protocol.records import Record, encode_record
from pocketmq.protocol.requests.client_calls import PushReplyRequest


def correlation_of(header: PushReplyRequest) -> str:
    """Return the correlation id of the request that a reply answers; empty if it has none."""
    text = (header.properties or "").encode("utf-8", "replace")
    return decode_properties(text).get(property_names.CORRELATION_ID, "")


def pushed_reply(header: PushReplyRequest, body: bytes, arrived_ms: int) -> ReceivedMessage:
    """Return a reply as a message, whose body is inflated when it is read.

    It is in no queue: its offsets mean nothing. Raises `MessageMalformed` for an impossible
    host, or more properties than a message can have.
    """
    try:
        record = Record(
            topic=header.topic.encode("utf-8", "replace"),
            body=body,
            property_bytes=(header.properties or "").encode("utf-8", "replace"),
            queue_id=header.queue_id,
            flag=header.flag,
            sys_flag=header.sys_flag,
            born_timestamp_ms=header.born_timestamp,
            born_host=encode_host(header.born_host),
            reconsume_times=header.reconsume_times or 0,
            store_timestamp_ms=header.store_timestamp,
            store_host=encode_host(header.store_host),
        )
        raw = encode_record(record)
    except InvalidInput as error:
        raise MessageMalformed(f"the reply is not a valid message: {error}") from error
    return revive(raw, 0, DeliveryContext(added={property_names.ARRIVE_TIME: str(arrived_ms)}))
