"""Java and Python members in one group whose queues a broker assigns, on a Java cluster and on ours."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pocketmq.model import MessageQueue
from tests.interop.groups import Load, Member, consumed, settled
from tests.interop.jvm import Admin, Jars, named_broker, wait_until
from tests.ports import free_port
from tests.server_process import ServerProcess

# Neither brokers nor clients of 4.x know how.
pytestmark = [pytest.mark.java, pytest.mark.line("5.x"), pytest.mark.timeout(600)]

TOPIC, GROUP, BROKER = "shared", "sharers", "broker-0"
QUEUES = {MessageQueue(TOPIC, BROKER, each) for each in range(8)}


class Stand:
    """A cluster of one broker, Java's or ours, and members of both kinds."""

    def __init__(self, jars: Jars, home: Path, stack: ExitStack, kind: str) -> None:
        self._jars = jars
        self._home = home
        self._stack = stack
        if kind == "java":
            self.address = f"127.0.0.1:{free_port()}"
            settings = {"brokerName": BROKER, "brokerClusterName": "C", "listenPort": free_port()}
            stack.enter_context(named_broker(jars, home, self.address, **settings))
        else:
            server = ServerProcess("namesrv", "--port", "0", "--host", "127.0.0.1")
            self.address = stack.enter_context(server).namesrv
            words = ["--namesrv", self.address, "--name", BROKER, "--cluster", "C", "--port", "0"]
            stack.enter_context(ServerProcess("broker", *words, "--data", str(home / "ours")))
        admin = stack.enter_context(Admin(jars, home))
        make = f"updateTopic -n {self.address} -c C -t {TOPIC} -r 8 -w 8"
        wait_until(lambda: "success" in admin.run(make), "the topic to be made")

    def java(self, name: str, *options: str) -> Member:
        words = (self.address, GROUP, TOPIC, name, *options)
        command = self._jars.compiled(self._home, "Member", *words)
        return self._stack.enter_context(Member(command, self._home))

    def python(self, name: str, *options: str) -> Member:
        words = (self.address, GROUP, TOPIC, name, *options)
        command = [sys.executable, "-m", "tests.interop.push_member", *words]
        return self._stack.enter_context(Member(command, Path(__file__).parents[2]))

    def load(self) -> Load:
        words = [self.address, TOPIC, "5"]
        return self._stack.enter_context(
            Load(self._jars.compiled(self._home, "Load", *words), self._home)
        )


@pytest.fixture(params=["java", "ours"])
def stand(request: pytest.FixtureRequest, jars: Jars, tmp_path: Path) -> Iterator[Stand]:
    with ExitStack() as stack:
        yield Stand(jars, tmp_path, stack, request.param)


def _share(members: list[Member], what: str) -> None:
    """Wait until each member owns what the rule gives it; else say who owns what."""
    try:
        wait_until(settled(members, QUEUES), what)
    except AssertionError as error:
        told = {member.client_id or str(member.lines[-3:]): member.owned for member in members}
        raise AssertionError(f"{error}: {told}") from None


def test_a_broker_assigns_queues_to_members_of_both_kinds(stand: Stand) -> None:
    told = "balanced-by-broker"
    first, second = stand.java("a", told), stand.python("b", told)
    _share([first, second], "two members to share")
    third = stand.python("c", told)
    _share([first, second, third], "three members to share")
    load = stand.load()
    wait_until(lambda: len(load.accepted) > 100, "messages")
    accepted = load.stop()
    members = [first, second, third]
    wait_until(lambda: accepted <= consumed(members), "every message to be consumed")
