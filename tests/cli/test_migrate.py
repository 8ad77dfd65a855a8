"""`pocketmq migrate` as an operator meets it: real processes, killed in the middle, seen from outside."""

import asyncio
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import PIPE

import pytest

import pocketmq as mq
from pocketmq import Cluster
from pocketmq.admin.migration.copy_run import MigrationProgress
from pocketmq.cli.migrate import report
from tests.cli.migrating import Operator, move_while_open
from tests.server_process import wait_for


@pytest.fixture
def clusters() -> Iterator[tuple[Cluster, Cluster]]:
    with Cluster(brokers=2, in_process=False) as source, Cluster(in_process=False) as target:
        yield source, target


@pytest.fixture
def operator(clusters: tuple[Cluster, Cluster], tmp_path: Path) -> Operator:
    source, target = clusters
    return Operator(source.address, target.address, tmp_path / "state")


@pytest.mark.timeout(180)
def test_producers_and_consumers_move_over_and_nothing_is_lost(
    clusters: tuple[Cluster, Cluster], operator: Operator
) -> None:
    """Every message is consumed on one side or the other; twice comes what was announced."""
    source, _ = clusters
    source.create_topic("orders", queues=2)
    move_while_open(operator, "orders", "billing")


def fill(cluster: Cluster, topic: str, count: int) -> None:
    cluster.create_topic(topic, queues=2)
    with mq.Producer(cluster.address, group="shop", send_timeout=30.0) as producer:
        for start in range(0, count, 100):
            numbers = range(start, min(start + 100, count))
            producer.send_batch([mq.Message(topic, b"%d" % number) for number in numbers])


def test_each_step_says_what_it_does(clusters: tuple[Cluster, Cluster], operator: Operator) -> None:
    source, target = clusters
    fill(source, "orders", 400)
    with mq.Admin(source.address) as admin:
        from pocketmq.model.groups import GroupConfig

        admin.groups.create(GroupConfig(group_name="billing"))
    assert operator.run("plan") == (
        f"from {source.address} to {target.address}\n"
        "topic   queues  messages    on the target\n"
        "orders       4       400  will be created\n"
        "groups to create: billing\n"
    )
    assert operator.run("copy", "--dry-run") == operator.run("plan")
    assert not operator.state.exists()
    assert operator.run("copy") == "copied 400 messages of 1 topics, 4 queues\n"
    assert operator.run("copy") == "copied 0 messages of 1 topics, 4 queues\n"
    assert operator.run("status") == (
        "topic   queues  copied  to go  lost\n"
        "orders       4     400      0     0\n"
    )  # fmt: skip
    assert operator.run("offsets") == (
        "billing: resumes in 0 queues, 0 of them with offsets; 0 messages will be redelivered\n"
    )
    assert operator.run("verify") == (
        "topic   queues  source  copies  missing  changed  twice  to come  others\n"
        "orders       4     400     400        0        0      0        0       0\n"
        "all          4     400     400        0        0      0        0       0\n"
        "digests agree in 4 of 4 queues\n"
        "nothing is missing, nothing is changed\n"
    )
    with mq.Producer(source.address, group="shop", send_timeout=30.0) as producer:
        producer.send(mq.Message("orders", b"later"))
    assert operator.run("verify").splitlines()[-2:] == [
        "nothing is missing, nothing is changed",
        "compared up to the last copy: 1 messages are still to be copied",
    ]


@pytest.mark.parametrize(
    ("how", "code"),
    [("", 130), ("--quiet 30", 130), ("--follow --quiet 30", 130), ("--follow", 0)],
)
def test_interrupted_it_stops_cleanly_and_goes_on(tmp_path: Path, how: str, code: int) -> None:
    """The exit code says so, unless it was to go on until interrupted."""
    with (
        Cluster(in_process=False) as source,
        Cluster(in_process=False, faults=True) as target,
    ):
        operator = Operator(source.address, target.address, tmp_path / "state")
        fill(source, "orders", 4000)
        target.slow("broker-0", 0.05)
        copying = operator.start("copy", *how.split())
        wait_for(operator.state.exists, "the state file")
        wait_for(operator.copied, "the first copies")
        copying.send_signal(signal.SIGINT)
        out, error = copying.communicate(timeout=60)
        assert (copying.returncode, error) == (code, "")
        assert re.search(r"stopped with [1-9]\d* messages to go; the same command resumes", out)
        target.heal("broker-0")
        operator.run("copy")
        verdicts = operator.json("verify")
        assert sum(each["copies"] for each in verdicts) == 4000
        assert sum(each["duplicates"] for each in verdicts) == 0


def test_on_a_terminal_it_shows_how_far_it_is(
    clusters: tuple[Cluster, Cluster], operator: Operator
) -> None:
    source, _ = clusters
    fill(source, "orders", 200)
    ours, theirs = os.openpty()
    following = subprocess.Popen(operator.command("copy", "--follow"), stdout=PIPE, stderr=theirs)
    os.close(theirs)
    shown = b""
    while b"200 of 200 messages, " not in shown or b"following" not in shown:
        shown += os.read(ours, 1000)  # ends with an error if the command does
    following.send_signal(signal.SIGTERM)
    out, _ = following.communicate(timeout=60)
    os.close(ours)
    assert following.returncode == 0
    assert out.decode().splitlines() == [
        "copied 200 messages of 1 topics, 4 queues",
        "stopped with 0 messages to go; the same command resumes",
    ]


@pytest.mark.parametrize(
    ("following", "said"), [(True, "caught up after 3 messages; following\n"), (False, "")]
)
def test_only_who_follows_says_so(
    following: bool, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "_EVERY", 0.0)
    done = MigrationProgress()
    done.copied, done.caught_up = 3, True

    async def show() -> None:
        async with report.showing_progress(done, following=following):
            for _ in range(10):
                await asyncio.sleep(0)

    asyncio.run(show())
    assert capsys.readouterr().err == said


Prepare = Callable[[Cluster, Cluster], None]


def other_counts(_: Cluster, target: Cluster) -> None:
    target.create_topic("orders", queues=3)


def unreadable(source: Cluster, _: Cluster) -> None:
    with mq.Admin(source.address) as admin:
        admin.topics.set_permission("orders", 2)


OTHER_COUNTS = (
    "cannot migrate the cluster: topic 'orders' exists on the target with 3 queues, the "
    "source has 4: messages of a key would change their queue"
)
UNREADABLE = (
    "cannot migrate the cluster: topic 'orders' is not readable on the source's broker "
    "'broker-0': allow it with `pocketmq admin updateTopicPerm"
)


@pytest.mark.parametrize(
    ("prepare", "complaint"), [(other_counts, OTHER_COUNTS), (unreadable, UNREADABLE)]
)
def test_what_stands_in_the_way_is_said_before_anything_is_done(
    clusters: tuple[Cluster, Cluster], operator: Operator, prepare: Prepare, complaint: str
) -> None:
    source, target = clusters
    fill(source, "orders", 10)
    prepare(source, target)
    assert complaint in operator.run("copy", code=1)
    assert "problem: topic 'orders'" in operator.run("plan", code=1)


def test_mistakes_are_told_in_one_line(operator: Operator, tmp_path: Path) -> None:
    nowhere = Operator(operator.source, "127.0.0.1:1", tmp_path / "s")
    assert nowhere.run("copy", code=1).startswith(
        "pocketmq: no name server responds at 127.0.0.1:1"
    )
    same = Operator(operator.source, operator.source, tmp_path / "s")
    assert "source and target are the same" in same.run("plan", code=2)
    assert "it does not exist; run `copy` first" in operator.run("verify", code=1)
    operator.run("copy")
    other = Operator(operator.target, operator.source, operator.state)
    assert "give another file with --state" in other.run("copy", code=1)


def test_a_guarded_target_says_who_may_not(
    tmp_path: Path, clusters: tuple[Cluster, Cluster]
) -> None:
    source, _ = clusters
    fill(source, "orders", 10)
    config: dict[str, str | int | bool] = {
        "authenticationEnabled": True,
        "authorizationEnabled": True,
        "initAuthenticationUser": '{"username":"root","password":"secret-1"}',
        "innerClientAuthenticationCredentials": '{"accessKey":"root","secretKey":"secret-1"}',
    }
    with Cluster(in_process=False, config=config) as guarded:
        operator = Operator(source.address, guarded.address, tmp_path / "guarded")
        refused = operator.run("copy", code=1)
        assert "cannot migrate" in refused
        assert "NO_PERMISSION" in refused
        keys = ["--to-access-key", "root", "--to-secret-key", "secret-1"]
        assert operator.run("copy", *keys) == "copied 10 messages of 1 topics, 4 queues\n"
