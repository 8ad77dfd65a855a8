"""Request and reply: what a broker pushes to the client that waits for a reply."""

from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.forms import RAW
from pocketmq.protocol.header import Int32, Int64, TopicHeader
from pocketmq.protocol.request import CLIENT, NoHeader, request


class PushReplyRequest(TopicHeader, frozen=True, kw_only=True):
    """Brings a reply to the producer that asked; the reply itself is the body."""

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int32
    queue_id: Int32
    sys_flag: Int32
    born_timestamp: Int64
    flag: Int32
    properties: str | None = None
    reconsume_times: Int32 | None = None
    unit_mode: bool = False
    born_host: str
    store_host: str
    store_timestamp: Int64


PUSH_REPLY_MESSAGE_TO_CLIENT = request(
    Code.PUSH_REPLY_MESSAGE_TO_CLIENT, PushReplyRequest, NoHeader, body=RAW, served_by=CLIENT
)
