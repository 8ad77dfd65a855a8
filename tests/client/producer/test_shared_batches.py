"""One receipt for many messages, taken apart; and one batch, taken apart."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.client.clock import SystemClock
from pocketmq.client.producer.preparing import Preparing
from pocketmq.client.producer.shared_batches import (
    BatchReceipts,
    LoopBatch,
    apart,
    as_entry,
    own_error,
)
from pocketmq.client.producer_options import ProducerOptions
from pocketmq.errors import ConnectionLost, SendFailed
from pocketmq.model import Message, MessageQueue, SendReceipt, SendStatus
from pocketmq.protocol.batch import decode_batch
from pocketmq.protocol.message_ids import UniqueIds
from pocketmq.protocol.property_text import decode_properties


def whole(places: str | None, offset: int = 40) -> SendReceipt:
    return SendReceipt(
        status=SendStatus.FLUSH_DISK_TIMEOUT,
        message_id="whole",
        offset_message_id=places,
        queue=MessageQueue("t", "b", 3),
        queue_offset=offset,
        region_id="eu",
        trace_on=False,
    )


ids = st.text("0123456789ABCDEF", min_size=1, max_size=9)


@given(st.lists(ids, min_size=1, max_size=20), st.data())
def test_each_message_gets_its_own_part(given_ids: list[str], data: st.DataObject) -> None:
    count = len(given_ids)
    given_places = data.draw(st.lists(ids, min_size=count, max_size=count))
    receipts = BatchReceipts(whole(",".join(given_places)), ",".join(given_ids), count)
    for at in range(count):
        own = receipts.own(at)
        assert (own.message_id, own.offset_message_id) == (given_ids[at], given_places[at])
        assert own.queue_offset == 40 + at
        assert (own.status, own.region_id, own.trace_on) == (
            SendStatus.FLUSH_DISK_TIMEOUT, "eu", False,
        )  # fmt: skip
        assert own.queue == MessageQueue("t", "b", 3)


@pytest.mark.parametrize("places", [None, "ABC", "A,B,C,D", ",,", "ABCDE,F"])
def test_places_that_are_not_as_many_are_not_made_up(places: str | None) -> None:
    receipts = BatchReceipts(whole(places), "AA,BB,CC", 3)
    own = [receipts.own(at) for at in range(3)]
    assert [each.message_id for each in own] == ["AA", "BB", "CC"]
    expected = ["", "", ""] if places == ",," else [places] * 3
    assert [each.offset_message_id for each in own] == expected


def preparing(namespace: str = "") -> Preparing:
    options = ProducerOptions(group="g", compress_from=50)
    return Preparing(options, namespace, UniqueIds(b"\1\2\3\4", 5, 6), SystemClock())


def test_a_batch_taken_apart_is_the_messages_it_was_made_of() -> None:
    prepare = preparing()
    batch = LoopBatch("t", None, 0.0, 3.0)
    sent = [Message("t", b"0"), Message("t", b"1", tag="x", keys=["k"]), Message("t", b"2")]
    sent.append(Message("t", b"3", properties={"é": "ü"}, flag=-5))
    for at, each in enumerate(sent):
        batch.messages.append(each)
        if each.tag or each.properties:
            entry = as_entry(prepare.prepare(each))
            assert entry is not None
            batch.entries[at] = entry
    packed = batch.pack(prepare)
    singles = apart(packed)
    assert [each.messages for each in singles] == [(each,) for each in sent]
    assert [each.body for each in singles] == [each.body for each in sent]
    assert ",".join(each.unique_id for each in singles) == packed.unique_id
    assert [each.flag for each in singles] == [0, 0, 0, -5]
    entries = decode_batch(packed.body)
    for single, there in zip(singles, entries, strict=True):
        properties = decode_properties(single.properties.encode())
        assert properties == decode_properties(there.property_bytes)
        assert properties["UNIQ_KEY"] == single.unique_id
    assert decode_properties(entries[3].property_bytes)["é"] == "ü"
    assert singles[1].properties == batch.entries[1][0].properties


def test_what_is_compressed_or_half_cannot_be_an_entry() -> None:
    prepare = preparing()
    assert as_entry(prepare.prepare(Message("t", b"x" * 49))) is not None
    assert as_entry(prepare.prepare(Message("t", b"x" * 50))) is None
    assert as_entry(prepare.prepare(Message("t", b"x"), {"TRAN_MSG": "true"})) is None
    assert as_entry(prepare.prepare(Message("t", b"x"), {"TIMER_DELAY_MS": "5"})) is None


async def test_cancelled_messages_are_dropped_with_their_entries() -> None:
    loop, prepare = asyncio.get_running_loop(), preparing()
    batch = LoopBatch("t", None, 0.0, 3.0)
    for n in range(5):
        entry = as_entry(prepare.prepare(Message("t", b"%d" % n, tag=f"t{n}")))
        assert entry is not None
        batch.entries[n] = entry
        batch.messages.append(Message("t", b"%d" % n, tag=f"t{n}"))
        batch.takers.append(loop.create_future())
        batch.choices.append(lambda queues: queues[0])
    batch.takers[0].cancel()  # type: ignore[attr-defined]
    batch.takers[3].cancel()  # type: ignore[attr-defined]
    batch.drop_cancelled()
    assert [each.body for each in batch.messages] == [b"1", b"2", b"4"]
    assert [batch.entries[at][0].body for at in range(3)] == [b"1", b"2", b"4"]
    assert len(batch.takers) == len(batch.choices) == 3
    assert [each.body for each in decode_batch(batch.pack(prepare).body)] == [b"1", b"2", b"4"]


def test_an_error_of_many_is_copied_whole() -> None:
    cause = ConnectionLost("a:1", "gone")
    error = SendFailed("t", "b", 2, 0.5, cause, outcome_unknown=True)
    own = own_error(error)
    assert own is not error
    assert (str(own), own.attempts, own.outcome_unknown) == (str(error), 2, True)
    assert own.last_error is not None
    assert str(own.last_error) == str(cause)
    assert own.__cause__ is cause
