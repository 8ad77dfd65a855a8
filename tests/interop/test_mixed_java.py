"""One cluster of a Java broker and ours, on a Java name server and on ours; Java clients over all."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pocketmq.model import MessageQueue
from tests.interop.groups import Load, Member, consumed, settled
from tests.interop.jvm import Admin, Jars, broker, named_broker, wait_until
from tests.ports import free_port
from tests.server_process import ServerProcess

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

TOPIC, GROUP = "mixed", "mixers"
QUEUES = {MessageQueue(TOPIC, f"broker-{kind}", q) for kind in ("java", "ours") for q in range(4)}


class Cluster:
    """A name server and two brokers of two kinds."""

    def __init__(self, jars: Jars, home: Path, stack: ExitStack, kind: str) -> None:
        self._jars = jars
        self._home = home
        self._stack = stack
        self.address = f"127.0.0.1:{free_port()}" if kind == "java" else self._our_nameserver()
        start = named_broker if kind == "java" else broker
        port = free_port()
        settings = {"brokerName": "broker-java", "brokerClusterName": "Mixed", "listenPort": port}
        stack.enter_context(start(jars, home, self.address, **settings))
        self.admin = stack.enter_context(Admin(jars, home))
        self.ours = self.start_ours()

    def start_ours(self) -> ServerProcess:
        words = ["--namesrv", self.address, "--name", "broker-ours", "--cluster", "Mixed"]
        place = ["--port", "0", "--data", str(self._home / "ours")]
        return self._stack.enter_context(ServerProcess("broker", *words, *place))

    def _our_nameserver(self) -> str:
        server = ServerProcess("namesrv", "--port", "0", "--host", "127.0.0.1")
        return self._stack.enter_context(server).namesrv

    def mqadmin(self, command: str) -> str:
        name, _, rest = command.partition(" ")
        return self.admin.run(f"{name} -n {self.address} {rest}")

    def join(self, name: str) -> Member:
        words = [self.address, GROUP, TOPIC, name]
        command = self._jars.compiled(self._home, "Member", *words)
        return self._stack.enter_context(Member(command, self._home))

    def load(self) -> Load:
        command = self._jars.compiled(self._home, "Load", self.address, TOPIC, "20")
        return self._stack.enter_context(Load(command, self._home))


# Each kind of name server and each release once: how a broker registers is the same in both.
KINDS = [
    pytest.param("java", marks=pytest.mark.line("4.x")),
    pytest.param("ours", marks=pytest.mark.line("5.x")),
]


@pytest.fixture(params=KINDS)
def cluster(request: pytest.FixtureRequest, jars: Jars, tmp_path: Path) -> Iterator[Cluster]:
    with ExitStack() as stack:
        yield Cluster(jars, tmp_path, stack, request.param)


def test_clients_use_both_brokers_and_go_on_with_one(cluster: Cluster) -> None:
    def both_listed() -> bool:
        listed = cluster.mqadmin("clusterList")
        return all(re.search(rf"Mixed\s+broker-{kind}\s+0", listed) for kind in ("java", "ours"))

    wait_until(both_listed, "both brokers to be listed")
    made = cluster.mqadmin(f"updateTopic -c Mixed -t {TOPIC} -r 4 -w 4")
    assert made.count("success") == 2, made
    members = [cluster.join(name) for name in ("a", "b")]
    wait_until(settled(members, QUEUES), "two members to share both brokers")
    load = cluster.load()

    def heard() -> set[str]:
        return {place.split("/")[0] for member in members for place, _ in member.got}

    wait_until(lambda: heard() == {"broker-java", "broker-ours"}, "messages of both brokers")
    cluster.ours.stop()
    left = {queue for queue in QUEUES if queue.broker_name == "broker-java"}
    wait_until(settled(members, left), "what is left to be shared")
    count = len(load.accepted)
    wait_until(lambda: len(load.accepted) > count + 30, "messages after the end of our broker")
    cluster.start_ours()
    wait_until(settled(members, QUEUES), "both brokers to be shared again")
    accepted = load.stop()
    wait_until(lambda: accepted <= consumed(members), "every message to be consumed")
