"""Pipelines on a cluster that asks for a user and TLS, as commands."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pocketmq as mq
from pocketmq.cli import run
from pocketmq.cli.connection_options import Entry
from pocketmq.cli.pipeline.streams import ReachedCluster
from pocketmq.embedded.settings import Setting
from pocketmq.errors import CannotStart
from pocketmq.pipelines.ingest import ingested_values
from pocketmq.spark.connections import forget_senders
from tests.net.certificates import Certificates, make_certificates

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECRET = "s3cr3t-of-root"
BODIES = [b"%d" % number for number in range(20)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def guarded(made: Certificates) -> Iterator[mq.Cluster]:
    config: dict[str, Setting] = {
        "authenticationEnabled": True,
        "authorizationEnabled": True,
        "initAuthenticationUser": f'{{"username":"root","password":"{SECRET}"}}',
        "innerClientAuthenticationCredentials": f'{{"accessKey":"root","secretKey":"{SECRET}"}}',
        "tls.server.mode": "enforcing",
        "tls.server.certPath": made.server,
        "tls.server.keyPath": made.server_key,
    }
    with mq.Cluster(config=config) as cluster:
        cluster.create_topic("orders", 2)
        cluster.create_topic("copies", 2)
        options = mq.ClientOptions(
            name_servers=cluster.address,
            credentials=mq.Credentials(access_key="root", secret_key=SECRET),
            tls=mq.Tls(ca=made.root),
        )
        with mq.Producer(group="shop", options=options, send_timeout=30.0) as producer:
            for body in BODIES:
                producer.send(mq.Message("orders", body))
        yield cluster
        forget_senders()


@pytest.fixture
def entry(guarded: mq.Cluster, made: Certificates, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the options that let a command in; the secret is the environment's."""
    monkeypatch.setenv("POCKETMQ_SECRET_KEY", SECRET)
    return ["-n", guarded.address, "--access-key", "root", "--tls-ca", str(made.root)]


@pytest.fixture
def at_hand(spark: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> "SparkSession":
    """Return commands the session of all tests instead of one of their own."""
    monkeypatch.setattr("pocketmq.spark.spark_session", lambda *_, **__: spark)
    monkeypatch.setattr(type(spark), "stop", lambda _: None)
    return spark


@pytest.mark.usefixtures("at_hand")
def test_topics_are_copied_and_ingested(
    entry: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The target is the same cluster, and lets in whom the source lets in."""
    notes, lake = tmp_path / "notes", tmp_path / "lake"
    copy = ["-t", "orders", "--to-topic", "copies", "--checkpoint", str(notes), "--once"]
    ingest = ["-t", "copies", "--to", str(lake), "--once"]
    assert run(["pipeline", "copy", *entry, *copy]) == 0
    assert run(["pipeline", "ingest", *entry, *ingest]) == 0
    said = capfd.readouterr()
    assert said.out.startswith("20 messages in ")
    assert sorted(ingested_values(lake, "body"), key=int) == BODIES
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert SECRET.encode() not in written
    assert SECRET not in said.out + said.err


def test_the_target_of_a_copy_has_options_of_its_own(
    guarded: mq.Cluster,
    cluster: mq.Cluster,
    topic: str,
    made: Certificates,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What lets in to the target is not shown to the source; Spark is next when both are reached."""

    def next_step(*_: object, **__: object) -> None:
        raise CannotStart("Spark", "both have answered")

    monkeypatch.setattr("pocketmq.spark.spark_session", next_step)
    monkeypatch.setattr("pocketmq.cli.pipeline.streams._PATIENCE", 0.1)
    ends = ["-n", cluster.address, "-t", topic, "--to", guarded.address, "--to-topic", "copies"]
    copy = ["pipeline", "copy", *ends, "--checkpoint", str(tmp_path)]
    assert run(copy) == 1
    assert f"no name server responds at {guarded.address}" in capsys.readouterr().err
    assert run([*copy, "--tls-ca", str(made.root)]) == 1
    assert f"no name server responds at {cluster.address}" in capsys.readouterr().err
    monkeypatch.setenv("POCKETMQ_TO_SECRET_KEY", SECRET)
    assert run([*copy, "--to-tls-ca", str(made.root)]) == 2
    assert "credentials need an access key and a secret key" in capsys.readouterr().err
    assert run([*copy, "--to-tls-ca", str(made.root), "--to-access-key", "root"]) == 2
    assert "both have answered" in capsys.readouterr().err


def test_the_environment_may_name_the_cluster(
    guarded: mq.Cluster,
    made: Certificates,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Executors have an environment of their own: Spark is told the address."""
    monkeypatch.setenv("NAMESRV_ADDR", guarded.address)
    given: dict[str, Any] = dict.fromkeys((*Entry.__struct_fields__, "secret_key_file"), "")
    given |= {"use_tls": True, "tls_ca": made.root, "tls_no_verify": False}
    reached = ReachedCluster.by("", Entry.taken_from(given))
    assert (reached.name_server, reached.client.name_servers) == (guarded.address,) * 2
    assert reached.options == {"tls": "true", "tlsCa": made.root}
    monkeypatch.delenv("NAMESRV_ADDR")
    assert run(["pipeline", "ingest", "-t", "orders", "--to", str(tmp_path)]) == 1
    assert "no name server" in capsys.readouterr().err


def test_offsets_are_watched_and_estates_are_learnt(
    entry: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither needs Spark."""
    events = tmp_path / "events.jsonl"
    queue = mq.MessageQueue("orders", "broker-a", 0)
    told = mq.RebalanceEvent(
        group="billing", client_id="m", topic="orders", strategy="AVG", trigger="timer",
        started=1.0, members=("m",), queues=(queue,), before=(), after=(queue,), revoked=(),
        assigned={"broker-a:0": 0},
    )  # fmt: skip
    events.write_bytes(told.to_json())
    assert run(["pipeline", "health", "--events", str(events), "--watch", "0", *entry]) == 0
    assert f"lag {len(BODIES)} at the end" in " ".join(capsys.readouterr().out.split())
    assert run(["pipeline", "fleet", *entry]) == 2  # it has asked, and nobody is there
    assert "no group of the cluster has a member" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        ["ingest", "-t", "orders", "--to", "PLACE"],
        ["copy", "-t", "orders", "--to-topic", "copies", "--checkpoint", "PLACE"],
        ["health", "--events-topic", "orders"],
        ["fleet"],
    ],
    ids=lambda command: command[0],
)
@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        (["--access-key", "root"], 2, "credentials need an access key and a secret key"),
        (["--tls-ca", "nowhere.pem"], 2, "nowhere.pem"),
        (["--tls-ca", "CA", "--tls-no-verify"], 2, "so 'tlsCa' has no effect"),
        ([], 1, "no name server responds"),
    ],
    ids=["half a user", "no such file", "roots for nothing", "without TLS"],
)
def test_who_is_not_let_in_is_told_before_spark_starts(
    guarded: mq.Cluster,
    made: Certificates,
    command: list[str],
    options: list[str],
    code: int,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("pocketmq.spark.spark_session", lambda *_, **__: pytest.fail("started"))
    monkeypatch.setattr("pocketmq.cli.pipeline.streams._PATIENCE", 0.1)
    words = {"PLACE": str(tmp_path), "CA": str(made.root)}
    arguments = [words.get(word, word) for word in (*command, *options)]
    assert run(["pipeline", *arguments, "-n", guarded.address]) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert told in said.err
    assert said.err.count("\n") == 1
