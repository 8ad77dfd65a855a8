"""What a message gets before it is sent: compression, batches, retry counts, request and reply.

A request is a normal message that names the client that waits for the reply, a correlation id and
how long it waits. The reply goes to a topic of the request's cluster, whose brokers pass it on to
the waiting client and store nothing. Sending and waiting are not here.
"""

from collections.abc import Mapping, Sequence

import msgspec

from pocketmq.balance.profile import COMPRESS_FROM
from pocketmq.errors import InvalidInput
from pocketmq.model import Message, property_names
from pocketmq.model.names import is_retry_topic

REPLY = "reply"
"""The type of message that brokers push to the client that waits for it."""


def compresses(body_size: int, *, batch: bool = False, threshold: int = COMPRESS_FROM) -> bool:
    """Return whether a body is compressed: from the threshold on, and never in a batch."""
    return not batch and body_size >= threshold


def check_batch(messages: Sequence[Message]) -> str:
    """Return the topic of a batch. Raises `InvalidInput` unless all share one for batches."""
    if not messages:
        raise InvalidInput("a batch needs at least one message")
    topic = messages[0].topic
    if is_retry_topic(topic):
        raise InvalidInput(f"messages to the retry topic {topic!r} cannot be sent as a batch")
    for message in messages:
        if message.topic != topic:
            raise InvalidInput(
                f"all messages of a batch need the same topic, not {topic!r} and {message.topic!r}"
            )
    return topic


class RetryCounts(msgspec.Struct, frozen=True):
    """What a send request says about earlier deliveries of its message."""

    properties: dict[str, str]
    reconsume_times: int = 0
    max_reconsume_times: int | None = None


def retry_counts(topic: str, properties: Mapping[str, str]) -> RetryCounts:
    """Move a retry message's counts from its properties to where the request header has them.

    Other topics keep their properties as they are. Raises `InvalidInput` for a count that is not
    a number.
    """
    kept = dict(properties)
    if not is_retry_topic(topic):
        return RetryCounts(kept)
    times = _number(property_names.RECONSUME_TIME, kept.pop(property_names.RECONSUME_TIME, None))
    limit = _number(
        property_names.MAX_RECONSUME_TIMES, kept.pop(property_names.MAX_RECONSUME_TIMES, None)
    )
    return RetryCounts(kept, times or 0, limit)


def _number(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        raise InvalidInput(f"property {name} must be a number, not {text!r}") from None


def request_properties(correlation_id: str, client_id: str, ttl_ms: int) -> dict[str, str]:
    """Return the properties that mark a message as a request."""
    return {
        property_names.CORRELATION_ID: correlation_id,
        property_names.REPLY_TO_CLIENT: client_id,
        property_names.TTL: str(ttl_ms),
    }


def reply_topic(request: Mapping[str, str]) -> str:
    """Return the topic to reply to a message with these properties.

    Raises `InvalidInput` if it is not a request, or lacks the property of its cluster.
    """
    _asked(request, property_names.CORRELATION_ID)
    _asked(request, property_names.REPLY_TO_CLIENT)
    return f"{_asked(request, property_names.CLUSTER)}_REPLY_TOPIC"


def reply_properties(request: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that route a reply to its client; raises what `reply_topic` does."""
    reply = {
        property_names.MESSAGE_TYPE: REPLY,
        property_names.CORRELATION_ID: _asked(request, property_names.CORRELATION_ID),
        property_names.REPLY_TO_CLIENT: _asked(request, property_names.REPLY_TO_CLIENT),
    }
    if property_names.TTL in request:
        reply[property_names.TTL] = request[property_names.TTL]
    return reply


def _asked(request: Mapping[str, str], name: str) -> str:
    value = request.get(name)
    if not value:
        raise InvalidInput(
            f"not a request: the message has no property {name!r}, so no client waits for a reply"
        )
    return value
