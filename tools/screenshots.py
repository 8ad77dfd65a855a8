"""Renew the pictures of docs/images from a real dashboard in a real Chromium.

Starts a cluster, a group whose members join one after the other, and `pocketmq dashboard` before
them; then takes each picture of `PICTURES`. Needs Chromium on the path, as the dashboard's tests.
"""

import base64
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from playwright.sync_api import CDPSession, Page, ViewportSize, sync_playwright

import pocketmq as mq

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.dashboard.chromium import MISSING, found_chromium  # noqa: E402

IMAGES = ROOT / "docs" / "images"
SIZE: ViewportSize = {"width": 1440, "height": 1600}
QUALITY = 90


def assignment(page: Page, address: str, group: "Group") -> None:
    """Show who owns which queue, what happened when members came and went, and a what-if."""
    group.join("anna")
    group.join("bert")
    page.goto(f"{address}/groups/billing/assignment")
    happened(page, 0)
    group.join("dora")
    happened(page, 1)
    group.leave("dora")
    happened(page, 2)
    group.join("carl")
    happened(page, 3)
    trial = page.locator(".as-experiment")
    trial.get_by_label("What if").select_option("a member leaves")
    trial.get_by_role("button", name="Add").click()
    trial.locator(".wi-sum").wait_for()


def happened(page: Page, rebalances: int) -> None:
    """Wait until the history has this many entries, all queues have owners, and some time more."""
    if rebalances:
        page.locator(".tl-entry").nth(rebalances - 1).wait_for()
    page.get_by_text("Every queue has one owner", exact=False).wait_for()
    page.wait_for_timeout(5000)  # so that the chart shows the lag between them


PICTURES: "dict[str, Callable[[Page, str, Group], None]]" = {"assignment": assignment}
"""What is to be seen on each, by the name of its file."""


class Group:
    """A busy group: messages are sent, and handled a little more slowly. Use it with `with`."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._ended = threading.Event()
        self._sending = threading.Thread(target=self._send)
        self._members: dict[str, mq.PushConsumer] = {}

    def __enter__(self) -> Self:
        self._sending.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for name in list(self._members):
            self.leave(name)
        self._sending.join()

    def join(self, name: str) -> None:
        """Add a member."""
        member = mq.PushConsumer(self._address, group="billing", instance_name=name, threads=2)
        member.subscribe("orders", "*", self._handle)
        self._members[name] = member.start()

    def leave(self, name: str) -> None:
        """Remove a member."""
        self._members.pop(name).close()

    def _send(self) -> None:
        with mq.Producer(self._address, group="shop") as producer:
            while not self._ended.wait(0.02):
                producer.send(mq.Message("orders", b"42 EUR", tag="paid"))

    def _handle(self, _: mq.ReceivedMessage) -> None:
        self._ended.wait(0.1)


@contextmanager
def dashboard(address: str) -> Iterator[str]:
    """Run the command; yield the address that it prints."""
    pocketmq = str(Path(sys.executable).parent / "pocketmq")
    command = [pocketmq, "dashboard", "-n", address, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().removeprefix("ready ").strip()
        finally:
            process.terminate()


def save(session: CDPSession, name: str) -> None:
    """Save the page as it is seen; Playwright itself has no WebP."""
    asked = {"format": "webp", "quality": QUALITY}
    taken = session.send("Page.captureScreenshot", asked)
    file = IMAGES / f"{name}.webp"
    file.write_bytes(base64.b64decode(taken["data"]))
    print(f"{file.relative_to(ROOT)}  {file.stat().st_size // 1024} KiB")


def main() -> int:
    """Take all pictures."""
    browser = found_chromium()
    if browser is None:
        print(f"screenshots: {MISSING}", file=sys.stderr)
        return 1
    with mq.Cluster(brokers=2) as cluster:
        cluster.create_topic("orders", queues=8)
        with (
            dashboard(cluster.address) as address,
            Group(cluster.address) as group,
            sync_playwright() as playwright,
        ):
            started = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
            page = started.new_page(viewport=SIZE)
            for name, show in PICTURES.items():
                show(page, address, group)
                save(page.context.new_cdp_session(page), name)
            started.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
