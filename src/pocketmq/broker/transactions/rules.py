"""The rules of transactions: what a half message is, when to ask about it, what it becomes.

Pure decisions over values and `now`; when a half message is discarded is decided in `checks`. A
half message waits in the one queue of RMQ_SYS_TRANS_HALF_TOPIC until its producer commits or rolls
back; beside it the queue keeps what decides when to ask: the time it began, or, negative, the one
from which its producer wants to be asked.
"""

from typing import NamedTuple

from pocketmq.broker.delay.rules import real_place
from pocketmq.broker.transactions.half_states import COMMITTED, DISCARDED, ROLLED_BACK
from pocketmq.broker.writing.drafts import Draft
from pocketmq.model import TRANSACTION_MASK, SysFlag, property_names
from pocketmq.model.names import DISCARDED_HALF_TOPIC, HALF_TOPIC, OP_HALF_TOPIC
from pocketmq.protocol import Command, RecordView, RequestCode, property_text
from pocketmq.protocol.header import read_int32, read_int64
from pocketmq.protocol.message_ids import encode_offset_id
from pocketmq.protocol.records import Record, RecordForm, encode_record
from pocketmq.protocol.requests.sending import CheckTransactionStateRequest

_OURS = (  # only the broker sets these
    property_names.REAL_TOPIC,
    property_names.REAL_QUEUE_ID,
    property_names.TRANSACTION_CHECK_TIMES,
    property_names.PREPARED_QUEUE_OFFSET,
    property_names.DELAY_LEVEL,  # 5.x delays a half message and discards it; 4.9 ignores the delay
    property_names.TIMER_DELAY_SEC,
    property_names.TIMER_DELAY_MS,
    property_names.TIMER_DELIVER_MS,
)
_COMMITTED = int(SysFlag.COMMITTED)
_STATE = b"TRAN_STATE"
_OP_TEXT = {
    state: b"TAGS\1d\2%b\1%d\2" % (_STATE, state) for state in (COMMITTED, ROLLED_BACK, DISCARDED)
}
_IMMUNITY = property_names.CHECK_IMMUNITY_SECONDS.encode()
_LATEST = 1 << 62


class HalfEnding(NamedTuple):
    """What a half message becomes: a message of its topic, or of the discarded ones."""

    topic: str
    queue_id: int
    record: Record


def is_half(draft: Draft) -> bool:
    """Return whether a message begins a transaction.

    Clients before 4.6.1 send a committed message back to be consumed later as if it did.
    """
    if draft.properties.get(property_names.TRANSACTION_PREPARED, "").lower() != "true":
        return False
    delayed = (read_int32(draft.properties.get(property_names.DELAY_LEVEL, "")) or 0) > 0
    return not (draft.reconsume_times > 0 and delayed)


def prepare(draft: Draft, now_ms: int) -> None:
    """Send a draft to the half messages; delays are ignored."""
    properties = draft.properties
    for name in _OURS:
        properties.pop(name, None)
    if properties.get(property_names.UNIQUE_KEY):
        properties[property_names.TRANSACTION_ID] = properties[property_names.UNIQUE_KEY]
    properties[property_names.REAL_TOPIC] = draft.topic
    properties[property_names.REAL_QUEUE_ID] = str(draft.queue_id)
    draft.sys_flag &= ~TRANSACTION_MASK
    draft.topic, draft.queue_id = HALF_TOPIC, 0
    asked = properties.get(property_names.CHECK_IMMUNITY_SECONDS)
    draft.tag = _tag(draft.born_timestamp_ms, now_ms, asked)


def half_tag(half: RecordView) -> int:
    """Return what the queue keeps beside a half message, as recovery finds it."""
    asked = property_text.find_property(half.property_bytes, _IMMUNITY)
    text = None if asked is None else asked.decode("utf-8", "replace")
    return _tag(half.born_timestamp_ms, half.store_timestamp_ms, text)


def _tag(born_ms: int, stored_ms: int, asked: str | None) -> int:
    began_ms = max(0, min(born_ms, stored_ms))  # a sender's clock may go ahead of ours
    immunity_ms = custom_immunity_ms(asked)
    if immunity_ms is None:
        return began_ms
    return -max(1, min(began_ms + immunity_ms, _LATEST))


def custom_immunity_ms(asked: str | None) -> int | None:
    """Return how long a producer must not be asked; None if the broker decides."""
    seconds = read_int64(asked) if asked else None
    return None if seconds is None or seconds == -1 else seconds * 1000


def check_due_ms(tag: int, timeout_ms: int) -> int:
    """Return from when on a producer is asked about a half message, by what the queue keeps."""
    return -tag if tag < 0 else tag + timeout_ms


def is_check_due(tag: int, timeout_ms: int, now_ms: int) -> bool:
    """Return whether a producer is asked about a half message, by what the queue keeps.

    One from the future was stored before the clock was set back: it is due, as in Java.
    """
    return tag > now_ms or check_due_ms(tag, timeout_ms) < now_ms


def comes_too_late(half: RecordView, text: bytes, now_ms: int, timeout_ms: int) -> bool:
    """Return whether a producer that set its own check time may no longer end it before a check.

    `text` is the half message's properties.
    """
    asked = property_text.find_property(text, _IMMUNITY)
    if asked is None:
        return False
    immunity_ms = custom_immunity_ms(asked.decode("utf-8", "replace"))
    allowed_ms = timeout_ms if immunity_ms is None else immunity_ms
    return now_ms - half.born_timestamp_ms > allowed_ms


def committed(half: RecordView, text: bytes, checks: int) -> HalfEnding | None:
    """Return the message that consumers see; None for a half message without a topic to go to.

    `text` is the half message's properties.
    """
    place = real_place(text)
    if place is None:
        return None
    topic, queue_id = place
    sys_flag = half.sys_flag & ~TRANSACTION_MASK | _COMMITTED
    text = _with_checks(_without_place(text, topic, queue_id), checks)
    return HalfEnding(topic, queue_id, _copy(half, topic, queue_id, sys_flag, text))


def discarded(half: RecordView, checks: int) -> HalfEnding:
    """Return the message as it is kept when its transaction stays unresolved."""
    text = _with_checks(half.property_bytes, checks)
    record = _copy(half, DISCARDED_HALF_TOPIC, 0, half.sys_flag, text)
    return HalfEnding(DISCARDED_HALF_TOPIC, 0, record)


def _copy(half: RecordView, topic: str, queue_id: int, sys_flag: int, text: bytes) -> Record:
    return Record(
        topic=topic.encode(),
        body=half.stored_body,
        property_bytes=text,
        queue_id=queue_id,
        flag=half.flag,
        sys_flag=sys_flag,
        born_timestamp_ms=half.born_timestamp_ms,
        born_host=half.born_host_bytes,
        reconsume_times=half.reconsume_times,
        prepared_transaction_offset=half.commit_log_offset,
        body_crc=half.body_crc,
    )


def _without_place(text: bytes, topic: str, queue_id: int) -> bytes:
    """Take out where a half message belongs: the last two properties, as `prepare` leaves them."""
    place = b"\2REAL_TOPIC\1%b\2REAL_QID\1%d\2" % (topic.encode(), queue_id)
    if text.endswith(place):
        return text[: 1 - len(place)]
    properties = property_text.decode_properties(text)
    for name in (property_names.REAL_TOPIC, property_names.REAL_QUEUE_ID):
        properties.pop(name, None)
    return property_text.encode_properties(properties)


def _with_checks(text: bytes, checks: int) -> bytes:
    if not checks:
        return text
    longer = text + b"%b\1%d\2" % (property_names.TRANSACTION_CHECK_TIMES.encode(), checks)
    return longer if len(longer) <= property_text.LIMIT else text


def op_record(offsets: list[int], state: int, now_ms: int, host: bytes) -> Record:
    """Return the record that marks half messages as ended, as Java's brokers write it.

    RocketMQ does not say how each ended; we do, in a property of our own.
    """
    return Record(
        topic=OP_HALF_TOPIC.encode(),
        body=op_body(offsets),
        property_bytes=_OP_TEXT[state],
        born_timestamp_ms=now_ms,
        born_host=host,
    )


def op_body(offsets: list[int]) -> bytes:
    """Return what such a record says: the half messages, by their offsets."""
    return b"".join([b"%d," % offset for offset in offsets])


def op_form(state: int, host: bytes, store_host: bytes) -> RecordForm:
    """Return the form of such records, of half messages that ended alike."""
    return RecordForm(
        OP_HALF_TOPIC.encode(), _OP_TEXT[state], born_host=host, store_host=store_host
    )


def read_op(op: RecordView) -> tuple[list[int], int]:
    """Return the half messages that a record marks as ended, and how."""
    body = op.stored_body.decode("utf-8", "replace")
    offsets = [read_int64(part) for part in body.split(",")]
    state = read_int32(
        (property_text.find_property(op.property_bytes, _STATE) or b"").decode("utf-8", "replace")
    )
    if state is None or state not in _OP_TEXT:
        state = ROLLED_BACK
    return [each for each in offsets if each is not None], state


def check_request(half: RecordView, checks: int, broker_name: str) -> tuple[str, bytes] | None:
    """Return a producer group, and the frame that asks one of its members about a half message.

    None for a half message without a producer group or topic.
    """
    properties = property_text.decode_properties(half.property_bytes)
    group, place = properties.get(property_names.PRODUCER_GROUP), real_place(half.property_bytes)
    if not group or place is None:
        return None
    topic, queue_id = place
    unique_key = properties.get(property_names.UNIQUE_KEY)
    host = half.store_host_bytes
    header = CheckTransactionStateRequest(
        topic=HALF_TOPIC,
        tran_state_table_offset=half.queue_offset,
        commit_log_offset=half.commit_log_offset,
        msg_id=unique_key,
        transaction_id=unique_key,
        offset_msg_id=encode_offset_id(host, half.commit_log_offset),
        bname=broker_name,
    )
    body = Record(
        topic=topic.encode(),
        body=half.stored_body,
        property_bytes=_with_checks(half.property_bytes, checks),
        queue_id=queue_id,
        flag=half.flag,
        sys_flag=half.sys_flag,
        born_timestamp_ms=half.born_timestamp_ms,
        born_host=half.born_host_bytes,
        reconsume_times=half.reconsume_times,
        queue_offset=half.queue_offset,
        commit_log_offset=half.commit_log_offset,
        store_timestamp_ms=half.store_timestamp_ms,
        store_host=host,
        body_crc=half.body_crc,
    )
    code = RequestCode.CHECK_TRANSACTION_STATE
    return group, Command.request(code, 0, header, encode_record(body), oneway=True).encode()
