"""Apache's Go client on our cluster; `POCKETMQ_GO` names a module cache that holds it.

`GOMODCACHE=… go mod download`, run in this package's `go` folder, makes such a cache.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pocketmq.embedded import Cluster
from pocketmq.model import MessageQueue
from pocketmq.protocol import RequestCode, decode_body
from pocketmq.protocol.requests.membership import ConsumerIds, GetConsumerListRequest
from tests.interop.groups import Load, Member, consumed, share
from tests.interop.jvm import Jars, Process, wait_until
from tests.wire_client import WireClient

pytestmark = [pytest.mark.go, pytest.mark.timeout(600)]

PROGRAM = Path(__file__).parent / "go"
TOPIC, GROUP = "shared", "sharers"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, built without a network."""
    cache, go = os.environ["POCKETMQ_GO"], shutil.which("go")
    if go is None:
        pytest.skip("there is no go")
    built = tmp_path_factory.mktemp("go") / "program"
    offline = {"GOMODCACHE": cache, "GOPROXY": "off", "GOFLAGS": "-mod=readonly -buildvcs=false"}
    subprocess.run(
        [go, "build", "-o", built, "."], check=True, cwd=PROGRAM, env=os.environ | offline
    )
    return built


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    levels = {"messageDelayLevel": "1s 2s 3s 4s"}
    directory = tmp_path_factory.mktemp("data")
    with Cluster(data=directory, in_process=False, config=levels) as running:
        yield running


def run(program: Path, home: Path, *words: str) -> list[str]:
    with Process(["env", f"HOME={home}", str(program), *words], home) as process:
        lines = process.wait_for_end()
    assert lines[-1:] == ["end"], lines
    return lines[:-1]


@pytest.fixture(scope="module")
def produced(
    program: Path, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> list[str]:
    (broker,) = cluster.brokers.values()
    home = tmp_path_factory.mktemp("home")
    return run(program, home, "produce", cluster.address, broker.address)


def test_every_way_to_send(produced: list[str]) -> None:
    assert produced == ["sync 0 go-singles 0 32", "async 100", "batch 0 0"]


@pytest.mark.usefixtures("produced")
@pytest.mark.parametrize(
    ("order", "said"),
    [
        (
            "push",
            [
                "push 100 async 0 async 99", "tags 10", "sql 1", "compressed 20000",
                "delayed [later]",
            ],
        ),
        ("orderly", ["orderly map[0:10 1:10 2:10 3:10] true"]),
        ("retried", ["retried go-singles 0 größe 1; go-singles 1 größe 1"]),
        ("broadcast", ["broadcast 100", "broadcast 100"]),
        ("pull", ["pull 100"]),
    ],
)  # fmt: skip
def test_every_way_to_receive(
    program: Path, cluster: Cluster, tmp_path: Path, order: str, said: list[str]
) -> None:
    assert run(program, tmp_path, order, cluster.address) == said


@pytest.mark.java
def test_java_and_go_members_share_one_group(
    jars: Jars, program: Path, cluster: Cluster, tmp_path: Path
) -> None:
    cluster.create_topic(TOPIC, 8)
    (broker,) = cluster.brokers.values()
    queues = {MessageQueue(TOPIC, broker.name, number) for number in range(8)}
    words = [cluster.address, GROUP, TOPIC]
    with (
        Member(jars.compiled(tmp_path, "Member", *words, "java"), tmp_path) as java,
        Member([str(program), "member", *words, "go"], tmp_path) as go,
        Load(jars.compiled(tmp_path, "Load", cluster.address, TOPIC, "5"), tmp_path) as load,
    ):
        wait_until(lambda: java.client_id, "the Java member to start")
        wait_until(
            lambda: (
                len(ids := members(broker.address)) == 2
                and java.owned == share(java.client_id, ids, queues)
            ),
            "the Java member to have its half",
        )
        wait_until(lambda: go.got, "the Go member to get messages")
        accepted = load.stop()
        wait_until(lambda: accepted <= consumed([java, go]), "every message to be consumed")
        go.say("leave")
        wait_until(
            lambda: java.owned == share(java.client_id, [java.client_id], queues),
            "the Java member to own everything",
        )


def members(broker: str) -> list[str]:
    """Return the client ids of the group."""
    with WireClient(broker) as client:
        header = GetConsumerListRequest(consumer_group=GROUP)
        answer = client.ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, header)
    return decode_body(answer.body, ConsumerIds).consumer_id_list if answer.code == 0 else []
