"""Where `pocketmq admin` prints other lines than mqadmin on the same state, and why."""

from typing import NamedTuple


class Difference(NamedTuple):
    """Lines that one tool alone prints, as patterns."""

    reason: str
    theirs: str
    ours: str


_MESSAGE = r"MSGID: .*"
_BODY_FILE = Difference(
    "mqadmin writes the body to a file and names it; ours prints it",
    r"Message Body Path: .*",
    r"Message Body: .*",
)
_BODY_NUMBERS = Difference(
    "mqadmin prints the body's bytes as numbers besides the text; ours prints the text alone",
    _MESSAGE,
    _MESSAGE,
)
_MEMBER_FILES = Difference(
    "mqadmin writes what each member says of itself to a file and names it; ours prints it",
    r"#Index .*|\d+ \S+ \S+ MILLISECONDS/.*",
    r".*",
)
_HELP_TOO = Difference(
    "mqadmin has done it for the whole cluster, and then prints how to use the command",
    r"(usage:|-\w,--|Path to|org\.apache|format|json|in json|create).*",
    r"",
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
    "consumeMessage -t orders -b broker-a -i 0 -o 0": Difference(
        f"{_BODY_NUMBERS.reason}; and says at the end that there is no more",
        rf"{_MESSAGE}|MessageQueue .* print msg finished\..*",
        _MESSAGE,
    ),
    "resetOffsetByTime -g billing -t orders -s now": Difference(
        "`now` is a moment to mqadmin; ours means the end of each queue, as mqadmin of 4.9 does",
        r"start reset .*",
        r"start reset .*",
    ),
    "deleteSubGroup -c {c} -g made": Difference(
        "ours names the topics that went with the group, as mqadmin of 4.9 does",
        r"",
        r"delete topic \[%(RETRY|DLQ)%made\] from .*",
    ),
    "allocateMQ -t orders -i 10.0.0.1,10.0.0.2": Difference(
        "mqadmin shares queues in the order of a hash table; members sort them first, and so does "
        "ours: it shows what they would take",
        r"\{.*",
        r"\{.*",
    ),
}
