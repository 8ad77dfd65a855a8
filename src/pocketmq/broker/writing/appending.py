"""The one way messages take into the store, and the hooks on it.

Features that keep a message elsewhere first (delays, transactions, timers) register a `Redirect`
under the property that asks for them. Everything that is stored goes through `append` here, so
that suspended pulls are woken and it is counted.
"""

from collections.abc import Sequence
from typing import NoReturn

from pocketmq.broker.state import BrokerState
from pocketmq.broker.writing.drafts import REDIRECTING, Draft, Placed
from pocketmq.errors import InvalidInput, ResponseCode, ServerError, server_error
from pocketmq.model.kinds import TRANSACTION_MASK
from pocketmq.protocol import tags_code
from pocketmq.protocol.property_text import encode_properties
from pocketmq.protocol.records import Record
from pocketmq.store import Appended, QueueIndex


def append(state: BrokerState, queue: QueueIndex, record: Record, tag: int) -> Appended:
    """Store one message; answer its sender through `state.batch.answer_stored`.

    Raises `StoreFull`, which is retryable.
    """
    batch = state.batch
    stored = state.store.append(queue, (record,), (tag,), batch.now_ms)
    size = state.store.log.tail - stored.positions[0]
    batch.appended(queue, 1, size)
    if state.measures is not None:
        state.measures.size.add((queue.topic,), size)
    return stored


def append_batch(state: BrokerState, queue: QueueIndex, body: bytes, like: Record) -> Appended:
    """Store the messages of a batch's body, all or none, at consecutive offsets.

    Everything the batch does not say is as in `like`. Raises as `append` does, and
    `MessageMalformed` or `InvalidInput` for a body that is not a batch.
    """
    stored = state.store.append_batch(queue, body, like, state.batch.now_ms)
    size = state.store.log.tail - stored.positions[0]
    count = len(stored.positions)
    state.batch.appended(queue, count, size)
    if state.measures is not None:
        state.measures.size.add((queue.topic,), size // count)
    return stored


def append_inner(
    state: BrokerState, queue: QueueIndex, body: bytes, like: Record, tag: int
) -> Appended:
    """Store a batch's body as one record with a range of offsets. Raises as `append_batch` does."""
    stored = state.store.append_inner(queue, body, like, tag, state.batch.now_ms)
    size = state.store.log.tail - stored.positions[0]
    count = queue.next_offset - stored.queue_offset
    state.batch.appended(queue, count, size)
    if state.measures is not None:
        state.measures.size.add((queue.topic,), size // count)
    return stored


def place(state: BrokerState, draft: Draft, redirecting: Sequence[str] = REDIRECTING) -> Placed:
    """Send a draft through the redirects it asks for, and store it.

    The caller creates the topic it ends up in. Raises `ServerError` for a draft
    that is refused, `StoreFull` if the disk is full.
    """
    for name in redirecting:
        if name in draft.properties:
            state.redirects.get(name, _refuse)(draft)
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
    """Build the refusal of a message that is too large in some way, in Java's words."""
    return server_error(
        ResponseCode.MESSAGE_ILLEGAL,
        "the message is illegal, maybe msg body or properties length not matched. "
        f"msg body length limit {limit}B, msg properties length limit 32KB.",
    )


def _refuse(draft: Draft) -> NoReturn:
    asked = [name for name in REDIRECTING if name in draft.properties]
    raise server_error(
        ResponseCode.MESSAGE_ILLEGAL, f"this broker refuses messages with the property {asked[0]}"
    )
