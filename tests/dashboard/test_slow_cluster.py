"""A cluster that answers later than a page waits for it, in a real browser."""

import os
import signal
from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.dashboard.conftest import DashboardProcess, viewing
from tests.server_process import ServerProcess


def test_what_comes_after_a_page_was_sent_is_shown_when_it_comes(
    browser: Browser, screenshots: Path | None
) -> None:
    """The cluster's name appears; of a group that is not there, nothing is left to act on."""
    with (
        ServerProcess("up", "--port", "0") as cluster,
        DashboardProcess("-n", cluster.namesrv, "--port", "0", "--no-sampling") as process,
        viewing(browser, process.url, screenshots) as window,
    ):
        brokers = cluster.children()
        for pid in brokers:
            os.kill(pid, signal.SIGSTOP)
        window.open("/groups/nobody")
        shown = window.page.get_by_label("Cluster shown")
        expect(shown).to_have_text(cluster.namesrv)
        for pid in brokers:
            os.kill(pid, signal.SIGCONT)
        expect(shown).to_have_text(f"DefaultCluster · {cluster.namesrv}")
        main = window.page.locator("main")
        expect(main.locator("button"), "there is nothing to act on").to_have_count(0)
        expect(main).to_contain_text("Nothing to show")
