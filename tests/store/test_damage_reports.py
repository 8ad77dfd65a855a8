"""Whoever runs a broker learns of damage that readers pass over, of each place once."""

from pathlib import Path

import pytest

from pocketmq.store import MessageStore
from tests.store.faults import abandon
from tests.store.messages import put


def report(offset: int, position: int) -> str:
    return (
        f"damaged record skipped: topic=T queue=0 queue_offset={offset} log_position={position}; "
        "stop the broker and run `pocketmq store check --repair` on its data directory"
    )


@pytest.mark.parametrize("filtered", [False, True])
def test_a_damaged_record_is_reported_once(
    tmp_path: Path, filtered: bool, caplog: pytest.LogCaptureFixture
) -> None:
    store = MessageStore.open(tmp_path / "s")
    positions = put(store, "T", b"1", b"2", b"3").positions
    store.close()
    with (tmp_path / "s" / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.seek(positions[1] + 4)
        file.write(b"\x55")
    again = MessageStore.open(tmp_path / "s")
    for _ in range(2):
        read = again.read(
            again.queue("T", 0), 0, 9, 999, (lambda code, piece: True) if filtered else None
        )
        assert read.count == 2
    assert caplog.messages == [report(1, positions[1])]
    assert caplog.records[0].levelname == "ERROR"
    again.close()


def test_an_index_entry_that_points_nowhere_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = MessageStore.open(tmp_path / "s")
    put(store, "T", b"1", b"2")
    store.close()
    with (tmp_path / "s" / "index" / "00000000").open("r+b") as file:
        file.write((1 << 50).to_bytes(8, "little"))
    again = MessageStore.open(tmp_path / "s")
    assert again.read(again.queue("T", 0), 0, 9, 999).count == 1
    assert caplog.messages == [report(0, 1 << 50)]
    abandon(again)


def test_sound_messages_and_deleted_ones_are_nothing_to_report(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = MessageStore.open(tmp_path / "s")
    put(store, "T", b"1", b"2")
    store.close()
    again = MessageStore.open(tmp_path / "s")
    assert again.read(again.queue("T", 0), 0, 9, 999).count == 2
    assert again.read(again.queue("T", 0), 7, 9, 999).count == 0
    assert caplog.messages == []
    again.close()
