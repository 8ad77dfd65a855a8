"""Java brokers, clients and mqadmin with our name server."""

import asyncio
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pocketmq.nameserver import NameServer
from pocketmq.protocol.requests.nameserver import GetRouteRequest
from tests.interop.jvm import Admin, Jars, Process, broker, wait_until
from tests.ports import free_port
from tests.wire_client import WireClient

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

AT_ONCE = 60.0
"""Seconds; a name server that only scans for silent brokers would need 120, or more."""


@contextmanager
def nameserver() -> Iterator[str]:
    """Run a name server on a loop of its own; give its address."""
    server, loop = NameServer(), asyncio.new_event_loop()
    address = loop.run_until_complete(server.start("127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield str(address)
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


@pytest.fixture(scope="module")
def cluster(jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator["Cluster"]:
    home = tmp_path_factory.mktemp("java")
    with nameserver() as address, Admin(jars, home) as admin:
        names = ("broker-a", "broker-b")
        brokers = {}
        for name in names:
            (home / name).mkdir()
            brokers[name] = broker(
                jars,
                home / name,
                address,
                brokerName=name,
                brokerClusterName="JavaCluster",
                brokerId=0,
                listenPort=free_port(),
            )
        with brokers["broker-a"], brokers["broker-b"]:
            cluster = Cluster(jars, home, address, admin, brokers)
            wait_until(lambda: cluster.brokers_of("TBW102") == set(names), "both brokers")
            yield cluster


class Cluster:
    def __init__(
        self, jars: Jars, home: Path, address: str, admin: Admin, brokers: dict[str, Process]
    ) -> None:
        self.jars = jars
        self.home = home
        self.address = address
        self.brokers = brokers
        self._admin = admin

    def admin(self, command: str) -> str:
        name, _, rest = command.partition(" ")
        return self._admin.run(f"{name} -n {self.address} {rest}")

    def brokers_of(self, topic: str) -> set[str]:
        with WireClient(self.address) as client:
            body = client.ask(105, GetRouteRequest(topic=topic)).body
        return set(re.findall(r'"brokerName":"([^"]+)"', body.decode()))


def test_mqadmin_sees_brokers_and_topics(cluster: Cluster) -> None:
    listed = cluster.admin("clusterList")
    assert re.search(r"JavaCluster\s+broker-a\s+0\s+127\.0\.0\.1:\d+", listed), listed
    assert re.search(r"JavaCluster\s+broker-b\s+0\s+127\.0\.0\.1:\d+", listed), listed
    topics = cluster.admin("topicList").split()
    assert {"TBW102", "JavaCluster", "broker-a", "broker-b"} <= set(topics)
    assert "CODE: 17" in cluster.admin("topicRoute -t nobodys")


def test_a_new_topic_is_routed_and_deleted(cluster: Cluster) -> None:
    assert "success" in cluster.admin("updateTopic -c JavaCluster -t made -r 3 -w 3")
    wait_until(lambda: cluster.brokers_of("made") == {"broker-a", "broker-b"}, "the route")
    assert '"readQueueNums":3' in cluster.admin("topicRoute -t made")
    assert "JavaCluster" in cluster.admin("topicClusterList -t made")
    assert "success" in cluster.admin("deleteTopic -c JavaCluster -t made")
    assert cluster.brokers_of("made") == set()


def test_write_permission_is_wiped_and_added(cluster: Cluster) -> None:
    cluster.admin("updateTopic -c JavaCluster -t held -r 2 -w 2")
    wait_until(lambda: len(cluster.brokers_of("held")) == 2, "the route")
    assert "wipe write perm of broker[broker-a]" in cluster.admin("wipeWritePerm -b broker-a")
    assert '"perm":4' in cluster.admin("topicRoute -t held")
    assert "add write perm of broker[broker-a]" in cluster.admin("addWritePerm -b broker-a")
    assert '"perm":4' not in cluster.admin("topicRoute -t held")


def test_values_orders_and_settings_are_kept(cluster: Cluster) -> None:
    assert "success" in cluster.admin("updateKvConfig -s space -k name -v value")
    assert "success" in cluster.admin("deleteKvConfig -s space -k name")
    put = cluster.admin("updateOrderConf -t TBW102 -v broker-a:4;broker-b:4 -m put")
    assert "success" in put
    assert "orderConf=[broker-a:4;broker-b:4]" in cluster.admin("updateOrderConf -t TBW102 -m get")
    assert "orderTopicConf" not in cluster.admin("topicRoute -t TBW102")
    cluster.admin("updateNamesrvConfig -k orderMessageEnable -v true")
    assert "orderTopicConf" in cluster.admin("topicRoute -t TBW102")
    assert re.search(r"orderMessageEnable\s+=\s+true", cluster.admin("getNamesrvConfig"))
    cluster.admin("updateNamesrvConfig -k orderMessageEnable -v false")
    refused = cluster.admin("updateNamesrvConfig -k kvConfigPath -v /elsewhere")
    assert "black list" in refused
    assert "success" in cluster.admin("updateOrderConf -t TBW102 -m delete")


def test_a_java_producer_and_consumer_find_each_other(cluster: Cluster) -> None:
    words = (cluster.address, "work", "200")
    command = cluster.jars.compiled(cluster.home, "SendAndConsume", *words)
    with Process(command, cluster.home) as clients:
        lines = clients.wait_for_end()
    assert "sent 200 to [broker-a, broker-b]" in lines
    assert "consumed 200" in lines


def test_a_killed_broker_is_out_of_all_routes_at_once(cluster: Cluster) -> None:
    """Last in this file: the broker does not come back."""
    assert cluster.brokers_of("TBW102") == {"broker-a", "broker-b"}
    cluster.brokers["broker-b"].kill()
    wait_until(
        lambda: cluster.brokers_of("TBW102") == {"broker-a"}, "the loss to be noticed", AT_ONCE
    )
    assert "broker-b" not in cluster.admin("clusterList")
