"""Messages: found by id, key, offset or time; resent, or handed to one consumer."""

import asyncio
from collections.abc import Callable

import msgspec

from pocketmq.admin.brokers import Brokers
from pocketmq.admin.gathered import Missing, ServerPlace
from pocketmq.admin.reading import PAGE, Page, QueueReader
from pocketmq.admin.topics import Topics
from pocketmq.admin.wire import AdminWire
from pocketmq.client.calls import SUCCESS
from pocketmq.client.damage import tell_left_out
from pocketmq.client.filters import Filter
from pocketmq.client.options import ClientOptions
from pocketmq.errors import Absent, InvalidInput, MessagesCutShort, MQError, ResponseCode
from pocketmq.model import MessageQueue, SendReceipt, property_names, sort_queues
from pocketmq.model import names as topic_names
from pocketmq.model.message import CopiedMessage
from pocketmq.protocol import DeliveryContext, ReceivedMessage
from pocketmq.protocol.message_ids import parse_offset_id
from pocketmq.protocol.pulled import InnerMessage, decode_pulled
from pocketmq.protocol.requests import client_calls
from pocketmq.protocol.requests import reading as rows
from pocketmq.protocol.trace_text import Traced, decode_traced

FOR_EVER = 2**63 - 1
"""The end of time, as in Java."""
_OR_NONE = SUCCESS | {int(ResponseCode.QUERY_NOT_FOUND)}
_PATIENCE = 15.0
_RESENDING_GROUP = "ReSendMsgById"


class FoundMessages(msgspec.Struct, frozen=True):
    """Messages found, oldest first; brokers in `missing` may have more."""

    messages: list[ReceivedMessage]
    missing: tuple[Missing, ...] = ()


class Resent(msgspec.Struct, frozen=True):
    """The outcome of resending a message: a receipt, or an error."""

    message_id: str
    topic: str
    receipt: SendReceipt | None
    error: MQError | None = None


class TraceEvent(msgspec.Struct, frozen=True):
    """An event of a message, and the client that traced it."""

    event: Traced
    client_host: str


class Messages:
    """Finds messages on all brokers of a topic at once."""

    def __init__(
        self,
        wire: AdminWire,
        brokers: Brokers,
        topics: Topics,
        reading: QueueReader,
    ) -> None:
        self._wire = wire
        self._brokers = brokers
        self._topics = topics
        self._reading = reading

    async def by_id(self, topic: str, message_id: str) -> ReceivedMessage:
        """Return a message by either of its ids: the broker's, which holds its offset, or its own.

        Only brokers of the cluster are asked, whatever address an id holds. Raises `Absent`.
        """
        try:
            place = parse_offset_id(message_id)
        except InvalidInput:
            place = None
        if place is not None:
            for broker in await self._brokers.all():
                if broker.address == place.host:
                    return await self._view(broker, place.commit_log_offset, message_id)
        found = await self.by_unique_key(topic, message_id)
        if not found.messages:
            _raise_missing(found)
            raise Absent("message", message_id, f"in topic {topic!r}")
        return found.messages[0]

    async def by_key(
        self,
        topic: str,
        key: str,
        limit: int = 64,
        *,
        begin_ms: int = 0,
        end_ms: int = FOR_EVER,
        by_tag: bool = False,
        after: str | None = None,
    ) -> FoundMessages:
        """Find messages by a key. Raises `RouteNotFound`, or the error if no broker answers.

        5.5 brokers with a RocksDB index also find `by_tag`, and continue `after` an index key.
        """
        header = msgspec.structs.replace(
            _query(topic, key, limit, begin_ms, end_ms),
            index_type="T" if by_tag else None,
            last_key=after,
        )
        if by_tag:
            return await self._query(header, lambda message: message.tag == key)
        return await self._query(header, lambda message: key in _keys(message))

    async def by_unique_key(
        self,
        topic: str,
        message_id: str,
        limit: int = 32,
        *,
        begin_ms: int = 0,
        end_ms: int = FOR_EVER,
    ) -> FoundMessages:
        """Find messages by their unique id; retries of one message share it."""
        header = msgspec.structs.replace(
            _query(topic, message_id, limit, begin_ms, end_ms), unique_key_query=True
        )
        return await self._query(header, lambda message: message_id in _unique_ids(message))

    async def by_offset(self, queue: MessageQueue, offset: int) -> ReceivedMessage:
        """Return the message at an offset of a queue. Raises `Absent`."""
        page = await self._reading.page(queue, offset, 1)
        if page.damaged is not None:
            raise page.damaged
        for message in page.messages:
            if message.queue_offset == offset:
                return message
        where = f"{queue.broker_name} queue {queue.queue_id} offset {offset}"
        bounds = f"the queue holds {page.min_offset} to {page.max_offset - 1}"
        raise Absent("message", where, bounds if page.max_offset > 0 else "the queue is empty")

    async def page(
        self, queue: MessageQueue, offset: int, count: int = PAGE, expression: str | Filter = "*"
    ) -> Page:
        """Return messages of a queue from an offset on; see `Page`."""
        return await self._reading.page(queue, offset, count, expression)

    async def between(
        self,
        topic: str,
        begin_ms: int,
        end_ms: int,
        limit: int = 64,
        expression: str | Filter = "*",
    ) -> FoundMessages:
        """Find messages stored in a span of time, at most `limit` of each queue.

        Raises `RouteNotFound`, and the first error of a queue.
        """
        route = await self._topics.route(topic)
        queues = sort_queues(route.subscribe_queues(topic))
        found = await asyncio.gather(
            *(self._reading.between(queue, begin_ms, end_ms, limit, expression) for queue in queues)
        )
        return FoundMessages(_in_order([message for part in found for message in part]))

    async def dead_letters(self, group: str, limit: int = 64) -> FoundMessages:
        """Return a group's oldest dead letters. Raises `RouteNotFound` if it never had any."""
        return await self.between(topic_names.dead_letter_topic(group), 0, FOR_EVER, limit)

    async def trace(
        self,
        message_id: str,
        trace_topic: str = topic_names.TRACE_TOPIC,
        limit: int = 64,
        *,
        begin_ms: int = 0,
        end_ms: int = FOR_EVER,
    ) -> list[TraceEvent]:
        """Return the traced events of a message, oldest first."""
        found = await self.by_key(trace_topic, message_id, limit, begin_ms=begin_ms, end_ms=end_ms)
        if not found.messages:
            _raise_missing(found)
        return [
            TraceEvent(event, message.born_host.rpartition(":")[0])
            for message in found.messages
            for event in decode_traced(message.body.decode("utf-8", "replace"))
            if event.message_id == message_id
        ]

    async def consume_directly(
        self, group: str, client_id: str, topic: str, message_id: str
    ) -> client_calls.DirectConsumeResult:
        """Let one member of a group consume a message now; nothing is committed.

        Raises `Absent`, and the `ServerError` of a broker that cannot reach the member.
        """
        message = await self.by_id(topic, message_id)
        header = client_calls.CONSUME_MESSAGE_DIRECTLY.header(
            consumer_group=group,
            client_id=client_id,
            msg_id=message.offset_message_id,
            topic=topic,
        )
        return await self._wire.read(
            await self._store_address(message),
            client_calls.CONSUME_MESSAGE_DIRECTLY,
            header,
            timeout=_PATIENCE,
        )

    async def resend(self, messages: list[ReceivedMessage]) -> list[Resent]:
        """Send copies of messages, dead letters to their original topic; the originals stay."""
        return await resend(self._wire.client_options, messages)

    async def _store_address(self, message: ReceivedMessage) -> str:
        """Return the broker that stores a message; raises `Absent` if it is not in this cluster."""
        if any(place.address == message.store_host for place in await self._brokers.all()):
            return message.store_host
        raise Absent("broker", message.store_host, "in this cluster")

    async def _view(self, place: ServerPlace, offset: int, message_id: str) -> ReceivedMessage:
        header = rows.VIEW_MESSAGE_BY_ID.header(offset=offset)
        accept = _OR_NONE | {int(ResponseCode.SYSTEM_ERROR)}  # Java's code for no message there
        answer = await self._wire.call(
            place.address, rows.VIEW_MESSAGE_BY_ID, header, accept=accept
        )
        if answer.code != ResponseCode.SUCCESS:
            raise Absent("message", message_id, f"on broker {place.broker}")
        return decode_pulled(answer.result(), DeliveryContext(broker_name=place.broker))[0]

    async def _query(
        self, header: rows.QueryMessageRequest, wanted: Callable[[ReceivedMessage], bool]
    ) -> FoundMessages:
        async def ask(place: ServerPlace) -> list[ReceivedMessage]:
            answer = await self._wire.call(
                place.address, rows.QUERY_MESSAGE, header, timeout=_PATIENCE, accept=_OR_NONE
            )
            if answer.code != ResponseCode.SUCCESS or answer.is_empty:
                return []
            return _sound(answer.result(), header.topic, place.broker)

        places = await self._topics.places(header.topic)
        gathered = (await self._wire.each(places, ask)).some()
        # Brokers find by a hash of the key, so there may be others among them.
        messages = [message for part in gathered.values() for message in part if wanted(message)]
        return FoundMessages(_in_order(messages), gathered.missing)


def _query(
    topic: str, key: str, limit: int, begin_ms: int, end_ms: int
) -> rows.QueryMessageRequest:
    return rows.QueryMessageRequest(
        topic=topic, key=key, max_num=limit, begin_timestamp=begin_ms, end_timestamp=end_ms
    )


def _unique_ids(message: ReceivedMessage) -> tuple[str | None, ...]:
    """Return a message's own id, and that of the inner batch it is in."""
    if not isinstance(message, InnerMessage):
        return (message.message_id,)
    return message.message_id, message.batch_properties.get(property_names.UNIQUE_KEY)


def _keys(message: ReceivedMessage) -> list[str]:
    """Return a message's keys, and those of the inner batch it is in: brokers find it by these."""
    if not isinstance(message, InnerMessage):
        return list(message.keys)
    return [*message.keys, *message.batch_properties.get(property_names.KEYS, "").split()]


def _sound(body: bytes, topic: str, broker: str) -> list[ReceivedMessage]:
    """Return the messages of a body without damaged ones, which are logged."""
    found: list[ReceivedMessage] = []
    while body:
        try:
            return found + decode_pulled(body, DeliveryContext(broker_name=broker))
        except MessagesCutShort as error:
            found += error.decoded
            tell_left_out(topic, broker, error.reason)
            body = body[error.end :] if error.end else b""
    return found


def _in_order(messages: list[ReceivedMessage]) -> list[ReceivedMessage]:
    return sorted(messages, key=lambda each: (each.store_timestamp_ms, each.queue_offset))


def _raise_missing(found: FoundMessages) -> None:
    """Raise the error of a broker that did not answer: it may have the message."""
    for missing in found.missing:
        raise missing.error


async def resend(options: ClientOptions, messages: list[ReceivedMessage]) -> list[Resent]:
    """Send copies of messages, each with a new id; the originals stay."""
    from pocketmq.client.producer.producer import Producer  # slow to import

    results = []
    async with Producer(options=options, group=_RESENDING_GROUP) as producer:
        for message in messages:
            topic = original_topic(message)
            copy = CopiedMessage(
                topic,
                message.body,
                tag=message.tag,
                keys=message.keys,
                properties=message.user_properties,
                flag=message.flag,
                priority=message.priority,
            )
            try:
                receipt = await producer.send(copy)
            except MQError as error:
                results.append(Resent(message.message_id, topic, None, error))
            else:
                results.append(Resent(message.message_id, topic, receipt))
    return results


def original_topic(message: ReceivedMessage) -> str:
    """Return the topic a message was first sent to, which retries and dead letters keep."""
    if topic_names.is_dead_letter_topic(message.topic) or topic_names.is_retry_topic(message.topic):
        return (
            message.get_property(property_names.DLQ_ORIGIN_TOPIC)
            or message.get_property(property_names.RETRY_TOPIC)
            or message.topic
        )
    return message.topic
