"""The past of charts in a file: what is kept, for how long, how large it gets, what spoils it."""

import sqlite3
from pathlib import Path

import pytest

from pocketmq import aio
from pocketmq.dashboard.history_file import HistoryFile, Piece
from pocketmq.dashboard.recording import KEPT, Points
from pocketmq.dashboard.settings import DashboardSettings
from pocketmq.dashboard.watch import ClusterWatch
from pocketmq.embedded.aio import Cluster

NOW = 1_700_000_000.0


def piece(*points: tuple[float, float | None], name: str = "orders") -> Piece:
    return Piece("", "topic rates", name, list(points))


def test_points_come_back_unknown_ones_as_unknown(tmp_path: Path) -> None:
    kept = [piece((NOW, 1.5), (NOW + 10, None), (NOW + 20, 0.0)), piece((NOW, 2.0), name="é")]
    file = HistoryFile(tmp_path / "deep" / "history.sqlite")
    file.save(kept, NOW)
    file.close()
    again = HistoryFile(tmp_path / "deep" / "history.sqlite")
    assert again.load(NOW + 30) == kept
    again.close()
    assert (tmp_path / "deep" / "history.sqlite").stat().st_mode & 0o077 == 0


def test_what_is_too_old_is_deleted(tmp_path: Path) -> None:
    file = HistoryFile(tmp_path / "history.sqlite")
    file.save([piece((NOW, 1.0)), piece((NOW + KEPT, 2.0))], NOW)
    file.save([], NOW + KEPT + 1)
    assert file.load(NOW + KEPT + 1) == [piece((NOW + KEPT, 2.0))]
    file.close()


def test_a_full_file_keeps_the_newest(tmp_path: Path) -> None:
    path, largest = tmp_path / "history.sqlite", 1 << 20
    file = HistoryFile(path, largest)
    for number in range(60):
        points: Points = [(NOW + number * 60 + n, float(n)) for n in range(60)]
        file.save([piece(*points, name=f"t{n}") for n in range(50)], NOW)
        assert path.stat().st_size <= largest
    names = [each for each in file.load(NOW) if each.points[0][0] == NOW + 59 * 60]
    assert len(names) == 50
    file.close()


@pytest.mark.parametrize("content", [b"no database at all " * 100, b""])
def test_a_file_that_cannot_be_used_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    path = tmp_path / "history.sqlite"
    path.write_bytes(content)
    if not content:
        with sqlite3.connect(path) as database:
            database.execute("PRAGMA user_version = 99")
        database.close()
    before = path.read_bytes()
    file = HistoryFile(path)
    assert file.load(NOW) == []
    file.save([piece((NOW, 1.0))], NOW)
    file.save([piece((NOW, 1.0))], NOW)
    file.close()
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 1
    assert told[0].startswith(f"chart history is not stored: file={path} error=")
    assert path.read_bytes() == before, "another program's file was changed"


async def test_a_new_dashboard_has_the_figures_of_the_last_one(tmp_path: Path) -> None:
    settings = DashboardSettings(history=tmp_path / "history.sqlite", sampling=False)
    async with Cluster() as cluster:
        await cluster.create_topic("orders", queues=2)
        found = []
        for _ in range(2):
            file = HistoryFile(tmp_path / "history.sqlite")
            watch = ClusterWatch(aio.Admin(cluster.address), settings, "", file)
            await watch.admin.start()
            await watch.start_sampling()
            found.append(watch.views.topic_rates.since("orders", 0.0))
            for job in watch.samples():
                await job()
            last = watch.views.topic_rates.since("orders", 0.0)
            await watch.close()
            file.close()
        before, after = found
        assert (before, len(after)) == ([], 1)
        assert last[0] == after[0]
