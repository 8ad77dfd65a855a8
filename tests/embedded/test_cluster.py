"""The embedded cluster, in this process and as children: what it promises is the same."""

import asyncio
import gc
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pocketmq
from pocketmq import Admin, Cluster
from pocketmq.embedded import aio
from pocketmq.embedded.listening import write_ports
from pocketmq.embedded.member import LONGEST_WAIT, STEADY, failures_after, restart_wait
from pocketmq.errors import CannotStart, InvalidInput, PartEnded, ServerError
from pocketmq.model import TopicRoute
from pocketmq.net import parse_address
from pocketmq.protocol import RequestCode, decode_body
from pocketmq.protocol.requests.nameserver import ClusterInfo, GetRouteRequest
from pocketmq.testing.external import ExternalCluster
from tests.interrupts import ctrl_c
from tests.loops import open_files
from tests.ports import free_port
from tests.server_process import children_of, command_line, is_alive, wait_for
from tests.wire_client import WireClient

__all__ = ["ctrl_c"]  # a fixture of all tests here

BOTH = pytest.mark.parametrize("in_process", [True, False], ids=["in-process", "children"])


def known_brokers(namesrv: str) -> dict[str, str]:
    with WireClient(namesrv) as client:
        answer = client.ask(RequestCode.GET_BROKER_CLUSTER_INFO)
    table = decode_body(answer.body, ClusterInfo).broker_addr_table
    return {name: data.broker_addrs[0] for name, data in table.items()}


def send(cluster: Cluster, broker: str, body: bytes, topic: str = "orders") -> int:
    with WireClient(cluster.brokers[broker].address) as client:
        return client.send(topic, body)


def bodies(cluster: Cluster, broker: str, topic: str = "orders") -> list[bytes]:
    with WireClient(cluster.brokers[broker].address) as client:
        return client.bodies(topic)


def keep_ports(data: Path, *brokers: str) -> None:
    """Give brokers ports that no other process takes while they are down."""
    write_ports(data, {name: free_port() for name in brokers})


@BOTH
def test_brokers_serve_and_are_known_when_the_block_begins(in_process: bool) -> None:
    with Cluster(brokers=2, in_process=in_process) as cluster:
        told = {name: broker.address for name, broker in cluster.brokers.items()}
        assert list(told) == ["broker-0", "broker-1"]
        assert known_brokers(cluster.address) == told
        for name in told:
            assert send(cluster, name, b"42 EUR") == 0
            assert bodies(cluster, name) == [b"42 EUR"]


def own_children() -> set[int]:
    """The children of this process: of earlier tests one of Spark's may still be there."""
    return set(children_of(os.getpid()))


@BOTH
def test_nothing_is_left_after_the_block(in_process: bool) -> None:
    with Cluster(in_process=in_process) as cluster:  # what the first one imports and opens, stays
        send(cluster, "broker-0", b"x")
    gc.collect()
    threads, files = set(threading.enumerate()), open_files()
    others = own_children()
    with Cluster(brokers=2, in_process=in_process, faults=True) as cluster:
        children = own_children() - others
        assert len(children) == (0 if in_process else 2)
        addresses = [cluster.address, *(each.address for each in cluster.brokers.values())]
        send(cluster, "broker-1", b"x")
    assert set(threading.enumerate()) <= threads  # those of tests before may end meanwhile
    gc.collect()
    assert open_files() <= files
    assert not any(map(is_alive, children))
    for address in addresses:
        with pytest.raises(ConnectionRefusedError):
            WireClient(address)


@BOTH
def test_data_goes_on_in_the_next_cluster(in_process: bool, tmp_path: Path) -> None:
    for offset in range(2):
        with Cluster(data=tmp_path / "data", in_process=in_process) as cluster:
            assert send(cluster, "broker-0", b"%d" % offset) == offset
    with Cluster(data=str(tmp_path / "data")) as cluster:
        assert bodies(cluster, "broker-0") == [b"0", b"1"]


@BOTH
def test_a_java_store_is_refused_and_left_alone(in_process: bool, tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    with (
        pytest.raises(CannotStart, match="looks like a Java broker's store"),
        Cluster(data=tmp_path, in_process=in_process),
    ):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["commitlog"]


def test_a_cluster_can_be_started_again() -> None:
    cluster = Cluster()
    for _ in range(2):
        cluster.start()
        assert send(cluster, "broker-0", b"x") == 0  # in memory: nothing is left of the first time
        cluster.stop()
    cluster.stop()


@BOTH
def test_a_killed_broker_is_gone_at_once_and_comes_back_with_its_data_and_address(
    in_process: bool, tmp_path: Path
) -> None:
    keep_ports(tmp_path, "broker-0", "broker-1")
    with Cluster(brokers=2, data=tmp_path, in_process=in_process) as cluster:
        before = cluster.brokers["broker-0"]
        with WireClient(before.address) as client:
            client.send("orders", b"kept")
            cluster.kill("broker-0")
            with pytest.raises(ConnectionError):
                client.send("orders", b"lost")
        assert not cluster.brokers["broker-0"].running
        assert cluster.brokers["broker-0"].pid is None
        with pytest.raises(ConnectionRefusedError):
            WireClient(before.address)
        wait_for(lambda: "broker-0" not in known_brokers(cluster.address), "the route to change")
        assert send(cluster, "broker-1", b"x") == 0  # the other one works on
        cluster.restart("broker-0")
        assert cluster.brokers["broker-0"].address == before.address
        assert known_brokers(cluster.address)["broker-0"] == before.address
        assert bodies(cluster, "broker-0") == [b"kept"]


@BOTH
def test_a_killed_broker_without_a_disk_has_lost_everything(in_process: bool) -> None:
    with Cluster(in_process=in_process) as cluster:
        send(cluster, "broker-0", b"lost")
        cluster.kill("broker-0")
        cluster.kill("broker-0")  # it cannot die twice
        cluster.restart("broker-0")
        assert bodies(cluster, "broker-0") == []


@BOTH
def test_a_running_broker_is_restarted_cleanly(in_process: bool, tmp_path: Path) -> None:
    keep_ports(tmp_path, "broker-0")
    with Cluster(data=tmp_path, in_process=in_process) as cluster:
        address = cluster.brokers["broker-0"].address
        send(cluster, "broker-0", b"kept")
        cluster.restart("broker-0")
        assert cluster.brokers["broker-0"].address == address
        assert bodies(cluster, "broker-0") == [b"kept"]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems let nobody listen there then")
@BOTH
def test_the_port_of_a_broker_that_is_down_is_given_to_nobody(in_process: bool) -> None:
    with Cluster(in_process=in_process) as cluster:
        address = cluster.brokers["broker-0"].address
        cluster.kill("broker-0")
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(parse_address(address))
        with pytest.raises(ConnectionRefusedError):
            WireClient(address)
        for _ in range(2):
            cluster.restart("broker-0")
            assert cluster.brokers["broker-0"].address == address
            assert send(cluster, "broker-0", b"x") == 0


def test_a_child_that_dies_by_itself_stays_down_until_restarted() -> None:
    with Cluster(in_process=False) as cluster:
        pid = cluster.brokers["broker-0"].pid
        assert pid is not None
        subprocess.run(["kill", "-9", str(pid)], check=True)
        wait_for(lambda: not cluster.brokers["broker-0"].running, "its end to be noticed")
        cluster.restart("broker-0")
        assert cluster.brokers["broker-0"].pid not in {None, pid}
        assert send(cluster, "broker-0", b"x") == 0


@BOTH
def test_a_partitioned_broker_hears_nothing_and_says_nothing_until_healed(in_process: bool) -> None:
    with Cluster(in_process=in_process, faults=True) as cluster:
        address = cluster.brokers["broker-0"].address
        assert known_brokers(cluster.address) == {"broker-0": address}
        with WireClient(address) as client:
            assert client.send("orders", b"0") == 0
            cluster.partition("broker-0")
            client.wait_at_most(0.2)
            with pytest.raises(TimeoutError):
                client.send("orders", b"1")
        with WireClient(address, timeout=0.2) as client, pytest.raises(TimeoutError):
            client.send("orders", b"2")  # the connection is taken, and nobody speaks
        cluster.heal("broker-0")
        with WireClient(address) as client:
            client.send("orders", b"3")
            assert b"3" in client.bodies("orders")
            # What was held back arrives now, on connections of its own: before or after.
            wait_for(
                lambda: sorted(client.bodies("orders")) == [b"0", b"1", b"2", b"3"],
                "what was held back",
            )


def test_a_slow_broker_answers_late() -> None:
    with Cluster(faults=True) as cluster, WireClient(cluster.brokers["broker-0"].address) as client:
        client.send("orders", b"0")
        cluster.slow("broker-0", 0.05)
        assert seconds_of(lambda: client.send("orders", b"1")) >= 0.1  # there and back
        cluster.heal("broker-0")
        client.send("orders", b"2")
        assert client.bodies("orders") == [b"0", b"1", b"2"]


def seconds_of(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


@BOTH
def test_a_killed_broker_behind_a_broken_network_comes_back_at_its_address(
    in_process: bool, tmp_path: Path
) -> None:
    with Cluster(in_process=in_process, faults=True, data=tmp_path) as cluster:
        address = cluster.brokers["broker-0"].address
        send(cluster, "broker-0", b"kept")
        cluster.kill("broker-0")
        with pytest.raises(ConnectionError), WireClient(address) as client:
            client.send("orders", b"lost")
        cluster.restart("broker-0")
        assert known_brokers(cluster.address) == {"broker-0": address}
        assert bodies(cluster, "broker-0") == [b"kept"]


@BOTH
def test_a_new_topic_has_a_route_to_every_broker_at_once(in_process: bool) -> None:
    with Cluster(brokers=2, in_process=in_process) as cluster:
        assert cluster.create_topic("orders", queues=3) == "orders"
        with WireClient(cluster.address) as client:
            route = client.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteRequest(topic="orders"))
        found = decode_body(route.body, TopicRoute)
        queues = {each.broker_name: each.write_queue_nums for each in found.queue_datas}
        assert queues == {"broker-0": 3, "broker-1": 3}


def test_a_broker_process_that_is_held_up_makes_its_topic_later() -> None:
    with Cluster(in_process=False) as cluster:
        pid = cluster.brokers["broker-0"].pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        going_on = threading.Timer(6.0, os.kill, (pid, signal.SIGCONT))  # the fault itself
        going_on.start()
        try:
            assert cluster.create_topic("orders") == "orders"
        finally:
            going_on.join()


def test_a_topic_has_the_message_type_it_was_created_with() -> None:
    with Cluster() as cluster, Admin(cluster.address) as admin:
        cluster.create_topic("plain")
        cluster.create_topic("ordered", message_type="FIFO")
        ExternalCluster(cluster.address).create_topic("late", message_type="DELAY")
        (found,) = admin.topics.configs().all()
        kinds = {name: found[name].attributes for name in ("plain", "ordered", "late")}
        assert kinds == {
            "plain": {}, "ordered": {"message.type": "FIFO"}, "late": {"message.type": "DELAY"},
        }  # fmt: skip
        with pytest.raises(ServerError):
            cluster.create_topic("strange", message_type="STRANGE")


def test_settings_reach_the_brokers() -> None:
    with Cluster(config={"autoCreateTopicEnable": False}) as cluster:
        with pytest.raises(AssertionError, match="not exist"):
            send(cluster, "broker-0", b"x", topic="never-made")
        cluster.create_topic("made")
        assert send(cluster, "broker-0", b"x", topic="made") == 0


@BOTH
def test_what_cannot_start_says_why_and_leaves_nothing(in_process: bool, tmp_path: Path) -> None:
    with Cluster(data=tmp_path, in_process=in_process):
        other = Cluster(data=tmp_path, in_process=in_process)
        with pytest.raises(CannotStart, match="is in use by another broker"):
            other.start()
        with pytest.raises(InvalidInput, match="not running"):
            _ = other.address
        other.stop()
    with other:
        assert send(other, "broker-0", b"x") == 0


def test_a_taken_port_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotStart, match=f"cannot listen on 127.0.0.1:{port}: the port is in"):
            Cluster(port=port).start()


def test_a_child_that_crashes_at_its_start_is_told_with_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interpreter that ends before it ever reads its order."""
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\nexit 7\n")
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fake))
    with pytest.raises(PartEnded, match="broker-0 ended with exit code 7"):
        Cluster(in_process=False).start()


def test_ctrl_c_during_the_start_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\nwhile read -r _; do :; done\n")  # a broker that is never ready
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fake))
    threads, files = set(threading.enumerate()), open_files()
    children = set[int]()

    def new_children(program: str) -> set[int]:
        """Those that run a program: what earlier tests began in threads starts processes, too."""
        return {child for child in own_children() if program in command_line(child)}

    def interrupt() -> None:
        wait_for(lambda: new_children(str(fake)), "the child")
        children.update(new_children(str(fake)))
        # To this thread: a signal to the process may be taken by another, and wakes nobody here.
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    impatient = threading.Thread(target=interrupt)
    impatient.start()
    with pytest.raises(KeyboardInterrupt):
        Cluster(in_process=False).start()
    impatient.join()
    # Threads and files of tests before this one may end meanwhile.
    wait_for(lambda: set(threading.enumerate()) <= threads, "all threads to end")
    wait_for(lambda: open_files() <= files, "all files to be closed")
    assert [is_alive(child) for child in children] == [False]


def test_mistakes_are_told() -> None:
    cluster = Cluster()
    with pytest.raises(InvalidInput, match="not running"):
        _ = cluster.address
    with pytest.raises(InvalidInput, match="not running"):
        cluster.kill("broker-0")
    with cluster:
        with pytest.raises(InvalidInput, match="running already"):
            cluster.start()
        with pytest.raises(InvalidInput, match="no broker 'b'; the brokers are broker-0"):
            cluster.kill("b")
        with pytest.raises(InvalidInput, match="faults=True"):
            cluster.partition("broker-0")
    with Cluster(faults=True) as cluster, pytest.raises(InvalidInput, match="0 and 3600 seconds"):
        cluster.slow("broker-0", -1)


@pytest.mark.parametrize("in_process", [True, False], ids=["in-process", "children"])
async def test_the_same_for_asyncio(in_process: bool, tmp_path: Path) -> None:
    async with aio.Cluster(data=tmp_path, in_process=in_process, faults=True) as cluster:
        await cluster.create_topic("orders")
        address = cluster.brokers["broker-0"].address
        assert await asyncio.to_thread(one_send, address) == 0
        await cluster.kill("broker-0")
        assert not cluster.brokers["broker-0"].running
        await cluster.restart("broker-0")
        await cluster.slow("broker-0", 0.001)
        await cluster.partition("broker-0")
        await cluster.heal("broker-0")
        assert await asyncio.to_thread(one_send, address) == 1
    await asyncio.get_running_loop().shutdown_default_executor()


def one_send(address: str) -> int:
    with WireClient(address) as client:
        return client.send("orders", b"x")


def test_the_package_itself_imports_next_to_nothing() -> None:
    code = (
        "import sys; before = set(sys.modules); import pocketmq; assert pocketmq.__version__; "
        "print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import typing; {code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "['pocketmq', 'pocketmq.aio']\n"


def test_what_the_package_does_not_have_is_told_as_usual() -> None:
    assert "Cluster" in dir(pocketmq)
    with pytest.raises(AttributeError, match="module 'pocketmq' has no attribute 'Klustre'"):
        getattr(pocketmq, "Klustre")  # noqa: B009 - mypy would rightly refuse it


def test_waits_double_up_to_a_bound() -> None:
    assert [restart_wait(failures) for failures in range(1, 12)] == [
        0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0,
    ]  # fmt: skip


@given(st.integers(min_value=0))
def test_no_wait_is_longer_than_the_bound_or_none_at_all(failures: int) -> None:
    assert 0.1 <= restart_wait(failures) <= LONGEST_WAIT


def test_a_steady_life_makes_up_for_earlier_failures() -> None:
    assert failures_after(7, STEADY) == 1
    assert failures_after(7, STEADY - 0.1) == 8
