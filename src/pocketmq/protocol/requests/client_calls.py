"""Calls that a broker passes on to a client, or makes to it."""

from pocketmq.protocol.bodies.offsets import ConsumerStatus
from pocketmq.protocol.bodies.running import DirectConsumeResult, RunningInfo
from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.forms import STORED_MESSAGES, json_of
from pocketmq.protocol.header import Int32, RpcHeader, TopicHeader
from pocketmq.protocol.request import BROKER, CLIENT, NoHeader, request


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


GET_CONSUMER_STATUS_FROM_CLIENT = request(
    Code.GET_CONSUMER_STATUS_FROM_CLIENT,
    GetConsumerStatusRequest,
    NoHeader,
    result=json_of(ConsumerStatus),
    served_by=CLIENT,
)
INVOKE_BROKER_TO_GET_CONSUMER_STATUS = request(
    Code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS,
    GetConsumerStatusRequest,
    NoHeader,
    result=json_of(ConsumerStatus),
)
GET_CONSUMER_RUNNING_INFO = request(
    Code.GET_CONSUMER_RUNNING_INFO,
    GetConsumerRunningInfoRequest,
    NoHeader,
    result=json_of(RunningInfo),
    served_by=BROKER | CLIENT,
)
CONSUME_MESSAGE_DIRECTLY = request(
    Code.CONSUME_MESSAGE_DIRECTLY,
    ConsumeDirectlyRequest,
    NoHeader,
    body=STORED_MESSAGES,
    result=json_of(DirectConsumeResult),
    served_by=BROKER | CLIENT,
)
