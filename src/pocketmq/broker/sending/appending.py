"""The one way messages take into the store, and the hooks on it.

Features that keep a message elsewhere first (delays, transactions, timers) register a `Redirect`
under the property that asks for them; one whose queues keep something else than a tag's hash beside
each message adds a rule for its topic to `tag_rules`, so that recovery finds the same. Everything
that is stored, by whomever, goes through `append` here: suspended pulls learn of it, it is counted.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn, TypeAlias

import msgspec

from pocketmq.errors import InvalidInput, ResponseCode, ServerError, server_error
from pocketmq.model import properties as names
from pocketmq.model.flags import TRANSACTION_MASK
from pocketmq.protocol.property_text import encode_properties
from pocketmq.protocol.record_scan import tags_code
from pocketmq.protocol.records import Record
from pocketmq.store import Appended, QueueIndex, TagRule

if TYPE_CHECKING:
    from pocketmq.broker.state import BrokerState


class Draft(msgspec.Struct, kw_only=True):
    """A message on its way into the store; a redirect may change anything about it."""

    topic: str
    queue_id: int
    body: bytes
    properties: dict[str, str]
    flag: int
    sys_flag: int
    born_timestamp_ms: int
    born_host: bytes
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0
    tag: int | None = None
    """What the queue keeps beside the message; None for the hash of its tag."""
    recall_handle: str | None = None
    """What the sender is given to take the message back."""


class Placed(msgspec.Struct, frozen=True, gc=False):
    """Where a message went: its queue, its offset there, and its position in the commit log."""

    queue: QueueIndex
    offset: int
    position: int


def tag_rules() -> dict[str, TagRule]:
    """Give the topics whose queues keep something else than the hash of a tag, with what it is."""
    return {}


Redirect: TypeAlias = "Callable[[BrokerState, Draft], None]"
"""Changes a draft, or raises `ServerError` with the code and remark the sender gets."""
REDIRECTING = (
    names.TRANSACTION_PREPARED,
    names.DELAY_LEVEL,
    names.TIMER_DELAY_SEC,
    names.TIMER_DELAY_MS,
    names.TIMER_DELIVER_MS,
)
"""Properties that send a message elsewhere first, in the order in which they are looked at."""


def append(state: "BrokerState", queue: QueueIndex, record: Record, tag: int) -> Appended:
    """Store one message; answer its sender through `state.turn.answer_stored`.

    Raises `StoreFull`, which is retryable.
    """
    turn = state.turn
    stored = state.store.append(queue, (record,), (tag,), turn.now_ms)
    size = state.store.log.tail - stored.positions[0]
    turn.appended(queue, 1, size)
    if state.measures is not None:
        state.measures.size.add((queue.topic,), size)
    return stored


def append_batch(state: "BrokerState", queue: QueueIndex, body: bytes, like: Record) -> Appended:
    """Store the messages of a batch's body, all or none, at consecutive offsets.

    Everything the batch does not say is as in `like`. Raises as `append` does, and
    `MessageMalformed` or `InvalidInput` for a body that is no batch.
    """
    stored = state.store.append_batch(queue, body, like, state.turn.now_ms)
    size = state.store.log.tail - stored.positions[0]
    count = len(stored.positions)
    state.turn.appended(queue, count, size)
    if state.measures is not None:
        state.measures.size.add((queue.topic,), size // count)
    return stored


def place(state: "BrokerState", draft: Draft, redirecting: Sequence[str] = REDIRECTING) -> Placed:
    """Send a draft through the redirects it asks for, and store it.

    The topic it ends up in is made by whoever sends it there. Raises `ServerError` for a draft
    that is refused, `StoreFull` if there is no room.
    """
    for name in redirecting:
        if name in draft.properties:
            state.redirects.get(name, _refuse)(state, draft)
    if draft.sys_flag & TRANSACTION_MASK in _UNDELIVERED:
        raise server_error(
            ResponseCode.MESSAGE_ILLEGAL, "a prepared or rolled back message is never delivered"
        )
    try:
        text = encode_properties(draft.properties)
        record = Record(
            topic=draft.topic.encode(),
            body=draft.body,
            property_bytes=text,
            queue_id=draft.queue_id,
            flag=draft.flag,
            sys_flag=draft.sys_flag,
            born_timestamp_ms=draft.born_timestamp_ms,
            born_host=draft.born_host,
            reconsume_times=draft.reconsume_times,
            prepared_transaction_offset=draft.prepared_transaction_offset,
        )
    except InvalidInput as error:
        raise message_illegal(state.config.max_message_size) from error
    queue = state.store.make_queue(draft.topic, draft.queue_id)
    tag = tags_code(text) if draft.tag is None else draft.tag
    stored = append(state, queue, record, tag)
    return Placed(queue, stored.queue_offset, stored.positions[0])


_UNDELIVERED = (4, 12)


def message_illegal(limit: int) -> ServerError:
    """Make the refusal of a message that is too large in some way, in Java's words."""
    return server_error(
        ResponseCode.MESSAGE_ILLEGAL,
        "the message is illegal, maybe msg body or properties length not matched. "
        f"msg body length limit {limit}B, msg properties length limit 32KB.",
    )


def _refuse(state: "BrokerState", draft: Draft) -> NoReturn:
    del state
    asked = [name for name in REDIRECTING if name in draft.properties]
    raise server_error(
        ResponseCode.MESSAGE_ILLEGAL, f"this broker does not keep messages with {asked[0]}"
    )
