"""Exit codes of admin commands: which kind of thing went wrong."""

from pocketmq.errors import (
    Absent,
    BrokerNotFound,
    CannotStart,
    ConsumerOffline,
    InvalidInput,
    MQError,
    NameServersUnreachable,
    NoPermission,
    ResponseCode,
    RouteNotFound,
    SendFailed,
    ServerError,
    SubscriptionGroupNotFound,
    TopicNotFound,
    TransportError,
)

FAILED = 1
WRONG_INPUT = 2
NOT_THERE = 3
NO_ANSWER = 4
NOT_ALLOWED = 5
PARTIAL = 6
INTERRUPTED = 130

_NOT_THERE_CODES = {
    int(ResponseCode.QUERY_NOT_FOUND),
    int(ResponseCode.USER_NOT_EXIST),
    int(ResponseCode.POLICY_NOT_EXIST),
}


def exit_code(error: MQError) -> int:
    """Give the exit code an error stands for."""
    if isinstance(error, SendFailed) and error.last_error is not None:
        return exit_code(error.last_error)
    if isinstance(error, InvalidInput | CannotStart):
        return WRONG_INPUT
    if isinstance(
        error, Absent | RouteNotFound | TopicNotFound | SubscriptionGroupNotFound | ConsumerOffline
    ):
        return NOT_THERE
    if isinstance(error, NameServersUnreachable | TransportError | BrokerNotFound):
        return NO_ANSWER
    if isinstance(error, NoPermission):
        return NOT_ALLOWED
    if isinstance(error, ServerError) and error.code in _NOT_THERE_CODES:
        return NOT_THERE
    return FAILED
