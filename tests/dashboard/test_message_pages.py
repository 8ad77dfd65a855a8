"""Messages and dead letters in a real browser: newest first, back in time, live."""

from playwright.sync_api import expect

import pocketmq as mq
from pocketmq.model.names import dead_letter_topic
from tests.dashboard.conftest import Viewer
from tests.dashboard.shop import Shop

SENT = 120


def bodies(viewer: Viewer, table: str, column: int = 4) -> list[str]:
    return [row[column] for row in viewer.rows(table)]


def press(viewer: Viewer, name: str) -> None:
    viewer.page.get_by_role("button", name=name, exact=True).click()


def test_messages_come_newest_first_page_by_page_and_live(viewer: Viewer, shop: Shop) -> None:
    shop.cluster.create_topic("stream", queues=2)
    for number in range(SENT):
        shop.producer.send(mq.Message("stream", b"number %d <b>" % number))
    viewer.open("/messages?topic=stream&by=time")
    table = "Messages of stream"
    viewer.wait_for_rows(table, lambda rows: len(rows) == 50)
    first = bodies(viewer, table)
    assert f"number {SENT - 1} <b>" in first
    told = viewer.page.get_by_role("status").first
    expect(told).to_contain_text("50 messages, newest first")
    press(viewer, "Older")
    viewer.wait_for_rows(table, lambda rows: len(rows) == 50 and rows[0][4] not in first)
    second = bodies(viewer, table)
    press(viewer, "Older")
    viewer.wait_for_rows(table, lambda rows: len(rows) == SENT - 100)
    third = bodies(viewer, table)
    assert {*first, *second, *third} == {f"number {number} <b>" for number in range(SENT)}
    expect(viewer.page.get_by_role("button", name="Older")).to_be_disabled()
    press(viewer, "Newer")
    viewer.wait_for_rows(table, lambda rows: [row[4] for row in rows] == second)
    press(viewer, "Follow live")
    viewer.page.locator("button[aria-pressed=true]").wait_for()
    shop.producer.send(mq.Message("stream", b"the very newest"))
    viewer.wait_for_rows(table, lambda rows: [row[4] for row in rows[:1]] == ["the very newest"])
    viewer.keep("messages-live")
    viewer.open("/messages?topic=stream&by=time&value=NUMBER+11+<")
    viewer.wait_for_rows(table, lambda rows: [row[4:5] for row in rows] == [["number 11 <b>"]])


def test_dead_letters_come_newest_first_and_are_filtered(viewer: Viewer, shop: Shop) -> None:
    table = "Dead letters of mailing"
    viewer.open("/dead-letters/mailing")
    viewer.wait_for_rows(
        table,
        lambda rows: sorted(row[5:6] for row in rows) == [["first letter"], ["second letter"]],
    )
    times = [row[1] for row in viewer.rows(table)]
    assert times == sorted(times, reverse=True)
    with mq.Admin(shop.address) as admin:
        assert len(admin.topics.status(dead_letter_topic("mailing")).queues) == 2
    viewer.page.get_by_label("Contains").fill("FIRST")
    press(viewer, "Filter")
    viewer.page.wait_for_url("**/dead-letters/mailing?text=FIRST")
    viewer.live()
    viewer.wait_for_rows(table, lambda rows: [row[5:6] for row in rows] == [["first letter"]])
