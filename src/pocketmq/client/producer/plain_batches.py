"""The short way of a batch: one try to the next queue in turn, as `plain_sends` has it for one.

The bytes of its request and of the usual response are made and read in one step each, which the
compiled core replaces. What is not as usual takes the ordinary path.
"""

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from pocketmq.client.producer.plain_frames import Stored, json_text, usual_answer
from pocketmq.client.producer.publishing import Publication
from pocketmq.client.producer.requests import Outgoing, Template
from pocketmq.model import Message, MessageQueue
from pocketmq.native import in_core
from pocketmq.protocol import RequestCode
from pocketmq.protocol.batch import TOPIC_LIMIT, encode_numbered
from pocketmq.protocol.header_json import REQUEST_TAIL

if TYPE_CHECKING:
    from pocketmq.client.producer.sending import Sending

SEND_BATCH = int(RequestCode.SEND_BATCH_MESSAGE)
_PREFIX = struct.Struct(">II")

StoredBatch: TypeAlias = tuple[Stored, bool]
"""What a receipt needs, and whether the broker has an id for the whole."""

BatchAim: TypeAlias = tuple[Publication, int, MessageQueue, Template]
"""Where a batch goes: topic, turn, queue and the template of requests to it."""


@in_core
def batch_frame(  # noqa: PLR0917 - as `plain_frame`
    head: bytes,
    middle: bytes,
    properties: bytes,
    messages: Sequence[Message],
    prefix: str,
    steps: Sequence[int],
    born_ms: int,
    opaque: int,
) -> tuple[bytes, str, int] | None:
    """Write the whole frame of a batch; return the ids of its messages and its body's size, too.

    `head` and `middle` are its queue's template, `properties` those of the whole (see `json_text`);
    the ids are as `encode_numbered` has them. None for messages of several topics, without a
    body, or with a priority. Raises as `encode_messages` does.
    """
    topic = messages[0].topic
    if any(not each.body or each.topic != topic or each.priority is not None for each in messages):
        return None
    body, ids = encode_numbered(messages, prefix, steps)
    header = b'%b0","g":"%d","h":"0","i":"%b","j":"0%b0,"language":"PYTHON","opaque":%d%b' % (
        head,
        born_ms,
        properties,
        middle,
        opaque,
        REQUEST_TAIL,
    )
    size = len(header)
    return _PREFIX.pack(4 + size + len(body), size) + header + body, ids, len(body)


@in_core
def stored_batch(data: bytes, opaque: int) -> StoredBatch | None:
    """Return what a receipt needs, if `data` is one frame: a response that says "stored".

    None for anything else, as `stored_answer`.
    """
    return usual_answer(data, opaque)


class PlainBatches:
    """Decides which batches go the short way, and where. Any thread may call it."""

    def __init__(self, sending: "Sending") -> None:
        self._topic = sending.plain.messages.topic
        self._publishing = sending.publishing
        self._preparing = sending.preparing
        writer = sending.exchange.writer
        self._template = writer.batch_template
        self._signs = writer.signs  # the body is part of what is signed, and packed last
        self.limit = sending.options.max_message_size

    def aim(self, messages: Sequence[Message]) -> BatchAim | None:
        """Return where messages go; None sends them the ordinary path, which has the words.

        No turn is taken by that.
        """
        if type(messages) not in (list, tuple) or not messages or type(messages[0]) is not Message:
            return None
        topic = None if self._signs else self._topic(messages[0].topic)
        if topic is None or not topic.queues or len(topic.name.encode()) > TOPIC_LIMIT:
            return None
        publication = topic.publication
        if not self._publishing.knows_batch_ids(publication):
            return None
        turn = publication.robin.index + 1 & 0x7FFF_FFFF
        queue = topic.queues[turn % len(topic.queues)]
        return publication, turn, queue, self._template(queue)

    def properties(self, name: str) -> bytes:
        """Return the properties of a batch with an id, as `batch_frame` wants them."""
        return json_text(self._preparing.batch_properties(name))

    def outgoing(
        self, messages: Sequence[Message], topic: str, written: tuple[bytes, str, int], name: str
    ) -> Outgoing:
        """Return a batch that was sent already, for another try; `name` is the id of the whole.

        `written` is what `batch_frame` returned.
        """
        frame, ids, size = written
        properties = self._preparing.batch_properties(name)
        return Outgoing(
            topic,
            frame[len(frame) - size :],
            properties,
            ids,
            code=SEND_BATCH,
            messages=messages,
            batch_id=name,
            for_5x=True,
        )
