"""Statuses: the codes and texts of Apache's proxy for what is refused or fails."""

from pocketmq import errors
from pocketmq.errors import ResponseCode
from pocketmq.proxy.wire import definition as d

_BY_RESPONSE = {
    int(ResponseCode.SUCCESS): d.Code.OK,
    int(ResponseCode.SYSTEM_BUSY): d.Code.TOO_MANY_REQUESTS,
    int(ResponseCode.FLOW_CONTROL): d.Code.TOO_MANY_REQUESTS,
    int(ResponseCode.REQUEST_CODE_NOT_SUPPORTED): d.Code.NOT_IMPLEMENTED,
    int(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST): d.Code.CONSUMER_GROUP_NOT_FOUND,
    int(ResponseCode.TOPIC_NOT_EXIST): d.Code.TOPIC_NOT_FOUND,
}


class CallRefused(Exception):
    """A call that cannot be served, with the code and text of its status."""

    def __init__(self, code: "d.Code", message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message


def status(code: "d.Code", message: str | None = None) -> d.Status:
    """Return a status; without a message it has the code's name, as Apache's."""
    return d.Status(code=code, message=d.Code.Name(code) if message is None else message)


OK = status(d.Code.OK)
_ALL_OK = {d.Code.OK}


def status_of(error: Exception) -> d.Status:
    """Return the status that an error stands for."""
    if isinstance(error, CallRefused):
        return status(error.code, error.message)
    if isinstance(error, errors.RouteNotFound):
        return status(d.Code.TOPIC_NOT_FOUND, str(error))
    if isinstance(error, errors.ServerError):
        code = _BY_RESPONSE.get(error.code, d.Code.INTERNAL_SERVER_ERROR)
        return status(code, error.remark or str(error.code))
    if isinstance(error, errors.RequestTimedOut):
        return status(d.Code.PROXY_TIMEOUT, str(error))
    if isinstance(error, errors.InvalidInput):
        return status(d.Code.BAD_REQUEST, str(error))
    return status(d.Code.INTERNAL_SERVER_ERROR, f"{type(error).__name__}: {error}")


def joint_status(codes: set["d.Code"], empty: str) -> d.Status:
    """Return the status of a call with many results: theirs if all agree, else MULTIPLE_RESULTS."""
    if codes == _ALL_OK:
        return OK
    if not codes:
        return status(d.Code.INTERNAL_SERVER_ERROR, empty)
    return status(d.Code.MULTIPLE_RESULTS if len(codes) > 1 else next(iter(codes)))
