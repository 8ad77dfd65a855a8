"""The rules of timed messages: when one is due, where it waits, what it is afterwards.

Pure decisions over values and `now`. A timed message waits in the one queue of rmq_sys_wheel_timer;
beside it the queue keeps its due time, to the millisecond, where RocketMQ's wheel has whole
seconds. A message that recalls another one waits there, too, with the same due time
made negative.
"""

from typing import NamedTuple

from pocketmq.broker.core.log_origins import origin_of_timer
from pocketmq.broker.delay.rules import copy_to, real_place
from pocketmq.broker.writing.drafts import Draft
from pocketmq.errors import ResponseCode, ServerError, server_error
from pocketmq.model import TRANSACTION_MASK, SysFlag, property_names
from pocketmq.model.names import HALF_TOPIC, TIMER_TOPIC, is_retry_topic
from pocketmq.protocol import RecordView
from pocketmq.protocol.handles import RecallHandle
from pocketmq.protocol.header import read_int64
from pocketmq.protocol.property_text import LIMIT, find_property
from pocketmq.protocol.records import Record

TIMED = (
    property_names.TIMER_DELAY_SEC,
    property_names.TIMER_DELAY_MS,
    property_names.TIMER_DELIVER_MS,
)
"""The properties that ask for a delivery time, in the order in which RocketMQ reads them."""
_TIMEABLE = (0, int(SysFlag.COMMITTED))
_OUT = property_names.TIMER_OUT_MS.encode()
_TAKES_BACK = property_names.TIMER_DELETE_UNIQUE_KEY.encode()
_REAL_TOPIC = property_names.REAL_TOPIC.encode()
_UNIQUE_KEY = property_names.UNIQUE_KEY.encode()


class TimerLimits(NamedTuple):
    """What a broker allows."""

    enabled: bool
    longest_ms: int
    broker_name: str


class Due(NamedTuple):
    """A timed message that is due, as it goes to its queue."""

    topic: str
    queue_id: int
    record: Record


def hold_back(draft: Draft, limits: TimerLimits, now_ms: int) -> int | None:
    """Send a draft to the timed messages unless it is due already; return its due time.

    What is due now goes straight to its topic, as in RocketMQ. Raises `ServerError` for a time
    that is not a number or too far away, and if timed messages are disabled.
    """
    properties = draft.properties
    if draft.topic in (TIMER_TOPIC, HALF_TOPIC) or property_names.TIMER_OUT_MS in properties:
        return None  # its time came once before, or it does not have one
    if draft.sys_flag & TRANSACTION_MASK not in _TIMEABLE:
        return None
    if not limits.enabled:
        raise server_error(
            ResponseCode.SYSTEM_ERROR,
            "accurate timer message is not enabled, timerWheelEnable is false",
        )
    due_ms = asked_ms(properties, now_ms)
    takes_back = properties.get(property_names.TIMER_DELETE_UNIQUE_KEY)
    if due_ms is None or due_ms - now_ms > limits.longest_ms:
        raise _illegal(limits)
    if due_ms <= now_ms:
        if takes_back is not None:
            raise _illegal(limits)
        return None
    topic = draft.topic
    properties[property_names.TIMER_OUT_MS] = str(due_ms)
    properties[property_names.REAL_TOPIC] = topic
    properties[property_names.REAL_QUEUE_ID] = str(draft.queue_id)
    draft.topic, draft.queue_id = TIMER_TOPIC, 0
    draft.tag = due_ms if takes_back is None else -due_ms
    if takes_back is None and not is_retry_topic(topic):
        draft.recall_handle = str(
            RecallHandle(
                topic=topic,
                broker_name=limits.broker_name,
                deliver_at_ms=due_ms,
                message_id=properties.get(property_names.UNIQUE_KEY, ""),
            )
        )
    return due_ms


def asked_ms(properties: dict[str, str], now_ms: int) -> int | None:
    """Return the delivery time a message asks for; None if that is not a number."""
    for name, start_ms, unit in zip(TIMED, (now_ms, now_ms, 0), (1000, 1, 1), strict=True):
        text = properties.get(name)
        if text is not None:
            number = read_int64(text)
            return None if number is None else start_ms + number * unit
    return None


def _illegal(limits: TimerLimits) -> ServerError:
    return server_error(
        ResponseCode.MESSAGE_ILLEGAL,
        "timer message illegal, the delay time should not be bigger than the max delay "
        f"{limits.longest_ms}ms; or if set del msg, the delay time should be bigger than the "
        "current time",
    )


def timer_tag(waiting: RecordView) -> int:
    """Return what the queue keeps beside a timed message, as recovery finds it; 0 for nothing."""
    text = waiting.property_bytes
    due_ms = read_int64((find_property(text, _OUT) or b"").decode("utf-8", "replace")) or 0
    return due_ms if find_property(text, _TAKES_BACK) is None else -due_ms


def taken_back(takes_back: RecordView) -> bytes | None:
    """Return the key of the message that another one recalls."""
    return find_property(takes_back.property_bytes, _TAKES_BACK)


def recall_key(topic: bytes, unique_key: bytes) -> bytes:
    """Return the key by which a message is recalled, as RocketMQ builds it."""
    return topic + b"+" + unique_key


def key_of(waiting: RecordView) -> bytes:
    """Return the key by which a waiting message can be recalled."""
    text = waiting.property_bytes
    topic, unique_key = find_property(text, _REAL_TOPIC), find_property(text, _UNIQUE_KEY)
    return recall_key(topic or b"", unique_key or b"")


def due_message(waiting: RecordView, now_ms: int) -> Due | None:
    """Return what a waiting message becomes: the same, in the topic and queue it was sent to.

    All of its properties stay, as RocketMQ leaves them; two say when it came and went. None for a
    record that does not say where it belongs.
    """
    text = waiting.property_bytes
    place = real_place(text)
    if place is None:
        return None
    topic, queue_id = place
    stored_ms = waiting.store_timestamp_ms
    longer = text + b"TIMER_ENQUEUE_MS\1%d\2TIMER_DEQUEUE_MS\1%d\2" % (stored_ms, now_ms)
    record = _copy(waiting, topic, queue_id, longer if len(longer) <= LIMIT else text)
    return Due(topic, queue_id, record)


def moved(waiting: RecordView) -> Record:
    """Return a copy of a waiting message for the end of its queue: its file is to be deleted."""
    return _copy(waiting, TIMER_TOPIC, 0, waiting.property_bytes)


def _copy(waiting: RecordView, topic: str, queue_id: int, text: bytes) -> Record:
    origin = origin_of_timer(waiting.commit_log_offset)
    return copy_to(waiting, topic, queue_id, text, origin)
