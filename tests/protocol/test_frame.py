import struct
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.errors import FrameMalformed, FrameTooLarge, ProtocolError
from pocketmq.protocol.command import read_command
from pocketmq.protocol.frame import (
    FRAME_LIMIT,
    HEADER_LIMIT,
    Buffer,
    Frame,
    FrameReader,
    SerializeType,
    encode_frame,
    encode_frame_pieces,
)
from tests.protocol.golden_frames import GOLDEN

GOLDEN_BYTES = [data for data, _ in GOLDEN.values()]

frames = st.builds(Frame, st.sampled_from([0, 1]), st.binary(max_size=60), st.binary(max_size=60))


def encoded(frame: Frame) -> bytes:
    return encode_frame(frame.serialize, frame.header, frame.body)


@st.composite
def chunked(draw: st.DrawFn, stream: bytes) -> list[bytes]:
    cuts = draw(st.lists(st.integers(0, len(stream)), max_size=12))
    edges = [0, *sorted(cuts), len(stream)]
    return [stream[start:end] for start, end in pairwise(edges)]


@given(st.data(), st.lists(frames, max_size=5))
def test_any_split_of_a_stream_gives_the_same_frames(
    data: st.DataObject, sent: list[Frame]
) -> None:
    reader = FrameReader()
    chunks = data.draw(chunked(b"".join(map(encoded, sent))))
    assert [frame for chunk in chunks for frame in reader.feed(chunk)] == sent
    assert reader.buffered == 0


@given(st.lists(frames, max_size=3))
def test_single_bytes_give_the_same_frames(sent: list[Frame]) -> None:
    reader = FrameReader()
    stream = b"".join(map(encoded, sent))
    assert [frame for byte in stream for frame in reader.feed(bytes([byte]))] == sent


def test_a_torn_frame_waits_for_its_rest() -> None:
    frame = Frame(1, b"header", b"body")
    data = encoded(frame)
    reader = FrameReader()
    for size in range(1, len(data)):
        assert reader.feed(data[size - 1 : size]) == []
        assert reader.buffered == size
    assert reader.feed(data[-1:]) == [frame]
    assert reader.buffered == 0


def test_a_feed_that_ends_one_frame_and_begins_another_holds_only_the_other() -> None:
    first, second = Frame(0, b"{}", b"x" * 100), Frame(1, b"y" * 50, b"")
    stream = encoded(first) + encoded(second)
    reader = FrameReader()
    assert reader.feed(stream[:60]) == []
    assert reader.feed(stream[60:120]) == [first]
    assert reader.buffered == 120 - len(encoded(first))
    assert reader.feed(stream[120:]) == [second]


def test_no_bytes_change_nothing() -> None:
    reader = FrameReader()
    assert reader.feed(b"") == []
    reader.feed(encoded(Frame(0, b"{}", b""))[:5])
    assert reader.feed(b"") == []
    assert reader.buffered == 5


def test_a_large_frame_in_small_pieces_takes_linear_time() -> None:
    """Copying what is held for every piece would move some 60 GB here and run into the timeout."""
    frame = Frame(0, b"{}", bytes(4_000_000))
    data = encoded(frame)
    reader = FrameReader()
    given_ = [each for at in range(0, len(data), 128) for each in reader.feed(data[at : at + 128])]
    assert given_ == [frame]


def prefix(length: int, serialize: int = 0, header: int = 0) -> bytes:
    return struct.pack(">II", length & 0xFFFFFFFF, serialize << 24 | header)


def test_the_limit_counts_the_whole_frame_as_javas_decoder_does() -> None:
    reader = FrameReader(limit=100)
    assert reader.feed(prefix(96, header=2)) == []
    with pytest.raises(FrameTooLarge) as caught:
        FrameReader(limit=100).feed(prefix(97, header=2))
    assert (caught.value.declared, caught.value.limit) == (101, 100)
    assert FrameReader().feed(prefix(FRAME_LIMIT - 4)) == []
    with pytest.raises(FrameTooLarge):
        FrameReader().feed(prefix(FRAME_LIMIT - 3))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (prefix(-1), "negative length -1"),
        (prefix(-(2**31)), "negative length -2147483648"),
        (prefix(0), "length 0 is too short for a header"),
        (prefix(3), "length 3 is too short for a header"),
        (prefix(10, header=7), "header of 7 bytes in a frame of length 10"),
        (prefix(4, header=HEADER_LIMIT), "header of 16777215 bytes in a frame of length 4"),
        (prefix(10, 2, 1), "unknown serialise type 2"),
        (prefix(10, 255, 1), "unknown serialise type 255"),
    ],
)
def test_a_contradicting_prefix_is_malformed_however_it_arrives(data: bytes, reason: str) -> None:
    with pytest.raises(FrameMalformed) as whole:
        FrameReader().feed(data)
    assert whole.value.reason == reason
    reader = FrameReader()
    with pytest.raises(FrameMalformed) as torn:
        feed_bytes(reader, data)
    assert torn.value.reason == reason
    assert reader.buffered == 0


def feed_bytes(reader: FrameReader, data: bytes) -> None:
    for byte in data:
        reader.feed(bytes([byte]))


@pytest.mark.parametrize("length", [-1, 3, FRAME_LIMIT])
def test_a_hopeless_length_is_refused_before_the_rest_of_the_prefix_comes(length: int) -> None:
    with pytest.raises(ProtocolError):
        FrameReader().feed(prefix(length)[:4])


def test_after_an_error_the_reader_refuses_everything_with_the_same_error() -> None:
    reader = FrameReader()
    with pytest.raises(FrameMalformed) as first:
        reader.feed(prefix(0))
    for data in (GOLDEN_BYTES[0], b""):
        with pytest.raises(FrameMalformed) as later:
            reader.feed(data)
        assert later.value is first.value is reader.failure


def test_frames_before_broken_bytes_are_given_before_the_error() -> None:
    """What is read does not depend on how the bytes were split."""
    frame = Frame(0, b"{}", b"x")
    reader = FrameReader()
    assert reader.feed(encoded(frame) + prefix(0)) == [frame]
    assert isinstance(reader.failure, FrameMalformed)
    with pytest.raises(FrameMalformed):
        reader.feed(b"")


def test_a_frame_completed_before_broken_bytes_is_given_too() -> None:
    frame = Frame(0, b"{}", b"x")
    data = encoded(frame)
    reader = FrameReader()
    assert reader.feed(data[:-1]) == []
    assert reader.feed(data[-1:] + prefix(0)[:4]) == [frame]
    assert isinstance(reader.failure, FrameMalformed)


mutated = st.sampled_from(GOLDEN_BYTES).flatmap(
    lambda data: st.tuples(st.integers(0, len(data) - 1), st.binary(max_size=4)).map(
        lambda change: data[: change[0]] + change[1] + data[change[0] + 1 :]
    )
)


@settings(max_examples=400)
@given(st.data(), st.lists(st.binary(max_size=40) | mutated, max_size=4))
def test_hostile_bytes_raise_only_protocol_errors_and_are_never_hoarded(
    data: st.DataObject, parts: list[bytes]
) -> None:
    """And a command that was read can be written, and its fields read again."""
    limit = 512
    reader = FrameReader(limit)
    for chunk in data.draw(chunked(b"".join(parts))):
        try:
            received = reader.feed(chunk)
        except ProtocolError:
            assert reader.failure is not None
            assert reader.buffered == 0
            return
        assert reader.buffered < declared(reader, limit)
        for frame in received:
            assert len(encoded(frame)) <= limit
            try:
                command = read_command(frame)
                ext = command.ext
            except ProtocolError:
                continue
            (again,) = FrameReader().feed(command.encode())
            assert read_command(again).ext == ext


def declared(reader: FrameReader, limit: int) -> int:
    """Return the size of the frame being held, or the prefix's while that is incomplete."""
    held = bytes(reader.unfinished)
    if len(held) < 8:
        return 8
    size = struct.unpack_from(">I", held)[0] + 4
    assert size <= limit
    return int(size)


@given(frames, st.integers(0, 200))
def test_what_a_frame_lacks_is_known_once_its_prefix_is_there(frame: Frame, cut: int) -> None:
    whole = encoded(frame)
    reader = FrameReader()
    given_so_far = reader.feed(whole[:cut])
    if cut >= len(whole) or cut < 8:
        assert reader.missing == 0
    else:
        assert reader.missing == len(whole) - cut
    assert given_so_far + reader.feed(whole[cut:]) == [frame]


@given(frames, st.integers(0, 200))
def test_a_body_that_comes_alone_is_given_as_it_is(frame: Frame, cut: int) -> None:
    whole = encoded(frame)
    reader = FrameReader()
    begun = reader.feed(whole[:cut])
    head = 8 + len(frame.header)
    if cut >= len(whole) or not 8 <= cut < head:
        assert reader.missing_head == 0
        return
    assert (begun, reader.missing_head) == ([], head - cut)
    given = reader.feed(whole[cut:head])
    if frame.body:
        assert (given, reader.missing_head) == ([], 0)
        body = whole[head:]
        (read,) = reader.feed(body)
        assert read.body is body


@given(frames)
def test_the_pieces_of_a_frame_join_to_the_frame(frame: Frame) -> None:
    middle = len(frame.body) // 2
    bodies: list[Buffer] = [frame.body[:middle], memoryview(frame.body)[middle:]]
    pieces = encode_frame_pieces(frame.serialize, frame.header, bodies)
    assert b"".join(pieces) == encoded(frame)
    assert pieces[1:] == bodies


def test_a_header_longer_than_24_bits_is_not_written() -> None:
    header = bytes(HEADER_LIMIT + 1)
    with pytest.raises(FrameTooLarge):
        encode_frame(SerializeType.JSON, header)
    with pytest.raises(FrameTooLarge):
        encode_frame_pieces(SerializeType.JSON, header, [b"x"])
    assert len(encode_frame(SerializeType.JSON, header[1:])) == HEADER_LIMIT + 8


def test_a_body_longer_than_31_bits_is_not_written() -> None:
    part = bytes(2**20)
    with pytest.raises(FrameTooLarge):
        encode_frame_pieces(SerializeType.JSON, b"{}", [part] * 2048)
