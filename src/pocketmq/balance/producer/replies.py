"""Request and reply: what marks a message as one or the other.

A request is a normal message that says who waits for the reply, under which number, and how long.
The reply goes to a topic of the request's cluster, whose brokers pass it on to the waiting client
and keep nothing. Sending and waiting are not here.
"""

from collections.abc import Mapping

from pocketmq.errors import InvalidInput
from pocketmq.model import properties as names

REPLY = "reply"
"""The type of message that brokers hand on to whoever waits for it."""


def request_properties(correlation_id: str, client_id: str, ttl_ms: int) -> dict[str, str]:
    """Give what a request has besides its own properties."""
    return {
        names.CORRELATION_ID: correlation_id,
        names.REPLY_TO_CLIENT: client_id,
        names.TTL: str(ttl_ms),
    }


def reply_topic(request: Mapping[str, str]) -> str:
    """Give the topic to reply to a message with these properties.

    Raises `InvalidInput` if it is no request, or no broker says which cluster it came from.
    """
    _asked(request, names.CORRELATION_ID)
    _asked(request, names.REPLY_TO_CLIENT)
    return f"{_asked(request, names.CLUSTER)}_REPLY_TOPIC"


def reply_properties(request: Mapping[str, str]) -> dict[str, str]:
    """Give the properties that lead a reply to whoever waits; raises what `reply_topic` does."""
    reply = {
        names.MESSAGE_TYPE: REPLY,
        names.CORRELATION_ID: _asked(request, names.CORRELATION_ID),
        names.REPLY_TO_CLIENT: _asked(request, names.REPLY_TO_CLIENT),
    }
    if names.TTL in request:
        reply[names.TTL] = request[names.TTL]
    return reply


def _asked(request: Mapping[str, str], name: str) -> str:
    value = request.get(name)
    if not value:
        raise InvalidInput(f"the message waits for no reply: it has no property {name!r}")
    return value
