"""The core finds the same keys in records, and makes the same words of them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq import native
from pocketmq.protocol.records import Record, pack_record

core = pytest.importorskip("pocketmq_core")

_TEXTS = st.one_of(
    st.lists(
        st.tuples(
            st.sampled_from([b"UNIQ_KEY", b"KEYS", b"TAGS", b"XKEYS", b""]),
            st.sampled_from(
                [b"", b"A17", b"a b  c a", b" ", b"\0", b"x\0y", b"k" * 33, b"\xc3\xa9"]
            ),
        ),
        max_size=4,
    ).map(lambda pairs: b"".join(name + b"\1" + value + b"\2" for name, value in pairs)),
    st.binary(max_size=20),
)


@st.composite
def logs(draw: st.DrawFn) -> tuple[bytes, int]:
    """Records one behind the other, the last one cut or some byte damaged, and where they begin."""
    start = draw(st.sampled_from([0, 77, (1 << 32) - 100, 1 << 40]))
    data = b""
    for _ in range(draw(st.integers(0, 6))):
        record = Record(
            topic=draw(st.sampled_from([b"T", b"orders", b"x" * 130, b""])),
            body=draw(st.binary(max_size=9)),
            property_bytes=draw(_TEXTS),
            sys_flag=draw(st.sampled_from([0, 0, 4, 12, 8])),
            born_host=draw(st.sampled_from([bytes(8), bytes(8), bytes(20)])),
        )
        time = draw(st.sampled_from([5, 5, 6, 4]))
        data += pack_record(record, 0, start + len(data), time, bytes(8))
    bytes_ = bytearray(data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data)
    for at, value in draw(
        st.lists(st.tuples(st.integers(0, 900), st.integers(0, 255)), max_size=1)
    ):
        if at < len(bytes_) and draw(st.booleans()):
            bytes_[at] = value
    return bytes(bytes_), start


def outcome(function: object, *arguments: object) -> tuple[object, ...]:
    taken, records, words, times = function(*arguments)  # type: ignore[operator]
    return taken, records, words, times


@settings(max_examples=150, deadline=None)
@given(logs(), st.sampled_from([268435459, 536870909]), st.sampled_from([-(2**63) + 1, 5]))
def test_the_core_makes_the_same_words(log: tuple[bytes, int], modulus: int, last: int) -> None:
    data, start = log
    expected = outcome(native.pure["words_of_records"], data, start, modulus, last)
    assert outcome(core.words_of_records, data, start, modulus, last) == expected
