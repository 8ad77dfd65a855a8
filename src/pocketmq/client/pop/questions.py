"""What a group asks of brokers about pops, as questions: take, acknowledge, hide for longer.

Sans-IO: shells carry the requests out, on the loop (`requests`) or on the caller's own thread
(`pocketmq.blocking.pops`). Names are those of the wire. Inner batches that were popped as a
whole have one handle for many messages: `WrappedBatches` gives each its own.
"""

import logging
from collections.abc import Sequence
from threading import Lock

import msgspec

from pocketmq.client.calls import SUCCESS
from pocketmq.client.damage import tell_skipped
from pocketmq.client.pop.popped import PopResult, batch_acks, handle_of, read_popped
from pocketmq.client.pop.usual_acks import MOST_BITS
from pocketmq.client.questions.asking import Ask, Question
from pocketmq.errors import MQError, RequestNotSupported, ResponseCode
from pocketmq.model import MessageQueue, Subscription
from pocketmq.protocol import ReceivedMessage, RequestCode, encode_body
from pocketmq.protocol.handles import PopHandle
from pocketmq.protocol.pulled import InnerMessage
from pocketmq.protocol.request import NoHeader
from pocketmq.protocol.requests import pop as rows

logger = logging.getLogger("pocketmq.client")

ANY_QUEUE = -1
"""The id that stands for all queues of a topic on a broker."""
POPPED = SUCCESS | {
    int(ResponseCode.POLLING_FULL),
    int(ResponseCode.POLLING_TIMEOUT),
    int(ResponseCode.PULL_NOT_FOUND),
}
"""The response codes of a pop that are answers."""
_NO_FIELDS = NoHeader()

Settled = tuple[str, PopHandle]
"""A topic's name on the wire, and the handle of a message of it."""
Acks = Sequence[Settled]
"""Messages to acknowledge."""


class _Wrapped:
    """A batch: the handle that the broker knows, and how many messages are not settled."""

    __slots__ = ("handle", "left", "until")

    def __init__(self, handle: PopHandle, until: float) -> None:
        self.handle = handle
        self.left = 0
        self.until = until


class WrappedBatches:
    """The popped batches of one consumer that are not settled. Any thread may call.

    Java's brokers pop an inner batch as a whole. Each of its messages has a handle of its own here,
    that nobody else knows. The batch is acknowledged when all its messages are; if one is not, the
    broker redelivers all of them.
    """

    def __init__(self) -> None:
        self._by_handle: dict[PopHandle, _Wrapped] = {}  # in the order in which they were popped
        self._lock = Lock()

    def note(self, messages: Sequence[ReceivedMessage], now: float, until: float) -> None:
        """Take note of messages that are hidden until some time; older ones are forgotten."""
        inner = [each for each in messages if isinstance(each, InnerMessage)]
        if not inner:
            return
        batches: dict[tuple[int, int], _Wrapped] = {}
        with self._lock:
            for message in inner:
                own = handle_of(message)
                place = id(message.buffer), message.position
                batch = batches.get(place)
                if batch is None:
                    whole = msgspec.structs.replace(own, queue_offset=message.batch_offset)
                    batch = batches[place] = _Wrapped(whole, until)
                batch.left += 1
                self._by_handle[own] = batch
            for handle in [each for each, kept in self._by_handle.items() if kept.until < now]:
                del self._by_handle[handle]

    def settle(self, handles: Sequence[Settled]) -> Sequence[Settled]:
        """Return what is to be acknowledged: of a batch nothing before its last message is."""
        if not self._by_handle:
            return handles
        found: list[Settled] = []
        with self._lock:
            for topic, handle in handles:
                batch = self._by_handle.pop(handle, None)
                if batch is None:
                    found.append((topic, handle))
                    continue
                batch.left -= 1
                if not batch.left:
                    found.append((topic, batch.handle))
        return found

    def known_as(self, handle: PopHandle) -> PopHandle:
        """Return the handle by which the broker knows a message, or the batch it is in."""
        batch = self._by_handle.get(handle)
        return handle if batch is None else batch.handle

    def moved(self, handle: PopHandle, new: PopHandle, until: float) -> PopHandle:
        """Take note that a message was hidden for longer; return the handle it has now."""
        with self._lock:
            batch = self._by_handle.get(handle)
            if batch is None:
                return new
            batch.handle, batch.until = new, until
            return handle


class PopQuestions:
    """The questions of one group. Any thread may ask."""

    def __init__(self, group: str, *, ordered: bool, from_first: bool, grace: float) -> None:
        self._group = group
        self._ordered = ordered
        self._init_mode = 0 if from_first else 1
        self._grace = grace
        self._no_batches: set[str] = set()  # brokers that do not know batch acks
        self._wrapped = WrappedBatches()

    def pop(
        self,
        queue: MessageQueue,
        subscription: Subscription,
        name: str,
        *,
        most: int,
        invisible: float,
        wait: float,
        asked: float,
        attempt: str | None = None,
    ) -> Question[PopResult]:
        """Take messages of a queue; return none if the broker has none for `wait` seconds.

        `name` is what the application calls the topic, `asked` the time now. Raises `ServerError`,
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
        broker, code = queue.broker_name, RequestCode.POP_MESSAGE
        answer = yield Ask(queue, code, header, b"", POPPED, wait + self._grace)
        if answer.code != ResponseCode.SUCCESS:
            return PopResult([], asked, full=answer.code == ResponseCode.POLLING_FULL)
        response = answer.header(rows.PopResponse)
        read = read_popped(response, answer.body, broker, name)
        self._wrapped.note(read.messages, asked, asked + invisible)
        if read.damaged:
            yield from self._drop(broker, queue.topic, read.damaged)
        return PopResult(read.messages, asked + invisible, popped_at_ms=response.pop_time)

    def _drop(self, broker: str, topic: str, damaged: list[ReceivedMessage]) -> Question[None]:
        """Acknowledge damaged messages, now and not after some tries.

        A broker that hands one out again may do so by a copy in the retry topic, whose checksum it
        computes again: the damage could not be seen any more.
        """
        for message in damaged:
            queue = MessageQueue(message.topic, broker, message.queue_id)
            tell_skipped(queue, message.queue_offset, "the body does not match its checksum")
        acks = self.settled([(topic, handle_of(message)) for message in damaged])
        try:
            if not (yield from self.ack_together(broker, acks)):
                for ack in acks:
                    yield from self.ack_one(broker, *ack)
        except MQError as error:
            logger.warning('ack of damaged messages failed: topic=%s error="%s"', topic, error)

    def settled(self, acks: Acks) -> Acks:
        """Return what to ask of the broker for these messages: inner batches go as a whole."""
        return self._wrapped.settle(acks)

    def takes_batches(self, broker: str) -> bool:
        """Return whether a broker takes several acks in one request, as far as is known."""
        return broker not in self._no_batches

    def may_be_together(self, broker: str, acks: Acks) -> bool:
        """Return whether one request can acknowledge these messages of a broker."""
        return (
            len(acks) > 1
            and self.takes_batches(broker)
            and all(0 <= _offset(handle) - handle.start_offset < MOST_BITS for _, handle in acks)
        )

    def ack_together(self, broker: str, acks: Acks) -> Question[bool]:
        """Acknowledge messages of one broker by one request; False if that takes several."""
        if not self.may_be_together(broker, acks):
            return False
        body = rows.BatchAcks(broker_name=broker, acks=batch_acks(self._group, acks))
        queue, code = _any_of(broker), RequestCode.BATCH_ACK_MESSAGE
        try:
            yield Ask(queue, code, _NO_FIELDS, encode_body(body))
        except RequestNotSupported:  # before 5.1
            self._no_batches.add(broker)
            return False
        return True

    def ack_one(self, broker: str, topic: str, handle: PopHandle) -> Question[None]:
        """Acknowledge a message."""
        header = rows.AckRequest(
            consumer_group=self._group,
            topic=handle.mark.real_topic(topic, self._group),
            queue_id=handle.queue_id,
            extra_info=str(handle),
            offset=_offset(handle),
            bname=broker,
        )
        yield Ask(_any_of(broker), RequestCode.ACK_MESSAGE, header)

    def change_invisible(
        self, topic: str, handle: PopHandle, invisible: float, now: float
    ) -> Question[PopHandle]:
        """Hide a message for `invisible` seconds from `now` on; return its new handle."""
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
        answer = yield Ask(_any_of(broker), RequestCode.CHANGE_MESSAGE_INVISIBLETIME, header)
        changed = answer.header(rows.ChangeInvisibleTimeResponse)
        new = msgspec.structs.replace(
            handle,
            start_offset=offset,
            pop_time_ms=changed.pop_time,
            invisible_time_ms=changed.invisible_time,
            revive_queue_id=changed.revive_qid,
            queue_offset=offset,
        )
        return self._wrapped.moved(own, new, now + invisible)


def _any_of(broker: str) -> MessageQueue:
    return MessageQueue("", broker, ANY_QUEUE)


def _offset(handle: PopHandle) -> int:
    return handle.start_offset if handle.queue_offset is None else handle.queue_offset


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
