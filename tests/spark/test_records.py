"""Stored records to Arrow's columns: the same as reading them one by one."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from pocketmq import native
from pocketmq.errors import MessageMalformed, MQError
from pocketmq.model import MessageQueue, SysFlag, property_names
from pocketmq.protocol import DeliveryContext, ReceivedMessage
from pocketmq.protocol.batch import BatchEntry, encode_batch
from pocketmq.protocol.compression import Codec, compress, mark_compressed
from pocketmq.protocol.hosts import encode_host
from pocketmq.protocol.pulled import decode_pulled
from pocketmq.protocol.records import Record, encode_record
from pocketmq.protocol.split_properties import split_properties
from pocketmq.spark import split_columns
from pocketmq.spark.layout import QueueRecords
from pocketmq.spark.records import RowSelection, decode
from pocketmq.spark.schema import arrow_schema, full_schema, wanted_columns
from pocketmq.spark.split_columns import ELSEWHERE

QUEUE = MessageQueue("orders", "broker-a", 3)
FULL = full_schema()
ALL = RowSelection(wanted_columns(FULL), arrow_schema(FULL))
V4, V6 = encode_host("10.1.2.3:40000"), encode_host("[2001:db8::1]:50000")


def record(offset: int = 0, **changes: Any) -> bytes:
    fields: dict[str, Any] = {
        "topic": b"orders",
        "body": b"hello",
        "property_bytes": b"",
        "queue_id": 3,
        "flag": 0,
        "sys_flag": 0,
        "born_timestamp_ms": 1_700_000_000_123,
        "born_host": V4,
        "queue_offset": offset,
        "commit_log_offset": 1000 + offset,
        "store_timestamp_ms": 1_700_000_000_456,
        "store_host": V4,
    }
    return encode_record(Record(**fields | changes))


def only(parts: list[QueueRecords], wanted: RowSelection) -> pa.RecordBatch:
    """Decode what fits into one batch; none for no rows."""
    batches = list(decode(parts, wanted))
    assert len(batches) <= 1
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=wanted.schema)


def rows_of(records: bytes, wanted: RowSelection = ALL, **part: Any) -> list[dict[str, Any]]:
    batch = only(
        [QueueRecords(QUEUE, records, part.pop("start", 0), part.pop("end", 2**63 - 1), **part)],
        wanted,
    )
    batch.validate(full=True)
    return [row | {"properties": dict(row["properties"])} for row in batch.to_pylist()]


def expected(message: ReceivedMessage) -> dict[str, Any]:
    kept = {k: v for k, v in message.properties.items() if k not in ELSEWHERE}
    return {
        "topic": "orders",
        "brokerName": "broker-a",
        "queueId": 3,
        "queueOffset": message.queue_offset,
        "body": message.body,
        "tags": message.tag,
        "keys": message.get_property(property_names.KEYS),
        "properties": kept,
        "messageId": message.message_id,
        "bornTimestamp": message.born_timestamp_ms,
        "storeTimestamp": message.store_timestamp_ms,
        "bornHost": message.born_host,
        "reconsumeTimes": message.reconsume_times,
    }


def check(records: bytes) -> None:
    """Read records with the native core, if there is one, and without."""
    want = [
        expected(message)
        for message in decode_pulled(records, DeliveryContext(broker_name="broker-a"))
    ]
    for function in {split_properties, native.pure["split_properties"]}:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(split_columns, "split_properties", function)
            got = rows_of(records)
        for row in got:
            for column in ("bornTimestamp", "storeTimestamp"):
                row[column] = round(row[column].timestamp() * 1000)
        assert got == want


words = st.sampled_from(["TAGS", "KEYS", "UNIQ_KEY", "WAIT", "MSG_REGION", "CLUSTER", "a", "longer-than-eight",
                         "longer-than-eighT", "p1234567x", "p1234567y", "schlüssel"])  # fmt: skip
values = st.sampled_from(["", "x", "true", "k1 k2", "größe", "\x01", "a\x01b", "0123456789"])
pieces = st.one_of(
    st.tuples(words, values).map(lambda pair: f"{pair[0]}\x01{pair[1]}".encode()),
    st.sampled_from(
        [b"", b"no-separator", b"\x01no-name", b"bad\x01\xff\xfe", b"\xe4\x01x", b"TAGS\x01"]
    ),
)
texts = st.tuples(st.lists(pieces, max_size=6), st.booleans()).map(
    lambda made: b"\x02".join(made[0]) + (b"\x02" if made[1] else b"")
)
hosts = st.sampled_from([V4, V6, encode_host("127.0.0.1:1")])


@st.composite
def stored(draw: st.DrawFn) -> bytes:
    made = []
    for offset in range(draw(st.integers(1, 6))):
        body, flag = draw(st.binary(max_size=30)), draw(st.sampled_from([0, 2, 8]))
        codec = draw(st.sampled_from([None, None, Codec.ZLIB, Codec.LZ4, Codec.ZSTD]))
        if codec is not None and body:
            body, flag = compress(body, codec), mark_compressed(flag, codec)
        born, store = draw(hosts), draw(hosts)
        flag |= SysFlag.BORN_HOST_V6 if len(born) == 20 else 0
        flag |= SysFlag.STORE_HOST_V6 if len(store) == 20 else 0
        topic = draw(st.sampled_from([b"orders", b"o" * 127, b"l" * 200]))
        made.append(
            record(
                offset,
                body=body,
                sys_flag=int(flag),
                topic=topic,
                born_host=born,
                store_host=store,
                property_bytes=draw(texts),
                reconsume_times=draw(st.integers(0, 16)),
            )
        )
    return b"".join(made)


@given(stored())
@settings(max_examples=100)
def test_columns_are_what_reading_one_by_one_gives(records: bytes) -> None:
    """All forms: IPv6, long topics, codecs, and properties of every oddness."""
    check(records)


@given(
    st.lists(
        st.tuples(st.text("abAB_", min_size=1, max_size=20), st.text("xyz\x01é", max_size=9)),
        max_size=5,
    ),
    st.integers(1, 5),
    st.booleans(),
    st.binary(max_size=3),
)
def test_messages_alike_are_read_the_quick_way_and_come_out_the_same(
    pairs: list[tuple[str, str]], count: int, closed: bool, odd: bytes
) -> None:
    """Names of any length, values that differ, the last separator there or not; and an odd one."""
    made = []
    for number in range(count):
        text = "\x02".join(f"{name}\x01{value}{number * 7}" for name, value in pairs).encode()
        made.append(text + (b"\x02" if closed and text else b""))
    check(b"".join(record(n, property_bytes=text) for n, text in enumerate(made)))
    made[-1] += odd
    check(b"".join(record(n, property_bytes=text) for n, text in enumerate(made)))


@given(
    st.lists(st.tuples(st.text("abK_", min_size=1, max_size=9), st.integers(1, 9)), max_size=4),
    st.integers(2, 6),
    st.booleans(),
    st.data(),
)
def test_texts_of_one_size_come_out_the_same_whatever_byte_of_them_differs(
    pairs: list[tuple[str, int]], count: int, closed: bool, data: st.DataObject
) -> None:
    """All rows have one shape; then a byte of one of them is another, perhaps a separator."""
    made = []
    for _ in range(count):
        values = [data.draw(st.text("xyz", min_size=n, max_size=n)) for _, n in pairs]
        text = "\x02".join(f"{name}\x01{v}" for (name, _), v in zip(pairs, values, strict=True))
        made.append(text.encode() + (b"\x02" if closed and text else b""))
    check(b"".join(record(n, property_bytes=text) for n, text in enumerate(made)))
    if made[0]:
        row, at = data.draw(st.integers(0, count - 1)), data.draw(st.integers(0, len(made[0]) - 1))
        other = data.draw(st.sampled_from([b"\x00", b"\x01", b"\x02", b"a", b"\xc3"]))
        made[row] = made[row][:at] + other + made[row][at + 1 :]
        check(b"".join(record(n, property_bytes=text) for n, text in enumerate(made)))


@given(stored(), st.data())
@settings(max_examples=100)
def test_damage_is_never_taken_for_data(records: bytes, data: st.DataObject) -> None:
    """Whatever byte changes, the rows are those of reading one by one, or both refuse."""
    at = data.draw(st.integers(0, len(records) - 1))
    broken = records[:at] + bytes([data.draw(st.integers(0, 255))]) + records[at + 1 :]
    try:
        want = [message.body for message in decode_pulled(broken, DeliveryContext())]
    except MQError:
        want = None
    try:
        got: list[Any] | None = [row["body"] for row in rows_of(broken, start=-(2**63))]
    except MQError:
        got = None
    assert got == want


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 200)), max_size=6))
@settings(max_examples=40)
def test_records_are_found_whatever_sizes_follow_one_another(runs: list[tuple[int, int]]) -> None:
    """Those of one size are found by the run, others one by one."""
    bodies = [b"x" * size for size, count in runs for _ in range(count)]
    records = b"".join([record(n, body=body) for n, body in enumerate(bodies)])
    rows = rows_of(records)
    assert [(row["queueOffset"], row["body"]) for row in rows] == list(enumerate(bodies))


def test_records_cut_short_are_refused() -> None:
    whole = record(0) + record(1)
    for size in range(1, len(whole)):
        if size != len(record(0)):
            with pytest.raises(MessageMalformed):
                rows_of(whole[:size])


def test_rows_outside_of_the_range_are_dropped() -> None:
    records = b"".join(record(offset) for offset in range(10))
    assert [row["queueOffset"] for row in rows_of(records, start=3, end=6)] == [3, 4, 5]
    moved = rows_of(records, start=103, end=106, offset_delta=100)
    assert [row["queueOffset"] for row in moved] == [103, 104, 105]


def test_tags_are_compared_in_full() -> None:
    """Brokers compare hashes: `Aa` and `BB` have the same."""
    records = b"".join(
        record(n, property_bytes=f"TAGS\x01{tag}\x02".encode())
        for n, tag in enumerate(["Aa", "BB", "Aa"])
    ) + record(3)
    wanted = RowSelection(ALL.columns, ALL.schema, frozenset({"Aa"}))
    assert [row["queueOffset"] for row in rows_of(records, wanted)] == [0, 2]


def test_parts_of_several_queues_make_one_batch() -> None:
    other = MessageQueue("refunds", "broker-b", 1)
    parts = [
        QueueRecords(QUEUE, record(7) + record(8), 0, 100),
        QueueRecords(other, record(5), 0, 100),
        QueueRecords(QUEUE, record(9), 0, 9),
    ]
    rows = only(parts, ALL).to_pylist()
    assert [(r["topic"], r["brokerName"], r["queueId"], r["queueOffset"]) for r in rows] == [
        ("orders", "broker-a", 3, 7),
        ("orders", "broker-a", 3, 8),
        ("refunds", "broker-b", 1, 5),
    ]


def test_only_the_columns_asked_for_are_made() -> None:
    schema = StructType([FULL["body"], FULL["queueOffset"]])
    batch = only(
        [QueueRecords(QUEUE, record(4), 0, 9)],
        RowSelection(wanted_columns(schema), arrow_schema(schema)),
    )
    assert batch.to_pydict() == {"body": [b"hello"], "queueOffset": [4]}


def test_no_columns_still_have_rows() -> None:
    none = RowSelection((), pa.schema([]))
    assert only([QueueRecords(QUEUE, record(0) + record(1), 0, 9)], none).num_rows == 2


def test_a_body_can_be_asked_for_as_text() -> None:
    schema = StructType().add("body", "string")
    records = record(0, body="grün".encode()) + record(1, body=b"\xff!")
    wanted = RowSelection(wanted_columns(schema), arrow_schema(schema))
    assert only([QueueRecords(QUEUE, records, 0, 9)], wanted).to_pydict() == {
        "body": ["grün", "�!"]
    }


def test_a_body_that_does_not_inflate_is_named_or_null() -> None:
    broken = record(0) + record(1, body=b"not zlib", sys_flag=int(SysFlag.COMPRESSED))
    with pytest.raises(MessageMalformed, match=r"offset 1 of MessageQueue.*orders"):
        rows_of(broken)
    lenient = RowSelection(ALL.columns, ALL.schema, strict=False)
    assert [row["body"] for row in rows_of(broken, lenient)] == [b"hello", None]


def test_inner_batches_are_unwrapped() -> None:
    entries = [BatchEntry(str(n).encode(), f"TAGS\x01t{n}\x02".encode()) for n in range(3)]
    flag = int(SysFlag.INNER_BATCH | SysFlag.NEED_UNWRAP)
    records = record(4) + record(5, body=encode_batch(entries), sys_flag=flag) + record(8)
    check(records)
    rows = [(row["queueOffset"], row["body"], row["tags"]) for row in rows_of(records, start=6)]
    assert rows == [(6, b"1", "t1"), (7, b"2", "t2"), (8, b"hello", None)]


def test_a_time_that_no_calendar_has_is_null() -> None:
    strange = record(0, born_timestamp_ms=2**62) + record(1, born_timestamp_ms=-(2**62)) + record(2)
    assert [row["bornTimestamp"] is None for row in rows_of(strange)] == [True, True, False]


def test_an_impossible_port_is_no_reason_to_stop() -> None:
    strange = record(0, born_host=b"\x7f\0\0\1\xff\xff\xff\xff") + record(1)
    assert [row["bornHost"] for row in rows_of(strange)] == [None, "10.1.2.3:40000"]
