"""A real Chromium before a real dashboard, which is a process of its own, before a real cluster."""

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Error,
    Locator,
    Page,
    Request,
    Response,
    expect,
    sync_playwright,
)

import pocketmq as mq
from tests.dashboard.chromium import MISSING, found_chromium
from tests.dashboard.shop import Shop
from tests.server_process import CommandProcess, wait_for

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--process-per-site",  # windows before one dashboard share a process, and its compiled scripts
    "--disable-features=IsolateOrigins,site-per-process",
    "--disable-gpu",
    "--disable-gpu-compositing",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PHONE = (390, 844)
LAPTOP = (1366, 800)
READY = re.compile(r"ready (http://\S+)\n")
NOTICES = """{
  const shown = document.getElementsByClassName("q-notification__message");
  window.notices = new Set();
  new MutationObserver(() => { for (const each of shown) window.notices.add(each.innerText); })
    .observe(document, { childList: true, subtree: true });
}"""
"""Keeps the texts of notices, which vanish after 5 s: whoever waits for one may look later."""
PATIENCE = 60_000
"""Milliseconds a browser waits for what must come; the machine may be busy."""

expect.set_options(timeout=PATIENCE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run files without a browser first: while its driver runs, no other loop can."""
    folder = Path(__file__).parent
    files = {path for path in {item.path for item in items} if folder in path.parents}
    here = [n for n, item in enumerate(items) if item.path in files]
    seen = {items[n].path for n in here if "browser" in getattr(items[n], "fixturenames", ())}
    moved = sorted((items[n] for n in here), key=lambda item: item.path in seen)
    for n, item in zip(here, moved, strict=True):
        items[n] = item


class DashboardProcess(CommandProcess):
    """Runs `pocketmq dashboard` until the test is over; its log is gathered meanwhile."""

    ready_line = READY

    def __init__(self, *arguments: str, cwd: Path | None = None, **variables: str) -> None:
        super().__init__("dashboard", *arguments, cwd=cwd, variables=variables)

    @property
    def url(self) -> str:
        """Where it can be seen, from the ready line."""
        return self._told()[1]


class Viewer:
    """A browser window that remembers what went wrong in it."""

    def __init__(self, context: BrowserContext, page: Page, url: str, folder: Path | None) -> None:
        self.context = context
        self.page = page
        self.url = url
        self.complaints: list[str] = []
        """What the page has complained about on the console, and scripts that failed."""
        self.strangers: list[str] = []
        """Requests to others than the dashboard."""
        self._folder = folder
        page.add_init_script(NOTICES)
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        context.on("request", self._note_request)
        page.on("websocket", lambda socket: self._note(socket.url))

    def open(self, path: str) -> Response | None:
        """Open a page and wait until it is live."""
        response = self.page.goto(self.url + path, wait_until="load")
        self.live()
        return response

    def live(self) -> None:
        """Wait until the page is drawn and its connection to the dashboard stands."""
        self.page.wait_for_selector("main h1, #password")
        self.page.wait_for_function("() => !window.socket || window.socket.connected")

    def arrive(self, title: str) -> None:
        """Wait until the page with a title is live; a click may still show the one before."""
        expect(self.page.locator("h1")).to_have_text(title)
        self.live()

    def told(self, text: str) -> None:
        """Wait until the page has shown a notice with a text, even if it is gone by now."""
        seen = "text => [...window.notices].some((each) => each.includes(text))"
        self.page.wait_for_function(seen, arg=text)

    def rows(self, table: str) -> list[list[str]]:
        """Return the text of a table, cell by cell, as it is now.

        A page waits a little for its cluster, and is then sent without what has not come yet.
        """
        cells = "rows => rows.map(row => [...row.cells].map(cell => cell.innerText.trim()))"
        try:
            found: list[list[str]] = self.table(table).locator("tbody tr").evaluate_all(cells)
        except Error as error:
            if "context was destroyed" not in str(error):
                raise
            return []  # a browser that was out of touch for too long loads the page again
        return found

    def table(self, name: str) -> Locator:
        """Return a table by its name."""
        return self.page.get_by_role("region", name=name, exact=True)

    def wait_for_rows(self, table: str, wanted: Callable[[list[list[str]]], bool]) -> None:
        """Wait until a table shows what is wanted, without loading the page again.

        What is wanted of a row or a cell that is not there, yet, is not shown.
        """
        deadline = time.monotonic() + PATIENCE / 1000
        while True:
            rows = self.rows(table)
            with suppress(IndexError):
                if wanted(rows):
                    return
            assert time.monotonic() < deadline, rows
            self.page.wait_for_timeout(50)

    def keep(self, name: str) -> None:
        """Keep a picture of the page, if pictures are asked for: to draw one costs as a test does."""
        if self._folder is not None:
            self.page.screenshot(path=self._folder / f"{name}.png", full_page=True)

    def _hear(self, message: object) -> None:
        kind, text = getattr(message, "type", ""), getattr(message, "text", "")
        if kind in {"error", "warning"}:
            self.complaints.append(f"{kind}: {text}")

    def close(self) -> None:
        """Close the window and all that it has opened; the next one is a stranger here."""
        self.context.remove_listener("request", self._note_request)
        for page in self.context.pages:
            page.close()
        self.context.clear_cookies()

    def _note_request(self, request: Request) -> None:
        self._note(request.url)

    def _note(self, url: str) -> None:
        own = (self.url, self.url.replace("http:", "ws:"), "data:", "blob:", "about:")
        if not url.startswith(own):
            self.strangers.append(url)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser. While it runs, no other event loop can: what needs one comes before."""
    found = found_chromium()
    if found is None:
        pytest.skip(MISSING)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=FLAGS, headless=True)
        yield started
        started.close()


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Yield a Chromium for all that need one; those that need none have run before."""
    with chromium() as started:
        yield started


@pytest.fixture(scope="session")
def screenshots() -> Path | None:
    """Return the folder that pictures are kept in, if POCKETMQ_SCREENSHOTS names one."""
    named = os.environ.get("POCKETMQ_SCREENSHOTS")
    if not named:
        return None
    folder = Path(named)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def viewing(
    browser: Browser,
    url: str,
    folder: Path | None,
    size: tuple[int, int] = LAPTOP,
    *,
    dark: bool = False,
) -> Iterator[Viewer]:
    """Open a window of a size; on leaving, nothing may have gone wrong in it.

    It is as good as new, but has the scripts that windows before it have loaded: to fetch and
    compile them costs more than all else that a page does.
    """
    idle = [each for each in browser.contexts if not each.pages]
    context = idle[0] if idle else browser.new_context()
    context.set_default_timeout(PATIENCE)
    viewer = Viewer(context, context.new_page(), url, folder)
    try:
        viewer.page.set_viewport_size({"width": size[0], "height": size[1]})
        viewer.page.emulate_media(color_scheme="dark" if dark else "light")
        yield viewer
        assert viewer.complaints == []
        assert viewer.strangers == []
    finally:
        viewer.close()


@pytest.fixture(scope="package")
def shop() -> Iterator[Shop]:
    """Yield a cluster of two brokers with topics, a group of two members, and messages."""
    with mq.Cluster(brokers=2) as cluster:
        cluster.create_topic("orders", queues=4)
        cluster.create_topic("audit", queues=2)
        cluster.create_topic("letters", queues=1)
        made = Shop(cluster)
        try:
            for number in range(40):
                message = mq.Message(
                    "orders",
                    b'{"amount": %d, "currency": "EUR"}' % number,
                    tag="paid",
                    keys=[f"A{number}"],
                    properties={"region": "eu"},
                )
                made.producer.send(message)
            made.producer.send(mq.Message("audit", b"\x00\xff not text", keys=["bytes"]))
            made.give_up("mailing", "letters", [b"first letter", b"second letter"])
            members = [made.join("billing", "orders", f"billing-{n}") for n in range(2)]
            wait_for(
                lambda: all(len(each.assignment().get("orders", ())) == 4 for each in members),
                "both members to share the queues",
            )
            wait_for(lambda: len(made.handled) >= 40, "all messages to be handled")
            yield made
        finally:
            made.close()


@pytest.fixture(scope="package")
def dashboard(shop: Shop) -> Iterator[DashboardProcess]:
    """Yield a dashboard of the shop that may only look."""
    with DashboardProcess("-n", shop.address, "--port", "0") as process:
        yield process


@pytest.fixture(scope="package")
def acting(shop: Shop) -> Iterator[DashboardProcess]:
    """Yield a dashboard of the shop that may change it."""
    with DashboardProcess("-n", shop.address, "--port", "0", "--allow-actions") as process:
        yield process


@pytest.fixture(scope="module")
def laptop(
    browser: Browser, dashboard: DashboardProcess, screenshots: Path | None
) -> Iterator[Viewer]:
    """Yield a window of a laptop's size before the dashboard, for all tests one after the other."""
    with viewing(browser, dashboard.url, screenshots) as window:
        yield window


@pytest.fixture
def viewer(laptop: Viewer) -> Iterator[Viewer]:
    """Yield the same window as if it were new; afterwards nothing may have gone wrong in it."""
    laptop.context.clear_cookies()
    yield laptop
    complaints, laptop.complaints = laptop.complaints, []
    assert complaints == []
    assert laptop.strangers == []


@pytest.fixture(scope="package")
def cluster() -> Iterator[mq.Cluster]:
    """Yield a cluster of two brokers whose groups are watched; each test has one of its own."""
    with mq.Cluster(brokers=2) as made:
        made.create_topic("orders", queues=8)
        made.create_topic("parcels", queues=4)
        yield made


@pytest.fixture(scope="package")
def watcher(cluster: mq.Cluster) -> Iterator[DashboardProcess]:
    """Yield a dashboard of that cluster. What it had sampled just before would change its pages."""
    with DashboardProcess("-n", cluster.address, "--port", "0", "--no-sampling") as process:
        yield process


@pytest.fixture
def window(
    browser: Browser, watcher: DashboardProcess, screenshots: Path | None
) -> Iterator[Viewer]:
    """Yield a window of its own before that dashboard."""
    with viewing(browser, watcher.url, screenshots) as viewer:
        yield viewer
