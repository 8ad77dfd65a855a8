"""Java's mqadmin on our cluster: topics and groups are made, shown and deleted, messages found."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pocketmq.embedded import Cluster
from tests.interop.jvm import Admin, Jars
from tests.wire_client import WireClient

pytestmark = [pytest.mark.java, pytest.mark.line("5.x"), pytest.mark.timeout(600)]


class Desk:
    """mqadmin before a running cluster."""

    def __init__(self, cluster: Cluster, admin: Admin) -> None:
        self.brokers = {name: info.address for name, info in cluster.brokers.items()}
        self._address = cluster.address
        self._admin = admin

    def run(self, command: str) -> str:
        name, _, rest = command.partition(" ")
        said = self._admin.run(f"{name} -n {self._address} {rest}")
        assert "Exception" not in said, said
        return said


@pytest.fixture(scope="module")
def desk(jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    home = tmp_path_factory.mktemp("admin")
    with (
        Cluster(brokers=2, in_process=False, data=home / "data") as cluster,
        Admin(jars, home) as admin,
    ):
        yield Desk(cluster, admin)


def test_the_cluster_and_its_brokers(desk: Desk) -> None:
    listed = desk.run("clusterList")
    for name, address in desk.brokers.items():
        assert re.search(rf"DefaultCluster\s+{name}\s+0\s+{address}\s+V5_", listed), listed
        status = desk.run(f"brokerStatus -b {address}")
        assert re.search(r"brokerActive\s*: true", status), status
    address = desk.brokers["broker-0"]
    assert re.search(r"brokerName\s+=\s+broker-0", desk.run(f"getBrokerConfig -b {address}"))
    said = desk.run(f"updateBrokerConfig -b {address} -k defaultTopicQueueNums -v 5")
    assert f"update broker config success, {address}" in said
    assert re.search(r"defaultTopicQueueNums\s+=\s+5", desk.run(f"getBrokerConfig -b {address}"))


def test_a_topic_is_made_changed_and_deleted(desk: Desk) -> None:
    for queues in (3, 5):
        said = desk.run(f"updateTopic -c DefaultCluster -t made -r {queues} -w {queues}")
        assert said.count("success") == 2, said
        shown = desk.run("topicRoute -t made")
        assert shown.count(f'"readQueueNums":{queues}') == 2, shown
    assert "made" in desk.run("topicList").split()
    assert desk.run("topicClusterList -t made").split() == ["DefaultCluster"]
    said = desk.run("updateTopicPerm -t made -p 4 -c DefaultCluster")
    assert said.count("from 6 to 4") == 2, said
    assert desk.run("topicRoute -t made").count('"perm":4') == 2
    assert desk.run("deleteTopic -c DefaultCluster -t made").count("success") == 2
    assert "made" not in desk.run("topicList").split()


def test_the_status_of_a_topic(desk: Desk) -> None:
    address = desk.brokers["broker-0"]
    assert "success" in desk.run(f"updateTopic -b {address} -t told -r 2 -w 2")
    with WireClient(address) as client:
        for _ in range(3):
            client.send("told", b"told", queue=1)
    status = desk.run("topicStatus -t told")
    assert re.search(r"broker-0\s+0\s+0\s+0\s*\n", status), status
    assert re.search(r"broker-0\s+1\s+0\s+3\s+20\d\d-", status), status


def test_a_group_is_made_shown_and_deleted(desk: Desk) -> None:
    said = desk.run("updateSubGroup -c DefaultCluster -g made -r 2 -m true")
    assert said.count("create subscription group to") == 2, said
    shown = desk.run("getConsumerConfig -g made")
    assert len(re.findall(r"retryMaxTimes\s+=\s+2", shown)) == 2, shown
    assert len(re.findall(r"consumeFromMinEnable\s+=\s+true", shown)) == 2, shown
    said = desk.run("deleteSubGroup -c DefaultCluster -g made -r true")
    assert said.count("delete subscription group") == 2, said


def test_messages_are_sent_found_and_shown(desk: Desk) -> None:
    address = desk.brokers["broker-0"]
    desk.run(f"updateTopic -b {address} -t posted -r 1 -w 1")
    sent = desk.run("sendMessage -t posted -p hello -k letter -c blue")
    found = re.search(r"broker-0\s+0\s+SEND_OK\s+([0-9A-F]{32,})", sent)
    assert found, sent
    unique = found[1]
    assert re.search(rf"{unique}\s+0\s+0\b", desk.run("queryMsgByKey -t posted -k letter"))
    assert "hello" in desk.run("printMsg -t posted")
    assert "hello" in desk.run("consumeMessage -t posted -c 1")
    cells = desk.run(f"queryCq -t posted -q 0 -i 0 -b {address}")
    assert "max: 1, min: 0" in cells, cells
    assert desk.run("sendMsgStatus -b broker-1 -c 2").count("sendStatus=SEND_OK") == 2
    assert re.search(r"broker-0\s+0\s+true", desk.run("checkMsgSendRT -t posted -a 2"))


def test_lists_of_topics_and_groups(desk: Desk, tmp_path: Path) -> None:
    address, listed = desk.brokers["broker-0"], tmp_path / "listed.json"
    listed.write_text('[{"topicName":"one","readQueueNums":2},{"topicName":"two","perm":4}]')
    assert "success" in desk.run(f"updateTopicList -b {address} -f {listed}")
    assert {"one", "two"} <= set(desk.run("topicList").split())
    listed.write_text('[{"groupName":"first","retryMaxTimes":3},{"groupName":"second"}]')
    assert "success" in desk.run(f"updateSubGroupList -b {address} -f {listed}")
    assert re.search(r"retryMaxTimes\s+=\s+3", desk.run("getConsumerConfig -g first"))
    said = desk.run(f"setConsumeMode -b {address} -t one -g first -m PULL")
    assert "success" in said
