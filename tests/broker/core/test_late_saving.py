"""Late saves of a feature's state: after a sync of the log, and again after what failed."""

import asyncio
import logging
from pathlib import Path

import pytest

from pocketmq.broker.core.late_saving import SAVE_AFTER, LateSaving, Snapshot
from tests.broker.tables import Desk
from tests.loops import leap, leaping
from tests.store.faults import FullDisk, PowerDisk, SteppedFlusher, abandon

KIND = "test"


@leaping
async def test_a_snapshot_is_saved_only_after_the_log_is_synced(tmp_path: Path) -> None:
    flusher = SteppedFlusher()
    desk = Desk(tmp_path, disk=PowerDisk(tmp_path), flusher=flusher)
    store = desk.state.store
    outcomes: list[Exception | None] = []
    saving = LateSaving(
        desk.state,
        asyncio.get_running_loop(),
        kind=KIND,
        capture=lambda: lambda: {"a": b"1", "b": b"2"},
        done=outcomes.append,
    )
    desk.store_message("T", 0)
    saving.changed()
    await leap(SAVE_AFTER)
    assert not store.log.pending
    assert store.synced == 0
    flusher.step()
    assert store.synced == store.log.tail
    assert (store.metadata.documents(KIND), outcomes) == ([], [])
    flusher.step()
    assert (store.metadata.documents(KIND), outcomes) == ([("a", b"1"), ("b", b"2")], [None])
    await saving.stop()
    assert not flusher.step()
    abandon(store)


@leaping
async def test_without_a_sync_nothing_is_saved_and_the_error_is_passed_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    disk = FullDisk(tmp_path)
    desk = Desk(tmp_path, disk=disk)
    outcomes: list[Exception | None] = []
    saving = LateSaving(
        desk.state,
        asyncio.get_running_loop(),
        kind=KIND,
        capture=lambda: lambda: b"captured",
        done=outcomes.append,
    )
    desk.store_message("T", 0)
    disk.broken = True
    saving.changed()
    with caplog.at_level(logging.ERROR, "pocketmq.broker"):
        await leap(SAVE_AFTER)
        await saving.stop()
    assert desk.state.store.metadata.documents(KIND) == []
    assert len(outcomes) == 2, "once by time, once more before the broker stops"
    assert None not in outcomes
    abandon(desk.state.store)


@leaping
async def test_messages_that_a_save_could_not_write_are_not_confirmed(tmp_path: Path) -> None:
    """The store drops what it cannot write, whoever asked it to write."""
    disk = FullDisk(tmp_path)
    desk = Desk(tmp_path, disk=disk)
    state = desk.state

    def capture() -> Snapshot:
        return lambda: b"captured"

    saving = LateSaving(state, asyncio.get_running_loop(), kind=KIND, capture=capture)
    saving.changed()
    desk.store_message("T", 0)
    state.batch.appended(state.store.make_queue("T", 0), 1, 1)
    disk.full = True
    await leap(SAVE_AFTER)
    assert state.batch.failed, "the senders of this batch must be refused"
    disk.full = False
    await saving.stop()
    assert state.store.metadata.documents(KIND) == [(KIND, b"captured")]
    desk.close()
