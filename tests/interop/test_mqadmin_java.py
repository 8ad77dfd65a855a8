"""Java's mqadmin on our broker, subcommand by subcommand, while a group of ours consumes."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import pocketmq as mq
from pocketmq.embedded import Cluster
from pocketmq.model import MessageQueue
from pocketmq.protocol import Command, RequestCode, decode_body
from pocketmq.protocol.command import read_command
from pocketmq.protocol.requests.offsets import ResetOffset, UpdateConsumerOffsetRequest
from tests.interop.jvm import Admin, Jars, Process, wait_until
from tests.wire_client import WireClient

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

BROKER = "broker-0"
ROOT = Path(__file__).parents[2]


class Desk:
    """mqadmin before a cluster of one broker, with a topic of two queues and a group of one."""

    def __init__(self, cluster: Cluster, admin: Admin, member: Process, home: Path) -> None:
        self.name_server = cluster.address
        self.broker = cluster.brokers[BROKER].address
        self.home = home
        self.member = member
        self._admin = admin

    @property
    def client_id(self) -> str:
        return self.member.lines[0].split()[1]

    def run(self, command: str) -> str:
        said = self.try_run(command)
        assert "Exception" not in said, said
        return said

    def try_run(self, command: str) -> str:
        name, _, rest = command.partition(" ")
        return self._admin.run(f"{name} -n {self.name_server} {rest}")

    def wait(self, command: str, pattern: str) -> str:
        """Run a command until it says something."""
        said: list[str] = []

        def shown() -> bool:
            said.append(self.try_run(command))
            return re.search(pattern, said[-1]) is not None

        wait_until(shown, f"{pattern} from {command}")
        return said[-1]


class Listener(WireClient):
    """A member that does nothing but hear what a broker asks of it."""

    def join(self, group: str, topic: str) -> None:
        data = {"groupName": group, "consumeType": "CONSUME_PASSIVELY", "unitMode": False}
        data |= {"messageModel": "CLUSTERING", "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET"}
        data["subscriptionDataSet"] = [{"topic": topic, "subString": "*", "subVersion": 1}]
        beat = {"clientID": "listener", "consumerDataSet": [data], "producerDataSet": []}
        answer = self.ask(RequestCode.HEART_BEAT, None, json.dumps(beat).encode())
        assert answer.code == 0, answer.remark

    def commit(self, group: str, queue: MessageQueue, offset: int) -> None:
        header = UpdateConsumerOffsetRequest(
            consumer_group=group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            commit_offset=offset,
        )
        assert self.ask(RequestCode.UPDATE_CONSUMER_OFFSET, header).code == 0

    def request(self, code: int) -> Command:
        """Wait for a request of the broker's; raise TimeoutError if none comes."""
        while data := self._socket.recv(65536):
            for command in map(read_command, self._reader.feed(data)):
                if command.code == code and not command.is_response:
                    return command
        raise ConnectionError("closed by the broker")


@pytest.fixture(scope="module")
def desk(jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    home = tmp_path_factory.mktemp("mqadmin")
    with (
        Cluster(brokers=1, in_process=False, data=home / "data") as cluster,
        Admin(jars, home) as admin,
    ):
        address = cluster.brokers[BROKER].address
        assert "success" in admin.run(
            f"updateTopic -n {cluster.address} -b {address} -t T -r 2 -w 2"
        )
        with WireClient(address) as client:
            for number in range(5):
                client.send("T", b"hello", queue=number % 2)
        program = [sys.executable, "-m", "tests.interop.push_member"]
        with Process([*program, cluster.address, "G", "T", "one"], ROOT) as member:
            wait_until(
                lambda: sum(line.startswith("got") for line in member.lines) == 5, "five messages"
            )
            yield Desk(cluster, admin, member, home)


def test_the_progress_of_a_group(desk: Desk) -> None:
    shown = desk.wait("consumerProgress -g G", r"T\s+broker-0\s+0\s+3\s+3\s+0\s")
    assert re.search(r"T\s+broker-0\s+1\s+2\s+2\s+0\s", shown), shown
    assert re.search(r"Diff Total: 0", shown), shown
    assert re.search(
        r"\nG\s+1\s+V5_3_3\s+PUSH\s+CLUSTERING\s+\d+\s+0\s", desk.run("consumerProgress")
    )
    host = desk.client_id.partition("@")[0]
    assert host in desk.run("consumerProgress -g G -s true")
    shown = desk.run(f"brokerConsumeStats -b {desk.broker}")
    assert re.search(r"T\s+G\s+broker-0\s+0\s+3\s+3\s+0\s", shown), shown


def test_the_connections_of_a_group(desk: Desk) -> None:
    shown = desk.run("consumerConnection -g G")
    assert re.search(rf"{re.escape(desk.client_id)}\s+127\.0\.0\.1:\d+\s+PYTHON\s+V5_3_3", shown)
    for line in (r"T\s+\*", "ConsumeType: CONSUME_PASSIVELY", "MessageModel: CLUSTERING"):
        assert re.search(line, shown), shown
    assert "the producer group[gone] not exist" in desk.try_run("producerConnection -g gone -t T")


def test_a_consumer_tells_what_it_is_doing(desk: Desk, jars: Jars) -> None:
    """The question goes through the broker to the client, and its answer back."""
    shown = desk.run("consumerStatus -g G -s")
    assert "Same subscription in the same group of consumer" in shown, shown
    assert "Rebalance OK" in shown, shown
    shown = desk.run(f"consumerStatus -g G -i {desk.client_id} -s")
    assert re.search(r"consumerGroup\s+: G", shown), shown
    assert re.search(r"MainThread\s+TID: \d+ STATE: RUNNABLE", shown), shown
    assert "not online" in desk.try_run("consumerStatus -g G -i nobody@nowhere")
    if jars.is_5:
        with mq.Producer(desk.name_server, group="shop", instance_name="till") as producer:
            producer.send(mq.Message("P", b"hello"))
            desk.wait(f"producer -b {desk.broker}", r"\(shop\).*@till")


def test_messages_are_tracked_to_the_groups_that_consumed_them(desk: Desk, jars: Jars) -> None:
    shown = desk.wait(f"queryMsgByOffset -t T -b {BROKER} -i 0 -o 0", "trackType=CONSUMED")
    identity = re.search(r"OffsetID:\s+([0-9A-F]{32})", shown)
    unique = re.search(r"UNIQ_KEY=([0-9A-F]{32})", shown)
    assert identity, shown
    assert unique, shown
    topic = "-t T " if jars.is_5 else ""
    by_id = f"queryMsgById {topic}-i {identity[1]}"
    for command in (by_id, f"queryMsgByUniqueKey -t T -i {unique[1]}"):
        shown = desk.run(command)
        assert re.search(r"Topic:\s+T\b", shown), shown
        assert re.search(r"Queue Offset:\s+0\b", shown), shown


def test_a_message_is_consumed_again_on_demand(desk: Desk, jars: Jars) -> None:
    shown = desk.run(f"queryMsgByOffset -t T -b {BROKER} -i 0 -o 0")
    identity = re.search(r"OffsetID:\s+([0-9A-F]{32})", shown)
    assert identity, shown
    topic = "-t T " if jars.is_5 else ""
    shown = desk.run(f"queryMsgById -i {identity[1]} {topic}-g G -d {desk.client_id}")
    assert "consumeResult=CR_SUCCESS" in shown, shown


def test_statistics_by_topic_and_group(desk: Desk) -> None:
    shown = desk.wait("statsAll -a", r"T\s+G\s+0\s+\d+\.\d+\s+\d+\.\d+\s+5\s+[5-9]\b")
    assert shown.splitlines()[0].startswith("#Topic"), shown
    listed = desk.run("clusterList -m")
    assert re.search(r"DefaultCluster\s+broker-0\s+0\s+0\s+[5-9]\s+\d+", listed), listed


def test_a_group_is_sent_elsewhere(desk: Desk) -> None:
    shown = desk.run("resetOffsetByTime -g G -t T -s 0")
    assert re.search(r"broker-0\s+0\s+0\b", shown), shown
    wait_until(
        lambda: sum(line.startswith("got broker-0/0@0 ") for line in desk.member.lines) > 1,
        "the first message once more",
    )
    shown = desk.run("skipAccumulatedMessage -g G -t T")
    assert re.search(r"broker-0\s+0\s+3\b", shown), shown
    assert "success" in desk.run(f"updateSubGroup -b {desk.broker} -g H")
    shown = desk.run("cloneGroupOffset -s G -d H -t T")
    assert "clone group offset success. srcGroup[G], destGroup=[H], topic[T]" in shown
    desk.wait("topicList -c", r"T\s+(G\s|H\s)")


def test_cleaning(desk: Desk) -> None:
    for command in ("cleanExpiredCQ", "cleanUnusedTopic", "deleteExpiredCommitLog"):
        assert "success" in desk.run(f"{command} -b {desk.broker}")
        assert "success" in desk.run(f"{command} -c DefaultCluster")
    assert re.search(r"broker-0\s+0\s+0\s+3\s+20\d\d-", desk.run("topicStatus -t T"))


def test_the_name_server(desk: Desk) -> None:
    assert "success" in desk.run("updateKvConfig -s NS -k K -v V")
    assert "success" in desk.run("deleteKvConfig -s NS -k K")
    assert "success" in desk.run(f"updateOrderConf -t T -m put -v {BROKER}:2")
    assert f"orderConf=[{BROKER}:2]" in desk.run("updateOrderConf -t T -m get")
    assert "success" in desk.run("updateOrderConf -t T -m delete")
    assert re.search(r"OK, [1-9]\d*", desk.run(f"wipeWritePerm -b {BROKER}"))
    assert '"perm":4' in desk.run("topicRoute -t T")
    assert re.search(r"OK, [1-9]\d*", desk.run(f"addWritePerm -b {BROKER}"))
    assert '"perm":6' in desk.run("topicRoute -t T")
    assert re.search(r"orderMessageEnable\s+=\s+false", desk.run("getNamesrvConfig"))


def test_exports(desk: Desk) -> None:
    for kind in ("Metadata", "Configs", "Metrics"):
        assert "success" in desk.run(f"export{kind} -c DefaultCluster -f {desk.home}")
    topics = json.loads((desk.home / "metadata.json").read_text())["topicConfigTable"]
    assert topics["T"]["writeQueueNums"] == 2
    configs = json.loads((desk.home / "configs.json").read_text())
    assert BROKER in str(configs)
    assert BROKER in (desk.home / "metrics.json").read_text()


def test_settings_are_checked_before_they_change(desk: Desk) -> None:
    said = desk.run(f"updateBrokerConfig -b {desk.broker} -k deleteWhen -v 05")
    assert "update broker config success" in said
    said = desk.try_run(f"updateBrokerConfig -b {desk.broker} -k deleteWhen -v 25")
    assert "'25' is not a list of hours of the day" in said
    assert re.search(r"deleteWhen\s+=\s+05", desk.run(f"getBrokerConfig -b {desk.broker}"))


@pytest.mark.line("5.x")  # 4.x has no such commands
def test_what_a_single_broker_has_not_is_refused_with_a_reason(desk: Desk) -> None:
    shown = desk.run(f"haStatus -b {desk.broker}")
    assert re.search(r"#SlaveNum\s+0", shown), shown
    for command, reason in (
        (f"getColdDataFlowCtrInfo -b {desk.broker}", "cold data"),
        (f"getBrokerEpoch -b {BROKER}", "only for controllerMode"),
        (f"getControllerMetaData -a {desk.name_server}", "request type 1005 not supported"),
    ):
        said = desk.try_run(command)
        assert reason in said, said


def test_clients_reset_themselves_where_the_broker_does_not(desk: Desk) -> None:
    said = desk.run(f"updateBrokerConfig -b {desk.broker} -k useServerSideResetOffset -v false")
    assert "success" in said
    with Listener(desk.broker) as listener:
        listener.join("L", "T")
        queues = [MessageQueue("T", BROKER, number) for number in (0, 1)]
        for queue in queues:
            listener.commit("L", queue, 2)
        desk.run("resetOffsetByTime -g L -t T -s 0")
        told = listener.request(RequestCode.RESET_CONSUMER_CLIENT_OFFSET)
        assert (told.ext["group"], told.ext["topic"]) == ("L", "T")
        offsets = decode_body(told.body, ResetOffset).offset_table
        assert offsets == dict.fromkeys(queues, 0)
    with WireClient(desk.broker) as client:  # a member that is being moved would not hear of it
        news = [
            f"got broker-0/{number}@{client.send('T', b'new', number)} new" for number in (0, 1)
        ]
    wait_until(lambda: {*news} <= {*desk.member.lines}, "the member to be at the end")
    start = len(desk.member.lines)
    shown = desk.run("resetOffsetByTime -g G -t T -s 0")
    assert re.search(r"#offset\s+broker-0\s+[01]\s+0\s+broker-0\s+[01]\s+0\s", shown), shown
    wait_until(
        lambda: any(line.startswith("got broker-0/0@0 ") for line in desk.member.lines[start:]),
        "the first message once more",
    )
