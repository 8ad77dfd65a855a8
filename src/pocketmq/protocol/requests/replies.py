"""Request and reply: what a broker pushes to the client that waits for a reply."""

from pocketmq.protocol.header import Int32, Int64, TopicHeader


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
