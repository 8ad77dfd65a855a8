"""Every page in a real browser, with real data; on a phone, in the dark, by keyboard."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import pocketmq as mq
from pocketmq import native
from tests.dashboard.conftest import PHONE, DashboardProcess, Viewer, viewing
from tests.dashboard.shop import Shop
from tests.server_process import wait_for

PAGES = {
    "cluster": ("/", "Cluster"),
    "topics": ("/topics", "Topics"),
    "topic": ("/topics/orders", "orders"),
    "groups": ("/groups", "Groups"),
    "group": ("/groups/billing", "billing"),
    "clients": ("/clients", "Clients"),
    "messages": ("/messages?topic=orders&by=time", "Messages"),
    "dead-letters": ("/dead-letters", "Dead letters"),
    "letters": ("/dead-letters/mailing", "Dead letters of mailing"),
    "access": ("/access", "Access"),
}


@pytest.fixture(scope="module")
def phone(
    browser: Browser, dashboard: DashboardProcess, screenshots: Path | None
) -> Iterator[Viewer]:
    with viewing(browser, dashboard.url, screenshots, PHONE, dark=True) as window:
        yield window


def expect_lit(viewer: Viewer, colour: str) -> None:
    """Wait until the page has this colour behind everything."""
    expect(viewer.page.locator("body")).to_have_css("background-color", colour)


def test_the_cluster_page_names_every_broker(viewer: Viewer) -> None:
    viewer.open("/")
    wanted = [[f"broker-{number}", "up", "DefaultCluster", "master"] for number in range(2)]
    viewer.wait_for_rows("Brokers", lambda rows: [row[:4] for row in rows] == wanted)
    viewer.keep("cluster")


def held(shop: Shop, topic: str) -> int:
    """Return how many messages a topic holds; actions may have sent one of them again."""
    with mq.Admin(shop.address) as admin:
        queues = admin.topics.status(topic).queues.values()
    return sum(each.max_offset - each.min_offset for each in queues)


def test_topics_show_what_they_hold(viewer: Viewer, shop: Shop) -> None:
    viewer.open("/topics")
    orders = ["orders", "", "8", str(held(shop, "orders"))]
    letters = ["%DLQ%mailing", "dead letters", "2", "2"]
    viewer.wait_for_rows(
        "Topics",
        lambda rows: all(wanted in [row[:4] for row in rows] for wanted in (orders, letters)),
    )
    viewer.keep("topics")


def test_a_topic_shows_its_queues_groups_and_settings(viewer: Viewer, shop: Shop) -> None:
    viewer.open("/topics/orders")
    viewer.wait_for_rows("Groups", lambda rows: [row[:2] for row in rows] == [["billing", "2"]])
    queues = [[f"broker-{broker}", str(number)] for broker in range(2) for number in range(4)]
    viewer.wait_for_rows("Queues", lambda rows: [row[:2] for row in rows] == queues)
    stored = held(shop, "orders")
    assert stored >= 40

    def all_held(rows: list[list[str]]) -> bool:
        counts = [row[4] for row in rows if len(row) > 4]
        return all(map(str.isdecimal, counts)) and sum(map(int, counts)) == stored

    viewer.wait_for_rows("Queues", all_held)
    wanted = ["broker-0", "4", "4", "read and write", "no"]
    viewer.wait_for_rows("Settings", lambda rows: wanted in [row[:5] for row in rows[:1]])
    viewer.keep("topic")


def test_groups_show_members_and_lag(viewer: Viewer) -> None:
    viewer.open("/groups")
    viewer.wait_for_rows("Groups", lambda rows: ["billing", "2", "0"] in [row[:3] for row in rows])
    viewer.keep("groups")
    viewer.page.get_by_role("link", name="billing").click()
    viewer.arrive("billing")


def test_a_group_shows_who_holds_what_and_why(viewer: Viewer) -> None:
    viewer.open("/groups/billing")
    viewer.wait_for_rows("Members", lambda rows: [row[1:2] for row in rows] == [["4"], ["4"]])

    def explained(rows: list[list[str]]) -> bool:
        held = [row for row in rows if row[0] == "orders"]
        return (
            len(held) == 8
            and held[0][7] == "AVG: queue 1 of 8 goes to member 1 of 2"
            and held[0][3].endswith("billing-0")
        )

    viewer.wait_for_rows("Queues", explained)
    main = viewer.page.locator("main")
    expect(main).to_contain_text("every queue is assigned as the strategy says")
    viewer.keep("group")
    viewer.page.get_by_role("link", name="Live assignment").click()
    viewer.arrive("Assignment of billing")


def test_clients_show_consumers_and_producers(viewer: Viewer) -> None:
    viewer.open("/clients")
    viewer.wait_for_rows(
        "Consumers",
        lambda rows: (
            [row[0] for row in rows].count("billing") == 2
            and {row[3] for row in rows} == {"python"}
        ),
    )
    viewer.wait_for_rows("Producers", lambda rows: "shop" in [row[0] for row in rows])
    viewer.keep("clients")


def test_a_message_is_found_by_its_key_and_shown_with_who_consumed_it(viewer: Viewer) -> None:
    viewer.open("/messages")
    page = viewer.page
    page.get_by_label("Topic").fill("orders")
    page.get_by_label("Search by").select_option("key")
    page.get_by_label("Id, key or text").fill("A17")
    page.get_by_role("button", name="Search").press("Enter")
    page.wait_for_url("**/messages?topic=orders&by=key&value=A17*")
    viewer.live()
    wanted = [["paid", "A17", '{"amount": 17, "currency": "EUR"}']]
    viewer.wait_for_rows("Messages of orders", lambda rows: [row[2:5] for row in rows] == wanted)
    (row,) = viewer.rows("Messages of orders")
    viewer.keep("messages")
    page.get_by_role("link", name=row[1]).click()
    viewer.arrive(row[1])
    body = '{\n  "amount": 17,\n  "currency": "EUR"\n}'
    wait_for(lambda: page.get_by_label("Body", exact=True).inner_text() == body, "the body")
    page.get_by_role("button", name="Bytes").click()
    page.get_by_label("Body", exact=True).get_by_text("00000000  7b 22 61 6d").wait_for()
    viewer.wait_for_rows(
        "Consumed by", lambda rows: ["billing", "consumed"] in [row[:2] for row in rows[:1]]
    )
    viewer.keep("message")


@pytest.mark.parametrize("by", ["id", "time"])
def test_a_message_is_found_by_its_id_and_by_time(viewer: Viewer, shop: Shop, by: str) -> None:
    with mq.Admin(shop.address) as admin:
        (message,) = admin.messages.by_key("audit", "bytes").messages
    value = message.message_id if by == "id" else ""
    viewer.open(f"/messages?topic=audit&by={by}&value={value}")
    wanted = [[message.message_id, "11 B, binary"]]
    viewer.wait_for_rows("Messages of audit", lambda rows: [row[1:5:3] for row in rows] == wanted)


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("topic=nowhere&by=time", "no topic 'nowhere'"),
        ("topic=orders&by=id&value=AC11", "no message 'AC11'"),
        ("topic=orders&by=time&from=tomorrow", "'tomorrow' is not a time"),
    ],
)
def test_what_cannot_be_found_is_told(viewer: Viewer, query: str, told: str) -> None:
    viewer.open(f"/messages?{query}")
    expect(viewer.page.get_by_role("alert")).to_contain_text(told)


@pytest.mark.parametrize(
    ("path", "title", "told"),
    [
        ("/nowhere/<b>", "Page not found", "There is no page /nowhere/"),
        ("/groups/nobody", "nobody", "no broker has it"),
        ("/topics/nowhere", "nowhere", "nowhere"),
    ],
)
def test_what_is_not_there_is_told_in_the_frame_of_all_pages(
    viewer: Viewer, path: str, title: str, told: str
) -> None:
    viewer.open(path)
    main = viewer.page.locator("main")
    expect(main.locator("h1")).to_have_text(title)
    expect(main.locator("button"), "there is nothing to act on").to_have_count(0)
    expect(main).to_contain_text(told)
    viewer.page.get_by_role("link", name="Groups").first.click()
    viewer.arrive("Groups")
    viewer.complaints = [each for each in viewer.complaints if "404" not in each]


def test_every_page_names_the_cluster_and_charts_have_a_past(viewer: Viewer, shop: Shop) -> None:
    viewer.open("/")
    shown = viewer.page.get_by_label("Cluster shown")
    expect(shown).to_have_text(f"DefaultCluster · {shop.address}")
    hours = viewer.page.get_by_role("button", name="6 h")
    hours.click()
    viewer.page.locator("button[aria-pressed=true]", has_text="6 h").wait_for()
    expect(viewer.page.locator(".pm-chart canvas")).to_have_count(1)
    viewer.keep("cluster-6h")
    viewer.open("/groups/billing")
    expect(viewer.page.locator(".pm-chart canvas")).to_have_count(2)


def test_dead_letters_are_listed_by_group(viewer: Viewer) -> None:
    viewer.open("/dead-letters")
    viewer.wait_for_rows(
        "Dead letters", lambda rows: [row[:2] for row in rows] == [["mailing", "2"]]
    )
    viewer.page.get_by_role("link", name="mailing").click()
    viewer.page.wait_for_url("**/dead-letters/mailing")
    viewer.wait_for_rows(
        "Dead letters of mailing",
        lambda rows: sorted(row[5:6] for row in rows) == [["first letter"], ["second letter"]],
    )
    viewer.keep("dead-letters")


def test_a_topic_that_is_made_appears_without_reload(viewer: Viewer, shop: Shop) -> None:
    viewer.open("/topics")
    viewer.page.evaluate("window.notReloaded = true")
    assert "fresh" not in [row[0] for row in viewer.rows("Topics")]
    shop.cluster.create_topic("fresh", queues=3)
    viewer.wait_for_rows("Topics", lambda rows: ["fresh", "", "6"] in [row[:3] for row in rows])
    shop.producer.send(mq.Message("fresh", b"1"))
    viewer.wait_for_rows(
        "Topics", lambda rows: ["fresh", "", "6", "1"] in [row[:4] for row in rows]
    )
    assert viewer.page.evaluate("window.notReloaded") is True


BUTTONS = {
    "topics": ["Create topic"],
    "topic": ["Send message", "Change settings", "Delete topic"],
    "groups": ["Create group"],
    "group": ["Reset offsets", "Rebalance now", "Change settings", "Delete group"],
    "letters": ["Resend selected", "Resend all"],
    "access": ["Create user", "Change user", "Delete user", "Delete rule"],
}
"""Actions by page."""


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_phone_says_what_runs_and_has_actions_off_unless_allowed(
    phone: Viewer, name: str
) -> None:
    """One visit of each page for all that must be so on every page."""
    path, title = PAGES[name]
    phone.open(path)
    expect(phone.page.locator("h1")).to_have_text(title)
    phone.page.wait_for_selector("table tbody td")
    assert phone.page.evaluate("document.documentElement.scrollWidth") == PHONE[0]
    footer = phone.page.locator("footer")
    expect(footer).to_have_text(f"PocketMQ {mq.__version__}, {native.description}")
    for action in BUTTONS.get(name, ()):
        button = phone.page.get_by_role("button", name=action)
        expect(button).to_be_disabled()
        expect(button).to_have_attribute("title", re.compile("--allow-actions"))
    phone.keep(f"{name}-phone")


def test_light_and_dark_are_chosen_by_the_system_until_one_chooses(
    viewer: Viewer, phone: Viewer
) -> None:
    """The choice is remembered for all pages."""
    light, dark = "rgb(246, 247, 251)", "rgb(18, 20, 28)"
    phone.open("/")
    expect_lit(phone, dark)
    viewer.open("/")
    expect_lit(viewer, light)
    viewer.page.get_by_role("button", name="Switch between light and dark").press("Enter")
    expect_lit(viewer, dark)
    viewer.open("/groups/billing")
    expect_lit(viewer, dark)
    viewer.keep("group-dark")


def test_everything_is_reached_by_keyboard_and_the_focus_is_seen(viewer: Viewer) -> None:
    viewer.open("/topics")
    keyboard, page = viewer.page.keyboard, viewer.page

    def focused() -> str:
        shown: str = page.evaluate(
            "() => { const e = document.activeElement; const s = getComputedStyle(e);"
            " return s.outlineStyle === 'none' ? 'unseen' : (e.getAttribute('aria-label')"
            " || e.innerText).trim().split('\\n')[0]; }"
        )
        return shown

    walk = []
    for _ in range(11):
        keyboard.press("Tab")
        walk.append(focused())
    assert walk == [
        "Skip to content", "PocketMQ", "Cluster", "Topics", "Groups", "Clients", "Messages",
        "Dead letters", "Access", "Switch between light and dark", "Search Topics",
    ]  # fmt: skip
    keyboard.type("orders")
    viewer.wait_for_rows("Topics", lambda rows: [row[0] for row in rows] == ["orders"])
    keyboard.press("Tab")
    assert focused().startswith("Topic")
    keyboard.press("Enter")
    page.wait_for_selector("th[aria-sort=descending]")
    for _ in range(6):
        keyboard.press("Tab")
    assert focused() == "orders"
    keyboard.press("Enter")
    page.wait_for_url("**/topics/orders")


def test_the_skip_link_leads_past_the_navigation(viewer: Viewer) -> None:
    viewer.open("/topics")
    viewer.page.keyboard.press("Tab")
    viewer.page.keyboard.press("Enter")
    expect(viewer.page.locator(":focus h1")).to_have_text("Topics")
