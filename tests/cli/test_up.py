"""`pocketmq up` as a user meets it: real processes, real signals, real data."""

import json
import os
import re
import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import pytest

from pocketmq.embedded.listening import write_ports
from pocketmq.embedded.settings import ClusterSettings
from pocketmq.protocol import RequestCode, decode_body
from pocketmq.protocol.requests.nameserver import ClusterInfo
from tests.cli.in_process import command
from tests.ports import free_port
from tests.server_process import POCKETMQ, ServerProcess, children_of, is_alive, kill, wait_for
from tests.wire_client import WireClient


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [POCKETMQ, "up", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=cwd,
    )


def told(*arguments: str, cwd: Path | None = None) -> tuple[int, str, str]:
    """Run it in this process; give the exit code and what came on stdout and stderr."""
    done = command("up", *arguments, cwd=cwd)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def known_brokers(namesrv: str) -> dict[str, str]:
    """What the name server tells clients."""
    with WireClient(namesrv) as client:
        answer = client.ask(RequestCode.GET_BROKER_CLUSTER_INFO)
    table = decode_body(answer.body, ClusterInfo).broker_addr_table
    return {name: data.broker_addrs[0] for name, data in table.items()}


def test_the_ready_line_names_what_clients_can_use_at_once() -> None:
    with ServerProcess("up", "--port", "0", "--brokers", "2") as cluster:
        assert re.fullmatch(
            r"ready namesrv=127\.0\.0\.1:\d+ "
            r"brokers=broker-0@127\.0\.0\.1:\d+,broker-1@127\.0\.0\.1:\d+\n",
            cluster.ready,
        )
        assert known_brokers(cluster.namesrv) == cluster.brokers
        for address in cluster.brokers.values():
            with WireClient(address) as client:
                assert client.send("orders", b"42 EUR") == 0
                assert client.bodies("orders") == [b"42 EUR"]
        assert len(cluster.children()) == 2
        assert cluster.stop() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_one_signal_stops_everything_cleanly_and_data_goes_on(number: int, tmp_path: Path) -> None:
    arguments = ("up", "--port", "0", "--data", str(tmp_path / "deep" / "data"))
    with ServerProcess(*arguments) as cluster:
        children = cluster.children()
        with WireClient(cluster.brokers["broker-0"]) as client:
            offsets = [client.send("orders", b"%d" % n) for n in range(3)]
        assert offsets == [0, 1, 2]
        assert cluster.stop(number) == 0
        assert not any(map(is_alive, children))
        assert "ERROR" not in cluster.errors()
        assert "WARNING" not in cluster.errors()
    with ServerProcess(*arguments) as cluster:
        with WireClient(cluster.brokers["broker-0"]) as client:
            assert client.bodies("orders") == [b"0", b"1", b"2"]
            assert client.send("orders", b"3") == 3
        assert cluster.stop() == 0


def test_without_a_data_directory_nothing_is_written_anywhere_near(tmp_path: Path) -> None:
    with ServerProcess("up", "--port", "0", cwd=tmp_path) as cluster:
        with WireClient(cluster.brokers["broker-0"]) as client:
            client.send("orders", b"42 EUR")
        assert cluster.stop() == 0
    assert list(tmp_path.iterdir()) == []
    told = "INFO cluster: messages are kept in memory and lost at exit; --data DIR keeps them"
    assert told in cluster.errors()


def test_asking_for_memory_needs_no_reminder() -> None:
    with ServerProcess("up", "--port", "0", "--memory") as cluster:
        assert cluster.stop() == 0
    assert "--data" not in cluster.errors()


def test_ctrl_c_of_a_terminal_reaches_the_supervisor_alone(tmp_path: Path) -> None:
    """A terminal signals the whole foreground group; brokers must not stop on their own."""
    with ServerProcess("up", "--port", "0") as cluster:
        groups = {os.getpgid(child) for child in cluster.children()}
        assert os.getpgid(cluster.process.pid) not in groups


def test_a_second_signal_ends_everything_at_once() -> None:
    with ServerProcess("up", "--port", "0") as cluster:
        (child,) = cluster.children()
        os.kill(child, signal.SIGSTOP)  # now it cannot stop cleanly
        try:
            cluster.process.send_signal(signal.SIGTERM)
            wait_for(lambda: "stopping" in cluster.errors(), "the stop to begin")
            assert cluster.stop() == 130
            wait_for(lambda: not is_alive(child), "the broker's end")
        finally:
            if is_alive(child):
                kill(child)


def test_a_killed_supervisor_leaves_no_broker_behind(tmp_path: Path) -> None:
    with ServerProcess("up", "--port", "0", "--brokers", "2", "--data", str(tmp_path)) as cluster:
        children = cluster.children()
        assert all(map(is_alive, children))
        cluster.process.kill()
        wait_for(lambda: not any(map(is_alive, children)), "both brokers to end")
    with ServerProcess("up", "--port", "0", "--brokers", "2", "--data", str(tmp_path)) as cluster:
        assert cluster.stop() == 0  # nobody holds the data any more


def test_a_killed_broker_is_started_again_with_its_data_and_address(tmp_path: Path) -> None:
    # Ports that no other process takes while a broker is down.
    write_ports(tmp_path, {f"broker-{number}": free_port() for number in range(2)})
    with ServerProcess("up", "--port", "0", "--brokers", "2", "--data", str(tmp_path)) as cluster:
        address = cluster.brokers["broker-0"]
        with WireClient(address) as client:
            for n in range(10):
                client.send("orders", b"%d" % n)
        victim = broker_pid(cluster, "broker-0")
        kill(victim)
        wait_for(lambda: "broker-0 restarted at" in cluster.errors(), "the broker to come back")
        wait_for(lambda: known_brokers(cluster.namesrv) == cluster.brokers, "its registration")
        with WireClient(address) as client:
            assert client.bodies("orders") == [b"%d" % n for n in range(10)]
            assert client.send("orders", b"10") == 10
        assert victim not in cluster.children()
        assert cluster.stop() == 0
    assert f"ERROR cluster: broker-0 (pid {victim}) was killed by SIGKILL\n" in cluster.errors()
    assert "WARNING cluster: broker-0 restarts in 0.1 s\n" in cluster.errors()


def test_a_killed_broker_without_a_disk_comes_back_empty_and_that_is_told() -> None:
    with ServerProcess("up", "--port", "0", "--broker-port", str(free_port())) as cluster:
        with WireClient(cluster.brokers["broker-0"]) as client:
            client.send("orders", b"42 EUR")
        kill(cluster.children()[0])
        wait_for(lambda: "broker-0 restarted at" in cluster.errors(), "the broker to come back")
        with WireClient(cluster.brokers["broker-0"]) as client:
            assert client.send("orders", b"43 EUR") == 0
        assert cluster.stop() == 0
    assert "was killed by SIGKILL; its messages were in memory and are lost" in cluster.errors()


def test_a_broker_that_cannot_start_again_is_tried_until_it_can() -> None:
    port = free_port()
    with ServerProcess("up", "--port", "0", "--broker-port", str(port)) as cluster:
        assert cluster.brokers == {"broker-0": f"127.0.0.1:{port}"}
        os.kill(cluster.process.pid, signal.SIGSTOP)  # else the broker may be back before us
        kill(cluster.children()[0])
        with taken(port):
            os.kill(cluster.process.pid, signal.SIGCONT)
            told = f"broker-0 cannot start: it cannot listen on 127.0.0.1:{port}"
            wait_for(lambda: told in cluster.errors(), "a start in vain")
        wait_for(lambda: "broker-0 restarted at" in cluster.errors(), "the broker to come back")
        assert cluster.stop() == 0
    assert "broker-0 restarts in 0.2 s" in cluster.errors()


def taken(port: int) -> socket.socket:
    """Take a port as soon as it is free."""
    servers: list[socket.socket] = []

    def take() -> bool:
        with suppress(OSError):
            servers.append(socket.create_server(("127.0.0.1", port)))
        return bool(servers)

    wait_for(take, "the port")
    return servers[0]


def test_a_stop_while_a_broker_is_being_started_again_is_clean_too() -> None:
    with ServerProcess("up", "--port", "0") as cluster:
        kill(cluster.children()[0])
        wait_for(lambda: "restarts in" in cluster.errors(), "the end to be noticed")
        wait_for(cluster.children, "the new process")
        children = cluster.children()
        assert cluster.stop() == 0
        assert not any(map(is_alive, children))
    assert "Traceback" not in cluster.errors()


def broker_pid(cluster: ServerProcess, name: str) -> int:
    (found,) = (
        child
        for child in cluster.children()
        if Path(f"/proc/{child}/comm").read_text() == f"{name}\n"
    )
    return found


def test_a_stop_during_the_start_is_clean_too() -> None:
    with subprocess.Popen(
        [POCKETMQ, "up", "--port", "0", "--log-level", "debug"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        wait_for(lambda: children_of(process.pid), "the first child")
        children = children_of(process.pid)  # whoever looks late finds that of gRPC clients, too
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert not any(map(is_alive, children))


def test_brokers_keep_their_ports_from_one_start_to_the_next(tmp_path: Path) -> None:
    namesrv_port = str(free_port())
    arguments = ("up", "--port", namesrv_port, "--brokers", "2", "--data", str(tmp_path))
    for _ in range(5):
        with ServerProcess(*arguments) as cluster:
            first = cluster.ready
            assert cluster.stop() == 0
        with ServerProcess(*arguments) as cluster:
            second = cluster.ready
            assert cluster.stop() == 0
        if "is in use; broker-" not in cluster.errors():
            break  # else another process was given the port meanwhile
    assert second == first


def test_a_remembered_port_that_is_taken_is_given_up_and_told(tmp_path: Path) -> None:
    arguments = ("up", "--port", str(free_port()), "--data", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (tmp_path / "ports.json").write_text(json.dumps({"broker-0": port}))
        with ServerProcess(*arguments) as cluster:
            assert cluster.brokers["broker-0"] != f"127.0.0.1:{port}"
            told = f"port {port} is in use; broker-0 uses any free port"
            wait_for(lambda: told in cluster.errors(), "the line of the log")


def test_settings_reach_the_brokers() -> None:
    with ServerProcess(
        "up", "--port", "0", "--set", "regionId=eu", "--set", "brokerClusterName=Shop"
    ) as cluster:
        with WireClient(cluster.brokers["broker-0"]) as client:
            lines = client.ask(RequestCode.GET_BROKER_CONFIG).body.decode().splitlines()
        assert "regionId=eu" in lines
        with WireClient(cluster.namesrv) as client:
            body = client.ask(RequestCode.GET_BROKER_CLUSTER_INFO).body
        assert decode_body(body, ClusterInfo).cluster_addr_table == {"Shop": ["broker-0"]}


def test_every_line_of_the_log_is_a_json_object_if_asked_for() -> None:
    with ServerProcess("up", "--port", "0", "--log-json", "--host", "0.0.0.0") as cluster:
        kill(cluster.children()[0])
        wait_for(lambda: "broker-0 restarted at" in cluster.errors(), "the broker to come back")
        assert cluster.stop() == 0
    entries = [json.loads(line) for line in cluster.lines]
    assert {entry["level"] for entry in entries} == {"info", "warning", "error"}
    assert {entry.get("process") for entry in entries} == {None, "broker-0"}
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", e["time"]) for e in entries)


def test_listening_for_everybody_is_warned_about_once_and_brokers_tell_a_usable_address() -> None:
    with ServerProcess("up", "--port", "0", "--host", "0.0.0.0") as cluster:
        assert "0.0.0.0" not in cluster.ready
        with WireClient(cluster.brokers["broker-0"]) as client:
            assert client.send("orders", b"x") == 0
        assert cluster.stop() == 0
    assert cluster.errors().count("without access control") == 1


def test_clients_are_told_another_host_if_asked_for() -> None:
    with ServerProcess("up", "--port", "0", "--advertise", "localhost") as cluster:
        assert cluster.namesrv.startswith("localhost:")
        assert known_brokers(cluster.namesrv) == cluster.brokers
        assert cluster.brokers["broker-0"].startswith("localhost:")


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
def test_it_listens_on_ipv6() -> None:
    with ServerProcess("up", "--port", "0", "--host", "::1") as cluster:
        assert cluster.brokers["broker-0"].startswith("[::1]:")
        with WireClient(cluster.brokers["broker-0"]) as client:
            assert client.send("orders", b"x") == 0
        assert cluster.stop() == 0


WRONG = [
    (
        ["--data", "x", "--memory"],
        "--data and --memory contradict each other; give one of them",
    ),
    (["--data", ""], "--data takes a directory, not an empty string"),
    (["--set", "regionId"], "--set takes KEY=VALUE, not 'regionId'"),
    (
        ["--set", "autoCreateTopicEnabled=true"],
        "unknown broker setting 'autoCreateTopicEnabled'; did you mean autoCreateTopicEnable?",
    ),
    (
        ["--set", "autoCreateTopicEnable=maybe"],
        "autoCreateTopicEnable must be true or false, not 'maybe'",
    ),
    (
        ["--set", "flushDiskType=NEVER"],
        "invalid setting flushDiskType=NEVER: must be ASYNC_FLUSH or SYNC_FLUSH",
    ),
    (
        ["--broker-port", "65530", "--brokers", "3"],
        "3 brokers from port 65530 on would need port 65550",
    ),
    (
        ["--set", "listenPort=1"],
        "listenPort cannot be set here: the cluster sets it for each broker",
    ),
    (
        ["--host", "192.0.2.77"],
        (
            "the name server cannot start: it cannot listen on 192.0.2.77:9876: "
            "this machine has no such address"
        ),
    ),
]


@pytest.mark.parametrize(("arguments", "line"), WRONG, ids=lambda value: str(value)[:40])
def test_a_mistake_is_told_in_one_line_with_exit_code_2(
    arguments: list[str], line: str, tmp_path: Path
) -> None:
    assert told(*arguments, cwd=tmp_path) == (2, "", f"pocketmq: {line}\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [["--brokers", "0"], ["--brokers", "65"], ["--brokers", "x"], ["--broker-port", "-1"]],
    ids=" ".join,
)
def test_what_cannot_be_read_is_named_in_one_line(arguments: list[str]) -> None:
    code, out, error = told(*arguments)
    assert (code, out, error.count("\n")) == (2, "", 1)
    assert arguments[0] in error


def test_a_taken_port_is_told_in_one_line_and_leaves_nothing_running(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("--port", str(port))
        assert (done.returncode, done.stdout, done.stderr) == (
            2,
            "",
            (
                f"pocketmq: the name server cannot start: it cannot listen on 127.0.0.1:{port}: "
                "the port is in use\n"
            ),
        )
        done = run("--port", "0", "--broker-port", str(port))
        assert (done.returncode, done.stdout, done.stderr) == (
            2,
            "",
            (
                f"pocketmq: broker-0 cannot start: it cannot listen on 127.0.0.1:{port}: "
                "the port is in use\n"
            ),
        )


def test_a_file_where_the_data_should_be_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for data in (tmp_path / "file", tmp_path / "file" / "below"):
        done = run("--port", "0", "--data", str(data))
        reason = "File exists" if data.name == "file" else "Not a directory"
        assert (done.returncode, done.stdout, done.stderr) == (
            2,
            "",
            f"pocketmq: the cluster cannot start: {data}: {reason}\n",
        )


def test_data_in_use_is_told_in_one_line(tmp_path: Path) -> None:
    with ServerProcess("up", "--port", "0", "--data", str(tmp_path)):
        done = run("--port", "0", "--data", str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        (
            f"pocketmq: broker-0 cannot start: data directory {tmp_path}/broker-0 is in use by another broker; "
            "stop it or choose another one\n"
        ),
    )


def test_a_java_brokers_directory_is_left_alone_and_that_is_told(tmp_path: Path) -> None:
    log = tmp_path / "broker-0" / "commitlog" / "00000000000000000000"
    log.parent.mkdir(parents=True)
    log.write_bytes(b"java")
    done = run("--port", "0", "--data", str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("pocketmq: broker-0 cannot start: ")
    assert log.read_bytes() == b"java"


def test_data_of_brokers_that_are_not_started_is_told(tmp_path: Path) -> None:
    with ServerProcess("up", "--port", "0", "--brokers", "2", "--data", str(tmp_path)) as cluster:
        assert cluster.stop() == 0
    with ServerProcess("up", "--port", "0", "--data", str(tmp_path)) as cluster:
        told = (
            f"data directory not used: {tmp_path}/broker-1; this cluster has no broker of that name"
        )
        wait_for(lambda: told in cluster.errors(), "the line of the log")


def test_every_broker_shows_metrics_on_a_port_of_its_own() -> None:
    with ServerProcess("up", "--port", "0", "--brokers", "2", "--metrics-port", "0") as cluster:
        line = r"broker: metrics served: url=(http://127\.0\.0\.1:\d+/metrics)"
        # The ready line and the log are different pipes: the log may be read a little later.
        wait_for(lambda: len(re.findall(line, cluster.errors())) == 2, "both addresses")
        nodes = []
        for place in re.findall(line, cluster.errors()):
            with urlopen(place, timeout=10) as answer:
                nodes += re.findall(
                    r'rocketmq_topic_number\{.*node_id="(.*?)"', answer.read().decode()
                )
        assert sorted(nodes) == ["broker-0", "broker-1"]
        assert cluster.stop() == 0


def test_the_metrics_of_further_brokers_are_on_the_next_ports() -> None:
    config = {"metricsExporterType": "PROM", "metricsPromExporterPort": "5557"}
    settings = ClusterSettings(brokers=3, config=config)
    assert [settings.metrics(name)["metricsPromExporterPort"] for name in settings.names] == [
        "5557",
        "5558",
        "5559",
    ]
