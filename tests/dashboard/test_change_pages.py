"""Topics, groups, brokers, members and users in a real browser: seen, changed, deleted."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

import pocketmq as mq
from tests.dashboard.conftest import DashboardProcess, Viewer, viewing
from tests.dashboard.shop import Shop
from tests.server_process import wait_for


@pytest.fixture(scope="module")
def actor(browser: Browser, acting: DashboardProcess, screenshots: Path | None) -> Iterator[Viewer]:
    """Yield a window before a dashboard that may act."""
    with viewing(browser, acting.url, screenshots) as window:
        yield window


def press(viewer: Viewer, name: str) -> None:
    viewer.page.get_by_role("button", name=name, exact=True).click()


def asked(viewer: Viewer, title: str) -> Locator:
    """Wait for a dialog and give it."""
    heading = viewer.page.get_by_role("heading", name=title)
    heading.wait_for()
    return viewer.page.get_by_role("dialog").filter(has=heading)


def test_a_group_is_made_changed_and_deleted(
    actor: Viewer, acting: DashboardProcess, shop: Shop
) -> None:
    page = actor.page
    actor.open("/groups")
    press(actor, "Create group")
    page.get_by_label("Name").fill("billing")
    press(actor, "Continue")
    page.get_by_text("group 'billing' exists already").wait_for()
    page.get_by_label("Name").fill("made")
    page.get_by_label("Retries").fill("3")
    press(actor, "Continue")
    expect(asked(actor, "Create group made?")).to_contain_text("with 3 retries")
    press(actor, "Create")
    actor.told("Group made created on 2 brokers.")
    actor.open("/groups/made")
    actor.wait_for_rows("Settings", lambda rows: [row[4:5] for row in rows] == [["3"]] * 2)
    press(actor, "Change settings")
    page.get_by_label("Retries").fill("7")
    press(actor, "Continue")
    asked(actor, "Change group made?")
    press(actor, "Change")
    actor.wait_for_rows("Settings", lambda rows: [row[4:5] for row in rows] == [["7"]] * 2)
    press(actor, "Delete group")
    expect(asked(actor, "Delete group made?")).to_contain_text("cannot be undone")
    press(actor, "Delete")
    actor.told("Type made to confirm.")
    page.get_by_label("Type made to confirm").fill("made")
    actor.keep("delete-group")
    press(actor, "Delete")
    actor.arrive("Groups")
    actor.wait_for_rows("Groups", lambda rows: "made" not in [row[0] for row in rows])
    wait_for(lambda: "action=\"delete group 'made'\"" in acting.errors(), "the deed in the log")


def test_a_topic_is_changed_and_deleted(actor: Viewer, shop: Shop) -> None:
    shop.cluster.create_topic("doomed", queues=2)
    page = actor.page
    actor.open("/topics/doomed")
    actor.wait_for_rows("Settings", lambda rows: [row[1:2] for row in rows] == [["2"], ["2"]])
    press(actor, "Change settings")
    page.get_by_label("Read queues").fill("0")
    press(actor, "Continue")
    page.get_by_text("1 to 1024 queues, not 0").wait_for()
    page.get_by_label("Read queues").fill("4")
    press(actor, "Continue")
    asked(actor, "Change topic doomed?")
    press(actor, "Change")
    actor.wait_for_rows("Settings", lambda rows: [row[1:3] for row in rows] == [["4", "2"]] * 2)
    press(actor, "Delete topic")
    asked(actor, "Delete topic doomed?")
    page.get_by_label("Type doomed to confirm").fill("doomed")
    press(actor, "Delete")
    page.wait_for_url("**/topics")
    with mq.Admin(shop.address) as admin:
        assert "doomed" not in admin.topics.names()


def test_a_broker_shows_its_settings_and_one_is_changed(actor: Viewer, shop: Shop) -> None:
    page = actor.page
    actor.open("/")
    actor.table("Brokers").get_by_role("link", name="broker-1").click()
    actor.arrive("Broker broker-1")
    actor.table("Settings").get_by_role("searchbox").fill("defaultTopicQueueNums")
    name = "defaultTopicQueueNums"
    actor.wait_for_rows("Settings", lambda rows: [row[0] for row in rows] == [name])
    (before,) = actor.rows("Settings")
    press(actor, "Change a setting")
    page.get_by_label("Setting", exact=True).fill("defaultTopicQueues")
    page.get_by_label("New value").fill("5")
    press(actor, "Continue")
    page.get_by_text("did you mean defaultTopicQueueNums?").wait_for()
    page.get_by_label("Setting", exact=True).fill("defaultTopicQueueNums")
    press(actor, "Continue")
    question = asked(actor, "Change defaultTopicQueueNums?")
    expect(question).to_contain_text(f"{before[1]!r} now, and becomes '5'")
    press(actor, "Change")
    actor.wait_for_rows("Settings", lambda rows: rows == [["defaultTopicQueueNums", "5"]])
    actor.keep("broker")


def test_a_member_shows_its_subscriptions_queues_and_threads(viewer: Viewer) -> None:
    viewer.open("/clients")
    viewer.wait_for_rows("Consumers", lambda rows: [row[0] for row in rows].count("billing") == 2)
    viewer.table("Consumers").get_by_role("link", name="Details").first.click()
    viewer.live()
    viewer.wait_for_rows("Subscriptions", lambda rows: ["orders", "*", "TAG"] in rows)
    viewer.wait_for_rows("Queues", lambda rows: len([r for r in rows if r[0] == "orders"]) == 4)
    viewer.page.get_by_role("button", name="Show threads").click()
    threads = viewer.page.get_by_label("Threads")
    threads.wait_for()
    wait_for(lambda: "File" in threads.inner_text() or "TID" in threads.inner_text(), "a stack")
    viewer.keep("member")


def test_users_and_rules_are_made_and_deleted(actor: Viewer, acting: DashboardProcess) -> None:
    page = actor.page
    actor.open("/access")
    press(actor, "Create user")
    page.get_by_label("User name").fill("alice")
    page.get_by_label("Password").fill("geheim123")
    press(actor, "Continue")
    asked(actor, "Create user alice?")
    press(actor, "Create")
    actor.wait_for_rows("Users", lambda rows: ["alice", "Normal"] in [row[:2] for row in rows])
    press(actor, "Add or change rule")
    page.get_by_label("Subject").fill("alice")
    page.get_by_label("Resources").fill("Topic:orders")
    page.get_by_label("Actions").fill("Pub, Sub")
    press(actor, "Continue")
    page.get_by_text("write for example User:alice").wait_for()
    page.get_by_label("Subject").fill("User:alice")
    press(actor, "Continue")
    asked(actor, "Put rule of User:alice?")
    press(actor, "Put")
    actor.wait_for_rows(
        "Rules",
        lambda rows: [row[:3] for row in rows] == [["User:alice", "Topic:orders", "Pub, Sub"]],
    )
    actor.keep("access")
    press(actor, "Delete rule")
    press(actor, "Continue")
    asked(actor, "Delete rule of User:alice?")
    press(actor, "Delete")
    actor.wait_for_rows("Rules", lambda rows: rows == [["There are no rules."]])
    press(actor, "Delete user")
    press(actor, "Continue")
    asked(actor, "Delete user alice?")
    page.get_by_label("Type alice to confirm").fill("alice")
    press(actor, "Delete")
    actor.wait_for_rows("Users", lambda rows: rows == [["There are no users."]])
    wait_for(
        lambda: re.search(r"action=\"create user 'alice' \(Normal\)\"", acting.errors()),
        "the deed in the log",
    )
    assert "geheim123" not in acting.errors()


def test_one_dashboard_shows_several_clusters(
    browser: Browser, shop: Shop, screenshots: Path | None
) -> None:
    with mq.Cluster(brokers=1) as other:
        other.create_topic("elsewhere", queues=1)
        named = ("--cluster", f"staging={other.address}", "--cluster", "gone=127.0.0.1:1")
        with (
            DashboardProcess("-n", shop.address, "--port", "0", *named) as process,
            viewing(browser, process.url, screenshots) as window,
        ):
            window.open("/topics")
            window.wait_for_rows("Topics", lambda rows: "orders" in [row[0] for row in rows])
            expect(window.page.get_by_label("Cluster shown")).to_contain_text(shop.address)
            window.page.get_by_label("Choose a cluster").select_option("staging")
            window.page.get_by_text(f"staging · DefaultCluster · {other.address}").wait_for()
            window.open("/topics")
            window.wait_for_rows("Topics", lambda rows: "elsewhere" in [row[0] for row in rows])
            assert "orders" not in [row[0] for row in window.rows("Topics")]
            window.page.get_by_label("Choose a cluster").select_option("gone")
            window.page.get_by_text("No response").wait_for()
