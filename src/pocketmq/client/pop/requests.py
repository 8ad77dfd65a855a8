"""The requests of pop consumption, each sent to one broker and answered in time.

Which broker to ask, and when, is the consumer's decision. Names are those of the wire.
"""

import asyncio
import logging
from collections.abc import Sequence

import msgspec

from pocketmq.client.calls import SUCCESS
from pocketmq.client.damage import tell_skipped
from pocketmq.client.pop.popped import PopResult, batch_acks, handle_of, read_popped
from pocketmq.client.pop.wrapped import WrappedBatches
from pocketmq.client.session import Session
from pocketmq.errors import MQError, RequestNotSupported, ResponseCode
from pocketmq.model import MessageQueue, Subscription
from pocketmq.protocol import ReceivedMessage, RequestCode, encode_body
from pocketmq.protocol.handles import PopHandle
from pocketmq.protocol.requests import pop as rows

logger = logging.getLogger("pocketmq.client")

ANY_QUEUE = -1
"""The id that stands for all queues of a topic on a broker."""
_POPPED = SUCCESS | {
    int(ResponseCode.POLLING_FULL),
    int(ResponseCode.POLLING_TIMEOUT),
    int(ResponseCode.PULL_NOT_FOUND),
}
_MOST_AT_ONCE = 32
_MOST_BITS = 4096
"""How far a message may lie behind the first of its pop to be acknowledged together with it."""


class PopRequests:
    """The pop requests of one group."""

    def __init__(self, session: Session, group: str, *, ordered: bool, from_first: bool) -> None:
        self._session = session
        self._group = group
        self._ordered = ordered
        self._init_mode = 0 if from_first else 1
        self._no_batches: set[str] = set()  # brokers that do not know batch acks
        self._grace = session.options.request_timeout
        self._wrapped = WrappedBatches()

    async def pop(
        self,
        queue: MessageQueue,
        subscription: Subscription,
        name: str,
        *,
        most: int,
        invisible: float,
        wait: float,
        attempt: str | None = None,
    ) -> PopResult:
        """Take messages of a queue; return none if the broker has none for `wait` seconds.

        `name` is what the application calls the topic. Raises `BrokerNotFound`, `ServerError`,
        `TransportError`, `ProtocolError`.
        """
        header = rows.PopRequest(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            max_msg_nums=most,
            invisible_time=_milliseconds(invisible),
            poll_time=_milliseconds(wait),
            born_time=0,  # the broker's clock: ours may be wrong
            init_mode=self._init_mode,
            exp_type=subscription.expression_type,
            exp=subscription.sub_string,
            order=self._ordered,
            attempt_id=attempt,
            bname=queue.broker_name,
        )
        asked = asyncio.get_running_loop().time()
        broker = queue.broker_name
        answer = await self._session.brokers.call(
            broker,
            RequestCode.POP_MESSAGE,
            header,
            timeout=wait + self._grace,
            master_only=True,
            accept=_POPPED,
        )
        if answer.code != ResponseCode.SUCCESS:
            return PopResult([], asked, full=answer.code == ResponseCode.POLLING_FULL)
        response = answer.header(rows.PopResponse)
        read = read_popped(response, answer.body, broker, name)
        self._wrapped.note(read.messages, asked, asked + invisible)
        if read.damaged:
            await self._drop(broker, queue.topic, read.damaged)
        return PopResult(read.messages, asked + invisible, popped_at_ms=response.pop_time)

    async def _drop(self, broker: str, topic: str, damaged: list[ReceivedMessage]) -> None:
        """Acknowledge damaged messages, now and not after some tries.

        A broker that hands one out again may do so by a copy in the retry topic, whose checksum it
        computes again: the damage could not be seen any more.
        """
        for message in damaged:
            queue = MessageQueue(message.topic, broker, message.queue_id)
            tell_skipped(queue, message.queue_offset, "the body does not match its checksum")
        try:
            await self.ack(broker, [(topic, handle_of(message)) for message in damaged])
        except MQError as error:
            logger.warning('ack of damaged messages failed: topic=%s error="%s"', topic, error)

    async def ack(self, broker: str, handles: Sequence[tuple[str, PopHandle]]) -> None:
        """Acknowledge messages of one broker, each by its topic and handle."""
        handles = self._wrapped.settle(handles)
        near = all(0 <= _offset(handle) - handle.start_offset < _MOST_BITS for _, handle in handles)
        if len(handles) > 1 and near and broker not in self._no_batches:
            acks = rows.BatchAcks(broker_name=broker, acks=batch_acks(self._group, handles))
            try:
                await self._session.brokers.call(
                    broker,
                    RequestCode.BATCH_ACK_MESSAGE,
                    body=encode_body(acks),
                    master_only=True,
                )
            except RequestNotSupported:  # before 5.1
                self._no_batches.add(broker)
            else:
                return
        for start in range(0, len(handles), _MOST_AT_ONCE):
            some = handles[start : start + _MOST_AT_ONCE]
            await asyncio.gather(*(self._ack_one(broker, *each) for each in some))

    async def _ack_one(self, broker: str, topic: str, handle: PopHandle) -> None:
        header = rows.AckRequest(
            consumer_group=self._group,
            topic=handle.mark.real_topic(topic, self._group),
            queue_id=handle.queue_id,
            extra_info=str(handle),
            offset=_offset(handle),
            bname=broker,
        )
        await self._session.brokers.call(broker, RequestCode.ACK_MESSAGE, header, master_only=True)

    async def change_invisible(self, topic: str, handle: PopHandle, invisible: float) -> PopHandle:
        """Hide a message for `invisible` seconds from now on; return its new handle."""
        own, handle = handle, self._wrapped.known_as(handle)
        broker, offset = handle.broker_name, _offset(handle)
        header = rows.ChangeInvisibleTimeRequest(
            consumer_group=self._group,
            topic=handle.mark.real_topic(topic, self._group),
            queue_id=handle.queue_id,
            extra_info=str(handle),
            offset=offset,
            invisible_time=_milliseconds(invisible),
            bname=broker,
        )
        answer = await self._session.brokers.call(
            broker, RequestCode.CHANGE_MESSAGE_INVISIBLETIME, header, master_only=True
        )
        changed = answer.header(rows.ChangeInvisibleTimeResponse)
        new = msgspec.structs.replace(
            handle,
            start_offset=offset,
            pop_time_ms=changed.pop_time,
            invisible_time_ms=changed.invisible_time,
            revive_queue_id=changed.revive_qid,
            queue_offset=offset,
        )
        return self._wrapped.moved(own, new, asyncio.get_running_loop().time() + invisible)


def _offset(handle: PopHandle) -> int:
    return handle.start_offset if handle.queue_offset is None else handle.queue_offset


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
