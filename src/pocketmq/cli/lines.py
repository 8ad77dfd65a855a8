"""Messages as lines of text: plain bodies, or one JSON object a line."""

import base64
import binascii
from contextlib import suppress

import msgspec

from pocketmq.cli.output import printable
from pocketmq.errors import InvalidInput
from pocketmq.model import Message, SendReceipt
from pocketmq.protocol import ReceivedMessage


class MessageLine(msgspec.Struct, omit_defaults=True):
    """A message as a JSON object. A body that is not text is in `body_base64`.

    `produce` reads the fields down to `ordering_key` and ignores the others, so that the output of
    `consume` can be produced again.
    """

    body: str | None = None
    body_base64: str | None = None
    tag: str | None = None
    keys: list[str] = []
    properties: dict[str, str] = {}
    priority: int | None = None
    ordering_key: str | None = None
    topic: str | None = None
    message_id: str | None = None
    broker: str | None = None
    queue_id: int | None = None
    queue_offset: int | None = None
    born: float | None = None
    stored: float | None = None
    reconsume_times: int = 0


_decode = msgspec.json.Decoder(MessageLine).decode
_encode = msgspec.json.Encoder().encode


def read_line(line: bytes) -> MessageLine:
    """Read a JSON object; raises `InvalidInput` if it is not one, or not a message."""
    try:
        read = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"not a JSON message: {error}") from None
    if (read.body is None) is (read.body_base64 is None):
        raise InvalidInput("a JSON message has either body or body_base64")
    return read


def body_of(line: MessageLine) -> bytes:
    """Return the body; raises `InvalidInput` if `body_base64` is not base64."""
    if line.body is not None:
        return line.body.encode()
    try:
        return base64.b64decode(line.body_base64 or "", validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidInput(f"body_base64 is not base64: {error}") from None


def message_of(line: MessageLine, topic: str, tag: str | None, keys: tuple[str, ...]) -> Message:
    """Return the message to send; `tag` and `keys` are for lines without their own."""
    return Message(
        topic,
        body_of(line),
        tag=line.tag or tag,
        keys=tuple(line.keys) or keys,
        properties=line.properties,
        priority=line.priority,
    )


def receipt_line(receipt: SendReceipt) -> bytes:
    """Return where a message is stored, as a line of JSON."""
    queue = receipt.queue
    line = MessageLine(
        topic=queue.topic,
        message_id=receipt.message_id,
        broker=queue.broker_name,
        queue_id=queue.queue_id,
        queue_offset=receipt.queue_offset,
    )
    return _encode(line) + b"\n"


def as_json(message: ReceivedMessage) -> bytes:
    """Return a message as a line of JSON."""
    body = message.body
    text: str | None = None
    with suppress(UnicodeDecodeError):
        text = body.decode()
    line = MessageLine(
        body=text,
        body_base64=None if text is not None else base64.b64encode(body).decode(),
        tag=message.tag,
        keys=message.keys,
        properties=message.user_properties,
        priority=message.priority,
        topic=message.topic,
        message_id=message.message_id,
        broker=message.broker_name,
        queue_id=message.queue_id,
        queue_offset=message.queue_offset,
        born=message.born_timestamp,
        stored=message.store_timestamp,
        reconsume_times=message.reconsume_times,
    )
    return _encode(line) + b"\n"


def as_text(message: ReceivedMessage) -> bytes:
    r"""Return a body as a line; control characters such as `\n` are escaped."""
    text = message.body.decode("utf-8", "backslashreplace")
    return printable(text).encode("utf-8", "backslashreplace") + b"\n"
