"""A batch packed at once is the same as its messages packed one by one."""

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.errors import MessageMalformed
from pocketmq.protocol.batch import BatchEntry, decode_batch, encode_batch
from pocketmq.protocol.batch_records import pack_batch
from pocketmq.protocol.hosts import encode_host
from pocketmq.protocol.record_scan import looks_torn, tags_code
from pocketmq.protocol.records import Record, pack_record

texts = st.sampled_from(
    [
        b"",
        b"TAGS\x01a\x02",
        b"TAGS\x01b\x02k\x01v\x02",
        b"k\x01v\x02TAGS\x01a\x02",
        b"k\x01v\x02TAGS\x01a",
        b"TAGS\x01\x02",
        b"k\x01v\x02",
        b"x\x02k\x01v\x02",
        b"TAGS\x01x\x00\x04k\x01v\x02",
        b"k\x01" + b"v" * 600 + b"\x02",
    ]
)
entries = st.builds(BatchEntry, st.binary(max_size=40), texts, st.integers(-(2**31), 2**31 - 1))
alike = st.tuples(st.integers(0, 40), st.integers(1, 30)).flatmap(
    lambda sizes: st.lists(
        st.builds(
            BatchEntry,
            st.binary(min_size=sizes[0], max_size=sizes[0]),
            st.sampled_from(
                [
                    b"k\x01v\x02TAGS\x01a\x02" + b"l\x01" + b"v" * sizes[1] + b"\x02",
                    b"k\x01w\x02TAGS\x01a\x02" + b"l\x01" + b"w" * sizes[1] + b"\x02",
                    b"k\x01v\x02TAGS\x01b\x02" + b"l\x01" + b"v" * sizes[1] + b"\x02",
                    b"TAGS\x01b\x02TAGS\x01\x02" + b"l\x01" + b"v" * sizes[1] + b"\x02",
                    b"k\x01v\x02TAGS\x01a\x02" + b"l\x01" + b"v" * sizes[1] + b"\x00",
                    b"k\x01v\x02sage\x01a\x02" + b"l\x01" + b"v" * sizes[1] + b"\x02",
                ]
            ),
            st.integers(-(2**31), 2**31 - 1),
        ),
        min_size=7,
        max_size=10,
    )
)
"""Batches whose entries have the same sizes, and mostly the same tag."""
hosts = st.sampled_from([encode_host("10.0.0.1:1"), encode_host("[::1]:65535")])


@settings(max_examples=300)
@given(
    batch=st.lists(entries, max_size=8) | alike,
    topic=st.sampled_from([b"T", b"t" * 127, b"t" * 128]),
    born=hosts,
    store=hosts,
    flag=st.integers(0, 0x7F),
)
def test_a_batch_is_the_sum_of_its_messages(
    batch: list[BatchEntry], topic: bytes, born: bytes, store: bytes, flag: int
) -> None:
    like = Record(
        topic=topic,
        body=b"not looked at",
        property_bytes=b"nor\x01this\x02",
        queue_id=7,
        sys_flag=flag,
        born_timestamp_ms=123,
        born_host=born,
        reconsume_times=4,
    )
    packed = pack_batch(
        encode_batch(batch), like, 50, 1 << 40, store_timestamp_ms=9, store_host=store
    )
    position, expected, positions = 1 << 40, b"", []
    for number, entry in enumerate(batch):
        made = msgspec.structs.replace(
            like, body=entry.body, property_bytes=entry.property_bytes, flag=entry.flag
        )
        data = pack_record(made, 50 + number, position, 9, store)
        positions.append(position)
        position += len(data)
        expected += data
    assert packed.data == expected
    assert list(packed.positions) == positions
    ends = [*positions[1:], position] if positions else []
    assert list(packed.sizes) == [end - start for start, end in zip(positions, ends, strict=True)]
    assert list(packed.tags) == [tags_code(entry.property_bytes) for entry in batch]
    assert packed.looks_torn == any(looks_torn(entry.property_bytes) for entry in batch)


def outcome(action: Callable[[], list[int]]) -> list[int] | tuple[str, int]:
    try:
        return action()
    except MessageMalformed as error:
        return str(error), error.position


@given(st.lists(entries, min_size=1, max_size=3) | alike, st.data())
def test_what_cannot_be_read_is_refused_as_in_reading(
    batch: list[BatchEntry], data: st.DataObject
) -> None:
    body = bytearray(encode_batch(batch))
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(body[: data.draw(st.integers(0, len(body)))])
    like = Record(topic=b"T", body=b"")

    def pack() -> list[int]:
        return pack_batch(cut, like, 0, 0, store_timestamp_ms=0, store_host=bytes(8)).sizes.tolist()

    assert outcome(pack) == outcome(
        lambda: [entry.encoded_size() + 70 for entry in decode_batch(cut)]
    )


@pytest.mark.parametrize(
    ("text", "torn"),
    [
        (b"", False),
        (b"a\x01b\x02", False),
        (b"a\x01b", False),
        (b"a\x01\0b\x02", False),
        (b"a\x01b\0", True),
        (b"\0", True),
        (b"a\x01" + b"b" * 600, False),
        (b"a\x01" + b"b" * 600 + b"\0" + b"c", True),
    ],
)
def test_properties_look_torn_when_zeros_stand_where_a_crash_leaves_them(
    text: bytes, torn: bool
) -> None:
    assert looks_torn(text) is torn
