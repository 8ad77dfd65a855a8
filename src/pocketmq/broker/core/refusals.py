"""Answers to requests that raised an error."""

from pocketmq.errors import (
    FilterSyntaxError,
    InvalidInput,
    MQError,
    NameInvalid,
    ResponseCode,
    ServerError,
    StoreError,
)
from pocketmq.protocol.catalogue import REQUESTS
from pocketmq.protocol.command import Command
from pocketmq.protocol.request import BATCH, RAW

REFUSING = frozenset(
    {
        ResponseCode.SYSTEM_BUSY,
        ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
        ResponseCode.MESSAGE_ILLEGAL,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.NO_PERMISSION,
        ResponseCode.SUBSCRIPTION_PARSE_FAILED,
        ResponseCode.INVALID_PARAMETER,
        ResponseCode.POLLING_FULL,
        ResponseCode.FLOW_CONTROL,
        ResponseCode.ILLEGAL_OPERATION,
    }
)
"""Codes that are logged as refusals; other failures say that something does not exist."""
_CARRYING = frozenset(code for code, row in REQUESTS.items() if row.body in (RAW, BATCH))
"""Requests whose body is a message: only stored, and with a limit of its own."""
STORE_UNAVAILABLE = (
    "service not available now. It may be caused by one of the following reasons: the broker's "
    "disk is full, messages are put to the slave, message store has been shut down, etc."
)
"""Java's remark for a message that the store could not take."""
OVERLOADED = "[OVERLOAD]system busy, start flow control for a while"
MORE_HELP = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
"""What Java adds to some refusals; people search for these words."""
FAILED = "the broker failed on this request; see its log"
"""The remark for an unexpected exception; its details are for the log, not for clients."""

_CODES: tuple[tuple[type[MQError], ResponseCode], ...] = (
    (StoreError, ResponseCode.SERVICE_NOT_AVAILABLE),
    (NameInvalid, ResponseCode.INVALID_PARAMETER),
    (FilterSyntaxError, ResponseCode.SUBSCRIPTION_PARSE_FAILED),
    (InvalidInput, ResponseCode.INVALID_PARAMETER),
)
"""Codes of errors that have none themselves; the first that matches is used."""


def check_size(request: Command, largest: int) -> None:
    """Raise `InvalidInput` for a request whose body would take too long to decode.

    All clients wait while a heartbeat or a list of locks of many megabytes is decoded.
    """
    if len(request.body) > largest and request.code not in _CARRYING:
        raise InvalidInput(
            f"a body of {len(request.body)} bytes is over maxRequestBodySize={largest}"
        )


def refusal(request: Command, error: MQError) -> Command:
    """Return the answer to a request that raised an error."""
    if isinstance(error, ServerError):
        return request.reply(error.code, error.remark)
    for kind, code in _CODES:
        if isinstance(error, kind):
            return request.reply(code, str(error))
    return request.reply(ResponseCode.SYSTEM_ERROR, str(error))
