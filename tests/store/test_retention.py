"""Old files go when they should, oldest first, and nothing that points into them is surprised."""

import time
from pathlib import Path

import pytest

from pocketmq.errors import InvalidInput, StoreFull
from pocketmq.protocol import RecordView
from pocketmq.store import Flusher, MessageStore, ReadStatus, StoreOptions, retention
from pocketmq.store.disk import Disk
from tests.store.faults import MortalDisk, ProcessEnded, abandon
from tests.store.keyed import LaterFlusher
from tests.store.messages import NOW_MS, bodies, put

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
MB = 1 << 20
NEVER = StoreOptions(retention=72 * 3600.0, delete_hours=(4,))


def files(*ages_in_hours: float | None, size: int = MB) -> list[retention.LogFile]:
    """Return files that were closed so long ago."""
    return [
        retention.LogFile(
            number * size, size, None if age is None else NOW_MS - round(age * HOUR_MS)
        )
        for number, age in enumerate(ages_in_hours)
    ]


def planned(
    kept: list[retention.LogFile],
    *,
    options: StoreOptions = NEVER,
    hour: int = 12,
    used: float = 0.5,
    asked: bool = False,
) -> list[tuple[int, retention.Reason]]:
    """Return the numbers of the files that go, with the reasons."""
    conditions = retention.Conditions(now_ms=NOW_MS, hour=hour, disk_used=used, asked=asked)
    return [(drop.start // MB, drop.reason) for drop in retention.plan(kept, options, conditions)]


AGE, ASKED, LITTLE, NONE, SIZE = (
    retention.Reason.AGE,
    retention.Reason.ASKED,
    retention.Reason.LITTLE_SPACE,
    retention.Reason.NO_SPACE,
    retention.Reason.SIZE,
)
OLD = (100.0, 90.0, 80.0, 50.0, None)


# The decision


def test_nothing_goes_from_an_empty_log() -> None:
    assert planned([], hour=4, used=0.99, asked=True) == []


@pytest.mark.parametrize(
    ("hour", "used", "asked", "expected"),
    [
        (12, 0.5, False, []),
        (4, 0.5, False, [(0, AGE), (1, AGE), (2, AGE)]),
        (3, 0.5, False, []),
        (5, 0.5, False, []),
        (12, 0.5, True, [(0, ASKED), (1, ASKED), (2, ASKED)]),
        (12, 0.75, False, []),
        (12, 0.76, False, [(0, LITTLE), (1, LITTLE), (2, LITTLE)]),
        (12, 0.95, False, [(0, LITTLE), (1, LITTLE), (2, LITTLE)]),
        (4, 0.95, False, [(0, AGE), (1, AGE), (2, AGE)]),
    ],
)
def test_age_counts_at_its_hour_when_asked_or_when_space_is_short(
    hour: int, used: float, asked: bool, expected: list[tuple[int, retention.Reason]]
) -> None:
    assert planned(files(*OLD), hour=hour, used=used, asked=asked) == expected


@pytest.mark.parametrize(("age", "goes"), [(71.999, False), (72.0, True), (72.001, True)])
def test_a_file_is_old_from_the_very_moment(age: float, goes: bool) -> None:
    assert planned(files(age, None), hour=4) == ([(0, AGE)] if goes else [])


def test_an_old_file_behind_a_young_one_stays() -> None:
    assert planned(files(100, 10, 100, None), hour=4) == [(0, AGE)]
    assert planned(files(None, 100, None), hour=4, asked=True) == []


def test_the_newest_file_never_goes() -> None:
    everything = StoreOptions(retention=0.0, retention_bytes=1, delete_hours=())
    assert planned(files(1000), options=everything, used=1.0, asked=True) == []
    assert planned(files(1000, 1000), options=everything, used=1.0, asked=True) == [(0, SIZE)]


def test_hours_may_be_several_or_any() -> None:
    several = StoreOptions(delete_hours=(4, 16))
    assert [hour for hour in range(24) if planned(files(*OLD), options=several, hour=hour)] == [
        4,
        16,
    ]
    always = StoreOptions(delete_hours=())
    assert all(planned(files(*OLD), options=always, hour=hour) for hour in range(24))


@pytest.mark.parametrize(
    ("limit_mb", "expected"),
    [(0, []), (5, []), (4, [0]), (3, [0, 1]), (1, [0, 1, 2, 3])],
)
def test_a_log_larger_than_allowed_loses_its_oldest_files(
    limit_mb: int, expected: list[int]
) -> None:
    options = StoreOptions(retention_bytes=limit_mb * MB)
    young = files(5, 4, 3, 2, None)
    assert planned(young, options=options) == [(number, SIZE) for number in expected]


def test_size_and_age_add_up() -> None:
    options = StoreOptions(retention_bytes=4 * MB)
    assert planned(files(*OLD), options=options, hour=4) == [(0, SIZE), (1, AGE), (2, AGE)]


@pytest.mark.parametrize(
    ("used", "expected"), [(0.85, []), (0.86, [(0, NONE)]), (1.0, [(0, NONE)])]
)
def test_on_a_nearly_full_disk_one_young_file_goes_at_a_time(
    used: float, expected: list[tuple[int, retention.Reason]]
) -> None:
    assert planned(files(3, 2, 1, None), used=used) == expected


def test_a_pass_deletes_a_few_files_and_many_when_asked() -> None:
    many = files(*[100.0] * 300, None)
    assert len(planned(many, hour=4)) == retention.FILES_AT_ONCE == 10
    assert len(planned(many, asked=True)) == retention.ASKED_AT_ONCE == 200


def test_messages_are_refused_above_ninety_percent_until_eighty_five() -> None:
    options = StoreOptions()
    rows = [(0.86, False), (0.90, False), (0.91, True), (0.90, True), (0.86, True), (0.85, False)]
    refused = False
    for used, expected in rows:
        refused = retention.refuses_messages(options, used, refused=refused)
        assert refused is expected


def test_the_hours_of_a_configuration_are_read_as_java_does() -> None:
    assert retention.parse_hours("04") == (4,)
    assert retention.parse_hours("04;16;0") == (4, 16, 0)
    for text in ("", "4;", "24", "-1", "four", "4,16"):
        with pytest.raises(InvalidInput):
            retention.parse_hours(text)


# What it does to a store


class MeasuredDisk(MortalDisk):
    """Says how full it is; each file deleted makes room."""

    def __init__(self, root: Path, used: float = 0.5, each: float = 0.0) -> None:
        super().__init__(root)
        self.used = used
        self.each = each

    def free_ratio(self) -> float:
        return 1 - self.used

    def remove(self, name: str) -> None:
        super().remove(name)
        if name.startswith("commitlog"):
            self.used -= self.each


def open_store(
    path: Path, disk: Disk | None = None, *, flusher: Flusher | None = None, **options: object
) -> MessageStore:
    merged = {"segment_size": 4096, "delete_hours": (), "retention": 3600.0, **options}
    return MessageStore.open(path, StoreOptions(**merged), disk=disk, flusher=flusher)  # type: ignore[arg-type]


def fill(store: MessageStore, count: int = 60, *, topic: str = "T") -> None:
    """Add a message a minute, ten or so to a file."""
    for number in range(count):
        put(
            store,
            topic,
            b"%03d" % number + bytes(240),
            now_ms=NOW_MS + number * 60_000,
            text=b"KEYS\x01k%d\x02" % number,
        )


def numbers(store: MessageStore, topic: str = "T") -> list[int]:
    return [int(body[:3]) for body in bodies(store, topic)]


def test_messages_go_with_their_file_when_all_of_it_is_old(tmp_path: Path) -> None:
    """A file is old when the next one was begun at least an hour (the retention here) ago."""
    store = open_store(tmp_path)
    fill(store)
    queue = store.make_queue("T", 0)
    assert store.clean(NOW_MS + 30 * 60_000) == []
    for minutes in range(70, 130, 7):
        store.clean(NOW_MS + minutes * 60_000)
        assert numbers(store) == list(range(queue.min_offset, 60))
        oldest = store.log.segments.oldest
        assert oldest is not None
        for record in store.walk(oldest.end, 1)[0]:
            assert record[4] > NOW_MS + (minutes - 60) * 60_000
    assert len(store.log.segments) == 1
    assert numbers(store)[-1] == 59
    store.close()


def test_readers_below_the_beginning_are_sent_to_it_and_their_progress_stays(
    tmp_path: Path,
) -> None:
    store = open_store(tmp_path)
    fill(store)
    store.metadata.save_consumer_offsets([("T", "group", 0, 3)])
    queue = store.make_queue("T", 0)
    assert store.clean(NOW_MS + 90 * 60_000)
    lowest = queue.min_offset
    assert 3 < lowest < 60
    for offset in (0, 3, lowest - 1):
        read = store.read(queue, offset, 32, 1 << 20)
        assert (read.status, read.next_offset) == (ReadStatus.OFFSET_TOO_SMALL, lowest)
    assert store.read(queue, lowest, 1, 1 << 20).status is ReadStatus.FOUND
    assert store.earliest_time(queue) == NOW_MS + lowest * 60_000
    assert store.metadata.consumer_offsets() == [("T", "group", 0, 3)]
    store.close()
    store = open_store(tmp_path)
    assert store.make_queue("T", 0).min_offset == lowest
    assert store.metadata.consumer_offsets() == [("T", "group", 0, 3)]
    store.close()


def test_a_reader_keeps_what_it_has_read(tmp_path: Path) -> None:
    """Pieces of a read are views into files; they outlive the files' deletion and the store."""
    store = open_store(tmp_path)
    fill(store)
    read = store.read(store.make_queue("T", 0), 0, 60, 1 << 20)
    assert store.clean(NOW_MS + 1000 * 60_000)
    assert not (tmp_path / "commitlog" / f"{0:020d}").exists()
    put(store, "T", bytes(3000))
    held = [int(RecordView(bytes(piece), 0).stored_body[:3]) for piece in read.pieces]
    assert held == list(range(60))
    store.close()
    held = [int(RecordView(bytes(piece), 0).stored_body[:3]) for piece in read.pieces]
    assert held == list(range(60))


def test_the_key_index_and_the_index_space_follow(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    fill(store, 60, topic="old")
    fill(store, 60)
    assert len(store.find_by_key("old", "k0", 0, 1 << 62, 10)) == 1
    dropped = store.clean(NOW_MS + 1000 * 60_000, asked=True)
    assert dropped
    assert all(drop.reason is retention.Reason.ASKED for drop in dropped)
    kept = numbers(store)
    for number in range(60):
        found = store.find_by_key("T", f"k{number}", 0, 1 << 62, 10)
        assert len(found) == (number in kept)
        assert store.find_by_key("old", f"k{number}", 0, 1 << 62, 10) == []
    old = store.queue("old", 0)
    assert old is not None
    assert (old.min_offset, old.next_offset, old.extents) == (60, 60, [])
    put(store, "old", b"next")
    assert old.next_offset == 61
    store.close()


def test_on_a_full_disk_files_go_until_there_is_space_again(tmp_path: Path) -> None:
    disk = MeasuredDisk(tmp_path, used=0.95, each=0.02)
    store = open_store(tmp_path, disk, retention=1e9)
    fill(store)
    dropped = store.clean(NOW_MS)
    assert [drop.reason for drop in dropped] == [retention.Reason.NO_SPACE] * 5
    assert disk.used == pytest.approx(0.85)
    put(store, "T", b"accepted")
    store.close()


def test_messages_are_refused_while_nothing_can_make_room(tmp_path: Path) -> None:
    disk = MeasuredDisk(tmp_path, used=0.95)
    store = open_store(tmp_path, disk, retention=1e9, segment_size=1 << 20)
    put(store, "T", b"before")
    assert store.clean(NOW_MS) == []
    queue = store.make_queue("T", 0)
    for count in (1, 2):
        with pytest.raises(StoreFull):
            put(store, "T", *[b"refused"] * count)
    assert (queue.next_offset, bodies(store, "T")) == (1, [b"before"])
    disk.used = 0.89
    store.clean(NOW_MS)
    with pytest.raises(StoreFull):
        put(store, "T", b"refused")
    disk.used = 0.80
    store.clean(NOW_MS)
    put(store, "T", b"after")
    assert bodies(store, "T") == [b"before", b"after"]
    store.close()


def test_a_pass_is_bounded_when_deleting_makes_no_room(tmp_path: Path) -> None:
    """Readers that still hold a file keep its space taken; the log must not vanish for that."""
    disk = MeasuredDisk(tmp_path, used=0.95)
    store = open_store(tmp_path, disk, retention=1e9)
    fill(store, 300)
    assert len(store.log.segments) > 15
    assert len(store.clean(NOW_MS)) == retention.FILES_AT_ONCE
    store.close()


def test_files_wait_for_a_checkpoint_to_leave_them_behind(tmp_path: Path) -> None:
    """Recovery begins at a checkpoint, so the log may not begin after it."""
    flusher = LaterFlusher()
    store = open_store(tmp_path, flusher=flusher)
    fill(store)
    assert store.clean(NOW_MS + 1000 * 60_000) == []
    assert flusher.jobs  # a checkpoint was begun
    flusher.work()
    assert store.clean(NOW_MS + 1000 * 60_000)
    store.close()


def test_the_hour_is_the_local_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "JST-9")  # Tokyo, without a time zone database
    time.tzset()
    try:
        store = open_store(tmp_path, delete_hours=(4,))
        fill(store)
        day = NOW_MS // DAY_MS * DAY_MS + 30 * DAY_MS  # midnight in Greenwich is nine in Tokyo
        deleted = [hour for hour in range(24) if store.clean(day + hour * HOUR_MS)]
        assert deleted == [19]
        store.close()
    finally:
        monkeypatch.undo()
        time.tzset()


def test_an_end_at_any_step_of_cleaning_leaves_a_sound_store(tmp_path: Path) -> None:
    step = 0
    ended = True
    while ended:
        path = tmp_path / str(step)
        disk = MeasuredDisk(path)
        store = open_store(path, disk)
        fill(store)
        store.find_by_key("T", "k0", 0, 1 << 62, 1)
        store.checkpoint()
        disk.steps_left = step
        ended = False
        try:
            store.clean(NOW_MS + 100 * 60_000)
        except ProcessEnded:
            ended = True
            keys = store.keys
            abandon(store)
            keys.close()
            store = open_store(path)
        disk.steps_left = None
        queue = store.make_queue("T", 0)
        assert numbers(store) == list(range(queue.min_offset, 60))
        for number in range(60):
            found = store.find_by_key("T", f"k{number}", 0, 1 << 62, 10)
            assert len(found) == (number >= queue.min_offset)
        store.clean(NOW_MS + 100 * 60_000)
        lowest = queue.min_offset
        assert 30 < lowest < 60
        assert store.log.first == store.walk(store.log.first, 1)[0][0][0]
        put(store, "T", b"060")
        assert numbers(store) == list(range(lowest, 61))
        store.close()
        step += 1
    assert step > 3
