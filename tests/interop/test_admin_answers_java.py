"""The same admin requests to a Java broker and to ours, in the same state: the same answers."""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any, cast

import pytest

from pocketmq.embedded import Cluster
from pocketmq.protocol import Command
from pocketmq.protocol.fastjson import loads
from tests.interop.java_broker import java_brokers
from tests.interop.jvm import Jars, wait_until
from tests.wire_client import WireClient

pytestmark = [pytest.mark.java, pytest.mark.line("5.x"), pytest.mark.timeout(600)]

BROKER = "broker-0"
CLUSTER = {"brokerClusterName": "Java"}
CREATE, HEARTBEAT, MAX_OFFSET, COMMIT = 17, 34, 30, 15
VARYING = {
    "brokerAddr", "clientAddr", "consumeTimeStamp", "consumeTimeStampStr", "consumeTps",
    "dataVersion", "delayTime", "lastTimestamp", "lastUpdateTimestamp", "masterCommitLogMaxOffset", "physicOffset",
    "physicSize", "maxTimeStamp",
    "maxTimeStampStr", "minTimeStamp", "minTimeStampStr", "remoteIP", "topicPutTps",
}  # fmt: skip
"""Times, addresses and places."""
ROCKS = ("RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC", "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC")
AN_EXCEPTION = "an exception of Java's"
Told = tuple[int, str | None, dict[str, str], Any]
"""Code, remark, fields and body of an answer."""
EXCEPTION = re.compile(r"java\.|Exception|Cannot invoke|org\.apache")


class Side:
    """One of the two brokers, brought to the state that the questions are about."""

    def __init__(self, address: str) -> None:
        self.member, self.tool = WireClient(address), WireClient(address)
        topic: dict[str, str] = {
            "topic": "T",
            "defaultTopic": "TBW102",
            "readQueueNums": "2",
            "perm": "6",
        }
        topic |= {"writeQueueNums": "2", "topicFilterType": "SINGLE_TAG", "order": "false"}
        assert self.ask(CREATE, topic).code == 0
        for number in (0, 0, 0, 1):
            self.tool.send("T", b"hello", queue=number)
        self.beat()
        for number, end in ((0, "3"), (1, "1")):
            fields = {"topic": "T", "queueId": str(number)}
            wait_until(partial(self.reaches, fields, end), "the index")
        for queue_id, offset in (("0", "2"), ("1", "0")):
            fields = {"consumerGroup": "G", "topic": "T", "queueId": queue_id}
            assert self.ask(COMMIT, fields | {"commitOffset": offset}).code == 0

    def close(self) -> None:
        for each in (self.member, self.tool):
            each.__exit__(None, None, None)

    def reaches(self, fields: dict[str, str], end: str) -> bool:
        return self.ask(MAX_OFFSET, fields).ext["offset"] == end

    def beat(self) -> None:
        subscription: dict[str, Any] = {
            "topic": "T",
            "subString": "a || b",
            "subVersion": 5,
            "tagsSet": ["a", "b"],
        }
        subscription |= {"codeSet": [97, 98], "expressionType": "TAG", "classFilterMode": False}
        group: dict[str, Any] = {"groupName": "G", "subscriptionDataSet": [subscription]}
        group |= {"consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING"}
        group |= {"consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET", "unitMode": False}
        beat: dict[str, Any] = {"clientID": "c1", "consumerDataSet": [group], "producerDataSet": []}
        beat["producerDataSet"] = [{"groupName": "PG"}]
        answer = self.member.ask(HEARTBEAT, None, json.dumps(beat).encode())
        assert answer.code == 0, answer.remark

    def ask(self, code: int, fields: dict[str, str] | None = None, body: bytes = b"") -> Command:
        return self.tool.ask(code, cast("Any", fields), body)


@pytest.fixture(scope="module")
def sides(jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    home = tmp_path_factory.mktemp("java")
    with (
        java_brokers(jars, home, BROKER) as java,
        Cluster(brokers=1, in_process=False, config=CLUSTER) as ours,
        closing(Side(java.brokers[BROKER])) as theirs,
        closing(Side(ours.brokers[BROKER].address)) as own,
    ):
        yield theirs, own


def comparable(value: Any) -> Any:
    """Return a body without what differs from run to run; sets in one order."""
    if isinstance(value, dict):
        return {str(key): comparable(each) for key, each in value.items() if key not in VARYING}
    if isinstance(value, list):
        return sorted((comparable(each) for each in value if each not in ROCKS), key=str)
    return value


def shown(answer: Command) -> Told:
    remark = answer.remark
    if remark is not None and EXCEPTION.search(remark):
        remark = AN_EXCEPTION
    body = comparable(loads(answer.body)) if answer.body else None
    return answer.code, remark, answer.ext, body


RESET = {"topic": "T", "group": "G", "isForce": "true", "timestamp": "-1"}
QUESTIONS: list[tuple[int, dict[str, str]]] = [
    (202, {"topic": "T"}),
    (202, {"topic": "gone"}),
    (203, {"consumerGroup": "G"}),
    (203, {"consumerGroup": "gone"}),
    (204, {"producerGroup": "PG"}),
    (204, {"producerGroup": "gone"}),
    (328, {}),
    (300, {"topic": "T"}),
    (300, {"topic": "gone"}),
    (343, {"group": "G"}),
    (343, {"group": "gone"}),
    (345, {"group": "G", "topic": "T"}),
    (345, {"group": "G", "topic": "gone"}),
    (208, {"consumerGroup": "G"}),
    (208, {"consumerGroup": "G", "topic": "T"}),
    (208, {"consumerGroup": "G", "topic": "gone"}),
    (208, {"consumerGroup": "G", "topicList": "T;gone"}),
    (208, {"consumerGroup": "gone"}),
    (303, {"topic": "T", "group": "G"}),
    (303, {"topic": "gone", "group": "G"}),
    (315, {"statsName": "TOPIC_PUT_NUMS", "statsKey": "gone"}),
    (315, {"statsName": "NO_SUCH", "statsKey": "T"}),
    (307, {"consumerGroup": "G", "clientId": "gone", "jstackEnable": "false"}),
    (307, {"consumerGroup": "gone", "clientId": "c1", "jstackEnable": "false"}),
    (308, {"topic": "T", "compareGroup": "H"}),
    (314, {"srcGroup": "G", "destGroup": "I", "topic": "T", "offline": "false"}),
    (208, {"consumerGroup": "I"}),
    (308, {"topic": "T", "compareGroup": "G"}),
    (222, RESET),
    (208, {"consumerGroup": "G"}),
    (222, RESET | {"timestamp": "0"}),
    (222, RESET | {"queueId": "0", "offset": "1"}),
    (222, RESET | {"queueId": "0", "offset": "5"}),
    (222, RESET | {"topic": "gone"}),
    (222, RESET | {"group": "gone"}),
    (15, {"consumerGroup": "G", "topic": "T", "queueId": "0", "commitOffset": "3"}),
    (14, {"consumerGroup": "G", "topic": "T", "queueId": "0"}),
    (321, {"topic": "T", "queueId": "0", "index": "0", "count": "2", "consumerGroup": "G"}),
    (321, {"topic": "T", "queueId": "7", "index": "0", "count": "2", "consumerGroup": "G"}),
    (33, {"offset": "99999999"}),
    (12, {"topic": "T", "key": "none", "maxNum": "9", "beginTimestamp": "0", "endTimestamp": "9"}),
    (305, {}),
    (317, {"isOrder": "true"}),
    (223, {"topic": "T", "group": "gone"}),
    (309, {"consumerGroup": "G", "clientId": "c1", "msgId": "nonsense", "topic": "T"}),
    (61, {}),
    (907, {}),
    (306, {}),
    (316, {}),
    (329, {}),
    (1007, {}),
    (905, {"minBrokerId": "0", "brokerName": BROKER}),
    (908, {"masterFlushOffset": "0"}),
]
NO_ROCKS = {"checkResult": "there is no RocksDB here, no need check", "checkStatus": 0}


def refused(code: int, reason: str) -> Told:
    return 3, f" request type {code} not supported: {reason}", {}, None


DIFFERENT: list[tuple[int, dict[str, str], Told]] = [
    (354, {"topic": "T"}, (0, None, {}, NO_ROCKS)),
    (906, {}, refused(906, "this broker has no replicas, it is the only one of its name")),
    (1005, {}, refused(1005, "there is no controller here")),
    (2003, {}, refused(2003, "this broker does not tell cold data from other data")),
]
"""Questions to which ours has an answer of its own, and that answer."""


@pytest.mark.parametrize(("code", "fields"), QUESTIONS, ids=lambda each: str(each)[:60])
def test_both_answer_alike(sides: tuple[Side, Side], code: int, fields: dict[str, str]) -> None:
    java, ours = sides
    expected, told = shown(java.ask(code, fields)), shown(ours.ask(code, fields))
    if expected[1] == AN_EXCEPTION:
        assert told[0] == expected[0]
    else:
        assert told == expected


@pytest.mark.parametrize(("code", "fields", "told"), DIFFERENT)
def test_some_answers_differ_on_purpose(
    sides: tuple[Side, Side], code: int, fields: dict[str, str], told: Told
) -> None:
    java, ours = sides
    assert shown(ours.ask(code, fields)) == told
    assert shown(java.ask(code, fields)) != told, "there is no difference any more"


def test_the_progress_of_all_groups_has_how_far_they_pulled_besides(
    sides: tuple[Side, Side],
) -> None:
    """Java tells it of one group (208) alone. Here nobody has pulled: it is where they are."""
    java, ours = (shown(side.ask(317, {"isOrder": "false"})) for side in sides)

    def rows(answer: Told) -> list[dict[str, int]]:
        groups = [stats for each in answer[3]["consumeStatsList"] for stats in each.values()]
        return [row for each in groups for one in each for row in one["offsetTable"].values()]

    assert rows(ours)
    assert {row["pullOffset"] for row in rows(java)} == {0}
    for row in rows(java):
        row["pullOffset"] = row["consumerOffset"]
    assert java[3].pop("totalInflightDiff") != 0
    assert ours[3].pop("totalInflightDiff") == 0
    assert ours == java


def test_statistics_are_told_alike(sides: tuple[Side, Side]) -> None:
    """After the first samples, which both take every ten seconds."""

    def minute(side: Side) -> Any:
        answer = side.ask(315, {"statsName": "TOPIC_PUT_NUMS", "statsKey": "T"})
        return json.loads(answer.body)["statsMinute"] if answer.code == 0 else None

    def seen(side: Side) -> bool:
        told = minute(side)
        return told is not None and told["sum"] == 4

    for side in sides:
        wait_until(partial(seen, side), "four messages")
        assert minute(side)["avgpt"] == 1.0


def test_every_figure_of_java_is_told(sides: tuple[Side, Side]) -> None:
    java, ours = (json.loads(side.ask(28).body)["table"] for side in sides)
    missing = {key for key in java.keys() - ours.keys() if "_" not in key}
    assert missing == set()


def test_every_setting_that_exports_need_is_told(sides: tuple[Side, Side]) -> None:
    java, ours = (
        {line.split("=")[0] for line in side.ask(26).body.decode().splitlines()} for side in sides
    )
    wanted = {"brokerClusterName", "brokerId", "brokerName", "brokerRole", "fileReservedTime"}
    wanted |= {"filterServerNums", "flushDiskType", "maxMessageSize", "messageDelayLevel"}
    wanted |= {"slaveReadEnable", "traceOn", "traceTopicEnable", "useTLS", "autoCreateTopicEnable"}
    assert wanted - {"filterServerNums"} <= java  # 4.9 has that one, and its tools need it
    assert wanted <= ours
