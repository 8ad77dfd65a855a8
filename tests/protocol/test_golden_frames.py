"""The bytes Java writes are the bytes we read and write, and no byte of them is without meaning."""

import re

import pytest

from pocketmq.errors import ProtocolError
from pocketmq.protocol import Command
from pocketmq.protocol.command import read_command
from pocketmq.protocol.frame import FrameReader, SerializeType, encode_frame
from tests.protocol.golden_frames import GOLDEN, read_one


@pytest.mark.parametrize("name", GOLDEN)
def test_a_golden_frame_reads_as_what_java_meant(name: str) -> None:
    data, command = GOLDEN[name]
    assert read_one(data) == command


@pytest.mark.parametrize("name", GOLDEN)
def test_a_golden_command_is_written_as_java_writes_it(name: str) -> None:
    data, command = GOLDEN[name]
    assert command.encode() == data


@pytest.mark.parametrize("name", GOLDEN)
def test_a_golden_frame_survives_reading_and_writing(name: str) -> None:
    data, _ = GOLDEN[name]
    assert read_one(data).encode() == data


@pytest.mark.parametrize(
    ("serialize", "size", "word"),
    [(SerializeType.ROCKETMQ, 0x123456, "01123456"), (SerializeType.JSON, 95, "0000005f")],
)
def test_the_second_word_holds_type_and_header_length(
    serialize: SerializeType, size: int, word: str
) -> None:
    """G6."""
    assert encode_frame(serialize, bytes(size))[4:8].hex() == word


def test_the_escapes_of_newer_javas_read_the_same() -> None:
    """G8 from RocketMQ 5.5.0, whose fastjson2 writes U+2028 and U+007F raw."""
    data = bytes.fromhex(
        "000000a8000000a47b22636f6465223a3331302c226578744669656c6473223a7b2269223a224b4559535c7530"
        "3030316b315c7530303032544147535c7530303031e4b8ade280a85c225c5c2f7f5c7530303032227d2c22666c"
        "6167223a302c226c616e6775616765223a224a415641222c226f7061717565223a312c2273657269616c697a65"
        "5479706543757272656e74525043223a224a534f4e222c2276657273696f6e223a3430317d"
    )
    golden, command = GOLDEN["G8 escapes, JSON"]
    assert read_one(data) == command
    assert read_one(data).encode() == golden


def _exceptions(data: bytes, command: Command) -> set[int]:
    """Return the positions of golden JSON bytes that may change without changing the command.

    Java passes over keys it does not know, so a key whose value is the one a missing key has, and
    the key and value of the type that the frame's prefix already tells, can be misspelt.
    """
    if command.serialize != SerializeType.JSON:
        return set()
    spans = [rb'"(serializeTypeCurrentRPC)":"(JSON)"']
    if command.flag == 0:
        spans.append(rb'"(flag)":0')
    if command.code == 0:
        spans.append(rb'"(code)":0')
    # The key may be misspelt; the name itself only in its case, which another list allows for.
    spans.append(rb'"(language)":"JAVA"')
    positions: set[int] = set()
    for span in spans:
        match = re.search(span, data)
        assert match is not None
        for group in range(1, match.re.groups + 1):
            positions.update(range(*match.span(group)))
    return positions


def _only_case_differs(data: bytes, position: int, value: int) -> bool:
    """Whether a change is of case alone, in the language's name or in the digits of an escape."""
    if data[position] ^ value != 0x20:
        return False
    escape = re.search(rb"\\u[0-9A-Fa-f]{0,3}$", data[:position])
    return escape is not None or re.search(rb'"language":"[A-Z]*$', data[:position]) is not None


@pytest.mark.parametrize("name", GOLDEN)
def test_no_byte_of_a_golden_frame_changes_unnoticed(name: str) -> None:
    """A changed byte gives another command, an unfinished frame or a `ProtocolError`."""
    data, command = GOLDEN[name]
    exceptions = _exceptions(data, command)
    unnoticed = []
    for position, byte in enumerate(data):
        for value in {byte ^ 1 << bit for bit in range(8)} | {0, 0x20, 0x22, 0x30, 0x2D, 0xFF}:
            if value == byte:
                continue
            mutated = data[:position] + bytes([value]) + data[position + 1 :]
            try:
                frames = FrameReader().feed(mutated)
                same = [read_command(frame) for frame in frames] == [command]
            except ProtocolError:
                continue
            if same and not (position in exceptions or _only_case_differs(data, position, value)):
                unnoticed.append((position, data[max(0, position - 9) : position + 1], value))
    assert unnoticed == []
