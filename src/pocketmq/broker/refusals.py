"""What a client is told when its request met an error."""

from pocketmq.errors import (
    FilterSyntaxError,
    InvalidInput,
    MQError,
    NameInvalid,
    ResponseCode,
    ServerError,
    StoreError,
)
from pocketmq.protocol.command import Command

FAILED = "the broker failed on this request; see its log"
"""Said of a mistake of ours; what it was is nobody else's business."""

_CODES: tuple[tuple[type[MQError], ResponseCode], ...] = (
    (StoreError, ResponseCode.SERVICE_NOT_AVAILABLE),
    (NameInvalid, ResponseCode.INVALID_PARAMETER),
    (FilterSyntaxError, ResponseCode.SUBSCRIPTION_PARSE_FAILED),
    (InvalidInput, ResponseCode.INVALID_PARAMETER),
)
"""Codes of errors that do not have one themselves; the first that fits counts."""


def refusal(request: Command, error: MQError) -> Command:
    """Give the answer to a request that met an error."""
    if isinstance(error, ServerError):
        return request.reply(error.code, error.remark)
    for kind, code in _CODES:
        if isinstance(error, kind):
            return request.reply(code, str(error))
    return request.reply(ResponseCode.SYSTEM_ERROR, str(error))
