"""RocketMQ's wire format, exact and sans-IO: bytes in, typed values out, and back.

What nearly every part uses is imported from here, everything else from its module.
"""

from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.command import ONEWAY_FLAG, Command
from pocketmq.protocol.json_values import decode_body, encode_body
from pocketmq.protocol.received import DeliveryContext, ReceivedMessage
from pocketmq.protocol.record_scan import RecordView, tags_code

__all__ = [
    "ONEWAY_FLAG",
    "Command",
    "DeliveryContext",
    "ReceivedMessage",
    "RecordView",
    "RequestCode",
    "decode_body",
    "encode_body",
    "tags_code",
]
