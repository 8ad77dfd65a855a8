"""The live assignment of a group in a real browser: drawn, watched, filtered, experimented with."""

import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

import pocketmq as mq
from pocketmq.balance.allocation import Average
from pocketmq.model import MessageModel, MessageQueue, sort_queues
from tests.dashboard.conftest import PATIENCE, PHONE, DashboardProcess, Viewer, viewing
from tests.dashboard.spoken import ACTIVE, SpokenGroup
from tests.own_time import own_time

QUEUES = [MessageQueue("orders", f"broker-{b}", number) for b in range(2) for number in range(8)]
MEMBER = """
import sys
import pocketmq as mq
consumer = mq.PushConsumer(sys.argv[1], group="billing", instance_name=sys.argv[2])
consumer.subscribe("orders", "*", lambda message: None)
consumer.start()
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def speaking(
    cluster: mq.Cluster, group: str, members: dict[str, list[MessageQueue]]
) -> Iterator[SpokenGroup]:
    """Yield a group whose members own exactly these queues."""
    brokers = [broker.address for broker in cluster.brokers.values()]
    topics = sorted({queue.topic for held in members.values() for queue in held})
    with SpokenGroup(group, topics, brokers) as talking:
        for member, queues in members.items():
            talking.join(member, queues)
        yield talking


def divided(*members: str, queues: list[MessageQueue] = QUEUES) -> dict[str, list[MessageQueue]]:
    """Divide queues as AVG does, topic by topic."""
    held: dict[str, list[MessageQueue]] = {member: [] for member in members}
    for topic in sorted({queue.topic for queue in queues}):
        ordered = sort_queues([queue for queue in queues if queue.topic == topic])
        owners = Average().allocate_all(ordered, sorted(members))
        for queue, owner in zip(ordered, owners, strict=True):
            assert owner is not None
            held[owner].append(queue)
    return held


def picture(window: Viewer) -> Locator:
    return window.page.locator(".as-picture .qm")


def standing(window: Viewer) -> Locator:
    return window.page.locator(".as-standing")


def legend(window: Viewer) -> list[str]:
    """Return the members and how many queues each holds, as the page shows them now."""
    names = window.page.locator(".as-picture .qm-member")
    return [" ".join(text.split()[1:]) for text in names.all_inner_texts()]


def expect_legend(
    window: Viewer, wanted: list[str], read: Callable[[Viewer], list[str]] = legend
) -> None:
    """Wait until the legend, which follows the sentence above it, shows what is wanted."""
    until = time.monotonic() + PATIENCE / 1000
    while (shown := read(window)) != wanted and time.monotonic() < until:
        window.page.wait_for_timeout(50)
    assert shown == wanted


def counts(window: Viewer) -> list[str]:
    """Return how many queues the members hold, in order of size."""
    return sorted(line.split()[-1] for line in legend(window))


def instances(window: Viewer) -> list[str]:
    """Return the instance names of the members, with how many queues each holds."""
    return [line.split("@")[-1] for line in legend(window)]


def client_ids(window: Viewer) -> list[str]:
    return sorted(line.rpartition(" ")[0] for line in legend(window))


def entry(window: Viewer, text: str) -> Locator:
    return window.page.locator(".tl-entry").filter(has_text=text)


def test_a_rebalance_is_watched_live(cluster: mq.Cluster, window: Viewer) -> None:
    """A member joins, a member is killed: picture and timeline follow without a reload."""
    members = [
        mq.PushConsumer(cluster.address, group="billing", instance_name=name)
        for name in ("anna", "bert")
    ]
    for member in members:
        member.subscribe("orders", "*", lambda message: None)
        member.start()
    try:
        window.open("/groups/billing/assignment")
        expect(standing(window)).to_have_text("Every queue has one owner, as AVG assigns them.")
        expect(picture(window)).to_have_attribute("data-view", "matrix")
        window.page.evaluate("window.same = true")
        child = subprocess.Popen(
            [sys.executable, "-c", MEMBER, cluster.address, "carl"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with child:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            expect(entry(window, "@carl joined")).to_be_visible()
            expect(entry(window, "@carl joined")).not_to_contain_text("in progress")
            expect_legend(window, ["5", "5", "6"], counts)
            window.keep("assignment-joined")
            child.kill()
        expect(entry(window, "@carl left")).to_be_visible()
        expect(entry(window, "@carl left")).not_to_contain_text("in progress")
        expect_legend(window, ["anna 8", "bert 8"], instances)
        entry(window, "@carl left").click()
        detail = window.page.locator(".tl-detail")
        expect(detail).to_contain_text(re.compile(r"Reason: \S+@carl left"))
        moved = [int(text) for text in detail.locator("td.number").all_inner_texts()]
        expect(entry(window, "@carl left")).to_contain_text(
            re.compile(rf"(?<!\d){sum(moved)} queues moved")
        )
        assert window.page.evaluate("window.same") is True
        window.keep("assignment-killed")
    finally:
        for member in members:
            member.close()


def test_events_are_tried_and_nothing_is_changed(cluster: mq.Cluster, window: Viewer) -> None:
    with speaking(cluster, "tried", divided("c1", "c2")):
        window.open("/groups/tried/assignment")
        expect(picture(window)).to_have_attribute("data-shown", "16")
        trial = window.page.locator(".as-experiment")
        expect(trial).to_contain_text("Nothing on the cluster changes")
        trial.get_by_label("Client id").fill("c3")
        trial.get_by_role("button", name="Add").click()
        expect(trial.locator(".wi-sum")).to_have_text("7 queues would move, minimum 5.")
        rows = [row.split() for row in trial.locator("tbody").first.inner_text().splitlines()]
        assert rows[0] == ["AVG", "in", "use", "1", "1", "0", "7", "(5)", "7"]
        assert rows[1] == ["AVG_\u200bBY_\u200bCIRCLE", "1", "1", "0", "10", "(5)", "11"]
        assert rows[-1] == ["STICKY", "1", "1", "0", "5", "(5)", "5"]
        maps = trial.locator(".qm")
        expect(maps.nth(0)).to_have_attribute("data-shown", "16")
        expect(maps.nth(1)).to_have_attribute("data-shown", "16")
        window.keep("assignment-what-if")
        trial.get_by_label("What if").select_option("a broker fails")
        trial.get_by_label("Which").select_option("broker-1")
        trial.get_by_role("button", name="Add").click()
        expect(trial.locator(".wi-sum")).to_contain_text("8 queues would be gone")
        expect(maps.nth(1)).to_have_attribute("data-shown", "8")
        trial.get_by_label("Remove: c3 joins").click()
        expect(trial.locator(".wi-sum")).to_have_text(
            "4 queues would move, minimum 4, 8 queues would be gone."
        )
        trial.get_by_label("What if").select_option("the strategy changes")
        trial.get_by_label("Which").select_option("AVG_BY_CIRCLE")
        trial.get_by_role("button", name="Add").click()
        expect(trial.locator(".wi-events li")).to_have_text(
            [re.compile("broker-1 fails"), re.compile("strategy AVG_BY_CIRCLE")]
        )
        trial.get_by_label("Which").select_option("STICKY")
        trial.get_by_role("button", name="Add").click()
        expect(trial.locator(".wi-events li")).to_have_count(3)
        expect(trial.locator(".wi-sum")).to_contain_text("8 queues would be gone")
        expect_legend(window, ["c1 8", "c2 8"])
        expect(window.page.locator(".tl-entry")).to_have_count(0)


DRAW = """async (history) => {
  const files = performance.getEntriesByType("resource").map((each) => each.name);
  const timeline = (await import(files.find((name) => name.endsWith("/timeline.js")))).default;
  const { createApp, nextTick } = await import("vue");
  const host = document.body.appendChild(document.createElement("div"));
  createApp(timeline, history).mount(host);
  await nextTick();
  const all = (selector) => [...host.querySelectorAll(selector)];
  const told = { unseen: all(".tl-unseen title").map((each) => each.textContent),
    key: all(".tl-key span").map((each) => each.textContent),
    strokes: all("svg > path").map((each) => each.getAttribute("d").split("M").length - 1),
    moves: all(".tl-moves").map((each) => each.textContent), events: all(".tl-event").length };
  host.remove();
  return told;
}"""


def test_time_that_nobody_observed_is_shaded_and_no_line_crosses_it(
    cluster: mq.Cluster, window: Viewer
) -> None:
    """A gap takes a minute to come about, so the history is given to the drawing itself."""
    with speaking(cluster, "drawn", {"c1": QUEUES}):
        window.open("/groups/drawn/assignment")
        expect(picture(window)).to_have_attribute("data-shown", "16")
        entry = {"ended": 101, "kind": "member", "why": "c2 joined", "sum": "12 queues moved"}
        close = [entry | {"number": n, "began": 100 + n / 10, "moved": 12} for n in range(3)]
        history = {
            "entries": close, "from": 0, "to": 200, "top": [], "pauses": [], "nothing": "",
            "total": [[0, 5], [1, 5], [1, None], [90, 7], [200, 7]], "unobserved": [[1, 90]],
        }  # fmt: skip
        told = window.page.evaluate(DRAW, history)
    (shaded,) = told["unseen"]
    assert shaded.startswith("not observed from ")
    assert "not observed" in told["key"]
    assert told["strokes"] == [2], "the line is drawn in two strokes"
    assert (told["events"], told["moves"]) == (3, ["12"]), "numbers do not overlap"


def test_troubles_are_found_filtered_and_explained(cluster: mq.Cluster, window: Viewer) -> None:
    held = {"c1": QUEUES[:9], "c2": QUEUES[8:15]}
    with speaking(cluster, "troubled", held):
        window.open("/groups/troubled/assignment")
        expect(standing(window)).to_have_text(
            "Of 16 queues, 1 has no owner and 1 has several owners."
        )
        wrong = window.page.locator(".as-findings")
        expect(wrong).to_contain_text("unowned queues: orders:broker-1:7")
        expect(wrong).to_contain_text("owned twice: orders:broker-1:0")
        expect(wrong).to_contain_text("Evidence: owned by c1 and c2")
        bar = window.page.locator(".qm-bar")
        bar.get_by_label("only problems").check()
        expect(picture(window)).to_have_attribute("data-shown", "2")
        expect(bar).to_contain_text("2 of 16 queues")
        bar.get_by_label("Table").check()
        rows = picture(window).get_by_role("row")
        expect(rows).to_have_count(3)
        expect(rows.nth(1)).to_contain_text("c1 and c2")
        expect(rows.nth(2)).to_contain_text("no owner")
        expect(rows.nth(2)).to_contain_text("no common strategy gives this assignment")
        window.keep("assignment-troubles")
        bar.get_by_label("only problems").uncheck()
        bar.get_by_label("Broker").select_option("broker-1")
        expect(picture(window)).to_have_attribute("data-shown", "8")
        bar.get_by_label("Member").select_option("c2")
        expect(picture(window)).to_have_attribute("data-shown", "7")
        bar.get_by_label("Topic").select_option("orders")
        expect(picture(window)).to_have_attribute("data-shown", "7")


def test_what_a_silent_member_holds_is_shown_as_unknown(
    cluster: mq.Cluster, window: Viewer
) -> None:
    with speaking(cluster, "quiet", divided("c1", "c2")) as talking:
        window.open("/groups/quiet/assignment")
        expect(standing(window)).to_contain_text("Every queue has one owner")
        talking.fall_silent("c2")
        expect(standing(window)).to_have_text("Of 16 queues, 8 have an unknown owner.")
        expect_legend(window, ["c1 8", "c2 ?"])
        expect(entry(window, "c2 stopped reporting its queues")).to_contain_text("nothing moved")
        window.keep("assignment-unknown")
        talking.leave("c2")
        expect(entry(window, "c2 left after it had stopped responding")).to_contain_text(
            "in progress"
        )
        expect(standing(window)).to_have_text("Of 16 queues, 8 have no owner.")
        talking.hold("c1", QUEUES)
        expect(entry(window, "c2 left after it had stopped responding")).to_contain_text(
            "8 queues moved, minimum 8"
        )
        expect(standing(window)).to_contain_text("Every queue has one owner")


def test_lag_is_shown_by_queue_and_over_time(cluster: mq.Cluster, window: Viewer) -> None:
    cluster.create_topic("slowly", queues=1)
    handled, go_on = threading.Semaphore(0), threading.Event()

    def handle(message: mq.ReceivedMessage) -> None:
        handled.release()
        go_on.wait()

    consumer = mq.PushConsumer(
        cluster.address,
        group="slow",
        threads=2,
        consume_from="first",
        persist_first_after=0.2,
        persist_interval=0.2,
    )
    consumer.subscribe("slowly", "*", handle)
    with mq.Producer(cluster.address, group="shop", send_timeout=30.0) as producer:
        for number in range(14):
            queue = MessageQueue("slowly", f"broker-{min(number, 12) // 12}", 0)
            producer.send(mq.Message("slowly", b"%d" % number), queue=queue)
    try:
        consumer.start()
        handled.acquire(timeout=20)
        window.open("/groups/slow/assignment")
        tile = window.page.locator(".pm-tile", has_text="Lag")
        expect(tile).to_contain_text("14")
        lines = window.page.locator(".tl-key")
        expect(lines).to_contain_text("all queues: 14")
        expect(lines).to_contain_text("slowly broker-0 0: 12")
        expect(lines).to_contain_text("slowly broker-1 0: 2")
        window.page.locator(".qm-bar").get_by_label("Table").check()
        picture(window).get_by_role("button", name="Lag").click()
        lags = picture(window).locator(".qm-rows .qm-lag")
        expect(lags).to_have_text(["12", "2"])
        picture(window).get_by_role("button", name="Lag").click()
        expect(lags).to_have_text(["2", "12"])
        window.keep("assignment-lag")
        go_on.set()
        expect(tile).to_contain_text("0")
        expect(lines).to_have_text(re.compile("^all queues: 0"))
    finally:
        go_on.set()
        consumer.close()


def test_the_keyboard_reaches_everything(cluster: mq.Cluster, window: Viewer) -> None:
    with speaking(cluster, "keys", divided("c1", "c2")) as talking:
        window.open("/groups/keys/assignment")
        expect(picture(window)).to_have_attribute("data-shown", "16")
        page = window.page
        page.get_by_label("only problems").focus()
        page.keyboard.press("Tab")
        page.keyboard.press("ArrowRight")
        expect(page.locator(".qm-member").nth(1)).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator(".qm-member").nth(1)).to_have_attribute("aria-pressed", "true")
        page.keyboard.press("Tab")
        spoken = picture(window).locator("[aria-live]")
        expect(spoken).to_have_text(
            "orders, broker-0, queue 0: owner c1; lag ?; AVG: queue 1 of 16 goes to member 1 of 2"
        )
        page.keyboard.press("ArrowRight")
        expect(spoken).to_contain_text("orders, broker-0, queue 1: owner c1")
        page.keyboard.press("End")
        expect(spoken).to_contain_text("orders, broker-1, queue 7: owner c2")
        expect(picture(window).locator(".qm-tip")).to_contain_text(
            "AVG: queue 16 of 16 goes to member 2 of 2"
        )
        shares = divided("c1", "c2", "c3")
        talking.join("c3", shares["c3"])  # the first that is seen: the reason of all the rest
        for member in ("c1", "c2"):
            talking.hold(member, shares[member])
        event = page.locator(".tl-event").last
        expect(event).to_have_attribute("aria-label", re.compile("c3 joined"))
        event.focus()
        page.keyboard.press("Enter")
        expect(page.locator(".tl-detail")).to_contain_text("Reason: c3 joined")
        page.locator(".qm-views input").first.focus()
        for _ in range(3):
            page.keyboard.press("ArrowRight")
        expect(picture(window)).to_have_attribute("data-view", "table")


@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_a_phone(
    cluster: mq.Cluster,
    watcher: DashboardProcess,
    browser: Browser,
    screenshots: Path | None,
    dark: bool,
) -> None:
    with (
        speaking(cluster, "small", divided("10.0.0.1@anna#1", "10.0.0.1@bert#2")),
        viewing(browser, watcher.url, screenshots, PHONE, dark=dark) as window,
    ):
        window.open("/groups/small/assignment")
        expect(picture(window)).to_have_attribute("data-shown", "16")
        window.page.locator(".wi-form button").click()
        expect(window.page.locator(".wi-sum")).to_be_visible()
        assert window.page.evaluate("document.documentElement.scrollWidth") == PHONE[0]
        window.page.locator(".as-picture .qm-scroll").click(position={"x": 180, "y": 80})
        expect(picture(window).locator(".qm-tip")).to_contain_text("Owner")
        window.keep(f"assignment-phone-{'dark' if dark else 'light'}")


def test_ten_thousand_queues_are_drawn_within_two_seconds(
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
    names = [f"10.0.0.1@app#{number:02}" for number in range(20)]
    with speaking(cluster, "large", divided(*names, queues=queues)) as talking:
        took = []
        for _ in range(3):  # again only if the machine was busy with something else
            began = own_time()
            window.open("/groups/large/assignment")
            expect(picture(window)).to_have_attribute("data-shown", "10000")
            took.append(own_time() - began)
            if took[-1] < 2:
                break
        assert min(took) < 2, took
        expect(picture(window)).to_have_attribute("data-view", "tiles")
        canvas = picture(window).locator("canvas")
        expect(canvas).to_have_attribute("data-drawn", re.compile(r"^[1-9]\d{0,3}$"))
        began = own_time()
        assert window.page.evaluate(SCROLL) > 1000
        assert own_time() - began < 30 * 0.1, "of thirty pictures, each takes less than 0.1 s"
        window.keep("assignment-large")
        window.page.locator(".qm-bar").get_by_label("Table").check()
        rows = picture(window).locator(".qm-rows .qm-row")
        expect(rows.first).to_contain_text("goes to member 1 of 20")
        picture(window).locator(".qm-rows").evaluate("rows => rows.scrollTop = 1e9")
        expect(rows.last).to_contain_text("large-9 broker-1 · 499")
        assert rows.count() < 60
        window.page.locator(".qm-bar").get_by_label("Topic").select_option("large-3")
        expect(picture(window)).to_have_attribute("data-shown", "1000")
        shares = divided(*names, "10.0.0.1@app#99", queues=queues)
        talking.join("10.0.0.1@app#99", shares["10.0.0.1@app#99"])  # the reason of all the rest
        for member in names:
            talking.hold(member, shares[member])
        expect(entry(window, "10.0.0.1@app#99 joined")).to_contain_text("queues moved, minimum 470")


SCROLL = """async () => {
  const scroll = document.querySelector(".as-picture .qm-scroll");
  for (let step = 1; step <= 30; step++) {
    scroll.scrollTop = step * 40;
    await new Promise((next) => requestAnimationFrame(next));
  }
  return scroll.scrollTop;
}"""


def test_what_members_call_themselves_is_only_ever_text(
    cluster: mq.Cluster, window: Viewer
) -> None:
    evil = [
        "<img src=x onerror=window.hacked=1>",
        '"><script>window.hacked=1</script>',
        "{{constructor.constructor('window.hacked=1')()}}",
    ]
    with speaking(cluster, "evil", divided(*evil)) as talking:
        window.open("/groups/evil/assignment")
        expect(picture(window)).to_have_attribute("data-shown", "16")
        expect_legend(window, sorted(evil), client_ids)
        window.page.locator(".qm-bar").get_by_label("Table").check()
        expect(picture(window).locator(".qm-row").nth(1)).to_contain_text(evil[1])
        trial = window.page.locator(".as-experiment")
        trial.get_by_label("Client id").fill("</td><img src=x onerror=window.hacked=1>")
        trial.get_by_role("button", name="Add").click()
        expect(trial.locator(".wi-sum")).to_be_visible()
        talking.leave(evil[0])
        expect(entry(window, f"{evil[0]} left")).to_be_visible()
        entry(window, f"{evil[0]} left").click()
        expect(window.page.locator(".tl-detail")).to_contain_text(evil[0])
        assert window.page.evaluate("window.hacked") is None


def test_groups_that_cannot_be_shown_are_told_of_in_words(
    cluster: mq.Cluster, window: Viewer
) -> None:
    window.open("/groups/%3Cb%3Enobody/assignment")
    expect(standing(window)).to_have_text("No data for this group.")
    expect(window.page.locator(".pm-warning")).to_contain_text("<b>nobody")
    brokers = [broker.address for broker in cluster.brokers.values()]
    with SpokenGroup("everyone", ["orders"], brokers, model=MessageModel.BROADCASTING) as all_:
        all_.join("c1", QUEUES)
        all_.join("c2", QUEUES)
        window.open("/groups/everyone/assignment")
        expect(standing(window)).to_contain_text("The group broadcasts")
        expect(picture(window)).to_contain_text("every member reads every queue")
        expect(window.page.locator(".as-findings article")).to_have_count(0)
    expect(standing(window)).to_contain_text("The group is offline")
    with SpokenGroup("pulls", ["orders"], brokers) as pulling:
        pulling.join("java", (), ACTIVE)
        window.open("/groups/pulls/assignment")
        expect(standing(window)).to_have_text("Of 16 queues, 16 have an unknown owner.")
        expect(window.page.locator(".as-findings")).to_contain_text("queues not reported: java")


def test_when_nobody_answers_the_last_picture_stays_and_is_marked_as_old(
    browser: Browser, screenshots: Path | None
) -> None:
    with mq.Cluster(brokers=2) as dying:
        dying.create_topic("orders", queues=8)
        with (
            DashboardProcess("-n", dying.address, "--port", "0") as process,
            viewing(browser, process.url, screenshots) as window,
            speaking(dying, "billing", divided("c1", "c2")),
        ):
            window.open("/groups/billing/assignment")
            expect(picture(window)).to_have_attribute("data-shown", "16")
            dying.kill("broker-1")
            expect(picture(window)).to_have_attribute("data-shown", "8")
            expect(window.page.locator(".tl-entry").last).to_contain_text("broker-1")
            dying.kill("broker-0")
            expect(window.page.locator(".as-columns")).to_have_class(re.compile("as-old"))
            expect(window.page.locator(".pm-warning")).to_contain_text("Showing data from")
            expect(picture(window)).to_have_attribute("data-shown", "8")
            window.keep("assignment-old")
