"""`pocketmq namesrv` as a user meets it: a real process, its one line, its mistakes."""

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from pocketmq.protocol import RequestCode
from pocketmq.protocol.requests.key_values import GetKVConfigRequest, PutKVConfigRequest
from tests.cli.in_process import command
from tests.server_process import POCKETMQ, ServerProcess
from tests.wire_client import WireClient


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [POCKETMQ, *arguments], capture_output=True, text=True, timeout=60, check=False
    )


def test_it_is_ready_by_one_line_and_ends_with_0_on_sigterm() -> None:
    with ServerProcess("namesrv", "--port", "0") as server:
        host, _, port = server.namesrv.rpartition(":")
        assert (host, server.ready) == ("127.0.0.1", f"ready namesrv=127.0.0.1:{port}\n")
        with WireClient(server.namesrv) as client:
            assert client.ask(RequestCode.GET_BROKER_CLUSTER_INFO).code == 0
        assert server.stop() == 0


def test_ctrl_c_ends_it_with_0() -> None:
    with ServerProcess("namesrv", "--port", "0") as server:
        assert server.stop(signal.SIGINT) == 0


def test_key_values_in_its_data_outlive_it(tmp_path: Path) -> None:
    put = PutKVConfigRequest(namespace="n", key="k", value="v")
    with ServerProcess("namesrv", "--port", "0", "--data", str(tmp_path / "d")) as server:
        with WireClient(server.namesrv) as client:
            assert client.ask(RequestCode.PUT_KV_CONFIG, put).code == 0
        assert server.stop() == 0
    with ServerProcess("namesrv", "--port", "0", "--data", str(tmp_path / "d")) as server:
        with WireClient(server.namesrv) as client:
            answer = client.ask(
                RequestCode.GET_KV_CONFIG, GetKVConfigRequest(namespace="n", key="k")
            )
        assert answer.ext["value"] == "v"


def test_log_lines_are_json_objects_if_asked_for() -> None:
    with ServerProcess("namesrv", "--port", "0", "--log-json") as server:
        assert server.stop() == 0
    entries = [json.loads(line) for line in server.lines]
    assert entries[0]["area"] == "nameserver"
    assert entries[0]["level"] == "info"
    assert entries[0]["message"] == f"name server listening on {server.namesrv}"


def test_listening_for_everybody_is_warned_about_and_a_usable_address_told() -> None:
    with ServerProcess("namesrv", "--port", "0", "--host", "0.0.0.0") as server:
        assert not server.namesrv.startswith("0.0.0.0")
        with WireClient(server.namesrv) as client:
            assert client.ask(RequestCode.GET_BROKER_CLUSTER_INFO).code == 0
        assert server.stop() == 0
    assert (
        "WARNING cluster: listening on 0.0.0.0 without access control: any client that reaches it can read "
        "and write everything; authenticationEnabled turns it on\n" in server.errors()
    )


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
def test_it_listens_on_ipv6() -> None:
    with ServerProcess("namesrv", "--port", "0", "--host", "::1") as server:
        assert server.namesrv.startswith("[::1]:")
        with WireClient(server.namesrv) as client:
            assert client.ask(RequestCode.GET_BROKER_CLUSTER_INFO).code == 0


WRONG = [
    (["--set", "x"], "--set takes KEY=VALUE, not 'x'"),
    (["--set", "=1"], "--set takes KEY=VALUE, not '=1'"),
    (
        ["--set", "orderMessageEnabled=true"],
        "unknown name server setting 'orderMessageEnabled'; did you mean orderMessageEnable?",
    ),
    (
        ["--set", "orderMessageEnable=yes"],
        "orderMessageEnable must be true or false, not 'yes'",
    ),
    (
        ["--host", "no.such.host.invalid"],
        (
            "the name server cannot start: the host 'no.such.host.invalid' does not resolve; "
            "give an address of this machine"
        ),
    ),
    (
        ["--host", "192.0.2.77"],
        (
            "the name server cannot start: it cannot listen on 192.0.2.77:9876: "
            "this machine has no such address"
        ),
    ),
]
UNREADABLE = [
    (["--port", "70000"], "--port"),
    (["--port", "x"], "--port"),
    (["--prot", "1"], "--prot"),
    (["extra"], "extra"),
    (["--log-level", "loud"], "loud"),
]


@pytest.mark.parametrize(("arguments", "line"), WRONG, ids=lambda value: str(value)[:40])
def test_a_mistake_is_told_in_one_line_with_exit_code_2(arguments: list[str], line: str) -> None:
    done = command("namesrv", *arguments)
    told = f"pocketmq: {line}\n".encode()
    assert (done.returncode, done.stdout, done.stderr) == (2, b"", told)


@pytest.mark.parametrize(("arguments", "culprit"), UNREADABLE, ids=lambda value: str(value)[:40])
def test_what_cannot_be_read_is_named_in_one_line(arguments: list[str], culprit: str) -> None:
    done = command("namesrv", *arguments)
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)
    assert done.stderr.startswith(b"pocketmq: ")
    assert culprit in done.stderr.decode()


def test_a_taken_port_is_told_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("namesrv", "--port", str(port))
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        (
            f"pocketmq: the name server cannot start: it cannot listen on 127.0.0.1:{port}: "
            "the port is in use\n"
        ),
    )


def test_a_file_where_the_data_should_be_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run("namesrv", "--port", "0", "--data", str(tmp_path / "file"))
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        f"pocketmq: the name server cannot start: cannot make {tmp_path}/file: File exists\n",
    )


def test_wrong_options_are_told_without_loading_the_server() -> None:
    code = (
        "import sys; from pocketmq.cli import run; run(['--help']); "
        "sys.exit('asyncio' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_a_guarded_name_server_takes_brokers_that_sign_and_no_others(tmp_path: Path) -> None:
    user = '{"username":"root","password":"a long secret"}'
    names, signing = tmp_path / "namesrv.conf", tmp_path / "broker.conf"
    names.write_text(
        f"authenticationEnabled=true\ninitAuthenticationUser={user}\nserverWorkerThreads=8\n"
    )
    credentials = '{"accessKey":"root","secretKey":"a long secret"}'
    signing.write_text(f"nameServerCredentials={credentials}\n")
    with ServerProcess("namesrv", "--port", "0", "--config", str(names)) as server:
        broker = ("broker", "--port", "0", "--namesrv", server.namesrv)
        with ServerProcess(*broker, "--name", "signing", "--config", str(signing)) as good:
            with (
                ServerProcess(*broker, "--name", "silent") as bad,
                WireClient(server.namesrv) as client,
            ):
                body = client.ask(RequestCode.GET_BROKER_CLUSTER_INFO).body
                assert b'"signing"' in body
                assert b'"silent"' not in body
                assert bad.stop() == 0
            assert good.stop() == 0
        with WireClient(server.namesrv) as client:
            assert b'"signing"' not in client.ask(RequestCode.GET_BROKER_CLUSTER_INFO).body
        assert server.stop() == 0
    assert "REGISTER_BROKER needs the signature of a super user of this name server" in bad.errors()
    assert "ignoring unknown name server setting serverWorkerThreads" in server.errors()
    for each in (server, good, bad):
        assert "a long secret" not in each.errors()
