"""The same raw pops, ordered and not, good and odd, on a Java broker and on ours: equal answers."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from pocketmq.embedded import Cluster
from pocketmq.protocol import Command, RecordView
from pocketmq.protocol import RequestCode as Code
from pocketmq.protocol.property_text import decode_properties
from pocketmq.protocol.record_scan import scan_records
from pocketmq.protocol.requests import pop as rows
from pocketmq.protocol.requests import topics
from tests.interop.java_broker import java_brokers
from tests.interop.jvm import Jars
from tests.wire_client import WireClient

pytestmark = [pytest.mark.java, pytest.mark.line("5.x"), pytest.mark.timeout(300)]

T = "compared"
NAME = "broker-0"


@pytest.fixture(scope="module")
def java(jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with java_brokers(jars, tmp_path_factory.mktemp("java"), NAME) as running:
        yield running.brokers[NAME]


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Cluster(data=tmp_path_factory.mktemp("ours"), in_process=False) as cluster:
        yield cluster.brokers[NAME].address


class Teller:
    """Asks a broker, and tells what it said without what differs from run to run."""

    def __init__(self, client: WireClient) -> None:
        self.client = client
        self.said: list[Any] = []
        self.last: Command | None = None

    def ask(self, code: int, fields: dict[str, Any], body: bytes = b"") -> Command:
        header: Any = {key: str(value) for key, value in fields.items()}
        answer = self.client.ask(code, header, body)
        ext = answer.ext
        changing = (
            {"popTime", "reviveQid"} & set(ext) if ext.get("reviveQid") != "999" else {"popTime"}
        )
        shown = {key: value for key, value in ext.items() if key not in changing}
        remark = re.sub(r"127\.0\.0\.1(:\d+)?|\d+(\.\d+){3}|/\S+:\d+", "HOST", answer.remark or "")
        found = [
            (view.topic_bytes, view.stored_body, view.reconsume_times)
            for view in (RecordView(answer.body, each[0]) for each in scan_records(answer.body))
        ]
        self.said.append((code, answer.code, remark, sorted(changing), shown, found))
        self.last = answer
        return answer

    def pop(self, **changes: Any) -> Command:
        fields = {
            "consumerGroup": "G", "topic": T, "queueId": -1, "maxMsgNums": 32,
            "invisibleTime": 20_000, "pollTime": 0, "bornTime": 0, "initMode": 0,
            "expType": "TAG", "exp": "*", "order": "false",
        }  # fmt: skip
        return self.ask(Code.POP_MESSAGE, fields | changes)

    def place(self, answer: Command, offset: int, **changes: Any) -> dict[str, Any]:
        ext = answer.ext
        handle = f"0 {ext['popTime']} {ext['invisibleTime']} {ext['reviveQid']} 0 {NAME} 0 {offset}"
        fields = {"consumerGroup": "G", "topic": T, "queueId": 0, "offset": offset}
        return fields | {"extraInfo": handle} | changes


def story(address: str) -> list[Any]:
    with WireClient(address) as client:
        make = topics.CreateTopicRequest(
            topic=T, default_topic="TBW102", read_queue_nums=1, write_queue_nums=1, perm=6,
            topic_filter_type="SINGLE_TAG", topic_sys_flag=0, order=False,
        )  # fmt: skip
        assert client.ask(Code.UPDATE_AND_CREATE_TOPIC, make).code == 0
        tell = Teller(client)
        for n in range(8):
            client.send(T, b"%d" % n)
        tell.pop(topic="none")
        tell.pop(maxMsgNums=33)
        tell.pop(queueId=1)
        tell.pop(bornTime=5)
        tell.pop(expType="SQL92", exp="((")
        first = tell.pop(maxMsgNums=3)
        second = tell.pop(maxMsgNums=2, queueId=0)
        tell.ask(Code.ACK_MESSAGE, tell.place(first, 0, topic="none"))
        tell.ask(Code.ACK_MESSAGE, tell.place(first, 0, queueId=3))
        tell.ask(Code.ACK_MESSAGE, tell.place(first, 99))
        tell.ask(Code.ACK_MESSAGE, tell.place(first, 0))
        tell.ask(Code.ACK_MESSAGE, tell.place(first, 0))
        change = tell.place(second, 3, invisibleTime=60_000)
        tell.ask(Code.CHANGE_MESSAGE_INVISIBLETIME, change | {"topic": "none"})
        tell.ask(Code.CHANGE_MESSAGE_INVISIBLETIME, change | {"queueId": 7})
        tell.ask(Code.CHANGE_MESSAGE_INVISIBLETIME, change | {"offset": 99})
        tell.ask(Code.CHANGE_MESSAGE_INVISIBLETIME, change)
        ack = {
            "c": "G", "t": T, "r": "0", "so": 0, "q": 0, "rq": int(first.ext["reviveQid"]),
            "pt": int(first.ext["popTime"]), "it": 20_000, "b": rows.bits_of([1, 2], 0),
        }  # fmt: skip
        body = json.dumps({"brokerName": NAME, "acks": [ack]}).encode()
        tell.ask(Code.BATCH_ACK_MESSAGE, {}, body)
        tell.ask(Code.BATCH_ACK_MESSAGE, {}, b'{"acks":[]}')
        ask = {"consumerGroup": "G", "topic": T, "queueId": -1, "pollTime": 0, "bornTime": 0}
        tell.ask(Code.NOTIFICATION, ask)
        tell.pop()
        tell.pop()
        tell.ask(Code.NOTIFICATION, ask)
        tell.ask(Code.NOTIFICATION, ask | {"topic": "none"})
        tell.ask(Code.POLLING_INFO, {"consumerGroup": "G", "topic": T, "queueId": -1})
        ordered = {"consumerGroup": "O", "order": "true", "invisibleTime": 30_000}
        taken = tell.pop(maxMsgNums=3, attemptId="a", **ordered)
        tell.pop(maxMsgNums=3, attemptId="b", **ordered)
        taken = tell.pop(maxMsgNums=3, attemptId="a", **ordered)
        group = {"consumerGroup": "O"}
        tell.ask(Code.ACK_MESSAGE, tell.place(taken, 1, **group))
        tell.ask(Code.ACK_MESSAGE, tell.place(taken, 6, **group))
        tell.ask(Code.ACK_MESSAGE, tell.place(taken, 0, **group))
        tell.ask(Code.ACK_MESSAGE, tell.place(taken, 0, **group))
        tell.ask(Code.ACK_MESSAGE, tell.place(taken, 2, **group))
        tell.pop(maxMsgNums=2, **ordered)
        return tell.said


def test_answers_are_equal(java: str, ours: str) -> None:
    theirs, own = story(java), story(ours)
    assert len(theirs) == len(own)
    for expected, said in zip(theirs, own, strict=True):
        assert said == expected


def retried(address: str) -> list[Any]:
    """A message comes back once, is looked at, and acknowledged."""
    with WireClient(address, 60) as client:
        make = topics.CreateTopicRequest(
            topic=T, default_topic="TBW102", read_queue_nums=1, write_queue_nums=1, perm=6,
            topic_filter_type="SINGLE_TAG", topic_sys_flag=0, order=False,
        )  # fmt: skip
        assert client.ask(Code.UPDATE_AND_CREATE_TOPIC, make).code == 0
        client.send(T, b"again")
        tell, retry = Teller(client), f"%RETRY%R_{T}"
        group = {"consumerGroup": "R", "initMode": 0}
        while tell.pop(invisibleTime=1500, **group).code == 0:
            pass  # what an earlier story left, all of it taken once
        tell.said.clear()
        seen: list[RecordView] = []
        while not any(view.reconsume_times for view in seen):
            answer = tell.pop(invisibleTime=60_000, pollTime=5000, maxMsgNums=1, **group)
            seen = [RecordView(answer.body, each[0]) for each in scan_records(answer.body)]
        properties = decode_properties(seen[0].property_bytes)
        tell.said.clear()
        handle = properties["POP_CK"]
        place = {"consumerGroup": "R", "topic": retry, "queueId": 0, "extraInfo": handle}
        tell.ask(Code.ACK_MESSAGE, place | {"offset": seen[0].queue_offset})
        tell.ask(
            Code.PEEK_MESSAGE, {"consumerGroup": "P", "topic": T, "queueId": -1, "maxMsgNums": 1}
        )
        view = seen[0]
        tell.said.append((view.topic_bytes, view.queue_id, view.reconsume_times, view.flag))
        tell.said.append(sorted(properties))
        return tell.said


def test_retries_look_alike(java: str, ours: str) -> None:
    assert retried(ours) == retried(java)
