"""`pocketmq pipeline` as a user meets it: real processes, files in, tables and files out."""

import json
import os
import pty
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from pocketmq import MessageQueue, RebalanceEvent
from pocketmq.cli.pipeline.streams import pace
from tests.cli.in_process import command

pytest.importorskip("numpy")
pytest.importorskip("pyspark")

ESTATE = {
    "topics": {"orders": {"broker-a": 8, "broker-b": 8}, "bills": {"broker-a": 4}},
    "groups": {
        "billing": {"topics": ["orders", "bills"], "members": 3},
        "audit": {"topics": ["orders"], "members": ["x", "y"]},
    },
}


def pocketmq(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pocketmq", *arguments],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.parametrize(
    ("rows", "seconds", "behind", "text"),
    [
        (0, 0.0, None, "0/s"),
        (0, 3.0, 50, "0/s, 50 behind"),
        (2000, 2.0, 0, "1,000/s, 0 behind"),
        (2000, 2.0, 90_000, "1,000/s, 90,000 behind, about 90 s left"),
    ],
)
def test_progress_names_rate_lag_and_time_left(
    rows: int, seconds: float, behind: int | None, text: str
) -> None:
    assert pace(rows, seconds, behind) == text


@pytest.fixture
def estate(tmp_path: Path) -> str:
    path = tmp_path / "estate.json"
    path.write_text(json.dumps(ESTATE))
    return str(path)


def event(member: str, at: float, before: int, after: int, *members: str) -> RebalanceEvent:
    """Let a member hold the first so many of four queues."""
    queues = tuple(MessageQueue("orders", "a", number) for number in range(4))
    return RebalanceEvent(
        group="shop", client_id=member, topic="orders", strategy="AVG", trigger="timer",
        started=at, members=members, queues=queues, before=queues[:before], after=queues[:after],
        revoked=queues[after:before], assigned={f"a:{n}": 0 for n in range(before, after)},
    )  # fmt: skip


@pytest.fixture
def events(tmp_path: Path) -> str:
    path = tmp_path / "events.jsonl"
    told = [event("m1", 10.0, 0, 4, "m1"), event("m1", 30.0, 4, 2, "m1", "m2")]
    path.write_bytes(b"\n".join(one.to_json() for one in told) + b"\nnonsense\n")
    return str(path)


def test_fleet_compares_strategies_over_all_groups(estate: str, tmp_path: Path) -> None:
    arguments = ("--join", "zz", "--broker-down", "broker-b", "--strategy", "AVG,AVG_BY_CIRCLE")
    done = pocketmq("pipeline", "fleet", estate, *arguments, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert (report["groups"], report["members"], report["pairs"]) == (2, 5, 3)
    steps = report["strategies"][0]["steps"]
    assert [step["event"] for step in steps] == ["start", "zz joins", "broker-b goes down"]
    assert [step["queues"] for step in steps] == [36, 36, 20]
    table = pocketmq("pipeline", "fleet", estate, *arguments)
    assert (table.returncode, table.stderr) == (0, "")
    assert re.search(r"^zz joins +AVG +36 ", table.stdout, re.MULTILINE)
    assert re.search(r"2 groups computed in [0-9.]+ s\n\Z", table.stdout)


def test_fleet_computes_sticky_from_event_to_event(estate: str) -> None:
    arguments = ("--join", "zz", "--leave", "1", "--strategy", "AVG,STICKY")
    done = pocketmq("pipeline", "fleet", estate, *arguments, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    average, sticky = json.loads(done.stdout)["strategies"]
    assert [step["strategy"] for step in sticky["steps"]] == ["STICKY"] * 3
    moved = [(step["moved"], step["minimum"]) for step in sticky["steps"][1:]]
    assert all(count == fewest > 0 for count, fewest in moved)
    assert sum(count for count, _ in moved) < sum(step["moved"] for step in average["steps"])
    table = pocketmq("pipeline", "fleet", estate, *arguments)
    assert re.search(r"^zz joins +STICKY +36 ", table.stdout, re.MULTILINE)


def test_health_reports_as_table_json_and_page(events: str, tmp_path: Path) -> None:
    page = tmp_path / "deep" / "report.html"
    done = pocketmq("pipeline", "health", "--events", events, "--html", str(page))
    assert (done.returncode, done.stderr) == (0, "")
    assert "group shop, AVG" in done.stdout
    assert "events.jsonl line 3" in done.stdout
    assert done.stdout.endswith(f"page     {page}\n")
    assert page.read_text().startswith("<!doctype html>")
    told = json.loads(pocketmq("pipeline", "health", "--events", events, "--json").stdout)
    assert told["groups"][0]["rebalances"][1]["after"]["unowned"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fleet",), "give exactly one of: a groups file or directory, --uniform, -n"),
        (("fleet", "--uniform", "0,1,1"), "--uniform '0,1,1' must look like 1000,64,16"),
        (("fleet", "--uniform", "9x99999999x99999"), "at most 100,000,000"),
        (("fleet", "/no/such/file"), "cannot read /no/such/file"),
        (("fleet", "--uniform", "1,2,3", "--strategy", "AVGG"), "did you mean AVG"),
        (("fleet", "--uniform", "1,2,3", "--strategy", "CONFIG"), "nothing to compare"),
        (
            ("fleet", "--uniform", "1,2,3", "--broker-down", "z"),
            "no topic has queues on broker z",
        ),
        (("fleet", "--uniform", "1,2,3", "--add-queues", "x"), "must look like 4 or"),
        (("fleet", "--uniform", "1,2,3", "--add-broker", "x"), "must look like broker-c*8"),
        (("fleet", "--uniform", "1,2,3", "--join", "a,b"), "takes one value"),
        (("fleet", "--uniform", "1,2,3", "--strategy", "MACHINE_ROOM"), "needs `rooms`"),
        (("fleet", "--uniform", "1,2,3", "--strategy", "MACHINE_ROOM_NEARBY"), "room of broker"),
        (("health",), "give either --events, or --events-topic with -n"),
        (("health", "--events", "/no/such/file"), "cannot read /no/such/file"),
        (("ingest", "--to", "x"), "no topic; give at least one with -t"),
        (("ingest", "--to", "/no/such/place", "--compact"), "is not the directory of an ingestion"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(arguments: tuple[str, ...], message: str) -> None:
    done = command("pipeline", *arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    assert message.encode() in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_help_lists_the_pipelines_and_names_their_options() -> None:
    done = pocketmq("pipeline", "--help")
    assert done.returncode == 0
    assert all(name in done.stdout for name in ("fleet", "health", "ingest"))
    assert "--watch" in pocketmq("pipeline", "health", "--help").stdout


def test_progress_is_shown_on_a_terminal(estate: str) -> None:
    """And only there: the tests above find nothing on stderr."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "pocketmq", "pipeline", "fleet", estate],
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    shown = ""
    with suppress(OSError):  # the terminal is gone: the command has ended
        while piece := os.read(ours, 65536):
            shown += piece.decode()
    os.close(ours)
    assert process.wait(100) == 0
    assert "2 of 2 groups" in shown
    assert shown.endswith("\x1b[2K"), "the line is erased"
