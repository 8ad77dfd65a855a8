"""`pocketmq admin` in process: what each command prints on a cluster of two brokers."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import pocketmq as mq
from pocketmq import Cluster
from pocketmq.cli.admin import command as group
from pocketmq.cli.admin import listed_commands
from tests.cli.admin_desk import Desk, columns
from tests.server_process import wait_for


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=2) as running:
        running.create_topic("orders", queues=2)
        with mq.Producer(running.address, group="senders", send_timeout=30.0) as producer:
            for number in range(8):
                body = b"order %d" % number
                producer.send(mq.Message("orders", body, tag="ab"[number % 2], keys=[f"k{number}"]))
        yield running


@pytest.fixture
def desk(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> Desk:
    return Desk(cluster, capsys)


@pytest.fixture
def consumer(cluster: Cluster) -> Iterator[mq.PushConsumer]:
    with mq.PushConsumer(cluster.address, group="billing", consume_from="first") as consumer:
        consumer.subscribe("orders", "*", lambda message: None)
        wait_for(lambda: sum(map(len, consumer.assignment().values())) == 4, "all queues")
        yield consumer


@pytest.mark.parametrize("name", sorted(listed_commands()))
def test_every_listed_command_is_there_under_its_name(name: str) -> None:
    command = group.get_command(None, name)  # type: ignore[arg-type]
    assert command is not None
    assert command.name == name
    assert command.help
    options = {option for each in command.params for option in each.opts}
    assert {"-n", "--json"} <= options


def test_clusters_and_brokers(desk: Desk) -> None:
    head, *rows = columns(desk.lines("clusterList"))
    assert head[:5] == ["#Cluster", "Name", "#Broker", "Name", "#BID"]
    assert [line[:4] for line in rows] == [
        ["DefaultCluster", name, "0", address] for name, address in desk.brokers.items()
    ]
    assert [line[-1] for line in rows] == ["true", "true"]
    assert columns(desk.lines("clusterList", "-m"))[0][-1] == "#OutTotalToday"
    address = desk.brokers["broker-0"]
    assert re.search(r"brokerActive +: true", "\n".join(desk.lines("brokerStatus", "-b", address)))
    listed = desk.lines("brokerStatus", "-c", "DefaultCluster")
    assert {line.split()[0] for line in listed} == set(desk.brokers.values())


def test_a_topic_is_made_shown_and_deleted(desk: Desk) -> None:
    *made, shown = desk.lines(
        "updateTopic", "-c", "DefaultCluster", "-t", "made", "-r", "2", "-w", "2"
    )
    assert made == [f"create topic to {each} success." for each in desk.brokers.values()]
    assert shown == (
        "TopicConfig [topicName=made, readQueueNums=2, writeQueueNums=2, perm=RW-, "
        "topicFilterType=SINGLE_TAG, topicSysFlag=0, order=false, attributes={}]"
    )
    assert "made" in desk.lines("topicList")
    assert desk.lines("topicClusterList", "-t", "made") == ["DefaultCluster"]
    route = json.loads(re.sub(r"\b0:", '"0":', "\n".join(desk.lines("topicRoute", "-t", "made"))))
    assert {each["brokerName"] for each in route["brokerDatas"]} == set(desk.brokers)
    table = columns(desk.lines("topicRoute", "-t", "made", "-l"))
    assert table[-1] == ["Total:", "2", "4", "4"]
    changed = desk.lines("updateTopicPerm", "-t", "made", "-p", "4", "-c", "DefaultCluster")
    assert changed == [
        f"update topic perm from 6 to 4 in {each} success." for each in desk.brokers.values()
    ]
    assert desk.lines("deleteTopic", "-t", "made", "-c", "DefaultCluster", "--yes") == [
        "delete topic [made] from cluster [DefaultCluster] success.",
        "delete topic [made] from NameServer success.",
    ]
    assert "made" not in desk.lines("topicList")


def test_the_status_of_a_topic(desk: Desk) -> None:
    head, *rows, tps = columns(desk.lines("topicStatus", "-t", "orders"))
    assert head == [
        "#Broker",
        "Name",
        "#QID",
        "#Min",
        "Offset",
        "#Max",
        "Offset",
        "#Last",
        "Updated",
    ]
    assert [row[:4] for row in rows] == [
        [broker, queue, "0", "2"] for broker in desk.brokers for queue in "01"
    ]
    assert tps[:3] == ["Topic", "Put", "TPS:"]
    data = desk.json("topicStatus", "-t", "orders")
    assert [(each["queue_id"], each["max_offset"]) for each in data["queues"]] == [
        (0, 2), (1, 2), (0, 2), (1, 2)
    ]  # fmt: skip


def test_queues_are_shared_as_consumers_would(desk: Desk) -> None:
    (line,) = desk.lines("allocateMQ", "-t", "orders", "-i", "c1,c2")
    shares = json.loads(line)["result"]
    assert [each["brokerName"] for each in shares["c1"]] == ["broker-0", "broker-0"]
    assert [each["brokerName"] for each in shares["c2"]] == ["broker-1", "broker-1"]


def test_a_group_is_made_shown_and_deleted(desk: Desk) -> None:
    *made, shown = desk.lines("updateSubGroup", "-c", "DefaultCluster", "-g", "made", "-r", "2")
    assert made == [
        f"create subscription group to {each} success." for each in desk.brokers.values()
    ]
    assert "retryMaxTimes=2" in shown
    lines = desk.lines("getConsumerConfig", "-g", "made")
    bar = "=" * 29
    assert lines[0] == f"{bar}DefaultCluster:broker-0{bar}"
    assert lines.count(f"{'retryMaxTimes':<40}=  2") == 2
    mode = desk.lines(
        "setConsumeMode", "-b", desk.brokers["broker-0"], "-t", "orders", "-g", "made", "-m", "POP"
    )
    assert mode[-1] == "topic[orders] group[made] consume mode[POP] popShareQueueNum[0]"
    deleted = desk.lines("deleteSubGroup", "-c", "DefaultCluster", "-g", "made", "--yes")
    assert len(deleted) == 6
    assert desk.ends("getConsumerConfig", "-g", "made")[0] == 3


def test_many_topics_and_groups_come_from_files(desk: Desk, tmp_path: Path) -> None:
    listed = tmp_path / "listed.json"
    target = ("-c", "DefaultCluster", "-f", str(listed))
    listed.write_text('[{"topicName":"one","readQueueNums":2},{"topicName":"two"}]')
    assert len(desk.lines("updateTopicList", *target)) == 2
    assert {"one", "two"} <= set(desk.lines("topicList"))
    listed.write_text('[{"groupName":"first","retryMaxTimes":3}]')
    assert len(desk.lines("updateSubGroupList", *target)) == 2
    assert desk.json("getConsumerConfig", "-g", "first")["broker-0"]["retry_max_times"] == 3
    listed.write_text("[{}]")
    code, _, err = desk.ends("updateTopicList", *target)
    assert (code, "lacks topicName" in err) == (2, True)


def test_the_index_of_a_queue(desk: Desk) -> None:
    where = ("-b", desk.brokers["broker-0"], "-q", "0", "-i", "0", "-c", "1")
    lines = desk.lines("queryCq", "-t", "orders", *where)
    start = lines.index("Queue data:")
    assert re.fullmatch(r"max: \d+, min: 0", lines[start + 1])
    assert lines[start + 3] == "idx: 0"
    assert lines[start + 4].startswith("ConsumeQueueData{physicOffset=")


def test_settings_are_shown_and_changed(desk: Desk) -> None:
    address = desk.brokers["broker-0"]
    change = ("-k", "defaultTopicQueueNums", "-v", "5")
    assert desk.lines("updateBrokerConfig", "-b", address, *change) == [
        f"update broker config success, {address}"
    ]
    shown = desk.lines("getBrokerConfig", "-b", address)
    assert shown[0] == f"============{address}============"
    assert f"{'defaultTopicQueueNums':<50}=  5" in shown
    server = desk.cluster.address
    assert desk.lines("getNamesrvConfig")[0] == f"============{server}============"
    key = "orderMessageEnable"
    assert desk.lines("updateNamesrvConfig", "-k", key, "-v", "true") == [
        f"update name server config success![{server}]",
        f"{key} : true",
    ]


def test_values_and_permissions_of_name_servers(desk: Desk) -> None:
    where = ("-s", "space", "-k", "key")
    assert desk.lines("updateKvConfig", *where, "-v", "value") == [
        "create or update kv config to namespace success."
    ]
    assert desk.lines("deleteKvConfig", *where, "-y") == [
        "delete kv config from namespace success."
    ]
    assert (
        "[broker-0:2]"
        in desk.lines("updateOrderConf", "-t", "x", "-m", "put", "-v", "broker-0:2")[0]
    )
    assert "[broker-0:2]" in desk.lines("updateOrderConf", "-t", "x", "-m", "get")[0]
    assert desk.lines("updateOrderConf", "-t", "x", "-m", "delete") == [
        "delete orderConf success. topic=[x]"
    ]
    wiped = desk.lines("wipeWritePerm", "-b", "broker-1", "-y")[0]
    assert re.fullmatch(
        rf"wipe write perm of broker\[broker-1\] in name server\[{desk.cluster.address}\] OK, \d+",
        wiped,
    )
    assert desk.lines("addWritePerm", "-b", "broker-1")[0].startswith("add write perm of broker")


def test_messages_are_sent_found_and_printed(desk: Desk) -> None:
    head, sent = columns(desk.lines("sendMessage", "-t", "orders", "-p", "hello", "-k", "letter"))
    assert head == ["#Broker", "Name", "#QID", "#Send", "Result", "#MsgId"]
    broker, queue, status, message_id = sent
    assert status == "SEND_OK"
    found = columns(desk.lines("queryMsgByKey", "-t", "orders", "-k", "letter"))[1]
    assert found[:2] == [message_id, queue]
    for command in ("queryMsgById", "queryMsgByUniqueKey"):
        shown = desk.lines(command, "-t", "orders", "-i", message_id)
        assert f"{'Message Body:':<20} hello" in shown
        assert f"{'Keys:':<20} [letter]" in shown
    place = ("-b", broker, "-i", queue, "-o", found[2])
    assert f"{'Message Body:':<20} hello" in desk.lines("queryMsgByOffset", "-t", "orders", *place)
    printed = desk.lines("printMsg", "-t", "orders")
    assert sum(line.startswith("MSGID: ") for line in printed) >= 9
    assert any(line.endswith("BODY: order 3") for line in printed)
    queue = "MessageQueue [topic=orders, brokerName=broker-0, queueId=0]"  # as mqadmin prints it
    assert any(
        re.fullmatch(rf"minOffset=\d+, maxOffset=\d+, {re.escape(queue)}", line) for line in printed
    )
    counted = desk.lines(
        "printMsgByQueue", "-t", "orders", "-a", "broker-0", "-i", "0", "-f", "true"
    )
    assert columns(counted)[0][0] == "Tag:"
    code, out, _ = desk.ends("printMsg", "-t", "orders", "-s", "b", "--json")
    assert code == 0
    assert {json.loads(line)["tag"] for line in out.splitlines()} == {"b"}
    consumed = desk.json("consumeMessage", "-t", "orders", "-c", "3")
    assert [each["topic"] for each in consumed] == ["orders"] * 3
    again = desk.lines("queryMsgById", "-t", "orders", "-i", message_id, "-s", "true")
    assert "sendStatus=SEND_OK" in again[0]


def test_how_long_sends_take(desk: Desk) -> None:
    head, *rows, average = columns(desk.lines("checkMsgSendRT", "-t", "orders", "-a", "4"))
    assert head[-1] == "#RT"
    assert [row[2] for row in rows] == ["true"] * 4
    assert average[:2] == ["Avg", "RT:"]
    assert len(desk.lines("sendMsgStatus", "-b", "broker-0", "-c", "2")) == 2
    assert [row[:2] for row in columns(desk.lines("clusterRT", "-a", "2"))[1:]] == [
        ["DefaultCluster", "broker-0"], ["DefaultCluster", "broker-1"]
    ]  # fmt: skip


def test_a_group_and_its_members(desk: Desk, consumer: mq.PushConsumer) -> None:
    lines = desk.lines("consumerConnection", "-g", "billing")
    assert columns(lines)[1][2:] == ["PYTHON", "V5_3_3"]
    assert lines[-3:] == [
        "ConsumeType: CONSUME_PASSIVELY",
        "MessageModel: CLUSTERING",
        "ConsumeFromWhere: CONSUME_FROM_FIRST_OFFSET",
    ]
    consumer.commit()
    progress = desk.lines("consumerProgress", "-g", "billing", "-s", "true")
    assert columns(progress)[0][-2:] == ["#Inflight", "#LastTime"]
    assert sum(line.startswith("orders ") for line in progress) == 4
    (line,) = [row for row in columns(desk.lines("consumerProgress")) if row[0] == "billing"]
    assert line[1:5] == ["1", "V5_3_3", "PUSH", "CLUSTERING"]
    status = desk.lines("consumerStatus", "-g", "billing")
    assert "Rebalance OK" in status
    assert "#Consumer Properties#" in status
    listed = columns(desk.lines("topicList", "-c"))
    assert ["DefaultCluster", "orders", "billing"] in listed
    asked = desk.lines("rebalance", "-g", "billing")
    assert len(asked) == 2


def test_a_group_is_explained_and_tried_otherwise(desk: Desk, consumer: mq.PushConsumer) -> None:
    lines = desk.lines("explain", "-g", "billing")
    assert lines[0] == "group billing: 1 members, CLUSTERING, strategy AVG"
    assert lines[-1] == "no problems found"
    assert sum("AVG: queue" in line for line in lines) == 4
    tried = desk.lines("what-if", "-g", "billing", "--join", "zzz", "--leave", "zzz")
    assert any(line.startswith("zzz joins: 2 queues moved, minimum 2") for line in tried)
    answer = desk.json("what-if", "-g", "billing", "--broker-down", "broker-1")
    assert [len(step["movement"]["removed"]) for step in answer["steps"]] == [2]


def test_a_group_is_moved(desk: Desk, consumer: mq.PushConsumer) -> None:
    moved = desk.lines("resetOffsetByTime", "-g", "billing", "-t", "orders", "-s", "0", "--yes")
    assert columns(moved)[1] == ["#brokerName", "#queueId", "#offset"]
    assert {row[2] for row in columns(moved)[2:]} == {"0"}
    ends = desk.lines("resetOffsetByTime", "-g", "billing", "-t", "orders", "-s", "now", "--yes")
    assert ends[0].endswith("timestamp(string)[now], timestamp(long)[-1]")
    status = columns(desk.lines("topicStatus", "-t", "orders"))
    held = {(row[0], row[1]): row[3] for row in status if row[0] in desk.brokers}
    assert {(row[0], row[1]): row[2] for row in columns(ends)[2:]} == held
    skipped = desk.lines("skipAccumulatedMessage", "-g", "billing", "-t", "orders", "-y")
    assert {row[0] for row in columns(skipped)[1:]} == set(desk.brokers)


def test_traffic(desk: Desk) -> None:
    head, *rows = columns(desk.lines("statsAll", "-t", "orders"))
    assert head[-2:] == ["#InMsg24Hour", "#OutMsg24Hour"]
    assert rows[0][0] == "orders"
    lines = desk.lines("top")
    assert columns(lines)[0] == ["BROKER", "ADDRESS", "IN/S", "OUT/S", "DISK"]
    assert any(line.startswith("orders ") for line in lines)


def test_what_is_too_old_is_thrown_away(desk: Desk) -> None:
    for command in ("cleanExpiredCQ", "cleanUnusedTopic", "deleteExpiredCommitLog"):
        assert desk.lines(command, "-c", "DefaultCluster", "--yes") == ["success"]


def test_exports(desk: Desk, tmp_path: Path) -> None:
    where = ("-c", "DefaultCluster", "-f", str(tmp_path))
    for command, name in (
        ("exportConfigs", "configs"), ("exportMetadata", "metadata"), ("exportMetrics", "metrics")
    ):  # fmt: skip
        path = tmp_path / f"{name}.json"
        assert desk.lines(command, *where) == [f"export {path} success"]
        assert json.loads(path.read_text())
    exported = json.loads((tmp_path / "metadata.json").read_text())
    assert exported["topicConfigTable"]["orders"]["readQueueNums"] == 4
    assert "TBW102" not in exported["topicConfigTable"]


def test_every_json_document_is_one_line(desk: Desk) -> None:
    code, out, _ = desk.ends("clusterList", "--json")
    assert (code, out.count("\n")) == (0, 1)
    assert [each["place"]["broker"] for each in json.loads(out)["brokers"]] == list(desk.brokers)
