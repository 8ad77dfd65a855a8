"""A server's refusal as an error: one class for each code that callers tell apart.

Codes without a class of their own become a plain `ServerError`; its `code` says which.
"""

from typing import ClassVar

from pocketmq.errors.response import ResponseCode
from pocketmq.errors.tree import MQError


class ServerError(MQError):
    """A name server or broker answered, and the answer is no."""

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
    """The server failed inside; its remark says where."""

    answers = ResponseCode.SYSTEM_ERROR
    retryable = True


class SystemBusy(ServerError):
    """The server sheds load."""

    answers = ResponseCode.SYSTEM_BUSY
    retryable = True
    advice = "send more slowly or try again"


class RequestNotSupported(ServerError):
    """The server does not know this request; it may be older than the feature."""

    answers = ResponseCode.REQUEST_CODE_NOT_SUPPORTED


class MessageIllegal(ServerError):
    """The message is too large or malformed for this broker."""

    answers = ResponseCode.MESSAGE_ILLEGAL


class ServiceNotAvailable(ServerError):
    """The broker is starting, stopping or out of disk."""

    answers = ResponseCode.SERVICE_NOT_AVAILABLE
    retryable = True


class NoPermission(ServerError):
    """The topic, group or user may not do this here."""

    answers = ResponseCode.NO_PERMISSION
    retryable = True  # as in Java: another broker may hold the topic with other permissions


class TopicNotFound(ServerError):
    """The topic does not exist there and is not created by itself."""

    answers = ResponseCode.TOPIC_NOT_EXIST
    retryable = True
    refresh_route = True
    advice = "create the topic, or check its name"


class OffsetMoved(ServerError):
    """The offset asked for lies outside what the queue holds."""

    answers = ResponseCode.PULL_OFFSET_MOVED


class SubscriptionGroupNotFound(ServerError):
    """The consumer group does not exist there and is not created by itself."""

    answers = ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST


class ConsumerOffline(ServerError):
    """No member of the group is connected."""

    answers = ResponseCode.CONSUMER_NOT_ONLINE


class FlowControlled(ServerError):
    """The server asks this client to slow down."""

    answers = ResponseCode.FLOW_CONTROL
    retryable = True


_BY_CODE: dict[int, type[ServerError]] = {
    cls.answers: cls for cls in ServerError.__subclasses__() if cls.answers is not None
}


def server_error(
    code: int, remark: str | None = None, *, request: str = "", address: str = ""
) -> ServerError:
    """Make the error of the class that stands for `code`."""
    return _BY_CODE.get(code, ServerError)(code, remark, request=request, address=address)
