"""The core cuts reads into the same commands as the pure path, whatever the bytes are."""

import json
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq import native
from pocketmq.errors import HeaderMalformed, ProtocolError
from pocketmq.protocol import Command
from pocketmq.protocol.command import read_command
from pocketmq.protocol.command_reader import CommandReader
from pocketmq.protocol.frame import FRAME_LIMIT, FrameReader, encode_frame
from pocketmq.protocol.peers import Language

core = pytest.importorskip("pocketmq_core")

_INT32 = st.integers(-(2**31), 2**31 - 1)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_FIELDS = st.none() | st.dictionaries(_TEXT, _TEXT, max_size=5)


@st.composite
def plain_frames(draw: st.DrawFn) -> bytes:
    """A frame as this library writes it."""
    return Command(
        draw(st.integers(0, 700)),
        draw(_INT32),
        draw(st.integers(0, 3)),
        draw(st.sampled_from([*Language, None])),
        draw(st.integers(0, 500)),
        draw(st.none() | _TEXT),
        draw(_FIELDS),
        draw(st.binary(max_size=40)),
        draw(st.sampled_from([0, 0, 0, 1])),
    ).encode()


_VALUES = st.one_of(
    st.none(), st.booleans(), _INT32, st.integers(), st.floats(), _TEXT,
    st.sampled_from(["\ud800", "\\", '"', "\x01\x02", "é", "-0", "1.0", "JAVA", "go"]),
    st.dictionaries(_TEXT, _TEXT | st.integers(), max_size=3), st.lists(st.integers(), max_size=2),
)  # fmt: skip
_KEYS = st.sampled_from(
    ["code", "extFields", "flag", "language", "opaque", "remark", "serializeTypeCurrentRPC",
     "version", "other", "c\u006fde"]
)  # fmt: skip


@st.composite
def odd_frames(draw: st.DrawFn) -> bytes:
    """A frame with a JSON header of any shape: keys twice or missing, values of any type."""
    pairs = draw(st.lists(st.tuples(_KEYS, _VALUES), max_size=9))
    ascii_only = draw(st.booleans())
    members = [
        json.dumps(key)
        + draw(st.sampled_from([":", " : "]))
        + json.dumps(value, ensure_ascii=ascii_only)
        for key, value in pairs
    ]
    text = (
        "{"
        + draw(st.sampled_from([",", ", "])).join(members)
        + draw(st.sampled_from(["}", "", "}}"]))
    )
    return encode_frame(0, text.encode("utf-8", "surrogatepass"), draw(st.binary(max_size=9)))


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """Frames one after another, some of them damaged, and bytes that are none."""
    pieces = draw(st.lists(plain_frames() | odd_frames() | st.binary(max_size=12), max_size=6))
    data = bytearray(b"".join(pieces))
    for at, value in draw(
        st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=3)
    ):
        if at < len(data):
            data[at] = value
    return bytes(data)


def meaning(command: Command) -> tuple[object, ...]:
    """All there is to see of a command; fields that cannot be read are compared by the error."""
    try:
        fields: object = command.ext
    except HeaderMalformed as error:
        fields = str(error)
    return (
        command.code, command.opaque, command.flag, command.language, command.version,
        command.remark, fields, command.body, command.serialize,
    )  # fmt: skip


def outcome(function: object, data: bytes, start: int, limit: int) -> tuple[object, ...]:
    commands, position, error = function(data, start, limit)  # type: ignore[operator]
    return [meaning(each) for each in commands], position, type(error), str(error)


@settings(max_examples=150, deadline=None)
@given(streams(), st.integers(0, 30), st.sampled_from([FRAME_LIMIT, 60, 4, 0]))
def test_the_core_cuts_the_same_commands(data: bytes, start: int, limit: int) -> None:
    expected = outcome(native.pure["cut_commands"], data, start, limit)
    assert outcome(core.cut_commands, data, start, limit) == expected


@settings(max_examples=200, deadline=None)
@given(streams(), st.lists(st.integers(1, 60), max_size=8))
def test_a_stream_reads_the_same_however_it_is_split(data: bytes, sizes: list[int]) -> None:
    """The reference feeds everything to a `FrameReader` at once and reads frame after frame."""
    reader, expected, failure = FrameReader(), list[object](), ""
    try:
        for frame in reader.feed(data):
            expected.append(meaning(read_command(frame)))
        failure = str(reader.failure)
    except ProtocolError as error:
        failure = str(error)
    split, found, at = CommandReader(), list[object](), 0
    for size in [*sizes, len(data)]:
        found += [meaning(each) for each in split.read(data[at : at + size])]
        at += size
        if split.failure is not None or at >= len(data):
            break
    assert (found, str(split.failure)) == (expected, failure)
    if split.failure is None:
        assert (split.buffered, split.wanted) == (reader.buffered, reader.wanted)


def test_plain_headers_do_not_reach_python() -> None:
    """What clients send all the time is read by the core itself."""
    request = Command.request(310, 7, {"a": "shop", "i": "UNIQ_KEY\1A\2"}, b"body")
    entered: list[str] = []
    sys.setprofile(lambda frame, *_: entered.append(frame.f_code.co_name))
    try:
        commands, _, _ = core.cut_commands(request.encode() * 3, 0, FRAME_LIMIT)
    finally:
        sys.setprofile(None)
    assert commands == [request] * 3
    assert "read_command" not in entered
