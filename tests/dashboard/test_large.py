"""Ten thousand queues in one table, and a cluster that goes away."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.dashboard.conftest import DashboardProcess, Viewer, viewing
from tests.server_process import POCKETMQ, ServerProcess, kill, wait_for

QUEUES = 10_000


@pytest.fixture(scope="module")
def cluster() -> Iterator[ServerProcess]:
    with ServerProcess("up", "--port", "0") as made:
        many = ("-t", "large", "-r", str(QUEUES), "-w", str(QUEUES))
        made_by = (POCKETMQ, "admin", "updateTopic", "-n", made.namesrv, "-c", "DefaultCluster")
        subprocess.run([*made_by, *many], check=True, stdout=subprocess.DEVNULL)
        yield made


@pytest.fixture(scope="module")
def window(browser: Browser, cluster: ServerProcess, screenshots: Path | None) -> Iterator[Viewer]:
    with (
        DashboardProcess("-n", cluster.namesrv, "--port", "0") as process,
        viewing(browser, process.url, screenshots) as made,
    ):
        yield made


def test_of_ten_thousand_queues_one_page_is_sent(window: Viewer) -> None:
    """They are sorted, searched and turned over where they all are: on the server."""
    response = window.open("/topics/large")
    assert response is not None
    assert len(response.body()) < 200_000
    table = window.table("Queues")
    window.wait_for_rows("Queues", lambda rows: len(rows) == 50)
    expect(table.get_by_role("status")).to_have_text("10,000")
    expect(table).to_contain_text("1–50 of 10,000")
    table.get_by_role("button", name="Next page").click()
    window.wait_for_rows("Queues", lambda rows: [row[1] for row in rows[:1]] == ["50"])
    expect(table).to_contain_text("51–100 of 10,000")
    sort = table.get_by_role("columnheader", name="Queue").get_by_role("button")
    sort.click()
    window.wait_for_rows("Queues", lambda rows: [row[1] for row in rows[:1]] == ["0"])
    sort.click()
    window.wait_for_rows("Queues", lambda rows: [row[1] for row in rows[:1]] == [str(QUEUES - 1)])
    table.get_by_role("searchbox").fill("broker-0 777")
    window.wait_for_rows("Queues", lambda rows: len(rows) == 19)
    expect(table.get_by_role("status")).to_have_text("19 of 10,000")


def test_a_hostile_browser_cannot_ask_a_table_for_nonsense(window: Viewer) -> None:
    window.open("/topics/large")
    window.wait_for_rows("Queues", lambda rows: len(rows) == 50)
    window.page.evaluate(
        """() => {
          const id = Number(document.querySelector("section[aria-label=Queues]").id.slice(1));
          const table = getElement(id);
          for (const value of [-1, 1e9, 0.5, null, "x", {}, [], ["x", true], true, "y".repeat(1e5)]) {
            for (const event of ["request", "search", "select"]) table.$emit(event, value);
            for (const field of ["sortBy", "page", "descending"])
              table.$emit("request", { sortBy: "1", page: 1, descending: false, [field]: value });
          }
        }"""
    )
    search = window.table("Queues").get_by_role("searchbox")

    def found(rows: list[list[str]]) -> bool:
        if search.input_value() != "4242":  # also if a browser that was too busy loaded it again
            search.fill("4242")
        return [row[1:2] for row in rows] == [["4242"]]

    window.wait_for_rows("Queues", found)


def test_when_the_cluster_is_gone_it_is_told_and_the_last_is_shown(
    window: Viewer, cluster: ServerProcess
) -> None:
    """The last test: nothing is there afterwards."""
    window.open("/topics")
    window.wait_for_rows("Topics", lambda rows: "0" in [row[3] for row in rows if "large" in row])
    kill(cluster.process.pid)  # while a cluster stops in order, it has no topics for a moment
    told = window.page.locator(".pm-warning").get_by_text("No response: no name server responds at")
    expect(told).to_contain_text("Showing data from")
    assert "large" in [row[0] for row in window.rows("Topics")]
    window.keep("no-cluster")
    wait_for(
        lambda: window.page.request.get(f"{window.url}/metrics").text() == "",
        "all figures to be unknown",
    )
