"""Java members of one group on our cluster that assigns their queues; one broker dies under load.

What a member owns is compared with what Java's rule gives it, so nobody's share is left to luck.
"""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from pocketmq.embedded import Cluster
from pocketmq.model import MessageQueue
from tests.interop.groups import Load, Member, consumed, settled
from tests.interop.jvm import Jars, wait_until

pytestmark = [pytest.mark.java, pytest.mark.line("5.x"), pytest.mark.timeout(600)]

TOPIC = "shared"
GROUP = "sharers"
QUEUES = {MessageQueue(TOPIC, f"broker-{b}", q) for b in range(2) for q in range(4)}


class Scene:
    """A cluster of two brokers, a group, a producer."""

    def __init__(self, jars: Jars, home: Path, cluster: Cluster, stack: ExitStack) -> None:
        self.jars = jars
        self.home = home
        self.cluster = cluster
        self.stack = stack

    def join(self, name: str, *options: str) -> Member:
        words = [self.cluster.address, GROUP, TOPIC, name, *options]
        command = self.jars.compiled(self.home, "Member", *words)
        return self.stack.enter_context(Member(command, self.home))

    def load(self, pause_ms: int) -> Load:
        words = [self.cluster.address, TOPIC, str(pause_ms)]
        command = self.jars.compiled(self.home, "Load", *words)
        return self.stack.enter_context(Load(command, self.home))


@pytest.fixture
def scene(jars: Jars, tmp_path: Path) -> Iterator[Scene]:
    with (
        Cluster(brokers=2, data=tmp_path / "data", in_process=False) as cluster,
        ExitStack() as stack,
    ):
        cluster.create_topic(TOPIC, 4)
        yield Scene(jars, tmp_path, cluster, stack)


@contextmanager
def everything_arrives(scene: Scene, members: list[Member]) -> Iterator[Load]:
    """Send all the while; in the end every accepted message was consumed."""
    load = scene.load(5)
    wait_until(lambda: load.accepted, "the first message to be accepted")
    yield load
    accepted = load.stop()
    wait_until(lambda: accepted <= consumed(members), "every message to be consumed")


def test_members_that_a_broker_assigns_queues_to_join_leave_and_die(scene: Scene) -> None:
    options = ("balanced-by-broker",)
    first = scene.join("b", *options)
    members = [first]
    wait_until(settled(members, QUEUES), "one member to own everything")
    with everything_arrives(scene, members):
        members.append(scene.join("c", *options))
        wait_until(settled(members, QUEUES), "two members to share")
        members.append(scene.join("a", *options))
        wait_until(settled(members, QUEUES), "three members to share")
        members[1].say("leave")
        wait_until(lambda: "left" in members[1].lines, "the second to leave")
        wait_until(settled([first, members[2]], QUEUES), "two to share again")
        members[2].kill()
        wait_until(settled([first], QUEUES), "the last one to own everything")


def test_one_broker_is_restarted_under_load(jars: Jars, tmp_path: Path) -> None:
    """With a single broker sends fail for a moment, and go on by themselves."""
    queues = {MessageQueue(TOPIC, "broker-0", q) for q in range(4)}
    with (
        Cluster(data=tmp_path / "data", in_process=False) as cluster,
        ExitStack() as stack,
    ):
        cluster.create_topic(TOPIC, 4)
        scene = Scene(jars, tmp_path, cluster, stack)
        members = [scene.join("a"), scene.join("b")]
        wait_until(settled(members, queues), "two members to share")
        with everything_arrives(scene, members) as load:
            cluster.restart("broker-0")
            _goes_on(load, members, queues)
            cluster.kill("broker-0")
            cluster.restart("broker-0")
            _goes_on(load, members, queues)
        failed = [line for line in load.lines if line.startswith("failed ")]
        lost = re.compile(r"Remoting(Connect|SendRequest|Timeout|TooMuchRequest)Exception")
        assert [line for line in failed if not lost.search(line)] == []


def _goes_on(load: Load, members: list[Member], queues: set[MessageQueue]) -> None:
    count = len(load.accepted)
    wait_until(lambda: len(load.accepted) > count + 100, "messages to be accepted")
    wait_until(settled(members, queues), "two members to share again")
