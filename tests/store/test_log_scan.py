"""Sound records are found, damaged ones passed over, torn ones never taken for whole."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from pocketmq.protocol.hosts import encode_host
from pocketmq.protocol.records import Record, blank_record, encode_record
from pocketmq.store.disk import Disk
from pocketmq.store.log_scan import SegmentScan, record_bytes, walk_log
from pocketmq.store.segments import Segment, Segments

SIZE = 64 * 1024
V6 = encode_host("[::1]:10911")


class File:
    """One log file, filled record by record."""

    def __init__(self, path: Path) -> None:
        self.segments = Segments(Disk(path), "log", SIZE)
        self.segment: Segment = self.segments.grow(1)
        self.end = 0
        self.starts: list[int] = []

    def add(self, body: bytes, **fields: object) -> int:
        made = Record(
            topic=b"T",
            body=body,
            property_bytes=b"TAGS\x01a\x02",
            commit_log_offset=self.end,
            queue_offset=len(self.starts),
        )
        data = encode_record(msgspec.structs.replace(made, **fields))
        self.segment.file.write(self.end, data)
        self.starts.append(self.end)
        self.end += len(data)
        return self.starts[-1]

    def put(self, position: int, data: bytes) -> None:
        self.segment.file.write(position, data)

    def scan(self, start: int = 0) -> tuple[list[int], int | None]:
        scan = SegmentScan(self.segment, start)
        return [found[0] for found in scan], scan.blank_at


@pytest.fixture
def file(tmp_path: Path) -> Iterator[File]:
    made = File(tmp_path)
    yield made
    made.segments.close()


def test_records_of_every_form_are_found(file: File) -> None:
    file.add(b"plain", queue_id=3, store_timestamp_ms=77)
    file.add(b"", topic=b"t" * 200, property_bytes=b"")
    file.add(b"six", born_host=V6, store_host=V6, store_timestamp_ms=78)
    file.add(b"half", store_host=V6, store_timestamp_ms=79)
    file.add(b"other half", born_host=V6, store_timestamp_ms=80)
    found = list(SegmentScan(file.segment, 0))
    sizes = [
        end - start for start, end in zip(file.starts, [*file.starts[1:], file.end], strict=True)
    ]
    assert [one[:2] for one in found] == list(zip(file.starts, sizes, strict=True))
    assert [one[2:5] for one in found] == [
        (3, 0, 77),
        (0, 1, 0),
        (0, 2, 78),
        (0, 3, 79),
        (0, 4, 80),
    ]
    assert [one[5:] for one in found] == [
        (b"T", b"TAGS\x01a\x02"),
        (b"t" * 200, b""),
        *[(b"T", b"TAGS\x01a\x02")] * 3,
    ]


def test_the_walk_ends_at_the_blank(file: File) -> None:
    file.add(b"one")
    file.put(file.end, blank_record(SIZE - file.end))
    assert file.scan() == (file.starts, file.end)


def test_a_blank_that_does_not_fill_the_file_is_none(file: File) -> None:
    file.add(b"one")
    file.put(file.end, blank_record(SIZE - file.end - 1))
    assert file.scan() == (file.starts, None)


@pytest.mark.parametrize(
    ("at", "what"),
    [
        (0, "size"),
        (4, "magic"),
        (8, "checksum"),
        (28, "position"),
        (84, "size of the body"),
        (90, "body"),
        (108, "length of the topic"),
        (110, "length of the properties"),
    ],
)
def test_a_damaged_record_does_not_hide_the_next(file: File, at: int, what: str) -> None:
    file.add(b"before" * 3)
    damaged = file.add(b"twenty bytes of body")
    file.add(b"behind")
    byte = file.segment.view[damaged + at]
    file.put(damaged + at, bytes([byte ^ 0x15]))
    assert file.scan() == ([file.starts[0], file.starts[2]], None), what


def test_a_damaged_length_does_not_hide_records_it_reaches_over(file: File) -> None:
    first = file.add(b"x" * 100)
    for _ in range(20):
        file.add(b"y" * 100)
    file.put(first, (4000).to_bytes(4, "big"))
    assert file.scan()[0] == file.starts[1:]


def test_the_blank_is_found_behind_a_damaged_last_record(file: File) -> None:
    file.add(b"one")
    last = file.add(b"two")
    file.put(file.end, blank_record(SIZE - file.end))
    file.put(last + 4, b"????")
    assert file.scan() == ([0], file.end)


@pytest.mark.parametrize("kept", range(0, 5200, 400))
def test_a_record_cut_short_anywhere_is_not_taken(file: File, kept: int) -> None:
    """Body, topic and properties: wherever the rest reads as zeros, the record is not whole."""
    file.add(b"one")
    text = b"k\x01" + b"v" * 2000 + b"\x02"
    start = file.add(b"b" * 3000, topic=b"topic", property_bytes=text)
    file.put(start + kept, bytes(file.end - start - kept))
    assert file.scan()[0] == [0] if kept < file.end - start else file.starts


def test_every_last_byte_counts(file: File) -> None:
    start = file.add(b"body")
    whole = bytes(file.segment.view[: file.end])
    for kept in range(file.end):
        file.put(0, whole[:kept] + bytes(file.end - kept))
        assert file.scan()[0] == []
    file.put(0, whole)
    assert file.scan()[0] == [start]


@pytest.mark.parametrize("lost", range(8))
def test_a_sector_lost_in_the_middle_is_noticed(file: File, lost: int) -> None:
    text = b"k\x01" + b"v" * 2000 + b"\x02"
    file.add(b"b" * 1900, property_bytes=text)
    file.put(lost * 512, bytes(512))
    assert file.scan()[0] == []


def test_a_record_forged_inside_a_torn_body_is_not_found(file: File) -> None:
    """A sender knows where its message will lie; a crash must not make a record of its body."""
    file.add(b"one")
    inner_at = file.end + 88 + 10
    inner = encode_record(
        Record(topic=b"ADMIN", body=b"forged", commit_log_offset=inner_at, queue_offset=0)
    )
    start = file.add(bytes(10) + inner + b"z" * 5000)
    torn = start + 88 + 10 + len(inner) + 100
    file.put(torn, bytes(file.end - torn))
    assert file.scan()[0] == [0]


def test_a_record_forged_inside_a_damaged_body_is_not_found(file: File) -> None:
    inner_at = 88 + 10
    inner = encode_record(Record(topic=b"ADMIN", body=b"forged", commit_log_offset=inner_at))
    file.add(bytes(10) + inner + b"z" * 50)
    behind = file.add(b"behind")
    file.put(88, b"?")
    assert file.scan()[0] == [behind]


def test_a_blank_forged_inside_a_damaged_body_hides_nothing(file: File) -> None:
    file.add(bytes(12) + blank_record(SIZE - 100) + bytes(12))
    behind = file.add(b"behind")
    file.put(file.end, blank_record(SIZE - file.end))
    file.put(0, b"\xff")
    assert file.scan() == ([behind], file.end)


def test_a_body_full_of_magics_is_searched_once(file: File) -> None:
    magic = bytes.fromhex("daa320a7")
    file.add(magic * 10_000)
    behind = file.add(b"behind")
    file.put(0, b"\xff")
    assert file.scan()[0] == [behind]


def test_a_walk_goes_from_file_to_file_in_steps(tmp_path: Path) -> None:
    segments = Segments(Disk(tmp_path), "log", 4096)
    positions = []
    for number in range(3):
        segment = segments.grow(1)
        at = segment.start
        for body in (b"x" * 1000, b"y" * 1000):
            data = encode_record(Record(topic=b"T", body=body, commit_log_offset=at))
            segment.file.write(at - segment.start, data)
            positions.append(at)
            at += len(data)
        if number < 2:
            segment.file.write(at - segment.start, blank_record(segment.end - at))
    tail = at
    found: list[int] = []
    start = 0
    while True:
        records, go_on = walk_log(segments, start, tail, 2)
        if go_on == start:
            break
        found += [record[0] for record in records]
        start = go_on
    assert (found, start) == (positions, tail)
    assert walk_log(segments, 0, positions[3], 100)[1] == positions[3]
    segments.drop_first()
    assert [record[0] for record in walk_log(segments, 0, tail, 100)[0]] == positions[2:]
    segments.close()


def test_only_a_sound_record_is_given_by_its_position(file: File) -> None:
    file.add(b"one")
    second = file.add(b"two")
    file.add(b"three")
    expected = bytes(file.segment.view[second : file.starts[2]])
    assert record_bytes(file.segments, second) == expected
    for position in (-1, 1, second + 1, file.end, SIZE - 1, SIZE, 1 << 62):
        assert record_bytes(file.segments, position) is None
    file.put(second + 88, b"?")
    assert record_bytes(file.segments, second) is None
