"""Actions: refused where they are off, whatever a browser sends; asked for, done and logged where
they are on."""

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


def fill_in_a_topic(viewer: Viewer, name: str) -> None:
    viewer.page.get_by_role("button", name="Create topic").click()
    viewer.page.get_by_label("Name").fill(name)
    viewer.page.get_by_label("Queues on each broker").fill("3")
    viewer.page.get_by_role("button", name="Continue").click()


def dialog(viewer: Viewer, title: str | re.Pattern[str]) -> Locator:
    heading = viewer.page.get_by_role("heading", name=title)
    return viewer.page.get_by_role("dialog").filter(has=heading)


def topics(shop: Shop) -> list[str]:
    with mq.Admin(shop.address) as admin:
        return admin.topics.names()


def test_a_browser_that_unlocks_the_buttons_is_refused_by_the_server(
    viewer: Viewer, dashboard: DashboardProcess, shop: Shop
) -> None:
    viewer.open("/topics")
    viewer.page.evaluate("document.querySelectorAll('button').forEach(b => b.disabled = false)")
    fill_in_a_topic(viewer, "smuggled")
    viewer.page.get_by_role("button", name="Create", exact=True).click()
    viewer.page.get_by_text("actions are off").wait_for()
    assert "smuggled" not in topics(shop)
    line = (
        r"WARNING dashboard\.actions: action refused: user=127\.0\.0\.1 "
        r"action=\"create topic 'smuggled'"
    )
    wait_for(lambda: re.search(line, dashboard.errors()), "the refusal in the log")


def test_a_topic_is_made_after_a_question_and_it_is_logged(
    actor: Viewer, acting: DashboardProcess, shop: Shop
) -> None:
    actor.open("/topics")
    fill_in_a_topic(actor, "wanted")
    question = dialog(actor, "Create topic wanted?")
    expect(question).to_contain_text("created on every broker, with 3 queues on each")
    assert "wanted" not in topics(shop)
    actor.keep("question")
    actor.page.get_by_role("button", name="Create", exact=True).click()
    actor.told("Topic wanted created on 2 brokers.")
    actor.wait_for_rows("Topics", lambda rows: ["wanted", "", "6"] in [row[:3] for row in rows])
    line = (
        r"INFO dashboard\.actions: action done: user=127\.0\.0\.1 "
        r"action=\"create topic 'wanted' with 3 queues"
    )
    wait_for(lambda: re.search(line, acting.errors()), "the deed in the log")


def test_nothing_is_done_when_one_thinks_better_of_it(
    actor: Viewer, acting: DashboardProcess, shop: Shop
) -> None:
    actor.open("/topics")
    fill_in_a_topic(actor, "unwanted")
    actor.page.get_by_text("Create topic unwanted?").wait_for()
    actor.page.keyboard.press("Escape")
    actor.page.get_by_text("Create topic unwanted?").wait_for(state="hidden")
    assert "unwanted" not in topics(shop)
    assert "unwanted" not in acting.errors()


@pytest.mark.parametrize(
    ("name", "told"),
    [("no good name", "allowed are letters, digits"), ("orders", "topic 'orders' exists already")],
)
def test_what_cannot_be_made_is_told_before_one_is_asked(
    actor: Viewer, name: str, told: str
) -> None:
    actor.open("/topics")
    fill_in_a_topic(actor, name)
    actor.page.get_by_text(told).wait_for()
    expect(actor.page.get_by_role("button", name="Create", exact=True)).to_have_count(0)


def test_a_group_is_reset_and_consumes_again(
    actor: Viewer, acting: DashboardProcess, shop: Shop
) -> None:
    before = len(shop.handled)
    actor.open("/groups/billing")
    actor.page.get_by_role("button", name="Reset offsets").click()
    actor.page.get_by_text("Reset offsets of billing").wait_for()
    actor.page.get_by_role("button", name="Continue").click()
    question = dialog(actor, re.compile(r"Reset billing in .+\?"))
    expect(question).to_contain_text("redelivers messages")
    actor.page.get_by_role("button", name="Reset", exact=True).click()
    actor.told("queues reset")
    done = r"action done: user=127\.0\.0\.1 action=\"reset group 'billing' in topic"
    wait_for(lambda: re.search(done, acting.errors()), "the deed in the log")
    wait_for(lambda: len(shop.handled) >= before + 40, "the messages to come again", 60)


def test_chosen_dead_letters_are_sent_again(
    actor: Viewer, acting: DashboardProcess, shop: Shop
) -> None:
    actor.open("/dead-letters/mailing")
    actor.wait_for_rows("Dead letters of mailing", lambda rows: len(rows) == 2)
    actor.page.get_by_role("button", name="Resend selected").click()
    actor.told("Select messages first.")
    row = actor.table("Dead letters of mailing").locator("tr", has_text="first letter")
    row.get_by_role("checkbox").check()
    actor.page.get_by_role("button", name="Resend selected").click()
    actor.page.get_by_text("Resend 1 messages?").wait_for()
    actor.page.get_by_role("button", name="Resend", exact=True).click()
    actor.told("1 sent to letters.")
    with mq.Admin(shop.address) as admin:
        wait_for(lambda: len(admin.messages.by_key("letters", "L0").messages) == 2, "the copy")
    wait_for(lambda: 'action="resend' in acting.errors(), "the deed in the log")


def test_a_copy_of_a_message_is_sent(actor: Viewer, shop: Shop) -> None:
    actor.open("/messages?topic=orders&by=key&value=A3")
    found = actor.table("Messages of orders").get_by_role("link").first
    title = found.inner_text()
    found.click()
    actor.arrive(title)
    actor.page.get_by_role("button", name="Send a copy").click()
    actor.page.get_by_role("button", name="Send", exact=True).click()
    actor.told("1 sent to orders.")
    with mq.Admin(shop.address) as admin:
        wait_for(lambda: len(admin.messages.by_key("orders", "A3").messages) == 2, "the copy")


def test_a_group_is_told_to_rebalance(actor: Viewer, acting: DashboardProcess) -> None:
    actor.open("/groups/billing")
    actor.page.get_by_role("button", name="Rebalance now").click()
    actor.page.get_by_role("button", name="Rebalance", exact=True).click()
    actor.told("2 brokers notified the members.")
    wait_for(lambda: "action=\"rebalance group 'billing'" in acting.errors(), "the deed in the log")


def test_a_message_is_written_and_sent(actor: Viewer, acting: DashboardProcess, shop: Shop) -> None:
    shop.cluster.create_topic("written", queues=1)
    actor.open("/topics/written")
    page = actor.page
    page.get_by_role("button", name="Send message").click()
    page.get_by_label("Body").fill("<b>by hand</b>")
    page.get_by_label("Tag").fill("paid")
    page.get_by_label("Keys").fill("H1")
    page.get_by_label("Properties").fill("region")
    page.get_by_role("button", name="Continue").click()
    page.get_by_text("'region' is not a property; write name=value").wait_for()
    page.get_by_label("Properties").fill("region=eu")
    page.get_by_role("button", name="Continue").click()
    page.get_by_text("Send a message to written?").wait_for()
    page.get_by_role("button", name="Send", exact=True).click()
    actor.told("Sent: ")
    with mq.Admin(shop.address) as admin:
        wait_for(lambda: admin.messages.by_key("written", "H1").messages, "the message")
        (message,) = admin.messages.by_key("written", "H1").messages
    assert (message.body, message.tag) == (b"<b>by hand</b>", "paid")
    assert message.user_properties["region"] == "eu"
    wait_for(
        lambda: "action=\"send 14 bytes to topic 'written'\"" in acting.errors(),
        "the deed in the log",
    )
    assert "by hand" not in acting.errors()


def test_dead_letters_are_resent_and_exported_by_what_they_contain(
    actor: Viewer, acting: DashboardProcess, shop: Shop
) -> None:
    actor.open("/dead-letters/mailing?text=second")
    actor.page.get_by_role("button", name="Resend all").click()
    question = dialog(actor, "Resend all dead letters?")
    expect(question).to_contain_text("those of 2 dead letters that contain 'second'")
    actor.page.get_by_role("button", name="Resend all", exact=True).last.click()
    actor.told("1 sent.")
    with mq.Admin(shop.address) as admin:
        wait_for(lambda: len(admin.messages.by_key("letters", "L1").messages) == 2, "the copy")
    done = r"action=\"resend those of 2 dead letters that contain 'second' .*result=\"1 sent\""
    wait_for(lambda: re.search(done, acting.errors()), "the deed in the log")
    with actor.page.expect_download() as waiting:
        actor.page.get_by_role("link", name="Export JSON lines").click()
    file = waiting.value
    assert file.suggested_filename == "_DLQ_mailing.jsonl"
    (line,) = Path(file.path()).read_text().splitlines()
    assert '"body":"second letter"' in line
