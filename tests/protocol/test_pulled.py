import contextlib
import pickle
import tracemalloc

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pocketmq.errors import MessageMalformed, MessagesCutShort, ProtocolError
from pocketmq.model import SysFlag
from pocketmq.protocol import DeliveryContext, RecordView
from pocketmq.protocol.batch import BatchEntry, encode_batch
from pocketmq.protocol.compression import Codec, compress, mark_compressed
from pocketmq.protocol.pulled import INNER_MESSAGES_LIMIT, KEPT_SLICE, decode_pulled
from pocketmq.protocol.record_scan import scan_records
from pocketmq.protocol.records import Record, blank_record, encode_record
from tests.protocol.golden_messages import BATCH, STORED_BY_JAVA, V1, V6_HOSTS

BROKER = DeliveryContext("broker-a")
INNER = int(SysFlag.INNER_BATCH | SysFlag.NEED_UNWRAP)
ENTRIES = [
    BatchEntry(b"one", b"TAGS\x01a\x02UNIQ_KEY\x01ID1\x02", 1),
    BatchEntry(b"two", b"TAGS\x01b\x02UNIQ_KEY\x01ID2\x02", 2),
    BatchEntry(b"three", b"", 3),
]


def inner_batch(entries: list[BatchEntry], codec: Codec | None = None) -> bytes:
    body, flag = encode_batch(entries), INNER
    if codec:
        body, flag = compress(body, codec), mark_compressed(INNER, codec)
    return encode_record(
        Record(
            topic=b"T",
            body=body,
            sys_flag=flag,
            property_bytes=b"INNER_NUM\x013\x02",
            queue_id=2,
            queue_offset=70,
            commit_log_offset=9000,
            reconsume_times=4,
        )
    )


def test_an_empty_body_holds_no_messages() -> None:
    assert decode_pulled(b"", BROKER) == []


@pytest.mark.parametrize("size", [0, 1, KEPT_SLICE, KEPT_SLICE + 1, 100_000])
@pytest.mark.parametrize("codec", [None, Codec.ZLIB])
def test_bodies_of_every_size_are_read_as_they_were_sent(size: int, codec: Codec | None) -> None:
    sent = bytes(range(256)) * (size // 256) + bytes(size % 256)
    body, flag = (compress(sent, codec), mark_compressed(0, codec)) if codec else (sent, 0)
    record = encode_record(Record(topic=b"T", body=body, sys_flag=flag))
    messages = decode_pulled(record * 3, BROKER)
    assert [message.body for message in messages] == [sent] * 3
    assert [message.stored_body for message in messages] == [body] * 3


def test_messages_that_wait_do_not_hold_large_bodies_twice() -> None:
    data = encode_record(Record(topic=b"T", body=bytes(KEPT_SLICE + 1))) * 1000
    tracemalloc.start()
    try:
        messages = decode_pulled(data, BROKER)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(messages) == 1000
    assert held < len(data) / 2


@pytest.mark.parametrize("form", [bytes, bytearray, memoryview])
def test_a_body_may_come_in_any_buffer(form: type) -> None:
    messages = decode_pulled(form(V1 + V6_HOSTS + STORED_BY_JAVA), BROKER)
    assert [message.record() for message in messages] == [V1, V6_HOSTS, STORED_BY_JAVA]
    assert [message.broker_name for message in messages] == ["broker-a"] * 3


def test_a_buffer_that_is_used_again_does_not_change_messages() -> None:
    buffer = bytearray(V1)
    (message,) = decode_pulled(buffer, BROKER)
    buffer[:] = bytes(len(buffer))
    assert message.body == b"hello"


@pytest.mark.parametrize("codec", [None, *Codec])
def test_an_inner_batch_is_unwrapped(codec: Codec | None) -> None:
    body = V1 + inner_batch(ENTRIES, codec) + V1
    messages = decode_pulled(body, DeliveryContext("broker-a", offset_delta=100))
    assert [message.queue_offset for message in messages] == [142, 170, 171, 172, 142]
    inner = messages[1:4]
    assert [message.body for message in inner] == [b"one", b"two", b"three"]
    assert [message.body_size for message in inner] == [3, 3, 5]
    assert [message.flag for message in inner] == [1, 2, 3]
    assert [message.tag for message in inner] == ["a", "b", None]
    offset_id = "00000000000000000000000000002328"
    assert [message.message_id for message in inner] == ["ID1", "ID2", offset_id]
    for message in inner:
        assert (message.topic, message.queue_id, message.reconsume_times) == ("T", 2, 0)
        assert (message.commit_log_offset, message.prepared_transaction_offset) == (9000, 0)
        assert message.sys_flag & 0xFF == INNER
        assert message.crc_matches()
        assert message.store_size == len(message.record())


def test_an_inner_message_survives_pickling_as_a_record_of_its_own() -> None:
    for message in decode_pulled(inner_batch(ENTRIES, Codec.ZLIB), BROKER):
        revived = pickle.loads(pickle.dumps(message))
        assert revived == message
        assert hash(revived) == hash(message)
        assert repr(revived) == repr(message)
        assert revived.body == message.body
        assert revived.body_crc == message.body_crc
        assert revived.properties == message.properties
        assert message.with_topic("U").topic == "U"


def test_a_batch_is_only_unwrapped_if_both_bits_ask_for_it() -> None:
    for flag in (int(SysFlag.INNER_BATCH), int(SysFlag.NEED_UNWRAP)):
        (message,) = decode_pulled(
            encode_record(Record(topic=b"T", body=BATCH, sys_flag=flag)), BROKER
        )
        assert message.body == BATCH


def test_a_batch_within_a_batch_stays_wrapped() -> None:
    nested = inner_batch([BatchEntry(encode_batch(ENTRIES))])
    (message,) = decode_pulled(nested, BROKER)
    assert message.body == encode_batch(ENTRIES)


def test_what_came_before_a_broken_record_is_kept() -> None:
    with pytest.raises(MessagesCutShort) as caught:
        decode_pulled(V1 + V6_HOSTS + V1[:50] + V1, BROKER)
    assert caught.value.position == len(V1 + V6_HOSTS)
    assert [message.record() for message in caught.value.decoded] == [V1, V6_HOSTS]
    revived = pickle.loads(pickle.dumps(caught.value))
    assert revived.decoded == caught.value.decoded
    assert str(revived) == str(caught.value)


def test_a_blank_does_not_belong_into_a_pulled_body() -> None:
    with pytest.raises(MessagesCutShort, match="blank") as caught:
        decode_pulled(V1 + blank_record(8), BROKER)
    assert caught.value.position == len(V1)
    assert len(caught.value.decoded) == 1


def test_a_broken_inner_batch_is_reported_at_its_record() -> None:
    broken = encode_record(Record(topic=b"T", body=BATCH[:-1], sys_flag=INNER))
    with pytest.raises(MessagesCutShort, match="inner batch") as caught:
        decode_pulled(V1 + broken + V1, BROKER)
    assert caught.value.position == len(V1)
    assert len(caught.value.decoded) == 1


def read_everything(raw: bytes) -> None:
    for message in decode_pulled(raw, DeliveryContext(inflate_limit=10_000)):
        assert repr(message)
        assert message.record()
        _ = message.keys, message.transaction_id, message.delay_level, message.user_properties
        with contextlib.suppress(MessageMalformed):
            _ = message.body, message.born_host, message.store_host


@settings(max_examples=300)
@given(st.data())
def test_damage_is_a_protocol_error_and_nothing_else(data: st.DataObject) -> None:
    sources = [V1, V6_HOSTS, STORED_BY_JAVA, *(inner_batch(ENTRIES, c) for c in (None, *Codec))]
    raw = bytearray(b"".join(data.draw(st.lists(st.sampled_from(sources), min_size=1, max_size=3))))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ProtocolError):
        read_everything(bytes(raw))


def walked(raw: bytes) -> tuple[list[tuple[int, ...]], int | None]:
    """Where the records of a body are, and where it is broken, by the walk over any buffer."""
    found: list[tuple[int, ...]] = []
    try:
        for position, size, queue_offset, _, body_size, text_at in scan_records(raw):
            record = RecordView(raw, position)
            if record.body_crc and not record.crc_matches():
                return found, position
            found.append((position, size, queue_offset, body_size, text_at))
    except MessageMalformed as error:
        return found, error.position
    return found, None


@settings(max_examples=500)
@given(st.data())
def test_plain_and_special_records_are_found_where_the_walk_finds_them(
    data: st.DataObject,
) -> None:
    kinds = [V1, V1, V1, V6_HOSTS, STORED_BY_JAVA, encode_record(Record(topic=b"", body=b""))]
    raw = bytearray(b"".join(data.draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=5))))
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at] = data.draw(st.sampled_from([0, 1, 91, 127, 128, 255]) | st.integers(0, 255))
    whole = bytes(raw[: data.draw(st.integers(0, len(raw)))])
    with contextlib.suppress(MessageMalformed):
        assume(not any(flag & INNER == INNER for _, _, _, flag, _, _ in scan_records(whole)))
    broken = None
    try:
        messages = decode_pulled(whole, BROKER)
    except MessagesCutShort as error:
        messages, broken = error.decoded, error.position
    found = [
        (each.position, each.store_size, each.queue_offset, each.body_size, each.text_at)
        for each in messages
    ]
    assert (found, broken) == walked(whole)


def resized(record: bytes, body_size: int = 0) -> bytes:
    """A record whose size is its own, and that claims a body of so many bytes."""
    size = len(record).to_bytes(4, "big")
    return size + record[4:84] + body_size.to_bytes(4, "big", signed=True) + record[88:]


EMPTY = encode_record(Record(topic=b"", body=b"", prepared_transaction_offset=8 << 8))
LENGTHS_THAT_ADD_UP = {
    "a topic of more than 127 bytes": resized(EMPTY[:88] + b"\xc8" + bytes(200) + b"\0\0"),
    "properties of more than 32767": resized(EMPTY[:89] + b"\x80\0" + bytes(0x8000)),
    # What is read for lengths lies before the body then: 0 and 8 in the transaction's offset.
    "a body of fewer than none": resized(EMPTY, -8),
}


@pytest.mark.parametrize("record", LENGTHS_THAT_ADD_UP.values(), ids=LENGTHS_THAT_ADD_UP)
def test_lengths_that_add_up_but_are_negative_for_java_are_refused(record: bytes) -> None:
    with pytest.raises(MessagesCutShort, match=r"a topic of -|properties of -|a body of -"):
        decode_pulled(record, BROKER)


@settings(max_examples=100)
@given(st.binary(max_size=300))
def test_garbage_is_a_protocol_error_and_nothing_else(raw: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        read_everything(raw)


def test_an_inner_batch_does_not_copy_its_topic_for_every_message() -> None:
    """A small body with a long topic must not grow by the product of the two."""
    raw = encode_record(
        Record(topic=b"t" * 30_000, body=encode_batch([BatchEntry(b"")] * 2_000), sys_flag=INNER)
    )
    tracemalloc.start()
    try:
        messages = decode_pulled(raw, BROKER)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(messages) == 2_000
    assert peak < 2_000_000


@pytest.mark.parametrize("codec", Codec)
def test_the_inner_batches_of_one_body_share_what_they_may_inflate_to(codec: Codec) -> None:
    """A body of many small bombs holds no more than a body of one."""
    batch = inner_batch([BatchEntry(bytes(100_000))], codec)
    delivery = DeliveryContext(inflate_limit=250_000)
    assert len(decode_pulled(batch * 2, delivery)) == 2
    with pytest.raises(
        MessagesCutShort, match="inflates to more than the limit of 49956 bytes"
    ) as caught:
        decode_pulled(batch * 3, delivery)
    assert caught.value.position == 2 * len(batch)
    assert len(caught.value.decoded) == 2


def test_inner_batches_that_are_not_compressed_take_nothing_of_that_room() -> None:
    batch = inner_batch([BatchEntry(bytes(100_000))])
    assert len(decode_pulled(batch * 3, DeliveryContext(inflate_limit=1))) == 3


def test_a_few_compressed_bytes_cannot_claim_millions_of_messages() -> None:
    half = inner_batch([BatchEntry(b"")] * (INNER_MESSAGES_LIMIT // 2), Codec.ZLIB)
    assert len(decode_pulled(half * 2, BROKER)) == INNER_MESSAGES_LIMIT
    with pytest.raises(MessagesCutShort, match="more than 0 messages"):
        decode_pulled(half * 2 + inner_batch(ENTRIES), BROKER)


def test_an_inner_batch_cannot_run_past_the_largest_offset() -> None:
    """Its messages could not be stored or pickled: a record has 64 bits for the offset."""
    body = encode_batch(ENTRIES)
    last = Record(topic=b"T", body=body, sys_flag=INNER, queue_offset=2**63 - 1 - len(ENTRIES))
    (*_, message) = decode_pulled(encode_record(last), BROKER)
    assert pickle.loads(pickle.dumps(message)) == message
    beyond = msgspec.structs.replace(last, queue_offset=last.queue_offset + 1)
    with pytest.raises(MessagesCutShort, match="do not fit 64 bits"):
        decode_pulled(encode_record(beyond), BROKER)
