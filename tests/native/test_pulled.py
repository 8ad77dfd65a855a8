"""The core finds the same messages in a pull as the pure function, and stops at the same place."""

import pickle
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.protocol import DeliveryContext
from pocketmq.protocol.pulled import KEPT_SLICE
from pocketmq.protocol.record_scan import MAGIC_V2
from pocketmq.protocol.records import Record, blank_record, encode_record
from tests.native.both import core, damaged, same
from tests.protocol.golden_messages import STORED_BY_JAVA, V1, V6_HOSTS

BROKER = DeliveryContext("broker-a", topic="orders", offset_delta=7, added={"k": "v"})
flags = st.sampled_from([0, 1, 4, 8, 64, 128, 192, 192 | 1, -1])
longs = st.integers(-(2**63), 2**63 - 1)
records = st.builds(
    Record,
    topic=st.sampled_from([b"", b"T", b"t" * 127, b"t" * 128]),
    body=st.binary(max_size=30) | st.sampled_from([bytes(KEPT_SLICE), bytes(KEPT_SLICE + 1)]),
    property_bytes=st.sampled_from([b"", b"k\x01v\x02", b"k\x01" + b"v" * 300, bytes(32767)]),
    sys_flag=flags,
    queue_offset=longs,
    born_host=st.sampled_from([bytes(8), bytes(20)]),
    store_host=st.sampled_from([bytes(8), bytes(20)]),
    body_crc=st.sampled_from([None, None, None, 0, 1, 2**31 - 1, -1]),
).map(encode_record)
fixed = st.sampled_from([V1, V1, V6_HOSTS, STORED_BY_JAVA, blank_record(8)])
bodies = st.lists(fixed | records, max_size=4).map(b"".join)


def resized(record: bytes, body_size: int = 0) -> bytes:
    size = len(record).to_bytes(4, "big")
    return size + record[4:84] + body_size.to_bytes(4, "big", signed=True) + record[88:]


@settings(max_examples=150)
@given(bodies, st.integers(-3, 3) | longs | st.sampled_from([2**63, -(2**70)]))
def test_sound_pulls(body: bytes, delta: int) -> None:
    same("plain_messages", body, DeliveryContext("broker-a", offset_delta=delta))


@settings(max_examples=150)
@given(bodies.flatmap(damaged))
def test_damaged_pulls(body: bytes) -> None:
    same("plain_messages", body, BROKER)


@given(st.binary(max_size=300))
def test_any_bytes(body: bytes) -> None:
    same("plain_messages", body, BROKER)


def test_lengths_that_add_up_and_are_out_of_range() -> None:
    empty = encode_record(Record(topic=b"", body=b"", prepared_transaction_offset=8 << 8))
    for body in (
        resized(empty[:88] + b"\xc8" + bytes(200) + b"\0\0"),
        resized(empty[:89] + b"\x80\0" + bytes(0x8000)),
        resized(empty, -8),
        resized(empty, 2**31 - 1),
        empty[:4] + MAGIC_V2.to_bytes(4, "big", signed=True) + empty[8:],
        b"\xff\xff\xff\xff" + empty[4:],
    ):
        for before in (b"", V1):
            kind, value = same("plain_messages", before + body + V1, BROKER)
            assert kind == "returned"
            assert len(value[1]) - 1 == (1 if before else 0), "only what comes before it is plain"


def test_every_bit_of_a_checksum_counts() -> None:
    crc = int.from_bytes(V1[8:12], "big")
    for bit in range(32):
        body = V1[:8] + (crc ^ 1 << bit).to_bytes(4, "big") + V1[12:]
        kind, value = same("plain_messages", V1 + body, BROKER)
        assert (kind, len(value[1]) - 1) == ("returned", 1)


def test_most_messages_of_a_pull_are_plain() -> None:
    (_, messages, position) = same("plain_messages", V1 * 50, BROKER)[1]
    assert (len(messages) - 1, position[1]) == (50, 50 * len(V1))


def test_messages_of_the_core_are_like_any_others() -> None:
    messages: list[Any] = core.plain_messages(V1 * 2, BROKER)[0]
    first, second = messages
    assert pickle.loads(pickle.dumps(first)) == first
    assert first != second.with_topic("another")
    assert repr(first).startswith("ReceivedMessage(topic='orders'")
