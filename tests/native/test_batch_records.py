"""The core makes the same records of a batch as the pure function, and refuses the same bodies."""

from array import array
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.errors import MessageMalformed
from pocketmq.protocol.batch import BatchEntry, encode_batch
from pocketmq.protocol.records import Record
from tests.native.both import alone, core, damaged, same
from tests.protocol.test_batch_records import alike, entries, hosts

numbers = st.integers(-(2**31), 2**31 - 1)
longs = st.integers(-(2**63), 2**63 - 1)
near_the_end = st.sampled_from([0, 1, 50, 1 << 40, 2**63 - 1, 2**63 - 200])
tags = st.sampled_from([b"a", b"\xc3\xa4", b"\xf0\x9f\x98\x80", b"\xff\xc3", b"t" * 300, b"\0"])
tagged = st.tuples(tags, st.sampled_from([b"", b"k\x01v\x02"]), st.booleans()).map(
    lambda parts: parts[1] + b"TAGS\x01" + parts[0] + b"\x02" * parts[2]
)
odd = st.builds(
    lambda entry, text: msgspec.structs.replace(entry, property_bytes=text), entries, tagged
)
bodies = (st.lists(entries | odd, max_size=8) | alike).map(encode_batch)
likes = st.builds(
    Record,
    topic=st.sampled_from([b"", b"T", b"t" * 127, b"t" * 128, b"t" * 32767]),
    body=st.just(b"not looked at"),
    queue_id=numbers,
    flag=numbers,
    sys_flag=numbers,
    born_timestamp_ms=longs,
    born_host=hosts,
    reconsume_times=numbers,
    prepared_transaction_offset=longs,
    body_crc=st.none() | numbers,
)
LIKE = Record(topic=b"orders", body=b"", queue_id=3, born_timestamp_ms=5)


def pack(body: bytes, like: Record, offset: int, position: int, **options: Any) -> Any:
    given_options = {"store_timestamp_ms": 9, "store_host": bytes(8)} | options
    return same("pack_batch", body, like, offset, position, **given_options)


@settings(max_examples=150)
@given(bodies, likes, longs | near_the_end, near_the_end, longs, hosts)
def test_sound_batches(
    body: bytes, like: Record, offset: int, position: int, time: int, host: bytes
) -> None:
    pack(body, like, offset, position, store_timestamp_ms=time, store_host=host)


@settings(max_examples=150)
@given(bodies.flatmap(damaged))
def test_damaged_batches(body: bytes) -> None:
    pack(body, LIKE, 50, 1 << 40)


@given(st.binary(max_size=200))
def test_any_bytes(body: bytes) -> None:
    pack(body, LIKE, 50, 1 << 40)


@given(
    st.sampled_from([-1, 2**63, -(2**64), 0]),
    st.sampled_from([-1, 2**63, -(2**63), 0]),
    st.sampled_from([2**63, 0]),
    st.sampled_from([b"", bytes(7), bytes(20)]),
)
def test_places_that_do_not_exist(offset: int, position: int, time: int, host: bytes) -> None:
    body = encode_batch([BatchEntry(b"x")])
    pack(body, LIKE, offset, position, store_timestamp_ms=time, store_host=host)


def test_properties_of_more_than_their_length_can_hold_are_refused() -> None:
    text = bytes(0x8000)
    size = (22 + len(text)).to_bytes(4, "big")
    body = size + bytes(16) + b"\x80\0" + text
    error, reason, _ = pack(body, LIKE, 0, 0)
    assert (error, "properties of -32768 bytes" in reason) == (MessageMalformed, True)


def test_columns_are_what_an_index_stores() -> None:
    body = encode_batch([])
    packed = core.pack_batch(body, LIKE, 0, 0, store_timestamp_ms=0, store_host=bytes(8))
    columns = packed.positions, packed.sizes, packed.tags
    assert [(type(each), each.typecode) for each in columns] == [(array, c) for c in "QIq"]


@given(st.lists(entries | odd, max_size=8) | alike, likes)
def test_sound_batches_need_no_help(batch: list[BatchEntry], like: Record) -> None:
    options = {"store_timestamp_ms": 9, "store_host": bytes(20)}
    alone("pack_batch", encode_batch(batch), like, 0, 1 << 40, **options)
