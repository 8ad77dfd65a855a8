"""The first step of a send: a message is checked, gets its id, and is compressed and encoded.

Everything that an application sends passes here, or through `batches`, before anything of it is
encoded, on the thread and in the context of the caller. Sends nothing; independent of queues.
"""

import ipaddress
from collections.abc import Mapping

from pocketmq.balance.producer.packing import compresses, retry_counts
from pocketmq.client.clock import Clock, process_id, utc_offset_ms
from pocketmq.client.producer.requests import Outgoing
from pocketmq.client.producer_options import ProducerOptions
from pocketmq.client.session import Session
from pocketmq.errors import InvalidInput
from pocketmq.model import Message, SysFlag, property_names
from pocketmq.model.java_strings import java_hash
from pocketmq.model.names import NOT_SENDABLE_TOPICS, check_topic, is_retry_topic, wrap_namespace
from pocketmq.protocol import RequestCode
from pocketmq.protocol.compression import compress, mark_compressed
from pocketmq.protocol.message_ids import UniqueIds
from pocketmq.protocol.property_text import encode_properties

_SEND = int(RequestCode.SEND_MESSAGE_V2)
_PREPARED = int(SysFlag.PREPARED)
_NOTHING: Mapping[str, str] = {}
_MOST_REMEMBERED = 4096  # names come from applications: what is cached by them is bounded
_LONGEST_REMEMBERED = 256
_INT32 = range(-(2**31), 2**31)


class Preparing:
    """Prepares the messages of one producer. Any thread may call it."""

    def __init__(
        self, options: ProducerOptions, namespace: str, ids: UniqueIds, clock: Clock
    ) -> None:
        self.namespace = namespace
        self.ids = ids
        self.clock = clock
        self._options = options
        self._largest = options.max_message_size
        self._compress_from = options.compress_from
        self._added = {property_names.INSTANCE_ID: namespace} if namespace else {}
        self._batch_tail = ""  # what all batches have in common, once there is one
        self._topics: dict[str, str] = {}  # checked; name on the wire by the caller's
        self._plain: dict[str, str] = {}  # those of them whose messages need nothing added
        self._tails: dict[str | None, str] = {}  # what follows the id, by tag

    def prepare(
        self, message: Message, extra: Mapping[str, str] = _NOTHING, code: int = _SEND
    ) -> Outgoing:
        """Prepare one message.

        `extra` are properties that the send adds, RocketMQ's own ones among them; an id among
        them is kept. Raises `InvalidInput` for a message that no broker would store.
        """
        try:
            topic = self._plain.get(message.topic)
        except (AttributeError, TypeError) as error:
            kind = type(message).__name__
            raise InvalidInput(f"a message must be a Message with a topic, not {kind}") from error
        rich = message.properties or message.keys or message.priority is not None
        if topic is None or rich or extra:
            return self._prepare_rich(message, extra, code)
        body = message.body
        size = len(body)
        if not 0 < size <= self._largest:
            self.check_body(body)
        tail = self._tails.get(message.tag)
        if tail is None:
            tail = self._tail(message.tag or "")
        unique_id = self.ids.next_id(self.clock.now_ms())
        sys_flag = 0
        if size >= self._compress_from:
            body, sys_flag = self._compressed(body)
        flag = message.flag
        if flag:
            _check_flag(flag)
        properties = f"UNIQ_KEY\1{unique_id}{tail}"
        return Outgoing(topic, body, properties, unique_id, flag, sys_flag, code, (message,))

    def named(
        self, message: Message, topic: str, unique_id: str, tail: str, sys_flag: int = 0
    ) -> Outgoing:
        """Prepare a plain message that was sent to `topic` already, with the id it has since.

        `tail` is what follows the id in its property text.
        """
        properties = f"UNIQ_KEY\1{unique_id}{tail}"
        return Outgoing(
            topic, message.body, properties, unique_id, sys_flag=sys_flag, messages=(message,)
        )

    def plain_topic(self, topic: str) -> str | None:
        """Return the name on the wire of a topic whose messages need nothing added, once known."""
        return self._plain.get(topic)

    def tail(self, tag: str | None) -> str:
        """Return what follows the id in the property text of a plain message.

        Raises `InvalidInput` for a tag that cannot be sent.
        """
        return self._tails.get(tag) or self._tail(tag or "")

    def _prepare_rich(self, message: Message, extra: Mapping[str, str], code: int) -> Outgoing:
        topic = self.wire_topic(message.topic)
        self.check_body(message.body)
        _check_flag(message.flag)
        wire = message.wire_properties()
        wire.update(self._added)
        wire.update(extra)
        counts = retry_counts(topic, wire)
        wire = counts.properties
        unique_id = wire.get(property_names.UNIQUE_KEY)
        if unique_id is None:
            unique_id = wire[property_names.UNIQUE_KEY] = self.ids.next_id(self.clock.now_ms())
        body, sys_flag = message.body, 0
        if compresses(len(body), threshold=self._compress_from):
            body, sys_flag = self._compressed(body)
        if wire.get(property_names.TRANSACTION_PREPARED, "").lower() == "true":
            sys_flag |= _PREPARED
        return Outgoing(
            topic,
            body,
            encode_properties(wire).decode(),
            unique_id,
            message.flag,
            sys_flag,
            code,
            (message,),
            reconsume_times=counts.reconsume_times,
            max_reconsume_times=counts.max_reconsume_times,
            for_5x=property_names.TIMER_DELAY_MS in wire or property_names.TIMER_DELIVER_MS in wire,
        )

    def batch_properties(self, batch_id: str) -> str:
        """Return the property text of a batch as a whole; its messages have their own."""
        tail = self._batch_tail
        if not tail:
            common = {property_names.WAIT: "true", **self._added}
            tail = self._batch_tail = encode_properties(common).decode()
        return f"{property_names.UNIQUE_KEY}\1{batch_id}\2{tail}"

    def wire_topic(self, topic: str) -> str:
        """Return a topic's name on the wire. Raises `InvalidInput` if it may not be sent to."""
        known = self._topics.get(topic)
        if known is not None:
            return known
        given: object = topic
        if not isinstance(given, str):
            raise InvalidInput(f"a topic must be text, not {type(given).__name__}")
        check_topic(topic)
        if topic in NOT_SENDABLE_TOPICS:
            raise InvalidInput(f"topic {topic!r} is RocketMQ's own: no client may send to it")
        wire = wrap_namespace(self.namespace, topic)
        check_topic(wire)
        if len(self._topics) >= _MOST_REMEMBERED:
            self._topics.clear()
            self._plain.clear()
        self._topics[topic] = wire
        if not self._added and not is_retry_topic(wire):
            self._plain[topic] = wire
        return wire

    def check_body(self, body: bytes) -> None:
        """Raise `InvalidInput` for a body that no broker would store."""
        if not body:
            raise InvalidInput("a message needs a body: brokers refuse empty ones")
        if len(body) > self._largest:
            raise InvalidInput(
                f"a body of {len(body)} bytes is over the limit of {self._largest} "
                "(max_message_size)"
            )

    def _compressed(self, body: bytes) -> tuple[bytes, int]:
        codec = self._options.compression
        return compress(body, codec, self._options.compression_level), mark_compressed(0, codec)

    def _tail(self, tag: str) -> str:
        wire = (
            {property_names.WAIT: "true", property_names.TAGS: tag}
            if tag
            else {property_names.WAIT: "true"}
        )
        tail = "\2" + encode_properties(wire).decode()
        if len(self._tails) >= _MOST_REMEMBERED:
            self._tails.clear()
        if len(tag) <= _LONGEST_REMEMBERED:
            self._tails[tag or None] = tail
        return tail


def _check_flag(flag: int) -> None:
    # The type first: a range is searched number by number for what is not a whole number.
    if type(flag) is not int or flag not in _INT32:
        raise InvalidInput(f"a message's flag must be a 32-bit number, not {flag!r}")


def unique_ids(session: Session, group: str) -> UniqueIds:
    """Return a source of message ids in Java's form that are unique among all producers.

    Where Java has a hash of the class loader, we have a random number for each producer, so that
    several in one process need no common counter.
    """
    drawn = session.random.getrandbits(32) ^ java_hash(f"{session.client_id} {group}") & 0xFFFFFFFF
    return UniqueIds(_ip(session.client_id), process_id(), drawn, utc_offset_ms=utc_offset_ms())


def _ip(client_id: str) -> bytes:
    """Return the address in a client id, or a hash of it if its user configured another text."""
    text = client_id.partition("@")[0].strip("[]").partition("%")[0]
    try:
        return ipaddress.ip_address(text).packed
    except ValueError:
        return (java_hash(client_id) & 0xFFFF_FFFF).to_bytes(4, "big")
