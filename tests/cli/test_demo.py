"""`pocketmq demo`: the whole play on a real cluster, and its proof."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pocketmq.cli.demo.cast import settled
from pocketmq.cli.demo.outcome import FAILED, GroupResult, Proof, compared, comparison_html, prove
from pocketmq.cli.demo.repeats import (
    GRACE,
    BrokerKilled,
    Crashes,
    DemoDelivery,
    MemberKilled,
    Repeats,
    repeats_of,
    waits,
)
from pocketmq.cli.demo.view import queue_cell
from pocketmq.pipelines.health import GroupHealth, Observations, OffsetSample, examine
from pocketmq.pipelines.health.page import page
from tests.pipelines.test_health import JOIN


def pocketmq(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pocketmq", *arguments],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


def on_a_terminal(*arguments: str) -> tuple[int, str, bytes]:
    """Run the command with a terminal of 100 columns as stdout; return what it showed there."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 100, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "pocketmq", *arguments],
        stdout=theirs,
        stderr=subprocess.PIPE,
        env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "100"},
    )
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # the terminal is gone
        while more := os.read(ours, 65536):
            shown += more
    os.close(ours)
    assert process.stderr is not None
    with process.stderr:
        wrong = process.stderr.read()
    return process.wait(60), shown.decode(), wrong


def plain_lines(shown: str) -> list[str]:
    """Return the lines without colours and moves of the cursor; not those with a file's name."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    return [line for line in re.split(r"[\r\n]+", text) if not line.startswith("report")]


def moved_and_had_to(group: dict[str, Any]) -> tuple[int, int]:
    """Return how many queues moved since the group had formed, and the minimum.

    While it forms its first member may have all queues for a moment, or not.
    """
    forming, *later = group["rebalances"]
    moved = [move for move in group["handovers"] if move["at"] > forming["until"]]
    return len(moved), sum(one["minimum"] for one in later)


@pytest.mark.timeout(300)
def test_the_play_ends_with_the_proof_and_leaves_a_report(tmp_path: Path) -> None:
    """All but the Spark part, at the pace of the group, seen on a terminal."""
    code, shown, wrong = on_a_terminal(
        "demo", "--no-spark", "--pace", "1", "--rate", "100", "--out", str(tmp_path)
    )
    assert (code, wrong) == (0, b""), shown
    assert "proved: every message sent was consumed" in shown
    assert "proved: STICKY delivered no message twice" in shown
    assert "not settled" not in shown
    assert not any(word in shown for word in FAILED)
    assert re.search(r"broker-1\W.*-- ", shown)  # it was away for a while, and drawn so
    assert re.search(r"broker-1\W.*--!", shown)  # STICKY keeps its owners meanwhile
    assert "joining" in shown
    assert "killed" in shown
    assert max(map(len, plain_lines(shown))) <= 100
    report = tmp_path / "report.html"
    assert f"report   {report}" in shown
    assert report.read_text().startswith("<!doctype html>")
    assert report.read_text().count("<h2>") == 3  # side by side, and each group
    average, sticky = json.loads((tmp_path / "report.json").read_text())["groups"]
    for group, mark in ((average, ""), (sticky, "@pm1")):
        assert group["members"] == [f"demo@c{n}{mark}" for n in range(1, 6)]
        assert len(group["queues"]) == 16
        died = [one["died"] for one in group["rebalances"] if one["died"]]
        assert died == [[f"demo@c1{mark}"]]
        assert group["lag"]["last"] == 0
    assert ["broker-1"] in [one["brokers_lost"] for one in average["rebalances"]]
    assert (average["modes"], sticky["modes"]) == (["java"], ["sticky"])
    moved, had_to = moved_and_had_to(average)
    assert moved > had_to
    moved, had_to = moved_and_had_to(sticky)
    assert moved == had_to > 0
    assert sticky["figures"]["two_owners"] == sum(q["shared_seconds"] for q in sticky["queues"])
    assert sticky["figures"]["two_owners"] == 0


def test_the_demo_without_a_cluster() -> None:
    done = pocketmq("demo", "--offline")
    assert (done.returncode, done.stderr) == (0, "")
    assert "A fourth consumer joins" in done.stdout
    assert "c4 joins: 4 queues moved, minimum 4" in done.stdout  # STICKY


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    done = pocketmq("demo", "--out", str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert "is not empty" in done.stderr


CRASHES = Crashes(
    (MemberKilled("c1", 100.0, {("a", 0): 1}), MemberKilled("c1@pm1", 100.0, {("a", 0): 1})),
    (BrokerKilled("b", 200.0, 210.0),),
)


def got(
    number: int, *times: tuple[str, float], broker: str = "a", offset: int | None = None
) -> list[DemoDelivery]:
    """Deliveries of a message to members at times; its offset is its number, stored at 10."""
    return [
        DemoDelivery(
            time=time, group="g", client_id=member, topic="orders", broker=broker, queue=0,
            offset=number if offset is None else offset, number=number, stored=10.0,
        )
        for member, time in times
    ]  # fmt: skip


def counts(found: Repeats) -> tuple[int, int, int]:
    return len(found.by_member), len(found.by_broker), len(found.by_handover)


@pytest.mark.parametrize(
    ("first", "second", "broker", "expected"),
    [
        # A killed member excuses what it began shortly before, if another member repeats it.
        (("c1", 99.95), ("c2", 100.5), "a", (1, 0, 0)),
        (("c1", 100.001), ("c2", 100.5), "a", (1, 0, 0)),  # reported as it died
        (("c1", 99.9 - GRACE), ("c2", 100.5), "a", (1, 0, 0)),
        (("c1", 99.8 - GRACE), ("c2", 100.5), "a", (0, 0, 1)),  # that was committed long before
        (("c1", 99.95), ("c2", 99.99), "a", (0, 0, 1)),  # it was alive
        (("c3", 99.95), ("c2", 100.5), "a", (0, 0, 1)),  # another one died
        (("c1", 99.95), ("c1", 100.5), "a", (0, 0, 1)),
        # A killed broker excuses what it had not saved, once it is back.
        (("c3", 199.0), ("c3", 210.2), "b", (0, 1, 0)),
        (("c3", 201.0), ("c4", 210.2), "b", (0, 1, 0)),  # from the cache, while it was down
        (("c3", 195.0 - GRACE), ("c4", 230.0), "b", (0, 1, 0)),
        (("c3", 194.8 - GRACE), ("c4", 230.0), "b", (0, 0, 1)),  # that was saved
        (("c3", 199.0), ("c4", 209.9), "b", (0, 0, 1)),  # it was not back yet
        (("c3", 210.1), ("c4", 210.2), "b", (0, 0, 1)),  # it had forgotten nothing since
        (("c3", 199.0), ("c4", 210.2), "a", (0, 0, 1)),  # another broker was killed
    ],
)
def test_a_crash_excuses_no_more_than_it_must(
    first: tuple[str, float],
    second: tuple[str, float],
    broker: str,
    expected: tuple[int, int, int],
) -> None:
    assert counts(repeats_of(got(1, first, second, broker=broker), CRASHES, 0.1)) == expected


def test_a_crash_does_not_excuse_what_was_committed() -> None:
    [begun, again] = ("c1", 99.95), ("c2", 100.5)
    given = [*got(0, begun, again), *got(1, begun, again), *got(2, begun, again)]
    found = repeats_of(given, CRASHES, 0.1)
    assert counts(found) == (2, 0, 1)
    assert [repeat.earlier.offset for repeat in found.by_handover] == [0]


def test_each_repeat_of_a_message_has_its_own_cause() -> None:
    given = got(1, ("c2", 210.5), ("c1", 99.99), ("c2", 199.0), ("c2", 220.0), broker="b")
    found = repeats_of([*given, *got(2, ("c1", 99.99))], CRASHES, 0.1)
    assert (counts(found), found.total) == ((1, 1, 1), 3)


def test_a_message_waits_from_its_storing_to_its_first_delivery() -> None:
    given = [
        *got(1, ("c2", 13.0), ("c1", 10.5)),
        *got(2, ("c1", 9.999)),  # clocks of broker and member differ by a millisecond
        *got(3, ("c1", 215.0), broker="b"),  # it waited for the broker
        *got(4, ("c1", 215.0), broker="a"),
    ]
    assert waits(given, CRASHES) == [0.5, 0.0, 205.0]
    assert waits(given, CRASHES, since=10.001) == []


def proof_of(
    sent: list[int], sticky: list[DemoDelivery], ingested: set[int] | None = None
) -> Proof:
    average = [one for number in sent for one in got(number, ("c2", 11.0), ("c3", 12.0))]
    return prove(sent, {"AVG": average, "STICKY": sticky}, CRASHES, ingested)


def test_what_was_not_consumed_is_named_and_nothing_is_proved() -> None:
    proof = proof_of([1, 2, 3], [*got(1, ("c2", 11.0)), *got(3, ("c2", 11.0))], {1, 2})
    assert (proof.acknowledged, proof.ingested, proof.not_ingested) == (3, 2, [3])
    assert [(one.consumed, one.lost) for one in proof.groups] == [(3, []), (2, [2])]
    assert not proof.holds
    assert "LOST: 1 were not consumed with STICKY, such as [2]" in proof.lines()
    assert "NOT INGESTED: 1, such as [3]" in proof.lines()
    assert not any("every message" in line for line in proof.lines())


def test_nothing_sent_proves_nothing() -> None:
    proof = proof_of([], [])
    assert not proof.holds
    assert proof.lines()[-1] == "NOT PROVED: no message was sent"


def test_all_consumed_and_ingested_is_proved_although_avg_repeats() -> None:
    proof = proof_of([1, 2], [*got(1, ("c2", 11.0)), *got(2, ("c2", 11.0))], {1, 2, 3})
    assert proof.holds
    assert proof.lines()[-2:] == [
        "proved: every message sent was consumed",
        "proved: STICKY delivered no message twice",
    ]
    [line] = [line for line in proof.lines() if "AVG" in line]
    assert line == "2 of them were consumed with AVG; 2 deliveries were repeats"


def test_what_crashes_explain_is_named_in_the_proof() -> None:
    killed = got(1, ("c1@pm1", 99.95), ("c2@pm1", 100.1))
    forgotten = got(2, ("c2@pm1", 199.0), ("c2@pm1", 211.0), broker="b")
    proof = proof_of([1, 2], [*killed, *forgotten])
    assert proof.holds
    assert proof.lines()[-1] == (
        "proved: STICKY delivered no message twice except 1 in flight when a member was killed and "
        "1 whose offsets a killed broker had not saved"
    )


def test_a_message_twice_with_sticky_that_nothing_explains_fails_the_proof() -> None:
    proof = proof_of([1], got(1, ("c2", 11.0), ("c3", 11.25)))
    assert (proof.nothing_lost, proof.nothing_twice, proof.holds) == (True, False, False)
    told = "TWICE: 1 with STICKY without a crash, such as a:0 offset 1 to c2, 0.25 s later to c3"
    assert told in proof.lines()
    assert not any("no message twice" in line for line in proof.lines())


def test_what_a_killed_member_had_finished_counts_as_lost_to_it_by_its_commits() -> None:
    """AVG commits every second, STICKY every tenth of it."""
    late = [*got(1, ("c1", 99.5 - GRACE), ("c2", 100.2))]
    proof = prove([1], {"AVG": late, "STICKY": late}, CRASHES, None)
    assert [counts(one.repeats) for one in proof.groups] == [(1, 0, 0), (0, 0, 1)]


def test_a_message_that_a_producer_stored_twice_is_no_repeat() -> None:
    twice = [*got(1, ("c2", 11.0)), *got(1, ("c3", 12.0), offset=77)]
    proof = prove([1], {"STICKY": twice}, CRASHES, None)
    assert (proof.stored_twice, proof.groups[0].repeats.total, proof.holds) == (1, 0, True)
    assert "1 of them were stored twice, by a producer's retry" in proof.lines()


def examined() -> GroupHealth:
    """Return a group that moved two queues where one had to, with two owners from 19 to 20."""
    offsets = [
        OffsetSample(time=time, group="shop", topic="orders", broker="b", queue=0, highest=lag)
        for time, lag in ((10.0, 90), (19.0, 30), (20.0, 10), (21.0, 0))
    ]
    [health] = examine(Observations(list(JOIN), offsets)).groups
    assert len(health.handovers) == 2
    [*_, last] = health.rebalances
    return replace(
        health,
        handovers=[replace(move, at=19.5, pause=0.025) for move in health.handovers],
        rebalances=[replace(last, since=19.0, minimum=1)],
        queues=[replace(health.queues[0], shared=[(19.0, 20.0)])],
    )


def test_the_groups_are_compared_line_by_line() -> None:
    health = examined()
    repeats = repeats_of(
        [*got(1, ("c2", 11.0), ("c3", 12.0)), *got(2, ("c1", 99.95), ("c2", 100.2))], CRASHES, 0.1
    )
    nothing = Repeats([], [], [])
    results = [
        GroupResult("AVG", health, repeats, [0.25, 0.5, 1.5], since=18.0),
        GroupResult("<b>", health, nothing, [], since=19.25),
        GroupResult("late", replace(health, lag=None), nothing, [], since=20.5),
    ]
    rows = {name.strip(): cells for name, *cells in compared(results)}
    assert rows == {
        "queues moved": ["2", "2", "0"],
        "more than the minimum": ["1", "2", "0"],
        "moved queue without owner, p50": ["25 ms", "25 ms", "–"],
        "moved queue without owner, longest": ["25 ms", "25 ms", "–"],
        "time with two owners": ["1,000 ms", "750 ms", "0 ms"],
        "wait of a message for its handler, p50": ["500 ms", "–", "–"],
        "wait of a message for its handler, longest": ["1,500 ms", "–", "–"],
        "messages twice": ["2", "0", "0"],
        "when queues moved": ["1", "0", "0"],
        "not committed by a killed member": ["1", "0", "0"],
        "not saved by a killed broker": ["0", "0", "0"],
        "lag (messages not committed), median": ["10", "5", "–"],
        "lag, largest": ["30", "10", "–"],
        "lag, at the end": ["0", "0", "–"],
    }
    html = comparison_html(results)
    assert "<b>" not in html
    assert '<td style="padding-left:1.4em">more than the minimum</td><td class="n">1</td>' in html
    assert '<td>wait of a message for its handler, longest</td><td class="n">1,500 ms</td>' in html
    whole = page(examine(Observations(list(JOIN))), first_section=html)
    assert whole.index("Side by side") < whole.index("<h2>shop")


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ([{"a:0": "running"}, {"a:1": "running"}], True),
        ([{"a:0": "running", "a:1": "running"}], True),
        ([{"a:0": "running"}], False),  # one has no owner
        ([{"a:0": "running", "a:1": "running"}, {}], False),  # one member has none
        ([{"a:0": "running"}, {"a:0": "running", "a:1": "running"}], False),  # two owners
        ([{"a:0": "running"}, {"a:1": "behind barrier"}], False),
        ([{"a:0": "running", "a:1": "draining"}, {"a:1": "running"}], False),
        ([{"a:0": "running"}, {"a:1": "fenced"}], False),
        # A broker is away: its queues are dropped (AVG), or kept and fenced (STICKY).
        ([{"a:0": "running", "b:0": "fenced"}, {"a:1": "running", "b:1": "fenced"}], True),
        ([{"a:0": "running", "b:0": "running"}, {"a:1": "running", "b:1": "fenced"}], False),
        ([{"a:0": "running"}, {"a:1": "running", "b:1": "fenced", "b:0": "fenced"}], False),
    ],
)
def test_a_group_has_settled_when_every_queue_runs_at_one_owner(
    members: list[dict[str, str]], expected: bool
) -> None:
    assert settled(members, {"a:0", "a:1"}) is expected


@pytest.mark.parametrize(
    ("first", "second", "up", "drawn"),
    [
        ("running", None, True, " c1 "),
        (None, "running", True, " c2 "),
        ("running", "running", True, "c1+2"),
        (None, "wanted", True, " .. "),
        ("draining", "behind barrier", True, " c2~"),
        ("draining", "running", True, " c2~"),
        ("fenced", None, True, " c1!"),
        ("fenced", None, False, " --!"),
        (None, None, False, " -- "),
    ],
)
def test_a_queue_is_drawn_with_its_owner_and_what_is_unusual(
    first: str | None, second: str | None, up: bool, drawn: str
) -> None:
    stages = [{"a:0": stage} if stage else {} for stage in (first, second)]
    assert queue_cell("a:0", list(zip(["c1", "c2"], stages, strict=True)), up=up).plain == drawn
