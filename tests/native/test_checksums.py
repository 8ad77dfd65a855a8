"""The core finds the same wrong checksums as the pure function."""

from array import array
from typing import Any
from zlib import crc32

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.native.both import alone, same


def raw(*numbers: int) -> bytes:
    return array("q", numbers).tobytes()


def arguments(bodies: list[bytes], changed: dict[int, int]) -> tuple[bytes, bytes, bytes, bytes]:
    """Return bodies with their checksums, some of them changed."""
    starts, stored, data = [], [], b""
    for number, body in enumerate(bodies):
        starts.append(len(data))
        stored.append(changed.get(number, crc32(body) & 0x7FFF_FFFF))
        data += body
    ends = [start + len(body) for start, body in zip(starts, bodies, strict=True)]
    return data, raw(*starts), raw(*ends), raw(*stored)


@settings(max_examples=200)
@given(
    st.lists(st.binary(max_size=200), max_size=9),
    st.dictionaries(st.integers(0, 8), st.sampled_from([0, 1, -1, 2**31 - 1, 2**40]), max_size=3),
)
def test_wrong_checksums(bodies: list[bytes], changed: dict[int, int]) -> None:
    same("wrong_body", *arguments(bodies, changed))


numbers = st.lists(st.integers(-3, 12) | st.sampled_from([-(2**63), 2**63 - 1]), max_size=4)


@settings(max_examples=150)
@given(st.binary(max_size=10), numbers, numbers, numbers, st.integers(0, 9))
def test_bounds_that_do_not_fit(
    data: bytes, starts: list[int], ends: list[int], stored: list[int], cut: int
) -> None:
    same("wrong_body", data, raw(*starts), raw(*ends), raw(*stored))
    same("wrong_body", data, raw(*starts)[cut:], raw(*starts), raw(*stored))


@given(st.sampled_from([None, "text", bytearray(b"abc"), memoryview(b"abc"), 5]))
def test_other_types_have_the_pure_outcome(data: Any) -> None:
    same("wrong_body", data, raw(0), raw(2), raw(7))
    same("wrong_body", b"abc", data, raw(2), raw(7))


def test_the_usual_input_is_not_left_to_the_pure_function() -> None:
    assert alone("wrong_body", *arguments([b"a", b"b", b"c"], {1: 5})) == 1
