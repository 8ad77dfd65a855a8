"""Hand-overs in a real browser: mode, states on the map, arrows in the story."""

import re
from collections.abc import Mapping

from playwright.sync_api import Locator, expect

import pocketmq as mq
from pocketmq.model import MessageQueue
from pocketmq.model.group_balance import QueueStage, stages_text
from pocketmq.protocol.requests.client_calls import PROP_BALANCE_MODE, PROP_BALANCE_STAGES
from tests.dashboard.conftest import Viewer
from tests.dashboard.spoken import PUSH, SpokenGroup
from tests.own_time import own_time

QUEUES = [MessageQueue("parcels", f"broker-{b}", number) for b in range(2) for number in range(4)]
A, B = "10.0.0.1@anna@pm1", "10.0.0.1@bert@pm1"


def spoken(cluster: mq.Cluster, group: str, *topics: str) -> SpokenGroup:
    return SpokenGroup(group, topics, [broker.address for broker in cluster.brokers.values()])


def reporting(stages: Mapping[MessageQueue, QueueStage] | None = None) -> dict[str, str]:
    told = {PROP_BALANCE_MODE: "sticky", PROP_BALANCE_STAGES: stages_text(stages or {})}
    return PUSH | told


def tile(window: Viewer, name: str) -> Locator:
    return window.page.locator(".pm-tile").filter(has_text=name)


def test_a_hand_over_is_watched_from_claim_to_end(cluster: mq.Cluster, window: Viewer) -> None:
    moved = QUEUES[4:]
    with spoken(cluster, "sticky", "parcels") as group:
        group.join(A, QUEUES, reporting())
        window.open("/groups/sticky/assignment")
        standing = window.page.locator(".as-standing")
        expect(standing).to_have_text("Every queue has one owner, as STICKY assigns them.")
        expect(tile(window, "Hand-over")).to_contain_text("sticky")
        expect(tile(window, "Hand-over")).to_contain_text("balanced")
        states = window.page.get_by_label("States of a hand-over")
        expect(states).to_contain_text("draining: the previous owner finishes its last messages")
        expect(states).to_contain_text("fenced: its owner's lease may have expired")

        group.join(B, [], reporting(dict.fromkeys(moved, QueueStage.CLAIMED)))
        expect(standing).to_have_text("Every queue has one owner; 4 queues are still to move.")
        group.hold(A, QUEUES, reporting(dict.fromkeys(moved, QueueStage.DRAINING)))
        group.hold(B, moved, reporting(dict.fromkeys(moved, QueueStage.BEHIND_BARRIER)))
        expect(standing).to_have_text("Every queue has one owner, as STICKY assigns them.")
        window.page.locator(".qm-bar").get_by_label("Table").check()
        rows = window.page.locator(".as-picture").get_by_role("row")
        expect(rows.nth(5)).to_contain_text(f"{B}, behind barrier")
        expect(rows.nth(5)).to_contain_text(f"{A}: finishes its last messages")
        window.page.locator(".qm-bar").get_by_label("Auto").check()
        window.keep("handover-barrier")

        group.hold(A, QUEUES[:4], reporting({QUEUES[0]: QueueStage.FENCED}))
        group.hold(B, moved, reporting())
        expect(window.page.locator(".as-findings")).to_contain_text("fenced queues")
        window.page.locator(".qm-bar").get_by_label("only problems").check()
        expect(window.page.locator(".as-picture .qm")).to_have_attribute("data-shown", "1")
        window.page.locator(".qm-bar").get_by_label("only problems").uncheck()

        joined = window.page.locator(".tl-entry").filter(has_text=f"{B} joined")
        expect(joined).to_contain_text("4 queues moved, minimum 4")
        joined.click()
        arrows = window.page.locator(".tl-arrows")
        expect(arrows).to_have_attribute("aria-label", f"Hand-overs: {A} → {B}: 4 queues")
        expect(arrows.locator(".tl-head")).to_have_count(1)
        expect(arrows).to_contain_text("bert@pm1")
        window.keep("handover-arrows")


def test_members_of_our_own_are_watched(cluster: mq.Cluster, window: Viewer) -> None:
    def member(name: str) -> mq.PushConsumer:
        made = mq.PushConsumer(cluster.address, group="ours", strategy="STICKY", instance_name=name)
        return made.subscribe("parcels", "*", lambda message: None)

    standing = window.page.locator(".as-standing")
    balanced = "Every queue has one owner, as STICKY assigns them."
    with member("carl"):
        window.open("/groups/ours/assignment")
        expect(standing).to_have_text(balanced)
        expect(tile(window, "Hand-over")).to_contain_text("balanced")
        with member("dora"):
            joined = window.page.locator(".tl-entry").filter(has_text="@dora@pm1 joined")
            expect(joined).to_contain_text("4 queues moved, minimum 4")
            expect(joined).not_to_contain_text("in progress")
            expect(standing).to_have_text(balanced)
            joined.click()
            label = re.compile(r"Hand-overs: \S+@carl@pm1 → \S+@dora@pm1: 4 queues")
            expect(window.page.locator(".tl-arrows")).to_have_attribute("aria-label", label)
            window.keep("handover-ours")
        left = window.page.locator(".tl-entry").filter(has_text="@dora@pm1 left")
        expect(left).to_contain_text("4 queues moved, minimum 4")


def test_the_group_page_tells_mode_and_states_in_plain_words(
    cluster: mq.Cluster, window: Viewer
) -> None:
    with spoken(cluster, "telling", "parcels") as group:
        group.join(A, QUEUES[:4], reporting({QUEUES[0]: QueueStage.FENCED}))
        group.join(B, QUEUES[4:], reporting())
        window.open("/groups/telling")
        expect(tile(window, "Hand-over")).to_contain_text("sticky")
        card = window.page.get_by_label("Hand-over", exact=True)
        expect(card).to_contain_text("Every member hands queues over")
        expect(card).to_contain_text("behind barrier: handled, committed when the previous owner")
        expect(window.page.get_by_text(f"fenced ({A})")).to_be_visible()
        window.wait_for_rows("Members", lambda rows: any("version 1" in row for row in rows))
        group.join("10.0.0.9@java")
        expect(card).to_contain_text("10.0.0.9@java does not hand over and keeps what AVG assigns")
        expect(tile(window, "Hand-over")).to_contain_text("mixed")
        window.keep("handover-group")


def test_ten_thousand_queues_with_states_are_drawn_within_two_seconds(
    cluster: mq.Cluster, window: Viewer
) -> None:
    for number in range(10):
        cluster.create_topic(f"large-{number}", queues=500)
    queues = [
        MessageQueue(f"large-{topic}", f"broker-{broker}", number)
        for topic in range(10)
        for broker in range(2)
        for number in range(500)
    ]
    names = [f"10.0.0.1@app#{number:02}@pm1" for number in range(20)]
    topics = [f"large-{number}" for number in range(10)]
    marked = [QueueStage.RUNNING, QueueStage.BEHIND_BARRIER, QueueStage.FENCED]
    with spoken(cluster, "large-sticky", *topics) as group:
        for number, name in enumerate(names):
            held = queues[number::20]
            stages = {queue: marked[at % 3] for at, queue in enumerate(held)}
            group.join(name, held, reporting(stages))
        took = []
        for _ in range(3):  # again only if the machine was busy with something else
            began = own_time()
            window.open("/groups/large-sticky/assignment")
            shown = window.page.locator(".as-picture .qm")
            expect(shown).to_have_attribute("data-shown", "10000")
            took.append(own_time() - began)
            if took[-1] < 2:
                break
        assert min(took) < 2, took
        began = own_time()
        assert window.page.evaluate(SCROLL) > 1000
        assert own_time() - began < 30 * 0.1, "of thirty pictures, each takes less than 0.1 s"
        expect(tile(window, "Hand-over")).to_contain_text(re.compile("balanced|to move|to take"))
        window.keep("handover-large")


SCROLL = """async () => {
  const scroll = document.querySelector(".as-picture .qm-scroll");
  for (let step = 1; step <= 30; step++) {
    scroll.scrollTop = step * 40;
    await new Promise((next) => requestAnimationFrame(next));
  }
  return scroll.scrollTop;
}"""
