"""Static topics of 5.x: logical queues that move between brokers, with parts of both makes."""

import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Self

import pytest

import pocketmq as mq
from pocketmq.cli import run
from pocketmq.model.topics import GLOBAL_SCOPE, logical_broker
from tests.interop.groups import Member, settled
from tests.interop.jvm import Admin, Jars, wait_until
from tests.interop.rows import ROOT, ROWS, Row
from tests.interop.tools import comparable

pytestmark = [pytest.mark.java, pytest.mark.timeout(600), pytest.mark.line("5.x")]

TOPIC, GROUP, QUEUES = "fixed", "fixers", 4
BROKER = logical_broker(GLOBAL_SCOPE)
LOGICAL = [mq.MessageQueue(TOPIC, BROKER, number) for number in range(QUEUES)]
BLOCK = 10_000
"""Where the offsets of a queue continue that has moved after a few messages."""


class Cluster:
    """Two brokers, and Apache's mqadmin."""

    def __init__(self, jars: Jars, home: Path, stack: ExitStack, kind: tuple[str, str]) -> None:
        self._jars, self._home = jars, home
        self.row = Row(jars, home, stack, kind, "broker-a", "broker-b")
        self.address = self.row.address
        self._admin = stack.enter_context(Admin(jars, home))

    def mqadmin(self, command: str) -> str:
        name, _, rest = command.partition(" ")
        return self._admin.run(f"{name} -n {self.address} {rest}")

    def java(self, name: str) -> Member:
        command = self._jars.compiled(self._home, "Member", self.address, GROUP, TOPIC, name)
        return Member(command, self._home)

    def python(self, name: str) -> Member:
        program = [sys.executable, "-m", "tests.interop.push_member"]
        return Member([*program, self.address, GROUP, TOPIC, name], ROOT)


# Name servers and brokers of two makes: each has to understand what the other says.
@pytest.fixture(scope="module", params=["java-ours", "ours-java"])
def cluster(
    request: pytest.FixtureRequest, jars: Jars, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    with ExitStack() as stack:
        home = tmp_path_factory.mktemp("static")
        yield Cluster(jars, home, stack, ROWS[request.param])


class Load:
    """Our producer, which keeps sending; what is sent has a place in a logical queue."""

    def __init__(self, address: str) -> None:
        self._producer = mq.Producer(address, group="shop")
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.sent: dict[str, str] = {}
        self.failure: mq.MQError | None = None

    def __enter__(self) -> Self:
        self._producer.start()
        assert list(self._producer.queues(TOPIC)) == LOGICAL
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        self._producer.close()

    def _run(self) -> None:
        while not self._stopped.is_set():
            body = f"m{len(self.sent)}"
            try:
                receipt = self._producer.send(mq.Message(TOPIC, body.encode()))
            except mq.MQError as error:
                self.failure = error
                return
            self.sent[body] = f"{BROKER}/{receipt.queue.queue_id}@{receipt.queue_offset}"

    def wait_for(self, count: int) -> None:
        goal = len(self.sent) + count
        wait_until(lambda: self.failure is not None or len(self.sent) >= goal, "more messages")
        assert self.failure is None, self.failure


def test_queues_move_under_load_and_no_message_is_lost(cluster: Cluster) -> None:
    """A Java member and ours share the logical queues; our producer follows them."""
    made = cluster.mqadmin(f"updateStaticTopic -b broker-a -t {TOPIC} -qn {QUEUES}")
    assert "The new mapping data is written to file" in made, made
    with cluster.java("java") as java, cluster.python("python") as python:
        places, sent = _moved(cluster, [java, python])
    # A message that came while its queue moved has no logical offset in its receipt.
    decided = {body: place for body, place in sent.items() if not place.endswith("@-1")}
    assert {body: places[body] for body in decided} == decided
    offsets = [int(place.rpartition("@")[2]) for place in places.values()]
    assert min(offsets) == 0
    assert BLOCK <= max(offsets) < 2 * BLOCK


def _moved(cluster: Cluster, members: list[Member]) -> tuple[dict[str, str], dict[str, str]]:
    """Move the queues under load; return where members got messages, and where they were sent."""
    with Load(cluster.address) as load:
        wait_until(settled(members, set(LOGICAL)), "two members to share")
        load.wait_for(50)
        moved = cluster.mqadmin(f"remappingStaticTopic -b broker-b -t {TOPIC}")
        assert moved.count("mapping data is written to file") == 2, moved
        load.wait_for(50)
    places: dict[str, str] = {}

    def all_arrived() -> bool:
        places.update({body: place for member in members for place, body in member.got})
        return places.keys() >= load.sent.keys()

    wait_until(all_arrived, "all messages to arrive")
    return places, load.sent


def test_our_tool_creates_and_moves_and_both_tools_show_the_same(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    def ours(command: str) -> list[str]:
        name, *rest = command.split()
        assert run(["admin", name, "-n", cluster.address, *rest]) == 0
        return comparable(capsys.readouterr().out)

    def theirs(command: str) -> list[str]:
        return comparable(cluster.mqadmin(command))

    written = {}
    for topic, tool in (("ours", ours), ("apache", theirs)):
        made = tool(f"updateStaticTopic -c C -t {topic} -qn {QUEUES}")
        moved = tool(f"remappingStaticTopic -b broker-b -t {topic}")
        written[topic] = [line.replace(topic, "TOPIC") for line in made + moved if line]
    assert written["ours"] == written["apache"]
    with mq.Producer(cluster.address, group="shop") as producer:
        for number in range(8):
            producer.send(mq.Message("ours", b"%d" % number))
            producer.send(mq.Message("apache", b"%d" % number))
    for topic in ("ours", "apache"):
        for command in (f"topicStatus -t {topic}", f"topicRoute -t {topic}"):
            assert ours(command) == theirs(command)
    for topic in ("ours", "apache"):
        # A Java broker looks for the addresses of others ten seconds after its start.
        wait_until(partial(_ends, cluster, topic), "brokers to know each other")
        # Two of the queues were on broker-b from the start.
        assert _ends(cluster, topic) == [2, 2, BLOCK + 2, BLOCK + 2]


def _ends(cluster: Cluster, topic: str) -> list[int]:
    """Return the ends of the logical queues of a topic; nothing while a broker cannot answer."""
    with mq.Admin(cluster.address) as admin:
        leaders = admin.topics.route(topic).leaders(topic)
        assert list(leaders.values()) == ["broker-b"] * QUEUES
        try:
            return sorted(admin.offsets.bounds(queue)[1] for queue in leaders)
        except mq.MQError:
            return []
