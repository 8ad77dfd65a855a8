"""Answers to requests that raised an error."""

from pocketmq import errors
from pocketmq.protocol import Command
from pocketmq.protocol.catalogue import REQUESTS
from pocketmq.protocol.peers import version_name
from pocketmq.protocol.request import BATCH, RAW

REFUSING = frozenset(
    {
        errors.ResponseCode.SYSTEM_BUSY,
        errors.ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
        errors.ResponseCode.MESSAGE_ILLEGAL,
        errors.ResponseCode.SERVICE_NOT_AVAILABLE,
        errors.ResponseCode.NO_PERMISSION,
        errors.ResponseCode.SUBSCRIPTION_PARSE_FAILED,
        errors.ResponseCode.INVALID_PARAMETER,
        errors.ResponseCode.POLLING_FULL,
        errors.ResponseCode.FLOW_CONTROL,
        errors.ResponseCode.ILLEGAL_OPERATION,
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
NO_LITE_TOPICS = "this broker has no lite topics"
OVERLOADED = "[OVERLOAD]system busy, start flow control for a while"
MORE_HELP = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
"""What Java adds to some refusals; people search for these words."""
FAILED = "the broker failed on this request; see its log"
"""The remark for an unexpected exception; its details are for the log, not for clients."""

_CODES: tuple[tuple[type[errors.MQError], errors.ResponseCode], ...] = (
    (errors.StoreError, errors.ResponseCode.SERVICE_NOT_AVAILABLE),
    (errors.NameInvalid, errors.ResponseCode.INVALID_PARAMETER),
    (errors.FilterSyntaxError, errors.ResponseCode.SUBSCRIPTION_PARSE_FAILED),
    (errors.InvalidInput, errors.ResponseCode.INVALID_PARAMETER),
)
"""Codes of errors that have none themselves; the first that matches is used."""


def check_size(request: Command, largest: int) -> None:
    """Raise `InvalidInput` for a request whose body would take too long to decode.

    All clients wait while a heartbeat or a list of locks of many megabytes is decoded.
    """
    if len(request.body) > largest and request.code not in _CARRYING:
        raise errors.InvalidInput(
            f"a body of {len(request.body)} bytes is over maxRequestBodySize={largest}"
        )


def refusal(request: Command, error: errors.MQError) -> Command:
    """Return the answer to a request that raised an error."""
    if isinstance(error, errors.ServerError):
        return request.reply(error.code, error.remark)
    for kind, code in _CODES:
        if isinstance(error, kind):
            return request.reply(code, str(error))
    return request.reply(errors.ResponseCode.SYSTEM_ERROR, str(error))


def too_old(version: int) -> str:
    """Return Java's remark for a client too old for a request."""
    return f"the client does not support this feature. version={version_name(version)}"
