"""Mistakes before `pocketmq admin`: one clear line on stderr, and an exit code by kind."""

import signal
import subprocess
from collections.abc import Iterator

import pytest

from pocketmq import Cluster
from pocketmq.cli import commands, run
from tests.cli.admin_desk import Desk
from tests.server_process import POCKETMQ


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=2, faults=True) as running:
        running.create_topic("orders", queues=2)
        yield running


@pytest.fixture
def desk(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> Desk:
    return Desk(cluster, capsys)


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("topicStatus", 2, "Missing option '-t'"),
        ("topicStatus -t orders --nonsense", 2, "No such option"),
        ("updateTopic -t made", 2, "give either a cluster with -c, or a broker with -b"),
        ("updateTopic -t b@d -c DefaultCluster", 2, "'b@d'"),
        ("updateTopic -t made -c DefaultCluster -o maybe", 2, "neither true nor false"),
        ("resetOffsetByTime -g g -t orders -s then -y", 2, "'then' is not a time"),
        ("deleteTopic -t orders -c DefaultCluster", 2, "pass --yes to confirm"),
        ("what-if -g g --strategy AVGG", 2, "AVGG"),
        ("what-if -g g --strategy AVG", 3, "no group 'g' found"),
        ("topicStatus -t none", 3, "no route for topic 'none'"),
        ("topicList2", 2, "did you mean topicList?"),
        ("deleteTopic -t none -c DefaultCluster -y", 3, "no topic 'none' found"),
        ("clusterList -c none", 3, "no cluster 'none' found"),
        ("consumerProgress -g none", 3, "no group 'none' found"),
        ("consumerConnection -g none", 3, "no group 'none' found"),
        ("queryMsgById -t orders -i 00", 3, "no message '00' found"),
        ("queryMsgByOffset -t orders -b broker-0 -i 0 -o 5", 3, "the queue is empty"),
        ("queryMsgByKey -t orders -k none", 3, "no message with key 'none' found"),
        ("updateTopic -t SELF_TEST_TOPIC -c DefaultCluster", 2, "INVALID_PARAMETER"),
        ("brokerStatus -b 127.0.0.1:1", 4, "127.0.0.1:1"),
    ],
)
def test_a_mistake_is_one_line_and_a_code(desk: Desk, line: str, code: int, said: str) -> None:
    ended, out, err = desk.ends(*line.split())
    assert (ended, out) == (code, "")
    assert said in err
    assert err.startswith("pocketmq: ")
    assert err.count("\n") == 1


def test_a_name_server_that_is_dead(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["admin", "topicList", "-n", "127.0.0.1:1"]) == 4
    assert capsys.readouterr().err == (
        "pocketmq: no name server responds at 127.0.0.1:1: connection refused; no server listens there\n"
    )


HINT = "; start a cluster with 'pocketmq up', or name one with -n or NAMESRV_ADDR\n"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["admin", "topicList"], 4),
        (["explain", "-g", "shop"], 4),
        (["consume", "-t", "orders", "--timeout", "1"], 1),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_without_a_name_the_local_name_server_is_asked(
    words: list[str],
    code: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    monkeypatch.setattr(commands, "LOCAL", "127.0.0.1:1")  # where no server listens
    assert run(words) == code
    error = capsys.readouterr().err
    assert error.startswith("pocketmq: no name server responds at 127.0.0.1:1: ")
    assert error.endswith(HINT)


def test_the_local_name_server_is_used(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    monkeypatch.setattr(commands, "LOCAL", cluster.address)
    assert run(["admin", "topicList"]) == 0
    assert "TBW102" in capsys.readouterr().out


def test_the_environment_names_the_name_server(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NAMESRV_ADDR", cluster.address)
    assert run(["admin", "topicClusterList", "-t", "orders"]) == 0
    assert capsys.readouterr().out == "DefaultCluster\n"


def test_a_broker_that_is_silent_is_told_and_never_zero(desk: Desk) -> None:
    def ends(*words: str) -> tuple[int, str, str]:
        """Run a command with as much patience as others need to be heard on a busy machine."""
        for patience in ("0.3", "2", "10"):
            code, out, err = desk.ends(*words, "--timeout", patience)
            if "broker-0" not in err and "name server" not in err:
                break
        return code, out, err

    desk.cluster.partition("broker-1")
    try:
        code, out, err = ends("clusterList")
        lines = out.splitlines()
        assert (code, len(lines)) == (6, 3)
        assert lines[2].split()[4:] == ["?"] * 8
        assert err.startswith("pocketmq: no response from broker-1 at ")
        code, out, err = ends("topicStatus", "-t", "orders")
        assert code == 6
        assert "broker-1" not in out
        assert "broker-1" in err
    finally:
        desk.cluster.heal("broker-1")


def test_wrong_credentials(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config: dict[str, str | int | bool] = {
        "authenticationEnabled": True,
        "authorizationEnabled": True,
        "initAuthenticationUser": '{"username":"root","password":"secret12"}',
        "innerClientAuthenticationCredentials": '{"accessKey":"root","secretKey":"secret12"}',
    }
    with Cluster(config=config) as guarded:
        command = ["admin", "brokerStatus", "-c", "DefaultCluster", "-n", guarded.address]
        right = ["--access-key", "root", "--secret-key", "secret12"]
        assert run([*command, *right]) == 0
        capsys.readouterr()
        monkeypatch.setenv("POCKETMQ_SECRET_KEY", "wrong")
        assert run([*command, "--access-key", "root"]) == 5
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        monkeypatch.delenv("POCKETMQ_SECRET_KEY")
        assert run(command) == 5
        capsys.readouterr()
        target = ["-n", guarded.address, "-c", "DefaultCluster", *right]
        assert run(["admin", "createUser", "-u", "alice", "-p", "alice123", *target]) == 0
        rule = ["-s", "User:alice", "-r", "Topic:orders", "-a", "Pub,Sub", "-d", "Allow"]
        assert run(["admin", "createAcl", *rule, *target]) == 0
        capsys.readouterr()
        assert run(["admin", "getUser", "-u", "alice", *target]) == 0
        out = capsys.readouterr().out
        assert "alice123" not in out
        assert "******" in out
        assert run(["admin", "listAcl", *target]) == 0
        shown = capsys.readouterr().out.splitlines()[1].split()
        assert shown[:3] == ["User:alice", "Custom", "Topic:orders"]
        assert run(["admin", "deleteAcl", "-s", "User:alice", "-y", *target]) == 0
        assert run(["admin", "deleteUser", "-u", "alice", "-y", *target]) == 0
        assert run(["admin", "getUser", "-u", "alice", *target]) == 3
        capsys.readouterr()


# Real processes


def test_as_a_process(cluster: Cluster) -> None:
    done = subprocess.run(
        [POCKETMQ, "admin", "topicClusterList", "-n", cluster.address, "-t", "orders"],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"DefaultCluster\n", b"")


def test_watching_goes_on_until_it_is_interrupted(cluster: Cluster) -> None:
    command = [str(POCKETMQ), "admin", "topicClusterList", "-n", cluster.address, "-t", "orders"]
    with subprocess.Popen(
        [*command, "--watch", "0.05"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert [child.stdout.readline() for _ in range(3)] == [b"DefaultCluster\n"] * 3
        child.send_signal(signal.SIGINT)
        assert (child.wait(30), child.stderr.read()) == (130, b"")


def test_the_shell_completes_names_of_commands() -> None:
    environment = {
        "_POCKETMQ_COMPLETE": "bash_complete",
        "COMP_WORDS": "pocketmq admin topicS",
        "COMP_CWORD": "2",
    }
    done = subprocess.run([POCKETMQ], env=environment, capture_output=True, timeout=60, check=False)
    assert done.stdout == b"plain,topicStatus\n"
