"""`pocketmq broker` as a user meets it: on a name server of its own process."""

import os
import subprocess
from pathlib import Path

import pytest

from pocketmq.protocol import RequestCode, decode_body
from pocketmq.protocol.requests.nameserver import ClusterInfo
from tests.cli.in_process import command
from tests.ports import free_port
from tests.server_process import POCKETMQ, ServerProcess, wait_for
from tests.wire_client import WireClient


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [POCKETMQ, "broker", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )


def cluster_info(namesrv: str) -> ClusterInfo:
    with WireClient(namesrv) as client:
        return decode_body(client.ask(RequestCode.GET_BROKER_CLUSTER_INFO).body, ClusterInfo)


def test_brokers_of_their_own_join_one_cluster_and_leave_it() -> None:
    with ServerProcess("namesrv", "--port", "0") as namesrv:
        common = ("broker", "-n", namesrv.namesrv, "--port", "0", "--cluster", "Shop")
        with (
            ServerProcess(*common, "--name", "a") as a,
            ServerProcess(*common, "--name", "b") as b,
        ):
            assert a.ready.startswith(f"ready namesrv={namesrv.namesrv} brokers=a@127.0.0.1:")
            info = cluster_info(namesrv.namesrv)
            assert {name: sorted(names) for name, names in info.cluster_addr_table.items()} == {
                "Shop": ["a", "b"]
            }
            known = {name: data.broker_addrs[0] for name, data in info.broker_addr_table.items()}
            assert known == a.brokers | b.brokers
            with WireClient(a.brokers["a"]) as client:
                assert client.send("orders", b"42 EUR") == 0
            assert a.stop() == 0
            assert list(cluster_info(namesrv.namesrv).broker_addr_table) == ["b"]
            assert b.stop() == 0


def test_its_data_goes_on(tmp_path: Path) -> None:
    with ServerProcess("namesrv", "--port", "0") as namesrv:
        common = ("broker", "-n", namesrv.namesrv, "--port", "0", "--data", str(tmp_path / "d"))
        for offset in range(2):
            with ServerProcess(*common, "--name", "a") as broker:
                with WireClient(broker.brokers["a"]) as client:
                    assert client.send("orders", b"x") == offset
                assert broker.stop() == 0


def test_a_broker_without_its_name_server_serves_and_registers_when_that_comes() -> None:
    port = free_port()
    address = f"127.0.0.1:{port}"
    with ServerProcess("broker", "-n", address, "--port", "0", "--name", "a") as broker:
        with WireClient(broker.brokers["a"]) as client:
            assert client.send("orders", b"x") == 0
        with ServerProcess("namesrv", "--port", str(port)) as namesrv:
            wait_for(lambda: cluster_info(namesrv.namesrv).broker_addr_table, "its registration")
            assert broker.stop() == 0


def test_a_java_brokers_file_is_understood_and_options_win(tmp_path: Path) -> None:
    file = tmp_path / "broker.conf"
    file.write_text(
        "brokerClusterName = Shop\nbrokerName = from-file\nlistenPort=1\n"
        "namesrvAddr=127.0.0.1:1\nsendMessageThreadPoolNums = 4\nregionId=eu\n"
    )
    with ServerProcess("namesrv", "--port", "0") as namesrv:
        with ServerProcess(
            "broker", "-c", str(file), "-n", namesrv.namesrv, "--port", "0", "--set", "regionId=us"
        ) as broker:
            assert list(broker.brokers) == ["from-file"]
            with WireClient(broker.brokers["from-file"]) as client:
                lines = client.ask(RequestCode.GET_BROKER_CONFIG).body.decode().splitlines()
            assert {"regionId=us", "brokerClusterName=Shop"} <= set(lines)
            assert broker.stop() == 0
        assert (
            "WARNING cluster: ignoring unknown broker setting sendMessageThreadPoolNums"
            in broker.errors()
        )


def test_name_servers_may_come_from_the_environment() -> None:
    done = run("--port", "0", "--host", "192.0.2.77", NAMESRV_ADDR="127.0.0.1:1")
    assert done.returncode == 2
    assert "cannot listen on 192.0.2.77" in done.stderr


WRONG = [
    ([], "no name server; give --namesrv HOST:PORT"),
    (["-n", "localhost"], "'localhost' is not an address; write it as host:port"),
    (["-n", "a:1;b"], "'b' is not an address; write it as host:port"),
    (["-n", "a:1", "--set", "brokerId=1"], "invalid setting brokerId=1: must be 0"),
    (
        ["-n", "a:1", "--data", "x", "--memory"],
        "--data and --memory contradict each other; give one of them",
    ),
    (["-n", "a:1", "-c", "no.conf"], "cannot read no.conf: No such file or directory"),
    (
        ["-n", "a:1", "--name", "b", "--host", "192.0.2.77"],
        "b cannot start: it cannot listen on 192.0.2.77:10911: this machine has no such address",
    ),
]


@pytest.mark.parametrize(("arguments", "line"), WRONG, ids=lambda value: str(value)[:40])
def test_a_mistake_is_told_in_one_line_with_exit_code_2(arguments: list[str], line: str) -> None:
    done = command("broker", *arguments)
    told = f"pocketmq: {line}\n".encode()
    assert (done.returncode, done.stdout, done.stderr) == (2, b"", told)


def test_data_that_cannot_be_used_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run("-n", "127.0.0.1:1", "--port", "0", "--name", "a", "--data", f"{tmp_path}/file")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("pocketmq: a cannot start: ")
    assert f"{tmp_path}/file" in done.stderr
