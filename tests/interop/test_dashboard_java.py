"""The dashboard on a Java cluster: the same pages, the same facts, the same actions."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import pocketmq as mq
from tests.dashboard.conftest import DashboardProcess, Viewer, chromium, screenshots, viewing
from tests.interop.groups import wait_for_commits
from tests.interop.java_broker import JavaBroker, java_brokers
from tests.interop.jvm import Jars, wait_until

__all__ = ["screenshots"]

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def java(jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaBroker]:
    """Yield a Java broker with a topic, messages and a group of ours."""
    handled: list[str] = []
    with java_brokers(jars, tmp_path_factory.mktemp("java"), "broker-a") as running:
        running.create_topic("orders", 4)
        consumer = mq.PushConsumer(running.address, group="billing", consume_from="first")
        consumer.subscribe("orders", "*", lambda message: handled.append(message.message_id))
        with mq.Producer(running.address, group="shop") as producer, consumer:
            for number in range(8):
                producer.send(mq.Message("orders", b"%d EUR" % number, keys=[f"k{number}"]))
            wait_until(lambda: len(handled) == 8, "all messages")
            wait_for_commits(running.address, consumer, "billing", "orders")
            yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Yield a Chromium for this file alone: tests of other files have event loops of their own."""
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def window(
    java: JavaBroker,
    browser: Browser,
    screenshots: Path | None,
) -> Iterator[Viewer]:
    arguments = ("-n", java.address, "--port", "0", "--allow-actions")
    with (
        DashboardProcess(*arguments) as process,
        viewing(browser, process.url, screenshots) as made,
    ):
        yield made


def test_every_page_shows_a_java_cluster(window: Viewer) -> None:
    window.open("/")
    window.wait_for_rows(
        "Brokers", lambda rows: [row[:3] for row in rows] == [["broker-a", "up", "Java"]]
    )
    window.open("/topics")
    window.wait_for_rows(
        "Topics", lambda rows: ["orders", "", "4", "8"] in [row[:4] for row in rows]
    )
    window.open("/topics/orders")
    window.wait_for_rows("Groups", lambda rows: [row[0] for row in rows] == ["billing"])
    window.open("/groups/billing")
    window.wait_for_rows("Members", lambda rows: [row[1:2] for row in rows] == [["4"]])
    main = window.page.locator("main")
    expect(main).to_contain_text("every queue is assigned as the strategy says")
    window.open("/clients")
    window.wait_for_rows("Consumers", lambda rows: "billing" in [row[0] for row in rows])
    window.open("/messages?topic=orders&by=key&value=k5")
    window.wait_for_rows("Messages of orders", lambda rows: [row[4] for row in rows] == ["5 EUR"])
    window.table("Messages of orders").get_by_role("link").click()
    window.wait_for_rows("Consumed by", lambda rows: rows[0][:2] == ["billing", "consumed"])
    window.open("/dead-letters")
    window.wait_for_rows("Dead letters", lambda rows: rows == [["There are no dead letters."]])
    metrics = window.page.request.get(f"{window.url}/metrics").text()
    assert 'rocketmq_group_diff{countOfOnlineConsumers="1",group="billing",msgModel=' in metrics


def test_a_topic_is_made_on_a_java_broker(window: Viewer, java: JavaBroker) -> None:
    window.open("/topics")
    window.page.get_by_role("button", name="Create topic").click()
    window.page.get_by_label("Name").fill("made")
    window.page.get_by_role("button", name="Continue").click()
    window.page.get_by_role("button", name="Create", exact=True).click()
    window.page.get_by_text("Topic made created on 1 brokers.").wait_for()
    wait_until(lambda: java.route("made") == ["broker-a"], "the route of the topic")
