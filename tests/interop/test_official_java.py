"""Apache's gRPC client for Java, unmodified, on `pocketmq up`; TLS is its default."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pocketmq import Admin, Credentials
from pocketmq.model import GroupConfig, TopicConfig
from tests.interop.official_java import lines_of
from tests.server_process import ServerProcess

pytest.importorskip("grpc")

pytestmark = [pytest.mark.java, pytest.mark.line("5.x"), pytest.mark.timeout(600)]

TOPICS = {"o-normal": "NORMAL", "o-fifo": "FIFO", "o-delay": "DELAY", "o-tx": "TRANSACTION"}
ROOT = Credentials(access_key="root", secret_key="secret")
USER = '{"username":"root","password":"secret"}'


def make_ready(admin: Admin) -> None:
    for place in admin.brokers.targets():
        for name, kind in TOPICS.items():
            attributes = {"+message.type": kind}
            config = TopicConfig(
                topic_name=name, read_queue_nums=2, write_queue_nums=2, attributes=attributes
            )
            admin.topics.create(config, address=place.address).all()
        ordered = GroupConfig(group_name="o-ordered", consume_message_orderly=True)
        admin.groups.create(ordered, address=place.address).all()


@pytest.fixture(scope="module")
def cluster() -> Iterator[ServerProcess]:
    quick = ("transactionCheckInterval=1000", "transactionTimeOut=1000")
    words = [word for pair in quick for word in ("--set", pair)]
    with ServerProcess("up", "--port", "0", "--grpc", "0", *words) as running:
        with Admin(running.namesrv) as admin:
            make_ready(admin)
        yield running


def test_the_official_java_client_does_all_it_can(cluster: ServerProcess, tmp_path: Path) -> None:
    """Messages of all kinds; simple and push consumers, tags, retries, recovered transactions."""
    counts = {f"async {n}": 1 for n in range(10)} | {
        "1000000 bytes": 1, "commit": 1, "first": 1, "late": 1, "orphan": 1, "retried": 2,
    }  # fmt: skip
    shown = ", ".join(f"{body}={count}" for body, count in sorted(counts.items()))
    assert lines_of(tmp_path, cluster.grpc) == [
        "id 34",
        "simple 13",
        "first t [k1, k2] {colour=blau} 1",
        "tagged [first 1, first 2]",
        f"push {{{shown}}}",
        "fifo [0, 1, 1, 2, 3, 4]",
        "refused IllegalArgumentException",  # by the client, which knows the topic's type
        "refused NotFoundException",
    ]


def test_the_official_java_client_works_without_tls_too(
    cluster: ServerProcess, tmp_path: Path
) -> None:
    assert lines_of(tmp_path, "plain", cluster.grpc) == ["sent"]


def test_the_official_java_client_signs_as_a_user(tmp_path: Path) -> None:
    file = tmp_path / "broker.conf"
    file.write_text(
        f"authenticationEnabled=true\nauthorizationEnabled=true\ninitAuthenticationUser={USER}\n"
    )
    with ServerProcess("up", "--port", "0", "--grpc", "0", "-c", str(file)) as guarded:
        with Admin(guarded.namesrv, credentials=ROOT) as admin:
            make_ready(admin)
        assert lines_of(tmp_path, guarded.grpc, "root", "secret") == ["sent"]
        assert lines_of(tmp_path, guarded.grpc, "root", "wrong") == [
            "refused UnauthorizedException"
        ]
