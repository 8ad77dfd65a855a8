"""Names of the messaging semantic conventions, and the attributes of messages.

The conventions are still in development and their package changes names between releases, so the
names are written out here. Independent of spans and instruments.
"""

from collections.abc import Sequence
from typing import Final

from opentelemetry.util.types import AttributeValue

from pocketmq.errors import MQError
from pocketmq.model import Message, SendReceipt
from pocketmq.protocol import ReceivedMessage
from pocketmq.protocol.message_ids import parse_offset_id

SCOPE: Final = "pocketmq"
SYSTEM: Final = "rocketmq"
BATCH_COUNT: Final = "messaging.batch.message_count"
CONSUMER_GROUP: Final = "messaging.consumer.group.name"
DESTINATION: Final = "messaging.destination.name"
ERROR_TYPE: Final = "error.type"
MESSAGE_ID: Final = "messaging.message.id"
OPERATION: Final = "messaging.operation.name"
PARTITION: Final = "messaging.destination.partition.id"
OUTCOME: Final = "pocketmq.outcome"
"""Ours: how a handler ended, `ok`, `retry` or `error`."""

Attributes = dict[str, AttributeValue]


def operation(name: str, kind: str, topic: str) -> Attributes:
    """Return the attributes that every span of an operation has."""
    return {
        "messaging.system": SYSTEM,
        OPERATION: name,
        "messaging.operation.type": kind,
        DESTINATION: topic,
    }


def of_message(message: Message | ReceivedMessage) -> Attributes:
    """Return what describes one message."""
    found: Attributes = {"messaging.message.body.size": _size(message)}
    if message.tag:
        found["messaging.rocketmq.message.tag"] = message.tag
    if message.keys:
        found["messaging.rocketmq.message.keys"] = tuple(message.keys)
    if isinstance(message, ReceivedMessage):
        found[MESSAGE_ID] = message.message_id
        found[PARTITION] = f"{message.broker_name}:{message.queue_id}"
    return found


def _size(message: Message | ReceivedMessage) -> int:
    """Return the size of a body; of a compressed one as it is stored: nothing is inflated."""
    return message.body_size if isinstance(message, ReceivedMessage) else len(message.body)


def of_receipts(receipts: Sequence[SendReceipt]) -> Attributes:
    """Return what the receipts of a send tell: of several, only what one value can tell."""
    if len(receipts) != 1:
        return {}
    (receipt,) = receipts
    queue = receipt.queue
    found: Attributes = {PARTITION: f"{queue.broker_name}:{queue.queue_id}"}
    if "," not in receipt.message_id:
        found[MESSAGE_ID] = receipt.message_id
    try:
        host = parse_offset_id((receipt.offset_message_id or "").partition(",")[0]).host
    except MQError:
        return found
    address, _, port = host.rpartition(":")
    return found | {"server.address": address.strip("[]"), "server.port": int(port)}


def error_type(error: BaseException) -> str:
    """Return the name of an error's class, as the conventions want it."""
    kind = type(error)
    inside = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return f"{inside}{kind.__qualname__}"
