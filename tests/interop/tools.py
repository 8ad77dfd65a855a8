"""Apache's mqadmin and our `pocketmq admin` before one cluster, and what they say made comparable."""

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import pocketmq as mq
from pocketmq.cli import run
from tests.interop.groups import wait_for_commits
from tests.interop.jvm import Admin, Jars, wait_until
from tests.interop.rows import Row

TOPIC, GROUP, CLIENT = "orders", "billing", "10.0.0.1@one"
LISTED = {
    "topics.json": '[{"topicName":"listed-1","readQueueNums":2},{"topicName":"listed-2","perm":4}]',
    "groups.json": '[{"groupName":"listed-1","retryMaxTimes":3},{"groupName":"listed-2"}]',
}
"""Files that name several topics, and several groups."""
ASKED_FIRST = {
    *("deleteTopic", "deleteSubGroup", "resetOffsetByTime", "skipAccumulatedMessage"),
    *("wipeWritePerm", "deleteKvConfig", "cloneGroupOffset"),
    *("cleanExpiredCQ", "cleanUnusedTopic", "deleteExpiredCommitLog"),
    *("deleteUser", "deleteAcl"),
}
"""Commands that ours does not carry out unasked."""
MOVING = ("statsAll", "brokerStatus", "clusterList")
"""Commands whose figures change by themselves: counts over a minute until there is an hour to count
over, and what is not flushed yet."""
_SETTLED = 120.0
"""Seconds after which no count over a minute falls any more."""
VARYING = (
    (r"\b20\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,:]\d{3})?", "TIME"),
    (r"(?<![\w.])20\d{12,15}\b", "TIME"),  # not what follows a decimal point
    (r"(?<![\w.])\d+\.\d+(?:E-?\d+)?(?![\w.])", "FRACTION"),
    (r"127\.0\.0\.1:[3-6]\d{4}\b", "ADDRESS"),
    (r"\b1[5-9]\d{11}\b", "MILLISECONDS"),
    (r"\brt=\d+ms", "rt=TIME"),
    (r"\btimerReadBehind +: \d+", "timerReadBehind : TIME"),
    (r"\b\d+(?=-\d+\(\d+\.\dw)", "TIME"),  # how far timers are behind, in clusterList
    (r"(?<=get user from )\S+|(?<=get acl from )\S+", "BROKER"),  # any of a cluster is asked
    (r"[\w-]+-secret\b|\*{6}", "PASSWORD"),  # ours prints it if it is told to
    (r"SendResult \[sendStatus=SEND_OK, msgId=\w+, offsetMsgId=\w+", "SendResult [SEND_OK"),
    (r"(?m)SEND_OK +[0-9A-F]+\s*$", "SEND_OK ID"),
    (r"queueOffset=\d+(?=, recallHandle|\])", "queueOffset=NEXT"),
    (r"(?m)(?<=\btrue) +\d+\s*$", " TIME"),
    (r"\b\d+ days, \d+ hours, \d+ minutes, \d+ seconds", "TIME"),
)


def complaints(err: str) -> list[str]:
    """Return the lines of stderr but for the warning that a secret is among the arguments."""
    return [line for line in err.splitlines() if "in the list of processes" not in line]


class Tools:
    """Both tools before a cluster of two brokers with a topic, messages, a producer, a group."""

    def __init__(self, row: Row, admin: Admin, home: Path) -> None:
        self.address, self.home = row.address, home
        brokers = row.addresses
        self.words = {"c": "C", "n": row.address, "home": str(home)}
        self.words |= {"a": brokers["broker-a"], "b": brokers["broker-b"]}
        self._admin = admin

    def ours(self, capsys: pytest.CaptureFixture[str], command: str) -> list[str]:
        name, *rest = command.format(**self.words).split()
        answer = ["--yes"] if name in ASKED_FIRST else []
        code = run(["admin", name, "-n", self.address, *rest, *answer])
        captured = capsys.readouterr()
        assert (code, complaints(captured.err)) == (0, []), captured
        return comparable(captured.out)

    def both(
        self, capsys: pytest.CaptureFixture[str], command: str, old: str | None = None
    ) -> tuple[list[str], list[str]]:
        """Return what Java's tool says and what ours does; Java's may call the command otherwise.

        Where figures change by themselves, both are asked again unless Java's tool says the same
        afterwards.
        """
        theirs, ours = self.theirs(old or command), self.ours(capsys, command)
        deadline = time.monotonic() + _SETTLED
        while (
            command.startswith(MOVING)
            and (later := self.theirs(old or command)) != theirs
            and time.monotonic() < deadline
        ):
            theirs, ours = later, self.ours(capsys, command)
        return theirs, ours

    def theirs(self, command: str) -> list[str]:
        name, _, rest = command.format(**self.words).partition(" ")
        return comparable(self._admin.run(f"{name} -n {self.address} {rest}"))


@contextmanager
def before_a_cluster(
    jars: Jars, home: Path, kind: str, settings: Mapping[str, object]
) -> Iterator[Tools]:
    """Start a cluster, Java's or ours, a producer and a consumer, and put both tools before it."""
    (home / "tool").mkdir()
    with ExitStack() as stack:
        row = Row(
            jars, home, stack, (kind, kind), "broker-a", "broker-b",
            traceTopicEnable="true", **settings,
        )  # fmt: skip
        row.create_topic(TOPIC, 2)
        admin = stack.enter_context(Admin(jars, home / "tool"))
        found = Tools(row, admin, home)
        for name, listed in LISTED.items():
            (home / name).write_text(listed)
        producer = stack.enter_context(mq.Producer(row.address, group="shop", trace=True))
        address, _, name = CLIENT.partition("@")
        consumer = mq.PushConsumer(
            row.address, group=GROUP, consume_from="first", client_ip=address, instance_name=name,
            trace=True,
        )  # fmt: skip
        fill(found, producer, stack.enter_context(consumer))
        yield found


def comparable(text: str) -> list[str]:
    """Return the lines without times and ports; Java's maps have no order, so neither here."""
    for pattern, word in VARYING:
        text = re.sub(pattern, word, text)
    text = re.sub(r"(?<=roperties[=:])(\s*\{)([^}]*)", lambda it: it[1] + _sorted(it[2]), text)
    return sorted(re.sub(r"\s+", " ", line).strip() for line in text.splitlines() if line.strip())


def _sorted(properties: str) -> str:
    return ", ".join(sorted(properties.split(", ")))


def _settled(tools: Tools, last: str) -> bool:
    traced = " ".join(tools.theirs(f"queryMsgTraceById -i {last}"))
    progress = " ".join(tools.theirs(f"consumerProgress -g {GROUP} -s true"))
    return "Pub" in traced and "Sub" in traced and progress.count("%RETRY%") == 2


def _has_retries(admin: mq.Admin) -> bool:
    queues = admin.groups.progress(GROUP).queues
    return sum(queue.topic.startswith("%RETRY%") for queue in queues) == 2


def fill(tools: Tools, producer: mq.Producer, consumer: mq.PushConsumer) -> None:
    """Send eight messages, and have them consumed."""
    handled: list[str] = []
    consumer.subscribe(TOPIC, "*", lambda message: handled.append(message.message_id))
    sent = []
    for number in range(8):
        message = mq.Message(TOPIC, b"%d" % number, tag="a", keys=[f"k{number}"])
        queue = mq.MessageQueue(TOPIC, f"broker-{'ab'[number % 2]}", number // 2 % 2)
        sent.append(producer.send(message, queue=queue))
    wait_until(lambda: len(handled) == 8, "all messages")
    wait_for_commits(tools.address, consumer, GROUP, TOPIC)
    with mq.Admin(tools.address) as admin:  # a look of mqadmin costs more, and this takes long
        wait_until(lambda: _has_retries(admin), "offsets of all queues")
    wait_until(lambda: _settled(tools, sent[-1].message_id), "traces, and offsets of all queues")
    tools.words |= {"id": sent[0].offset_message_id or "", "unique": sent[0].message_id}
    tools.words |= {"client": CLIENT}
