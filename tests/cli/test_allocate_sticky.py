"""`pocketmq allocate` with STICKY and the owners up to now: a real process, exact output."""

import json
from pathlib import Path

import pytest

from .test_allocate import pocketmq

OWNERS = """\
topic,brokerName,queueId,owner
t,a,0,c1
t,a,1,c1
t,a,2,c1
u,a,0,c2
u,a,1,
"""


@pytest.fixture
def owners(tmp_path: Path) -> Path:
    path = tmp_path / "owners.csv"
    path.write_text(OWNERS)
    return path


def test_owners_are_kept_where_balance_allows_and_moves_are_shown(owners: Path) -> None:
    given = ("--previous", str(owners), "--members", "c1,c2", "--strategy", "AVG,STICKY")
    done = pocketmq("allocate", *given, "--join", "c3")
    assert (done.returncode, done.stderr) == (0, "")
    _, sticky = done.stdout.split("STICKY\n", 1)
    assert (
        sticky
        == """\
since the owners before: 2 queues moved, minimum 2
member  total  queues
c1          3  t: a 0-1
               u: a 1
c2          2  t: a 2
               u: a 0
t: spread 1 (most 2, fewest 1)
u: spread 0 (most 1, fewest 1)
all topics together: spread 1

from      to  count  queues
c1        c2      1  t: a 2
no owner  c1      1  u: a 1

c3 joins: 1 queue moved, minimum 1
member  total  queues
c1          2  t: a 0
               u: a 1
c2          2  t: a 2
               u: a 0
c3          1  t: a 1
t: spread 0 (most 1, fewest 1)
u: spread 1 (most 1, fewest 0)
all topics together: spread 1

from  to  count  queues
c1    c3      1  t: a 1

compared, after all events
strategy  spread  in a topic  unowned  idle  moved  minimum
AVG            1           1        0     0      5        3
STICKY         1           1        0     0      3        3
"""
    )


def test_topics_and_members_come_from_the_file_if_they_are_not_given(owners: Path) -> None:
    done = pocketmq("allocate", "--previous", str(owners), "--strategy", "STICKY", "--json")
    report = json.loads(done.stdout)
    assert report["topics"] == {"t": 3, "u": 2}
    assert report["members"] == ["c1", "c2"]
    [answer] = report["strategies"]
    assert answer["start"]["moved"] == answer["start"]["minimum"] == 2
    assert answer["overall"]["moved"] == 0


def test_without_owners_nothing_is_said_about_them() -> None:
    done = pocketmq("allocate", "--topic", "t:a*2", "--members", "1", "--json")
    assert all("start" not in answer for answer in json.loads(done.stdout)["strategies"])


def test_csv_json_rows_and_printed_ownerships_are_the_same(owners: Path) -> None:
    rows = [
        {"topic": topic, "brokerName": broker, "queueId": int(number), "owner": owner or None}
        for topic, broker, number, owner in (line.split(",") for line in OWNERS.split()[1:])
    ]
    asked = ("allocate", "--strategy", "STICKY", "--members", "c1,c2,c3", "--json", "--previous")
    from_csv = pocketmq(*asked, str(owners))
    from_rows = pocketmq(*asked, "-", stdin=json.dumps(rows).encode())
    assert from_rows.stdout == from_csv.stdout != ""
    printed = json.loads(from_csv.stdout)["strategies"][0]["before"]
    again = pocketmq(*asked, "-", stdin=json.dumps(printed).encode())
    assert json.loads(again.stdout)["strategies"][0]["start"]["moved"] == 0
    assert json.loads(again.stdout)["strategies"][0]["before"] == printed


def test_foreign_members_keep_the_share_of_their_strategy() -> None:
    group = ("--topic", "t:a*4", "--members", "c1,j1", "--foreign", "j1,j2", "--join", "j2")
    for mixed, shares in (("AVG", ["a 0-1", "a 2", "a 3"]), ("AVG_BY_CIRCLE", ["a 0,3", "a 1"])):
        done = pocketmq("allocate", *group, "--strategy", "STICKY", "--mixed", mixed)
        after = done.stdout.split("j2 joins: ")[1].splitlines()
        for line, share in zip(after[2:], shares, strict=False):
            assert line.endswith(share)


def test_too_large_for_sticky_is_said_and_the_others_are_compared() -> None:
    large = ("allocate", "--topic", "t:b*20000", "--members", "5001")
    done = pocketmq(*large)
    reason = "STICKY: 20000 queues times 5001 members are too many: at most 100000000"
    assert done.stderr == f"pocketmq: not compared: {reason}\n"
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1].startswith("CONSISTENT_HASH")
    for option in ("--strategy", "--switch-to"):
        asked = pocketmq(*large, option, "sticky")
        assert (asked.stderr, asked.returncode) == (f"pocketmq: {reason}\n", 2)
    assert pocketmq(*large, "--strategy", "AVG").stderr == ""


NOT_JAVA = (
    "`mixed` must be one of Java's strategies, because it is what foreign members use; STICKY is "
    "not"
)
NO_COLUMN = "it is neither JSON nor CSV with the columns topic, brokerName, queueId, owner"
NEARBY = "MACHINE_ROOM_NEARBY"
GROUP = "allocate --topic t:a*2 --members c1,c2"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (f"{GROUP} --strategy AVG --foreign c1", "--foreign applies to STICKY only"),
        (f"{GROUP} --strategy AVG --mixed AVG", "--mixed applies to STICKY only"),
        (
            f"{GROUP} --mixed AVG",
            "--mixed is the strategy of foreign members; name them: --foreign",
        ),
        (f"{GROUP} --foreign c3", "--foreign: c3 neither is a member nor joins"),
        (
            f"{GROUP} --foreign c1 --mixed STICKY",
            f"cannot allocate queues: {NOT_JAVA}",
        ),
        (
            f"{GROUP} --foreign c1 --mixed CONFIG",
            "CONFIG uses the configured queues of each member: nothing to show",
        ),
        (
            f"{GROUP} --foreign c1 --mixed MACHINE_ROOM",
            "MACHINE_ROOM needs --rooms, the rooms whose queues are allocated",
        ),
        (
            f"{GROUP} --strategy MACHINE_ROOM_NEARBY-STICKY",
            f"unknown allocation strategy '{NEARBY}-STICKY'; did you mean {NEARBY}-AVG?",
        ),
        (
            "allocate --vectors x --previous y",
            "--vectors are of Java's strategies: they have no --previous, --foreign or --mixed",
        ),
        ("allocate --previous no-such-file", "cannot read no-such-file: No such file or directory"),
    ],
)
def test_what_has_no_meaning_is_refused(arguments: str, message: str) -> None:
    done = pocketmq(*arguments.split(" "))
    assert (done.stdout, done.stderr, done.returncode) == ("", f"pocketmq: {message}\n", 2)


HEADER = "topic,brokerName,queueId,owner\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", f"{NO_COLUMN}: topic is missing"),
        ("topic,brokerName,queueId\n", f"{NO_COLUMN}: owner is missing"),
        (HEADER, "it contains no queues"),
        ("[]", "it contains no queues"),
        (HEADER + "t,a,0,c1\nt,a,0,c2\n", "queue 0 of t on a is listed twice"),
        (HEADER + "t,a,x,c1\n", "line 2: Expected `int`, got `str` - at `$.queueId`"),
        (HEADER + "t,a,-1,c1\n", "line 2: Expected `int` >= 0 - at `$.queueId`"),
        (HEADER + "t,a\n", "line 2: Expected `int`, got `null` - at `$.queueId`"),
        (HEADER + "t,,0,c1\n", "a queue of t names no broker"),
        (HEADER + "t!,a,0,c1\n", "invalid topic name 't!': allowed are letters, digits and % | _ -"),
        (HEADER + "t,a,0,\x1b[31m\n", "'\\x1b[31m' contains unprintable characters"),
        (HEADER + "t,a,0," + "x" * 200_000, "after line 1: field larger than field limit (131072)"),
        ("[{}]", "Object missing required field `topic` - at `$[0]`"),
        ("{", "Input data was truncated"),
        ('{"shares":[{"member":"c1","queues":[{"topic":"t"}]}]}',
         "Object missing required field `brokerName` - at `$.shares[0].queues[0]`"),
        ("[" * 100_000, "Expected `object`, got `array` - at `$[0]`"),
        ("\xff", f"{NO_COLUMN}: topic is missing"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_list_of_owners_is_refused(text: str, message: str) -> None:
    done = pocketmq("allocate", "--previous", "-", stdin=text.encode())
    assert done.stderr == f"pocketmq: --previous -: {message}\n"
    assert (done.stdout, done.returncode) == ("", 2)


def test_bytes_that_are_no_text_are_refused() -> None:
    done = pocketmq("allocate", "--previous", "-", stdin=b"\xff\xfe\xff")
    assert (done.stdout, done.stderr.count("\n"), done.returncode) == ("", 1, 2)
    assert "can't decode" in done.stderr


def test_owners_of_other_queues_than_those_given_are_refused(owners: Path) -> None:
    given = ("allocate", "--previous", str(owners), "--members", "2")
    done = pocketmq(*given, "--topic", "t:a*3", "--topic", "u:a*1")
    assert done.stderr == "pocketmq: --previous: queue 1 of u on a is not one of --topic\n"
    more = pocketmq(*given, "--topic", "t:a*4", "--topic", "u:a*2", "--strategy", "STICKY")
    assert (more.stderr, more.returncode) == ("", 0)
    assert more.stdout.startswith("STICKY\nsince the owners before: ")


def test_a_file_without_owners_names_no_members() -> None:
    done = pocketmq("allocate", "--previous", "-", stdin=(HEADER + "t,a,0,\n").encode())
    assert done.stderr.startswith("pocketmq: no members; give --members")
    assert done.returncode == 2
