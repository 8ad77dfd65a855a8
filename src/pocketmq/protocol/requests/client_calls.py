"""Calls that a broker passes on to a client, or makes to it."""

from pocketmq.protocol.header import Int32, RpcHeader, TopicHeader


class GetConsumerRunningInfoRequest(RpcHeader, frozen=True, kw_only=True):
    """Asks a consumer what it is doing."""

    consumer_group: str
    client_id: str
    jstack_enable: bool = False


class ConsumeDirectlyRequest(TopicHeader, frozen=True, kw_only=True):
    """Has a consumer handle one message now; on the way to it, the message is the body."""

    consumer_group: str
    client_id: str | None = None
    msg_id: str | None = None
    broker_name: str | None = None
    topic: str | None = None
    topic_sys_flag: Int32 | None = None
    group_sys_flag: Int32 | None = None


class GetConsumerStatusRequest(TopicHeader, frozen=True, kw_only=True):
    """Asks a group's clients for the offsets they have reached."""

    topic: str
    group: str
    client_addr: str | None = None
