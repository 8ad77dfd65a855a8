"""A server's answers: RocketMQ's response codes, and a refusal as an error.

One class for each code that callers tell apart; the others become a plain `ServerError`, whose
`code` says which it is.
"""

from enum import IntEnum
from typing import ClassVar

from pocketmq.errors.tree import MQError


class ResponseCode(IntEnum):
    """A server's answer to a request. Zero is success; most others are errors."""

    SUCCESS = 0
    SYSTEM_ERROR = 1
    SYSTEM_BUSY = 2
    REQUEST_CODE_NOT_SUPPORTED = 3
    TRANSACTION_FAILED = 4
    FLUSH_DISK_TIMEOUT = 10
    SLAVE_NOT_AVAILABLE = 11
    FLUSH_SLAVE_TIMEOUT = 12
    MESSAGE_ILLEGAL = 13
    SERVICE_NOT_AVAILABLE = 14
    VERSION_NOT_SUPPORTED = 15
    NO_PERMISSION = 16
    TOPIC_NOT_EXIST = 17
    TOPIC_EXIST_ALREADY = 18
    PULL_NOT_FOUND = 19
    PULL_RETRY_IMMEDIATELY = 20
    PULL_OFFSET_MOVED = 21
    QUERY_NOT_FOUND = 22
    SUBSCRIPTION_PARSE_FAILED = 23
    SUBSCRIPTION_NOT_EXIST = 24
    SUBSCRIPTION_NOT_LATEST = 25
    SUBSCRIPTION_GROUP_NOT_EXIST = 26
    FILTER_DATA_NOT_EXIST = 27
    FILTER_DATA_NOT_LATEST = 28
    INVALID_PARAMETER = 29
    TRANSACTION_SHOULD_COMMIT = 200
    TRANSACTION_SHOULD_ROLLBACK = 201
    TRANSACTION_STATE_UNKNOW = 202
    TRANSACTION_STATE_GROUP_WRONG = 203
    NO_BUYER_ID = 204
    NOT_IN_CURRENT_UNIT = 205
    CONSUMER_NOT_ONLINE = 206
    CONSUME_MSG_TIMEOUT = 207
    NO_MESSAGE = 208
    POLLING_FULL = 209
    POLLING_TIMEOUT = 210
    BROKER_NOT_EXIST = 211
    BROKER_DISPATCH_NOT_COMPLETE = 212
    BROADCAST_CONSUMPTION = 213
    FLOW_CONTROL = 215
    NOT_LEADER_FOR_QUEUE = 501
    ILLEGAL_OPERATION = 604
    GO_AWAY = 1500
    CONTROLLER_FENCED_MASTER_EPOCH = 2000
    CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH = 2001
    CONTROLLER_INVALID_MASTER = 2002
    CONTROLLER_INVALID_REPLICAS = 2003
    CONTROLLER_MASTER_NOT_AVAILABLE = 2004
    CONTROLLER_INVALID_REQUEST = 2005
    CONTROLLER_BROKER_NOT_ALIVE = 2006
    CONTROLLER_NOT_LEADER = 2007
    CONTROLLER_BROKER_METADATA_NOT_EXIST = 2008
    CONTROLLER_INVALID_CLEAN_BROKER_METADATA = 2009
    CONTROLLER_BROKER_NEED_TO_BE_REGISTERED = 2010
    CONTROLLER_MASTER_STILL_EXIST = 2011
    CONTROLLER_ELECT_MASTER_FAILED = 2012
    CONTROLLER_ALTER_SYNC_STATE_SET_FAILED = 2013
    CONTROLLER_BROKER_ID_INVALID = 2014
    CONTROLLER_JRAFT_INTERNAL_ERROR = 2015
    CONTROLLER_BROKER_LIVE_INFO_NOT_EXISTS = 2016
    LMQ_QUOTA_EXCEEDED = 2017
    LITE_SUBSCRIPTION_QUOTA_EXCEEDED = 2018
    USER_NOT_EXIST = 3001
    POLICY_NOT_EXIST = 3002


class ServerError(MQError):
    """A name server or broker refused a request."""

    answers: ClassVar[ResponseCode | None] = None
    advice: ClassVar[str] = ""

    def __init__(
        self, code: int, remark: str | None = None, *, request: str = "", address: str = ""
    ) -> None:
        self.code = code
        self.remark = remark
        self.request = request
        self.address = address
        try:
            name = ResponseCode(code).name
        except ValueError:
            name = "unknown code"
        parts = [f"{address} " if address else "", "refused"]
        parts.append(f" {request}" if request else " the request")
        parts.append(f": {name} ({code})")
        if remark:
            parts.append(f", {remark}")
        if self.advice:
            parts.append(f"; {self.advice}")
        super().__init__("".join(parts))


class SystemFailure(ServerError):
    """The server failed internally; its remark says where."""

    answers = ResponseCode.SYSTEM_ERROR
    retryable = True


class SystemBusy(ServerError):
    """The server is overloaded and rejects requests."""

    answers = ResponseCode.SYSTEM_BUSY
    retryable = True
    advice = "reduce the send rate, or retry later"


class RequestNotSupported(ServerError):
    """The server does not support this request; it may be older than the feature."""

    answers = ResponseCode.REQUEST_CODE_NOT_SUPPORTED


class NotANameServer(RequestNotSupported):
    """The server at this address is not a name server: brokers do not serve this request."""

    advice = "this is not a name server but probably a broker; name servers listen on port 9876"


class MessageIllegal(ServerError):
    """The message is too large or malformed for this broker."""

    answers = ResponseCode.MESSAGE_ILLEGAL


class ServiceNotAvailable(ServerError):
    """The broker is starting, stopping or out of disk."""

    answers = ResponseCode.SERVICE_NOT_AVAILABLE
    retryable = True


class NoPermission(ServerError):
    """The user, the topic or the group has no permission for this."""

    answers = ResponseCode.NO_PERMISSION
    retryable = True  # as in Java: another broker may hold the topic with other permissions


class TopicNotFound(ServerError):
    """The topic does not exist on the server, which does not create topics automatically."""

    answers = ResponseCode.TOPIC_NOT_EXIST
    retryable = True
    refresh_route = True
    advice = "create the topic, or check its name"


class OffsetMoved(ServerError):
    """The requested offset is outside the range of the queue."""

    answers = ResponseCode.PULL_OFFSET_MOVED


class SubscriptionGroupNotFound(ServerError):
    """The consumer group does not exist on the server, which does not create it automatically."""

    answers = ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
    advice = "create the group, or check its name"


class NotLeader(ServerError):
    """The broker does not lead this logical queue of a static topic: the queue has moved."""

    answers = ResponseCode.NOT_LEADER_FOR_QUEUE
    retryable = True
    refresh_route = True


class ConsumerOffline(ServerError):
    """No member of the group is connected."""

    answers = ResponseCode.CONSUMER_NOT_ONLINE


class FlowControlled(ServerError):
    """The server applies flow control: this client must slow down."""

    answers = ResponseCode.FLOW_CONTROL
    retryable = True


_BY_CODE: dict[int, type[ServerError]] = {
    cls.answers: cls for cls in ServerError.__subclasses__() if cls.answers is not None
}


_OF_NAME_SERVERS = frozenset(
    {"GET_ROUTEINFO_BY_TOPIC", "GET_BROKER_CLUSTER_INFO", "GET_ALL_TOPIC_LIST_FROM_NAMESERVER"}
)
"""Requests that every name server serves, and no broker."""


def server_error(
    code: int, remark: str | None = None, *, request: str = "", address: str = ""
) -> ServerError:
    """Return the error of the class that stands for `code`."""
    kind = _BY_CODE.get(code, ServerError)
    if kind is RequestNotSupported and request in _OF_NAME_SERVERS:
        kind = NotANameServer
    return kind(code, remark, request=request, address=address)
