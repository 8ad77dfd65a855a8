"""A producer for pipelines: batches that are encoded already.

What a pipeline makes by the ten thousand never becomes a `Message` here. Independent of pipelines.
"""

import threading
from typing import Self

import msgspec

from pocketmq.blocking.producer import Producer
from pocketmq.client.producer.choices import choice_of
from pocketmq.client.producer.preparing import unique_ids
from pocketmq.client.producer.requests import Outgoing
from pocketmq.model import Message, MessageQueue, SendReceipt
from pocketmq.protocol import RequestCode
from pocketmq.protocol.message_ids import UniqueIds

ID_DIGITS = 4
"""Last digits of an id that count; those before are the same for all of a range."""

_SEND_BATCH = int(RequestCode.SEND_BATCH_MESSAGE)


class IdRange(msgspec.Struct, frozen=True):
    """Unique ids: `prefix` and, in four hexadecimal digits, `first` and those after it.

    FFFF is followed by 0000.
    """

    prefix: str
    first: int


class RecordSender(Producer):
    """A blocking producer that also sends what is encoded already. Threads may share it."""

    # Of its own: these ids are counted in strides, those of single messages one by one.
    _ids: UniqueIds

    def start(self) -> Self:
        """Make ready to send; does nothing if it is running."""
        super().start()
        if not hasattr(self, "_ids"):
            self._ids = unique_ids(self._client.session, f"{self.options.group} records")
            self._taking = threading.Lock()
            self._taken = 0
        return self

    def take_ids(self, amount: int) -> IdRange:
        """Return ids for `amount` messages, at most 65536, that are sent now."""
        with self._taking:
            first, self._taken = self._taken, self._taken + amount & 0xFFFF
        newest = self._ids.next_ids(self._client.session.clock.now_ms(), 1)[0]
        return IdRange(newest[:-ID_DIGITS], first)

    def send_packed(
        self,
        topic: str,
        body: bytes,
        *,
        queue: MessageQueue | None = None,
        timeout: float | None = None,
    ) -> SendReceipt:
        """Send a batch whose body is encoded as `protocol.batch` has it; raises as `send` does."""
        sending = self._running().sending
        preparing = sending.preparing
        batch_id = preparing.ids.next_id(preparing.clock.now_ms())
        stands_for_all = Message(topic, body)
        outgoing = Outgoing(
            preparing.wire_topic(topic),
            body,
            preparing.batch_properties(batch_id),
            batch_id,
            code=_SEND_BATCH,
            messages=(stands_for_all,),
            batch_id=batch_id,
            for_5x=True,
        )
        choice = choice_of(stands_for_all, queue, None, None, sending.namespace)
        return sending.deliver(outgoing, choice, timeout=timeout)
