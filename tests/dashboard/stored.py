"""Messages as a broker has stored them, for tests without one."""

from pocketmq.protocol import DeliveryContext, ReceivedMessage
from pocketmq.protocol.property_text import encode_properties
from pocketmq.protocol.pulled import decode_pulled
from pocketmq.protocol.records import Record, encode_record


def stored(
    body: bytes = b"",
    *,
    at: int = 1,
    offset: int = 0,
    queue: int = 0,
    broker: str = "broker-a",
    sys_flag: int = 0,
    topic: str = "T",
    **properties: str,
) -> ReceivedMessage:
    """Return a message, of topic T if not told otherwise."""
    record = Record(
        topic=topic.encode(),
        body=body,
        queue_id=queue,
        queue_offset=offset,
        store_timestamp_ms=at,
        sys_flag=sys_flag,
        property_bytes=encode_properties(properties),
    )
    (message,) = decode_pulled(encode_record(record), DeliveryContext(broker))
    return message
