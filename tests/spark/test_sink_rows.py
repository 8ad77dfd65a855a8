"""Rows become the same bytes as messages sent one by one, or are refused by number and column."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq import MessageQueue
from pocketmq.balance.producer.selectors import by_hash, long_hash
from pocketmq.blocking.record_sender import IdRange
from pocketmq.errors import RowRefused
from pocketmq.model.property_names import RESERVED
from pocketmq.protocol.batch import decode_batch, encode_messages
from pocketmq.spark.packing import Alone, Packed, pack, pinned_queue, slices
from pocketmq.spark.rows import Rows, read_rows
from pocketmq.spark.sink_options import SinkColumns

TEXT_MAP = pa.map_(pa.string(), pa.string())
SCHEMA = pa.schema(
    [
        ("body", pa.binary()),
        ("topic", pa.string()),
        ("tags", pa.string()),
        ("keys", pa.string()),
        ("properties", TEXT_MAP),
        ("orderingKey", pa.string()),
        ("delay", pa.float64()),
        ("priority", pa.int64()),
    ]
)
COLUMNS = SinkColumns(
    body=0, topic=1, tags=2, keys=3, properties=4, ordering_key=5, delay=6, priority=7
)
PREFIX = "7F000001" + "0" * 20
QUEUES = {
    topic: [MessageQueue(topic, "broker-0", number) for number in range(4)]
    for topic in ("orders", "bills", "%RETRY%shop")
}


def batch_of(*rows: dict[str, Any]) -> pa.RecordBatch:
    """Return rows that have a topic and a body if they do not say otherwise."""
    full = [{"topic": "orders", "body": b"-", **row} for row in rows]
    columns = [
        pa.array([row.get(name) for row in full], SCHEMA.field(name).type) for name in SCHEMA.names
    ]
    return pa.record_batch(columns, schema=SCHEMA)


def packed(rows: Rows, limit: int = 1 << 20) -> list[Packed | Alone]:
    return list(pack(rows, limit, lambda _: IdRange(PREFIX, 0xFFFE), QUEUES.__getitem__))


names = st.text(st.characters(codec="utf-8", exclude_characters="\1\2"), min_size=1, max_size=8)
values = names.filter(lambda text: text.strip())
custom = st.dictionaries(
    values.filter(lambda name: name not in RESERVED), values | st.none(), max_size=3
)
any_row = st.fixed_dictionaries(
    {"body": st.binary(min_size=1, max_size=40)},
    optional={
        "tags": st.none() | names | st.just(""),
        "keys": st.none() | st.lists(st.text("abcé", min_size=1), max_size=3).map(" ".join),
        "properties": st.none() | custom.map(lambda found: list(found.items())),
    },
)


@settings(max_examples=80, deadline=None)
@given(st.lists(any_row, min_size=1, max_size=12), st.integers(0, 3))
def test_entries_are_those_of_messages_sent_in_a_batch(
    rows: list[dict[str, Any]], skip: int
) -> None:
    """Wherever in a larger batch the rows lie, and as the ids go round."""
    batch = batch_of(*[{"properties": [("x", "y")]}] * skip, *rows).slice(skip)
    found = read_rows(batch, COLUMNS, None)
    ids = [f"{PREFIX}{0xFFFE + at & 0xFFFF:04X}" for at in range(len(rows))]
    messages = [found.message(at) for at in range(len(rows))]
    (whole,) = packed(found)
    assert isinstance(whole, Packed)
    assert whole.body == b"".join(encode_messages(messages, ids))
    for row, message in zip(rows, messages, strict=True):
        given_keys = (row.get("keys") or "").split(" ") if row.get("keys") else []
        assert (message.topic, message.body) == ("orders", row["body"])
        assert (message.tag or "", list(message.keys)) == (row.get("tags") or "", given_keys)
        assert dict(message.properties) == {
            name: value for name, value in row.get("properties") or () if value is not None
        }


@pytest.mark.parametrize(
    ("row", "column", "reason"),
    [
        ({"topic": None}, "topic", "is null"),
        ({"topic": "no spaces"}, "topic", "allowed are letters"),
        ({"topic": "SCHEDULE_TOPIC_XXXX"}, "topic", "a system topic"),
        ({"body": None}, "body", "is null"),
        ({"body": b""}, "body", "is empty"),
        ({"body": bytes(4 * 1024 * 1024 + 1)}, "body", "larger than 4194304"),
        ({"tags": "a\2b"}, "tags", "separator"),
        ({"keys": "a\2b"}, "keys", "separator"),
        ({"properties": [("KEYS", "x")]}, "properties", "'KEYS' is reserved by RocketMQ"),
        ({"properties": [("a", "1"), ("b", " \t")]}, "properties", "'b': name and value"),
        ({"properties": [("a", "1"), ("b", "")]}, "properties", "'b': name and value"),
        ({"properties": [("a\1", "1")]}, "properties", "separator"),
        ({"properties": [("a", "1\2")]}, "properties", "separator"),
        ({"properties": [("a", "x" * 32000)]}, "properties", "is too long"),
        ({"keys": "x" * 32000}, "keys", "is too long"),
        ({"delay": -0.5}, "delay", "must be from 0 to"),
        ({"delay": float("nan")}, "delay", "must be from 0 to"),
        ({"delay": 1.7e12}, "delay", "must be from 0 to"),
        ({"priority": -1}, "priority", "must be from 0 to"),
        ({"priority": 1 << 31}, "priority", "must be from 0 to"),
    ],
)
def test_a_row_that_cannot_be_sent_names_itself(
    row: dict[str, Any], column: str, reason: str
) -> None:
    batch = batch_of({"properties": [("ok", "1")], "tags": "t"}, {}, row, {"delay": 3.0})
    with pytest.raises(RowRefused, match=reason) as refused:
        read_rows(batch, COLUMNS, None, first=1000, partition=7)
    assert (refused.value.row, refused.value.partition, refused.value.column) == (1002, 7, column)
    assert str(refused.value).startswith(f"row 1002 of partition 7 (from 0): column {column!r} ")


def test_keys_come_as_text_or_as_a_list() -> None:
    as_text = read_rows(
        batch_of({"keys": " a  b\t"}, {"keys": " "}, {"keys": ""}, {}), COLUMNS, None
    )
    assert [as_text.message(at).keys for at in range(4)] == [["a", "b"], (), (), ()]
    kind = pa.list_(pa.string())
    lists = pa.record_batch(
        [pa.array([b"-"] * 3), pa.array([["a", "b"], [], None], kind)], names=["body", "keys"]
    )
    found = read_rows(lists, SinkColumns(body=0, keys=1), "orders")
    assert [found.message(at).keys for at in range(3)] == [["a", "b"], (), ()]
    for bad in ("a b", "", None):
        wrong = pa.record_batch(
            [pa.array([b"-"]), pa.array([["a", bad]], kind)], names=["body", "keys"]
        )
        with pytest.raises(RowRefused, match="a key must not be null or empty"):
            read_rows(wrong, SinkColumns(body=0, keys=1), "orders")


def test_rows_with_a_priority_are_sent_alone_and_the_others_together() -> None:
    batch = batch_of(
        {"body": b"A", "orderingKey": "k2"}, {"body": b"B", "priority": 3, "orderingKey": "k1"},
        {"body": b"C", "priority": 0, "orderingKey": "k2"}, {"body": b"D", "orderingKey": "k2"},
    )  # fmt: skip
    parts = packed(read_rows(batch, COLUMNS, None))
    alone = [part.rows.message(part.at) for part in parts if isinstance(part, Alone)]
    assert sorted((each.body, each.priority) for each in alone) == [(b"B", 3), (b"C", 0)]
    assert sum(part.rows for part in parts if isinstance(part, Packed)) == 2
    assert read_rows(batch_of({}, {}), COLUMNS, None).message(0).priority is None


def test_text_is_a_body_and_an_interval_a_delay() -> None:
    batch = pa.record_batch(
        [pa.array(["é"]), pa.array([90_500_000], pa.duration("us"))], names=["body", "delay"]
    )
    found = read_rows(batch, SinkColumns(body=0, delay=1), "orders")
    assert found.message(0).body == "é".encode()
    (alone,) = packed(found)
    assert isinstance(alone, Alone)
    assert alone.delay == 90.5


def test_batches_are_cut_where_they_would_be_too_large() -> None:
    rows = read_rows(
        batch_of(*[{"body": bytes([65 + at]) * 100} for at in range(10)]), COLUMNS, None
    )
    parts = packed(rows, limit=500)
    assert all(isinstance(part, Packed) and len(part.body) <= 500 for part in parts)
    assert [(part.first, part.last, part.rows) for part in parts if isinstance(part, Packed)] == [
        (at, at + 1, 2) for at in range(0, 10, 2)
    ]
    bodies = [
        entry.body[:1]
        for part in parts
        if isinstance(part, Packed)
        for entry in decode_batch(part.body)
    ]
    assert b"".join(bodies) == b"ABCDEFGHIJ"


def test_what_a_batch_cannot_hold_goes_alone_in_its_place() -> None:
    rows = read_rows(
        batch_of(
            {"body": b"A"}, {"body": b"B" * 600}, {"body": b"C"}, {"body": b"D", "delay": 5.0},
            {"body": b"E", "delay": 0.0}, {"body": b"F", "topic": "%RETRY%shop"},
        ),
        COLUMNS,
        None,
    )  # fmt: skip
    told = [
        (part.topic, part.body[20:21].decode())
        if isinstance(part, Packed)
        else (part.rows.message(part.at).body[:1].decode(), part.delay)
        for part in packed(rows, limit=500)
    ]
    assert told == [
        ("orders", "A"),
        ("B", None),
        ("orders", "C"),
        ("D", 5.0),
        ("orders", "E"),
        ("F", None),
    ]


@pytest.mark.parametrize("kind", [pa.string(), pa.int32(), pa.int64()])
def test_ordering_keys_choose_as_java_does_and_keep_their_order(kind: pa.DataType) -> None:
    keys: list[Any] = [None if at % 7 == 0 else at % 5 - 9 for at in range(60)]
    if kind == pa.string():
        keys = [None if key is None else f"customer {key}" for key in keys]
    topics = ["orders" if at % 3 else "bills" for at in range(60)]
    batch = pa.record_batch(
        [pa.array([b"%d" % at for at in range(60)]), pa.array(topics), pa.array(keys, kind)],
        names=["body", "topic", "orderingKey"],
    )
    rows = read_rows(batch, SinkColumns(body=0, topic=1, ordering_key=2), None)
    seen: dict[tuple[str, MessageQueue | None], list[int]] = {}
    for part in packed(rows, limit=400):
        assert isinstance(part, Packed)
        place = seen.setdefault((part.topic, part.queue), [])
        place += [int(entry.body) for entry in decode_batch(part.body)]
    wanted: dict[tuple[str, MessageQueue | None], list[int]] = {}
    for at, (topic, key) in enumerate(zip(topics, keys, strict=True)):
        own = long_hash(key) if kind == pa.int64() and key is not None else key
        queue = None if own is None else by_hash(QUEUES[topic], own)
        wanted.setdefault((topic, queue), []).append(at)
    assert seen == wanted


A = [MessageQueue("orders", "broker-a", number) for number in range(4)]
B = [MessageQueue("orders", "broker-b", number) for number in range(6)]


@pytest.mark.parametrize(
    ("number", "broker", "queue"),
    [
        (2, "broker-a", A[2]),
        (2, "broker-b", B[2]),
        (2, None, A[2]),  # brokers share the numbers: even ones are the first's
        (3, None, B[3]),
        (3, "of another cluster", B[3]),
        (5, None, B[5]),
        (5, "broker-a", None),
        (6, None, None),
        (-1, None, None),
    ],
)
def test_a_number_and_a_broker_are_one_queue(
    number: int, broker: str | None, queue: MessageQueue | None
) -> None:
    assert pinned_queue(number, broker, [*A, *B]) == queue


def pinned_rows(ids: list[int | None], kind: pa.DataType, **more: list[Any]) -> Rows:
    columns = {"body": [b"%d" % at for at in range(len(ids))], "queueId": pa.array(ids, kind)}
    batch = pa.record_batch({**columns, **more})
    places = {"orderingKey": "ordering_key", "brokerName": "broker_name"}
    found = {places[name]: batch.schema.get_field_index(name) for name in more}
    return read_rows(batch, SinkColumns(body=0, queue_id=1, **found), "orders", 50, 3)


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.int64()])
def test_a_queue_id_pins_a_row_and_wins_over_the_ordering_key(kind: pa.DataType) -> None:
    rows = pinned_rows([3, None, 0, 3, None, 0], kind, orderingKey=["k"] * 5 + [None])
    by_key = by_hash(QUEUES["orders"], "k")
    wanted: dict[MessageQueue | None, list[int]] = {QUEUES["orders"][3]: [0, 3]}
    wanted.setdefault(by_key, []).extend([1, 4])
    wanted.setdefault(QUEUES["orders"][0], []).extend([2, 5])
    seen = {
        part.queue: [int(entry.body) for entry in decode_batch(part.body)]
        for part in packed(rows)
        if isinstance(part, Packed)
    }
    assert seen == {queue: sorted(found) for queue, found in wanted.items()}


def test_a_queue_that_is_not_there_names_its_row() -> None:
    rows = pinned_rows([0, 1, 9, 9], pa.int32(), brokerName=["broker-0", None, "broker-0", None])
    with pytest.raises(RowRefused, match=r"is 9, which is not among .* queues 0 to 3") as refused:
        packed(rows)
    assert (refused.value.row, refused.value.partition, refused.value.column) == (52, 3, "queueId")
    brokers = ["broker-0", None]
    first, second = packed(pinned_rows([2, 1], pa.int32(), brokerName=brokers))
    assert isinstance(first, Packed)
    assert isinstance(second, Packed)
    assert [first.queue, second.queue] == [QUEUES["orders"][1], QUEUES["orders"][2]]


def test_a_small_write_becomes_as_many_requests_as_there_are_queues() -> None:
    def sizes(count: int, queues: int) -> list[int]:
        rows = read_rows(batch_of(*[{}] * count), COLUMNS, None)
        ids = IdRange(PREFIX, 0)
        parts = pack(rows, 1 << 20, lambda _: ids, QUEUES.__getitem__, lambda _: queues)
        return [part.rows for part in parts if isinstance(part, Packed)]

    assert sizes(80, 8) == [10] * 8
    assert sizes(100, 8) == [13] * 7 + [9]
    assert sizes(20, 8) == [8, 8, 4]
    assert sizes(5, 8) == [5]
    assert sizes(100, 1) == [100]
    assert sizes(100, 0) == [100]


def test_a_batch_of_any_size_is_worked_off_in_parts() -> None:
    batch = pa.record_batch([pa.array([b"%d" % at for at in range(100_000)])], names=["body"])
    parts = list(slices(batch))
    assert max(part.num_rows for part in parts) <= 32_768
    assert pa.Table.from_batches(parts).equals(pa.Table.from_batches([batch]))
    assert list(slices(batch.slice(0, 0))) == []
