"""Where `pocketmq admin` prints other lines than mqadmin on the same state, why, and which."""

import json
import re
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from tests.interop.tools import Tools, comparable

_STACK = re.compile(r".+? (?:TID: \d+ STATE: \w+|\S+\(.*:\d+\))")
_HELP = re.compile(r"(usage:|-\w,--|org\.apache|format$).*")


class Difference(NamedTuple):
    """What ours has to print, line for line, made of what mqadmin prints."""

    reason: str
    expected: Callable[[list[str], Tools], list[str]]


def without_stacks(lines: list[str]) -> list[str]:
    """Return that the main thread was seen, and no other: they come, go and move on."""
    kept: set[str] = set()
    for line in filter(_STACK.fullmatch, lines):
        if line.startswith("MainThread "):
            kept.add(line if " TID: " in line else "MainThread FRAMES")
    return sorted([*(line for line in lines if not _STACK.fullmatch(line)), *kept])


def _bodies(lines: list[str], _: Tools) -> list[str]:
    return sorted(
        re.sub(
            r"Message Body Path: (.*)", lambda it: f"Message Body: {Path(it[1]).read_text()}", line
        )
        for line in lines
    )


def _no_numbers(lines: list[str], _: Tools) -> list[str]:
    return [re.sub(r" body=\[[-\d, ]*\],", "", line) for line in lines]


def _no_end(lines: list[str], tools: Tools) -> list[str]:
    end = re.compile(r"MessageQueue .* print msg finished\..*")
    return _no_numbers([line for line in lines if not end.fullmatch(line)], tools)


def _members(lines: list[str], tools: Tools) -> list[str]:
    client = tools.words["client"]
    written = max((tools.home / "tool").glob(f"*/{client}"), key=lambda path: int(path.parent.name))
    named = [line.replace("#ConsumerRunningInfoFile", "#ConsumerRunningInfo") for line in lines]
    told = [line.replace(f"MILLISECONDS/{client}", "below") for line in named]
    return sorted([*told, f"== {client}", *comparable(written.read_text())])


def _no_help(lines: list[str], _: Tools) -> list[str]:
    return [line for line in lines if not _HELP.fullmatch(line)]


def _the_end(lines: list[str], _: Tools) -> list[str]:
    return [line.replace("(long)[MILLISECONDS]", "(long)[-1]") for line in lines]


def _with_topics(lines: list[str], tools: Tools) -> list[str]:
    places = (f"cluster [{tools.words['c']}]", "NameServer")
    topics = ("%RETRY%made", "%DLQ%made")
    gone = {f"delete topic [{topic}] from {place} success." for topic in topics for place in places}
    return sorted([*lines, *(gone - {*lines})])


def _sorted_shares(lines: list[str], _: Tools) -> list[str]:
    [line] = lines
    shares = json.loads(line)["result"]
    queues = sorted(
        (queue for share in shares.values() for queue in share),
        key=lambda queue: (queue["brokerName"], queue["queueId"]),
    )
    left = iter(queues)
    shared = {name: [*islice(left, len(shares[name]))] for name in sorted(shares)}
    return [json.dumps({"result": shared}, separators=(",", ":"))]


_BODY_FILE = Difference("mqadmin writes the body to a file and names it; ours prints it", _bodies)
_BODY_NUMBERS = Difference(
    "mqadmin prints the body's bytes as numbers besides the text; ours prints only the text",
    _no_numbers,
)
_MEMBER_FILES = Difference(
    "mqadmin writes what each member reports to a file and names it; ours prints it",
    _members,
)
_HELP_TOO = Difference(
    "mqadmin has done it for the whole cluster, and then prints how to use the command", _no_help
)
DIFFERENCES = {
    "updateTopicList -c {c} -f {home}/topics.json": _HELP_TOO,
    "updateSubGroupList -c {c} -f {home}/groups.json": _HELP_TOO,
    "consumerStatus -g billing": _MEMBER_FILES,
    "consumerStatus -g billing -s": _MEMBER_FILES,
    "queryMsgById -t orders -i {id}": _BODY_FILE,
    "queryMsgByUniqueKey -t orders -i {unique}": _BODY_FILE,
    "queryMsgByOffset -t orders -b broker-a -i 0 -o 0": _BODY_FILE,
    "printMsg -t orders": _BODY_NUMBERS,
    "printMsgByQueue -t orders -a broker-a -i 0 -p true": _BODY_NUMBERS,
    "printMsgByQueue -t orders -a broker-a -i 0 -p true -d true": _BODY_NUMBERS,
    "consumeMessage -t orders -b broker-a -i 0 -o 0": Difference(
        f"{_BODY_NUMBERS.reason}; and prints at the end that there is no more", _no_end
    ),
    "resetOffsetByTime -g billing -t orders -s now": Difference(
        "mqadmin reads `now` as a time; ours means the end of each queue, as mqadmin of 4.9 does",
        _the_end,
    ),
    "deleteSubGroup -c {c} -g made": Difference(
        "ours names the topics that were deleted with the group, as mqadmin of 4.9 does",
        _with_topics,
    ),
    "allocateMQ -t orders -i 10.0.0.1,10.0.0.2": Difference(
        "mqadmin shares queues in the order of a hash table; members sort them first, and so does "
        "ours: it shows what they would take",
        _sorted_shares,
    ),
}
