"""Charts after a restart of the dashboard, in a real browser: the past is drawn, gaps are not."""

import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser

from pocketmq.dashboard.history_file import HistoryFile, Piece
from tests.dashboard.conftest import DashboardProcess, viewing
from tests.dashboard.shop import Shop

OPTION = """() => {
    const found = document.querySelector('.pm-chart');
    const chart = found && getElement(Number(found.id.slice(1))).chart;
    const option = chart && chart.getOption();
    return option && option.series && option.series.length ? option : null;
}"""


def test_what_was_kept_is_drawn_after_a_restart_and_the_gap_is_not_observed(
    shop: Shop, browser: Browser, screenshots: Path | None, tmp_path: Path
) -> None:
    path = tmp_path / "history.sqlite"
    now = time.time()
    file = HistoryFile(path)
    points: list[tuple[float, float | None]] = [(now - 420 + n * 10, 100.0 + n) for n in range(13)]
    file.save([Piece("", "rates", "in", points)], now)
    file.close()
    words = ("-n", shop.address, "--port", "0", "--history", str(path))
    with DashboardProcess(*words) as process, viewing(browser, process.url, screenshots) as viewer:
        viewer.open("/")
        viewer.wait_for_rows("Brokers", lambda rows: [row[1:2] for row in rows] == [["up"]] * 2)
        viewer.page.wait_for_function(OPTION)
        option: dict[str, Any] = viewer.page.evaluate(OPTION)
        viewer.keep("kept-chart")
        viewer.page.goto("about:blank")
        assert process.stop() == 0
    line = option["series"][0]
    drawn = [value for at, value in line["data"] if at / 1000 < now - 290]
    assert [value for value in drawn if value is not None] == [100.0 + n for n in range(13)]
    names = [area[0]["name"] for area in line["markArea"]["data"]]
    assert names == ["not observed"] * 2, "before the first sample, and while it did not run"
    since, until = (side["xAxis"] / 1000 for side in line["markArea"]["data"][1])
    assert abs(since - points[-1][0]) < 1
    assert until >= now

    again = HistoryFile(path)  # what the dashboard sampled was kept when it stopped
    newest = max(each.points[-1][0] for each in again.load(time.time()) if each.name == "in")
    again.close()
    assert newest > now
