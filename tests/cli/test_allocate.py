"""`pocketmq allocate` as a user meets it: exact output, exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pocketmq import native
from pocketmq.net.loops import loop_description
from tests.cli.in_process import command

VECTORS = Path(__file__).parent.parent / "vectors"
TOPIC = ("--topic", "orders:broker-a*8,broker-b*8")


def pocketmq(
    *arguments: str, stdin: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run it, in a process of its own if that is to have another environment."""
    if environment:
        done = subprocess.run(
            [sys.executable, "-m", "pocketmq", *arguments],
            input=stdin,
            capture_output=True,
            env={**os.environ, "PYTHONUTF8": "1", **environment},
            check=False,
        )
    else:
        done = command(*arguments, stdin=stdin)
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
    )


def test_without_events_strategies_are_shown_and_compared() -> None:
    done = pocketmq("allocate", *TOPIC, "--members", "3")
    assert (
        done.stdout
        == """\
AVG
member  total  queues
c1          6  broker-a 0-5
c2          5  broker-a 6-7  broker-b 0-2
c3          5  broker-b 3-7
spread 1 (most 6, fewest 5)

AVG_BY_CIRCLE
member  total  queues
c1          6  broker-a 0,3,6  broker-b 1,4,7
c2          5  broker-a 1,4,7  broker-b 2,5
c3          5  broker-a 2,5  broker-b 0,3,6
spread 1 (most 6, fewest 5)

CONSISTENT_HASH
member  total  queues
c1          3  broker-a 1,3,7
c2         10  broker-a 0,2,4-6  broker-b 1,3-5,7
c3          3  broker-b 0,2,6
spread 7 (most 10, fewest 3)

STICKY
member  total  queues
c1          5  broker-a 0,4-5  broker-b 0,5
c2          5  broker-a 2-3,7  broker-b 2,7
c3          6  broker-a 1,6  broker-b 1,3-4,6
spread 1 (most 6, fewest 5)

compared
strategy         spread  unowned  idle
AVG                   1        0     0
AVG_BY_CIRCLE         1        0     0
CONSISTENT_HASH       7        0     0
STICKY                1        0     0
"""
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_events_happen_in_the_order_they_are_given() -> None:
    arguments = ("--topic", "pay:broker-a*1", "--members", "2", "--strategy", "AVG")
    events = ("--join", "c0", "--broker-down", "broker-b", "--leave", "c1", "--join", "c3")
    done = pocketmq("allocate", *TOPIC, *arguments, *events)
    assert (
        done.stdout
        == """\
AVG
member  total  queues
c1          9  orders: broker-a 0-7
               pay: broker-a 0
c2          8  orders: broker-b 0-7
orders: spread 0 (most 8, fewest 8)
pay: spread 1 (most 1, fewest 0)
all topics together: spread 1

c0 joins: 10 queues moved, minimum 5
member  total  queues
c0          7  orders: broker-a 0-5
               pay: broker-a 0
c1          5  orders: broker-a 6-7  broker-b 0-2
c2          5  orders: broker-b 3-7
orders: spread 1 (most 6, fewest 5)
pay: spread 1 (most 1, fewest 0)
all topics together: spread 2

from  to  count  queues
c1    c0      7  orders: broker-a 0-5
                 pay: broker-a 0
c2    c1      3  orders: broker-b 0-2

broker-b goes down: 5 queues moved, minimum 3, 8 gone
member  total  queues
c0          4  orders: broker-a 0-2
               pay: broker-a 0
c1          3  orders: broker-a 3-5
c2          2  orders: broker-a 6-7
orders: spread 1 (most 3, fewest 2)
pay: spread 1 (most 1, fewest 0)
all topics together: spread 2

from  to    count  queues
c0    c1        3  orders: broker-a 3-5
c1    c2        2  orders: broker-a 6-7
c1    gone      3  orders: broker-b 0-2
c2    gone      5  orders: broker-b 3-7

c1 leaves: 3 queues moved, minimum 3
member  total  queues
c0          5  orders: broker-a 0-3
               pay: broker-a 0
c2          4  orders: broker-a 4-7
orders: spread 0 (most 4, fewest 4)
pay: spread 1 (most 1, fewest 0)
all topics together: spread 1

from  to  count  queues
c1    c0      1  orders: broker-a 3
c1    c2      2  orders: broker-a 4-5

c3 joins: 3 queues moved, minimum 2
member  total  queues
c0          4  orders: broker-a 0-2
               pay: broker-a 0
c2          3  orders: broker-a 3-5
c3          2  orders: broker-a 6-7
orders: spread 1 (most 3, fewest 2)
pay: spread 1 (most 1, fewest 0)
all topics together: spread 2

from  to  count  queues
c0    c2      1  orders: broker-a 3
c2    c3      2  orders: broker-a 6-7
"""
    )
    assert done.returncode == 0


def test_a_comparison_after_events_counts_what_moved() -> None:
    done = pocketmq("allocate", *TOPIC, "--members", "4", "--join", "c0", "--virtual-nodes", "100")
    assert done.stdout.endswith("""\
compared, after all events
strategy         spread  unowned  idle  moved  minimum
AVG                   1        0     0     10        3
AVG_BY_CIRCLE         1        0     0     16        3
CONSISTENT_HASH       4        0     0      2        2
STICKY                1        0     0      3        3
""")


def test_numbered_members_sort_as_they_count() -> None:
    done = pocketmq("allocate", "--topic", "t:b*10", "--members", "10", "--json")
    assert json.loads(done.stdout)["members"] == [
        *("c01", "c02", "c03", "c04", "c05", "c06", "c07", "c08", "c09", "c10")
    ]


def test_added_queues_and_brokers_and_a_new_strategy_are_events_too() -> None:
    events = ("--add-queues", "t:b*1", "--add-broker", "d*1", "--switch-to", "avg_by_circle")
    done = pocketmq("allocate", "--topic", "t:b*2", "--members", "2", "--strategy", "avg", *events)
    headlines = [line for line in done.stdout.splitlines() if " moved, " in line]
    assert headlines == [
        "t:b*1 is added: 1 queue moved, minimum 0, 1 new",
        "d is added: 0 queues moved, minimum 0, 1 new",
        "AVG_BY_CIRCLE is the new strategy: 2 queues moved, minimum 0",
    ]


def test_unowned_queues_are_named() -> None:
    topic = ("--topic", "t:r1@a*2,b*2")
    rooms = ("--strategy", "MACHINE_ROOM", "--rooms", "r1")
    done = pocketmq("allocate", *topic, "--members", "1", *rooms, "--leave", "c1")
    assert (
        done.stdout
        == """\
MACHINE_ROOM
member  total  queues
c1          2  r1@a 0-1
spread 0 (most 2, fewest 2)
2 queues without an owner: b 0-1

c1 leaves: 2 queues moved, minimum 2
no member is left to consume 4 queues

from  to        count  queues
c1    no owner      2  r1@a 0-1
"""
    )


def test_rooms_come_from_names_or_from_options() -> None:
    topic = ("--topic", "t:r1@a*4,b*2")
    rooms = ("--room", "r2=b,c2", "--strategy", "MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE")
    done = pocketmq("allocate", *topic, "--members", "r1@c0,r1@c1,c2", *rooms)
    assert (
        done.stdout
        == """\
MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE
member  total  queues
c2          2  b 0-1
r1@c0       2  r1@a 0,2
r1@c1       2  r1@a 1,3
spread 0 (most 2, fewest 2)
"""
    )


def test_json_has_the_documented_shape() -> None:
    arguments = ("--topic", "t:a*2", "--members", "1", "--strategy", "AVG", "--join", "c0")
    done = pocketmq("allocate", *arguments, "--json")
    first, second = ({"topic": "t", "brokerName": "a", "queueId": number} for number in (0, 1))
    balance = {"topic": "t", "queues": 2, "unowned": 0, "most": 2, "fewest": 2, "spread": 0}
    movement = {
        "moved": 1,
        "minimum": 1,
        "moves": [{"queue": first, "from": "c1", "to": "c0"}],
        "added": [],
        "removed": [],
    }
    assert json.loads(done.stdout) == {
        "topics": {"t": 2},
        "members": ["c1"],
        "strategies": [
            {
                "strategy": "AVG",
                "before": {
                    "shares": [{"member": "c1", "total": 2, "queues": [first, second]}],
                    "unowned": [],
                    "topics": [balance],
                    "spread": 0,
                },
                "steps": [
                    {
                        "event": "member_joined",
                        "subject": "c0",
                        "strategy": "AVG",
                        "after": {
                            "shares": [
                                {"member": "c0", "total": 1, "queues": [first]},
                                {"member": "c1", "total": 1, "queues": [second]},
                            ],
                            "unowned": [],
                            "topics": [{**balance, "most": 1, "fewest": 1}],
                            "spread": 0,
                        },
                        "movement": movement,
                    }
                ],
                "overall": movement,
            }
        ],
    }
    assert done.stdout.count("\n") == 1


def test_long_lists_are_cut_short() -> None:
    done = pocketmq("allocate", "--topic", "t:b*1000", "--members", "150", "--strategy", "AVG")
    lines = done.stdout.splitlines()
    assert len(lines) == 104
    assert lines[-2] == "and 50 more members; --json shows all"
    circle = ("--strategy", "AVG_BY_CIRCLE")
    done = pocketmq("allocate", "--topic", "t:b*100", "--members", "2", *circle)
    runs = ",".join(str(number) for number in range(0, 48, 2))
    assert done.stdout.splitlines()[2] == f"c1         50  b {runs}  and 26 more"


def test_queues_left_out_of_a_cell_are_counted_one_by_one() -> None:
    topic = ",".join(f"b{number:02}*3" for number in range(30))
    arguments = ("--topic", f"t:{topic}", "--members", "1", "--strategy", "AVG")
    line = pocketmq("allocate", *arguments).stdout.splitlines()[2]
    assert line.endswith("b22 0-2  b23 0-2  and 18 more")


def test_a_name_the_terminal_cannot_show_is_written_with_escapes() -> None:
    topic = ("--topic", "t:ä*1", "--members", "ü", "--strategy", "AVG")
    done = pocketmq("allocate", *topic, PYTHONIOENCODING="ascii")
    assert done.stdout.splitlines()[2].endswith("1  \\xe4 0")
    assert (done.returncode, done.stderr) == (0, "")


def test_names_that_look_like_markup_are_shown_as_they_are() -> None:
    done = pocketmq(
        *("allocate", "--topic", "t:[red]b[/red]*1", "--members", ":smile:", "--strategy", "AVG")
    )
    assert done.stdout.splitlines()[2] == ":smile:      1  [red]b[/red] 0"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("nope", "unknown command 'nope': see pocketmq --help"),
        ("alocate", "unknown command 'alocate': did you mean allocate?"),
        ("allocate", "no topic; give --topic, such as orders:broker-a*8,broker-b*8"),
        (
            "allocate --topic t:b*1",
            "no members; give --members with their number, or ids separated by commas",
        ),
        (
            "allocate --topic t --members 1",
            "--topic 't' must look like orders:broker-a*8,broker-b*8",
        ),
        (
            "allocate --topic t:b --members 1",
            "--topic 'b' must look like broker-a*8, with 1 queue or more",
        ),
        (
            "allocate --topic t:b*0 --members 1",
            "--topic 'b*0' must look like broker-a*8, with 1 queue or more",
        ),
        ("allocate --topic t:b*1,,c*1 --members 1", "--topic 'b*1,,c*1' contains an empty name"),
        ("allocate --topic t:b*1,b*2 --members 1", "--topic t names b twice"),
        ("allocate --topic t:b*1 --topic t:c*1 --members 1", "--topic t is given twice"),
        (
            "allocate --topic t!:b*1 --members 1",
            "invalid topic name 't!': allowed are letters, digits and % | _ -",
        ),
        (
            "allocate --topic t:b*999999999 --members 1",
            "999999999 queues are too many: at most 1000000 can be shown",
        ),
        (
            "allocate --topic t:b*1 --members 1 --add-queues t:b*1000000",
            "1000001 queues are too many: at most 1000000 can be shown",
        ),
        (
            "allocate --topic t:b*1 --members 0",
            "--members 0: a group needs at least one member",
        ),
        (
            "allocate --topic t:b*1 --members 99999999999999999999",
            "--members: at most 10000 members can be shown",
        ),
        (
            "allocate --topic t:b*1 --members 5000 --virtual-nodes 5000",
            "5000 members with 5000 virtual nodes each are too many",
        ),
        ("allocate --topic t:b*1 --members c1,c2,c1", "--members: c1 is given twice"),
        (
            "allocate --topic t:b*1 --members c1,\x1b[31m",
            "--members '\\x1b[31m' contains unprintable characters",
        ),
        (
            "allocate --topic t:b*1 --members 1 --strategy CONSISTENTHASH",
            "unknown allocation strategy 'CONSISTENTHASH'; did you mean CONSISTENT_HASH?",
        ),
        (
            "allocate --topic t:b*1 --members 1 --strategy CONFIG",
            "CONFIG uses the configured queues of each member: nothing to show",
        ),
        (
            "allocate --topic t:b*1 --members 1 --strategy MACHINE_ROOM",
            "MACHINE_ROOM needs --rooms, the rooms whose queues are allocated",
        ),
        (
            "allocate --topic t:b*1 --members 1 --strategy MACHINE_ROOM_NEARBY",
            "the room of b is unknown; add --room ROOM=b",
        ),
        (
            "allocate --topic t:b*1 --members 1 --room r=x",
            "--room r: x is neither a broker nor a member",
        ),
        ("allocate --topic t:b*1 --members 1 --join c1", "--join c1: it is a member already"),
        (
            "allocate --topic t:b*1 --members 1 --join c2,c3",
            "--join takes one value; repeat the option instead of using commas",
        ),
        (
            "allocate --topic t:b*1 --members 1 --leave c9",
            "cannot allocate queues: c9 is not a member of the group",
        ),
        (
            "allocate --topic t:b*1 --members 1 --broker-down z",
            "cannot allocate queues: broker z has no queues of these topics",
        ),
        (
            "allocate --topic t:b*1 --members 1 --add-queues t",
            "--add-queues 't' must look like orders:broker-a*4",
        ),
        (
            "allocate --topic t:b*1000000 --members 1" + " --leave c1 --join c1" * 5,
            "10 events are too many for this number of queues and members",
        ),
        ("allocate --vectors no-such-file", "cannot read no-such-file: No such file or directory"),
        (
            "allocate --vectors x --members 1",
            "--vectors cannot be combined with topics, members, strategies or events",
        ),
    ],
)
def test_a_mistake_is_one_line_on_stderr_and_exit_code_2(arguments: str, message: str) -> None:
    done = pocketmq(*arguments.split(" "))
    assert (done.stdout, done.stderr, done.returncode) == ("", f"pocketmq: {message}\n", 2)


@pytest.mark.parametrize("arguments", ["--nope", "allocate --nope", "allocate --members"])
def test_a_wrong_option_is_one_line_too(arguments: str) -> None:
    done = pocketmq(*arguments.split(" "))
    assert done.stderr.startswith("pocketmq: ")
    assert (done.stdout, done.stderr.count("\n"), done.returncode) == ("", 1, 2)


def test_vectors_of_java_are_equal() -> None:
    done = pocketmq("allocate", "--vectors", str(VECTORS / "java-allocation.jsonl"))
    assert (
        done.stdout
        == """\
AVG              1000 of 1000 equal
AVG_BY_CIRCLE    1000 of 1000 equal
CONSISTENT_HASH  1000 of 1000 equal
MACHINE_ROOM     1000 of 1000 equal
NEARBY           1000 of 1000 equal
"""
    )
    assert (done.returncode, done.stderr) == (0, "")
    more = pocketmq("allocate", "--vectors", str(VECTORS / "java-allocation-more.jsonl"))
    assert more.returncode == 0
    assert more.stdout.splitlines()[2] == "CONSISTENT_HASH                      558 of 558 equal"


QUESTION = '{"topic":"t","cid":"c1","cids":["c1","c2"],"mqs":[["b",0],["b",1],["b",2]]'


def test_the_first_difference_of_a_strategy_is_shown_and_exit_code_is_1() -> None:
    lines = (
        QUESTION
        + ',"AVG":[["b",0],["b",1]],"AVG_BY_CIRCLE":{"error":"X"}}\n\n'
        + QUESTION
        + ',"AVG":[["b",0]]}\n'
        + QUESTION
        + ',"AVG":[]}\n'
    )
    done = pocketmq("allocate", "--vectors", "-", stdin=lines.encode())
    assert (
        done.stdout
        == """\
AVG            1 of 3 equal
AVG_BY_CIRCLE  0 of 1 equal
first difference of AVG: line 3, member c1: expected b 0, computed b 0-1
first difference of AVG_BY_CIRCLE: line 1, member c1: expected an error, computed b 0,2
"""
    )
    assert (done.returncode, done.stderr) == (1, "")
    again = pocketmq("allocate", "--vectors", "-", "--json", stdin=lines.encode())
    assert json.loads(again.stdout)[0] == {
        "strategy": "AVG",
        "equal": 1,
        "total": 3,
        "first_difference": "line 3, member c1: expected b 0, computed b 0-1",
    }


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: Input data was truncated"),
        ("[" * 100_000, "line 2: Expected `object`, got `array`"),
        ('{"topic":"t"}', "line 2: Object missing required field `cid`"),
        (QUESTION + ',"AVG":7}', "line 2: Expected `object | array`, got `int`"),
        (
            QUESTION + ',"AVGG":[]}',
            "line 2: unknown allocation strategy 'AVGG'; did you mean AVG?",
        ),
        (
            QUESTION + ',"rooms":[],"MACHINE_ROOM":[]}',
            "line 2: cannot allocate queues: MACHINE_ROOM needs `rooms`: the machine rooms whose queues are allocated",
        ),
        (
            json.dumps(
                {"topic": "t", "cid": "1", "cids": ["1"] * 21, "mqs": [["b", 0]]}
                | {"virtualNodes": 10_000, "CONSISTENT_HASH": []}
            ),
            "line 2: 21 members with 10000 virtual nodes each are too many",
        ),
    ],
)
def test_a_malformed_line_is_named_by_its_number(line: str, message: str) -> None:
    text = f'{QUESTION},"AVG":[["b",0],["b",1]]}}\n{line}\n'
    done = pocketmq("allocate", "--vectors", "-", stdin=text.encode())
    assert (done.stdout, done.stderr, done.returncode) == ("", f"pocketmq: -: {message}\n", 2)


def test_help_and_version_need_no_subcommand_to_be_imported() -> None:
    """Other subcommands may be slow to import; asking for help must not pay for them."""
    code = (
        "import sys; from pocketmq.cli import SUBCOMMANDS, run; run(sys.argv[1:]); "
        "slow = {'rich', *(module for module, _ in SUBCOMMANDS.values())}; "
        "sys.exit(not slow.isdisjoint(sys.modules))"
    )
    for option in ("--help", "--version"):
        done = subprocess.run(
            [sys.executable, "-c", code, option], capture_output=True, check=False, text=True
        )
        assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"pocketmq 0.1.0, {native.description}, {loop_description()}\n"


def test_json_does_not_pay_for_tables() -> None:
    code = (
        "import sys; from pocketmq.cli import run; run(sys.argv[1:]); "
        "sys.exit('rich' in sys.modules)"
    )
    arguments = ("allocate", "--topic", "t:b*1", "--members", "1", "--json")
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_reader_that_has_seen_enough_hears_no_complaint() -> None:
    arguments = ("allocate", "--topic", "t:b*20000", "--members", "10", "--json")
    with subprocess.Popen(
        [sys.executable, "-m", "pocketmq", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(8) == b'{"topics'
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_a_file_without_lines_is_not_read_to_its_end() -> None:
    done = pocketmq("allocate", "--vectors", "/dev/zero")
    told = "pocketmq: /dev/zero: line 1 has more than 16777216 bytes\n"
    assert (done.stdout, done.stderr, done.returncode) == ("", told, 2)


def test_a_terminal_does_not_obey_names_from_a_file() -> None:
    line = '{"topic":"t","cid":"\\u001b[2J","cids":["\\u001b[2J"],"mqs":[["\\u009b1m",0]],"AVG":[]}'
    done = pocketmq("allocate", "--vectors", "-", stdin=line.encode())
    assert done.stdout.splitlines()[1] == (
        r"first difference of AVG: line 1, member \x1b[2J: expected -, computed \x9b1m 0"
    )


def test_a_mistake_is_not_repeated_at_any_length() -> None:
    done = pocketmq("allocate", "--topic", "t" * 50_000, "--members", "1")
    assert len(done.stderr) == len("pocketmq: ") + 1000 + 1
    assert done.stderr.endswith("...\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("demo", "--offline"),
        ("allocate", *TOPIC, "--members=2"),
        ("allocate", *TOPIC, "--members=2", "--json"),
    ],
)
def test_output_that_cannot_be_written_is_one_line_on_stderr(arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "pocketmq", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (done.stderr, done.returncode) == (b"pocketmq: No space left on device\n", 1)


@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [
        (("--version",), 0),
        (("allocate", *TOPIC, "--members=2"), 0),
        (("allocate", *TOPIC, "--members=2", "--json"), 0),
        (("allocate",), 2),
    ],
)
def test_closed_streams_are_no_reason_to_fail(arguments: tuple[str, ...], exit_code: int) -> None:
    command = [sys.executable, "-m", "pocketmq", *arguments]
    done = subprocess.run(["sh", "-c", '"$@" <&- >&- 2>&-', "sh", *command], check=False)
    assert done.returncode == exit_code
    told = subprocess.run(
        ["sh", "-c", '"$@" >&-', "sh", *command], stderr=subprocess.PIPE, check=False
    )
    assert (told.stderr == b"", told.returncode) == (exit_code == 0, exit_code)
