"""Batches that a Java broker handed out as one message: acknowledged when all of them are."""

from pocketmq.client.pop.popped import handle_of, read_popped
from pocketmq.client.pop.questions import WrappedBatches
from pocketmq.protocol import ReceivedMessage
from pocketmq.protocol.batch import BatchEntry, encode_batch
from pocketmq.protocol.handles import PopHandle
from pocketmq.protocol.requests.pop import PopResponse
from tests.client.pop.shelves import record

ANSWER = PopResponse(
    pop_time=1000,
    invisible_time=60000,
    revive_qid=5,
    rest_num=0,
    start_offset_info="0 0 5",
    msg_offset_info="0 0 5,8,9",
)


def batch(offset: int, names: str) -> bytes:
    body = encode_batch([BatchEntry(each.encode()) for each in names])
    return record(offset, body, sys_flag=192)


def popped() -> list[ReceivedMessage]:
    """A pop of a batch of three, a single message and a batch of two."""
    body = batch(5, "abc") + record(8, b"d") + batch(9, "ef")
    return read_popped(ANSWER, body, "b", "orders").messages


def settle(batches: WrappedBatches, *handles: PopHandle) -> list[int | None]:
    """Return the offsets that are acknowledged to the broker."""
    found = batches.settle([("orders", handle) for handle in handles])
    return [handle.queue_offset for _, handle in found]


def test_each_message_of_a_batch_has_a_handle_of_its_own() -> None:
    messages = popped()
    assert b"".join(each.body for each in messages) == b"abcdef"
    assert [str(handle_of(each)) for each in messages] == [
        f"5 1000 60000 5 0 b 0 {offset}" for offset in range(5, 11)
    ]


def test_a_batch_is_acknowledged_with_its_last_message() -> None:
    batches, messages = WrappedBatches(), popped()
    batches.note(messages, 0.0, 60.0)
    a, b, c, d, e, f = map(handle_of, messages)
    assert settle(batches, a, d, c) == [8]
    assert settle(batches, f) == []
    assert settle(batches, b, e) == [5, 9]


def test_without_batches_nothing_is_held_back() -> None:
    batches = WrappedBatches()
    (message,) = read_popped(ANSWER, record(5), "b", "orders").messages
    batches.note([message], 0.0, 60.0)
    assert settle(batches, handle_of(message)) == [5]


def test_a_message_hidden_for_longer_moves_its_batch() -> None:
    batches, messages = WrappedBatches(), popped()
    batches.note(messages, 0.0, 60.0)
    a, b, c, d, *_ = map(handle_of, messages)
    assert batches.known_as(b).queue_offset == 5
    assert batches.known_as(d) is d
    new = PopHandle(
        start_offset=5, pop_time_ms=2000, invisible_time_ms=9, revive_queue_id=1, mark=a.mark,
        broker_name="b", queue_id=0, queue_offset=5,
    )  # fmt: skip
    assert batches.moved(d, new, 90.0) is new
    assert batches.moved(b, new, 90.0) is b
    assert batches.settle([("orders", each) for each in (a, b, c)]) == [("orders", new)]


def test_batches_whose_time_is_over_are_forgotten() -> None:
    batches, messages = WrappedBatches(), popped()
    batches.note(messages, 0.0, 60.0)
    a, *_ = map(handle_of, messages)
    batches.note(read_popped(ANSWER, batch(50, "xy"), "b", "orders").messages, 61.0, 121.0)
    assert settle(batches, a) == [5]  # as if it had been popped alone: the broker knows better
