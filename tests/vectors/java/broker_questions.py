"""Ask a fresh Java broker about its tables and keep what it says, one step a line.

Needs a running name server and a broker of RocketMQ 5.5.0 with an empty store, brokerName=broker-a,
enablePropertyFilter=true: `python broker_questions.py HOST:PORT > java-broker-answers.jsonl`.
"""

import json
import select
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

from pocketmq.protocol import Command
from pocketmq.protocol.command import read_command
from pocketmq.protocol.frame import FrameReader

Step = dict[str, Any]
QUIET = 0.25
"""Seconds without a push after which a step is over."""


def ask(code: int, ext: dict[str, str] | None = None, body: Any = None, on: str = "c1") -> Step:
    return {"on": on, "code": code, "ext": ext, "body": body}


def topic(name: str | None = "T", **fields: str | None) -> Step:
    ext: dict[str, str | None] = {
        "topic": name,
        "defaultTopic": "TBW102",
        "readQueueNums": "4",
        "writeQueueNums": "4",
        "perm": "6",
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": "0",
        "order": "false",
    }
    ext.update(fields)
    return ask(17, {key: value for key, value in ext.items() if value is not None})


def config(name: str, **fields: Any) -> dict[str, Any]:
    """Return a topic as a list of topics carries it."""
    base = {
        "attributes": {},
        "order": False,
        "perm": 6,
        "readQueueNums": 2,
        "topicFilterType": "SINGLE_TAG",
        "topicName": name,
        "topicSysFlag": 0,
        "writeQueueNums": 2,
    }
    return base | fields


def sub(name: str, text: str = "*", version: int = 1, kind: str = "TAG") -> dict[str, Any]:
    return {
        "classFilterMode": False,
        "codeSet": [],
        "expressionType": kind,
        "subString": text,
        "subVersion": version,
        "tagsSet": [],
        "topic": name,
    }


def consumer(group: str, *subs: dict[str, Any], **fields: Any) -> dict[str, Any]:
    base = {
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
        "consumeType": "CONSUME_PASSIVELY",
        "groupName": group,
        "messageModel": "CLUSTERING",
        "subscriptionDataSet": list(subs),
        "unitMode": False,
    }
    return base | fields


def beat(client: str, *consumers: dict[str, Any], on: str, **fields: Any) -> Step:
    body = {
        "clientID": client,
        "consumerDataSet": list(consumers),
        "producerDataSet": [{"groupName": name} for name in fields.pop("producers", [])],
    }
    return ask(34, None, body | fields, on)


def leave(client: str, on: str, **groups: str) -> Step:
    return ask(35, {"clientID": client, **groups}, None, on)


def members(group: str, on: str = "c1") -> Step:
    return ask(38, {"consumerGroup": group}, None, on)


def send(name: str, queue: int, count: int = 1) -> Iterator[Step]:
    ext = {
        "a": "PG", "b": name, "c": "TBW102", "d": "4", "e": str(queue), "f": "0", "g": "1", "h": "0",
        "i": "", "j": "0", "k": "false", "m": "false",
    }  # fmt: skip
    for _ in range(count):
        yield ask(310, ext, "x")


def first_send(name: str, template: str, queues: int) -> Iterator[Step]:
    """Send to a topic that is not there yet, and look at what became of it."""
    for step in send(name, 0):
        step["ext"] |= {"c": template, "d": str(queues)}
        yield step
    yield ask(351, {"topic": name})


def offset(code: int, name: str, queue: int | None, **ext: str) -> Step:
    base = {"topic": name} if queue is None else {"topic": name, "queueId": str(queue)}
    return ask(code, base | ext)


def queues(name: str, *ids: int, broker: str = "broker-a") -> list[dict[str, Any]]:
    return [{"brokerName": broker, "queueId": each, "topic": name} for each in ids]


def lock(group: str, client: str, *ids: int, code: int = 41) -> Step:
    mq_set = queues("T", *ids)
    return ask(
        code,
        None,
        {"clientId": client, "consumerGroup": group, "mqSet": mq_set, "onlyThisBroker": False},
    )


def assignment(name: str, group: str, client: str, strategy: str | None = "AVG", **f: Any) -> Step:
    body = {
        "clientId": client,
        "consumerGroup": group,
        "messageModel": "CLUSTERING",
        "strategyName": strategy,
        "topic": name,
    }
    return ask(400, None, body | f)


def topics() -> Iterator[Step]:
    yield ask(21)
    yield from (topic(), topic())
    names = ["", " ", "a b", "x" * 127, "x" * 128, "%RETRY%" + "x" * 248, "%RETRY%" + "x" * 249]
    names += ["TBW102", "rmq_sys_x", "DefaultCluster", "broker-a", "DefaultCluster_REPLY_TOPIC"]
    names += ["CHECKPOINT_TOPIC", "BenchmarkTest", "RMQ_SYS_TRACE_TOPIC", "%DLQ%g", "é", "a\n"]
    yield from map(topic, names)
    yield topic(None)
    missing = ["readQueueNums", "perm", "order", "topicFilterType", "topicSysFlag", "defaultTopic"]
    for number, field in enumerate(missing):
        yield topic(f"M{number}", **{field: None})
    yield topic("W1", topicFilterType="BAD")
    yield topic("W2", topicFilterType="MULTI_TAG", perm="4", order="TRUE", topicSysFlag="3")
    yield topic("W3", readQueueNums="x")
    yield topic("W4", writeQueueNums="0")
    yield ask(351, {"topic": "W2"})
    changes = [
        "+message.type=FIFO", "+message.type=FIFO", "+message.type=BAD", "-message.type",
        "-message.type", "message.type=FIFO", "+queue.type=BatchCQ", "+message.type=MIXED",
        "+a=b,+a=c", "-nosuch", "+", "", "+message.type", "+message.type=", "=FIFO", "+=x",
        "+message.type=A=B", "x+message.type=FIFO", ",", "+message.type=DELAY,", ",-message.type",
        "+cleanup.policy=DELETE", "+lite.topic.expiration=99999999", "+lite.topic.expiration=a",
        "+lite.topic.expiration=10", "+message-type=5", "+message.type=FIFO,-message.type",
        "+unknown=5", "+reserve.time=5",
    ]  # fmt: skip
    yield from (topic(attributes=change) for change in changes)
    yield from (ask(351, {"topic": name}) for name in ("T", "nope"))
    yield ask(351, {"topic": "T", "lo": "true"})
    yield ask(351, {})
    yield topic("A1", attributes="+queue.type=BatchCQ,+message.type=NORMAL")
    yield topic("A1", attributes="-queue.type")
    yield topic("A2", attributes="-message.type")
    yield topic("A3", attributes="+nosuch=1")
    yield ask(351, {"topic": "A1"})
    yield ask(18, None, {"topicConfigList": [config("L1"), config("L2", perm=4)]})
    yield ask(18, None, {"topicConfigList": [config("L1"), config("L3")]})
    yield ask(18, None, {"topicConfigList": [config("L3"), config("L4")]})
    yield ask(18, None, {"topicConfigList": [config("L5"), config("TBW102")]})
    yield ask(18, None, {"topicConfigList": [config("L5"), config("a b")]})
    yield ask(18, None, {"topicConfigList": [config("L5", attributes={"+message.type": "FIFO"})]})
    yield ask(18, None, {"topicConfigList": [config("L6", attributes={"message.type": "FIFO"})]})
    yield ask(18, None, {"topicConfigList": [config("L7", attributes={"+message.type": "MIXED"})]})
    yield ask(18, None, {"topicConfigList": []})
    yield ask(21)
    for seq, most in ((0, 2), (3, 4), (1000, 2), (-1, 2)):
        yield ask(21, {"topicSeq": str(seq), "maxTopicNum": str(most), "dataVersion": ""})
    yield ask(21, {"topicSeq": "0", "maxTopicNum": "2"})
    yield ask(21, {"topicSeq": "0"})
    for name in ("", " ", "nope", "TBW102", "rmq_sys_x", "L4", "a b"):
        yield ask(215, {"topic": name})
    yield ask(215, {})
    yield ask(351, {"topic": "L4"})
    yield from first_send("S1", "TBW102", 3)
    yield from first_send("S2", "TBW102", 100)
    yield from first_send("S3", "TBW102", -1)
    yield from first_send("S4", "DefaultCluster", 4)
    yield from first_send("S5", "broker-a", 4)
    yield from first_send("S6", "T", 4)
    yield from first_send("S7", "nope", 4)
    yield from first_send("%RETRY%S8", "nope", 4)
    yield from first_send("S1", "nope", 4)


def groups() -> Iterator[Step]:
    yield ask(201)
    yield ask(200, None, {"groupName": "G1"})
    yield ask(200, None, {"groupName": "G2", "consumeFromMinEnable": False, "retryMaxTimes": 3})
    yield ask(352, {"group": "G2"})
    yield ask(352, {"group": "made"})
    yield ask(352, {"group": "a b"})
    yield ask(352, {})
    for name in ("", "a b", "g" * 120, "g" * 121, "é"):
        yield ask(200, None, {"groupName": name})
    yield ask(200, None, {"retryMaxTimes": 1})
    yield ask(200)
    yield ask(200, None, {"groupName": "G2", "attributes": {"+priority.factor": "5"}})
    yield ask(200, None, {"groupName": "G2", "attributes": {"+priority.factor": "101"}})
    yield ask(200, None, {"groupName": "G2", "attributes": {"priority.factor": "7"}})
    yield ask(200, None, {"groupName": "G2", "attributes": {"+nosuch": "1"}})
    yield ask(200, None, {"groupName": "G2", "attributes": {"+lite.sub.model": "Shared"}})
    yield ask(200, None, {"groupName": "G2", "attributes": {"+lite.sub.model": "Other"}})
    yield ask(200, None, {"groupName": "G2", "attributes": {"+lite.bind.topic": "T"}})
    yield ask(
        200,
        None,
        {"groupName": "G2", "attributes": {"+lite.sub.reset.offset.exclusive": "maybe"}},
    )
    yield ask(352, {"group": "G2"})
    yield ask(200, None, {"groupName": "G2", "attributes": {"-priority.factor": ""}})
    yield ask(352, {"group": "G2"})
    yield ask(225, None, {"groupConfigList": [{"groupName": "G3"}, {"groupName": "G4"}]})
    yield ask(225, None, {"groupConfigList": [{"groupName": "G5"}, {"groupName": "a b"}]})
    yield ask(225, None, {"groupConfigList": []})
    yield ask(201)
    for seq, most in ((0, 2), (3, 4), (1000, 2)):
        yield ask(201, {"groupSeq": str(seq), "maxGroupNum": str(most), "dataVersion": ""})
    yield ask(201, {"maxGroupNum": "2"})
    yield ask(207, {"groupName": "G3"})
    yield ask(207, {"groupName": "nope", "cleanOffset": "true"})
    yield ask(207, {})
    yield ask(353, {"group": "G1", "topic": "T"})
    yield ask(353, {"group": "G1", "topic": "T", "readable": "false"})
    yield ask(353, {"group": "G1", "topic": "T"})
    yield ask(201, {"groupSeq": "0", "maxGroupNum": "100", "dataVersion": ""})
    yield ask(353, {"group": "G1", "topic": "T", "readable": "true"})


def membership() -> Iterator[Step]:
    yield members("CG")
    yield beat("id1", consumer("CG", sub("T")), on="c1", producers=["PG", "CLIENT_INNER_PRODUCER"])
    yield ask(351, {"topic": "%RETRY%CG"})
    yield ask(352, {"group": "CG"})
    yield members("CG")
    yield beat("id1", consumer("CG", sub("T")), on="c1")
    yield beat("id2", consumer("CG", sub("T")), on="c2")
    yield members("CG")
    yield beat("id1", consumer("CG", sub("T", version=2)), on="c1")
    yield beat("id1", consumer("CG", sub("T", "a", version=1)), on="c1")
    yield ask(203, {"consumerGroup": "CG"})
    yield beat("id1", consumer("CG", sub("T", version=2), sub("T2")), on="c1")
    yield beat("id2", consumer("CG", sub("T")), on="c2")
    yield beat("id3", consumer("CG", sub("T")), on="c2")
    yield ask(203, {"consumerGroup": "CG"})
    yield beat("id3", consumer("CG", sub("T")), on="c3")
    yield ask(203, {"consumerGroup": "CG"})
    yield beat("id3", consumer("CG", sub("T"), messageModel="BROADCASTING"), on="c3")
    yield beat("id4", consumer("CG", sub("T"), messageModel="BROADCASTING"), on="c4")
    yield beat("id4", consumer("CG", sub("T"), consumeType="CONSUME_ACTIVELY"), on="c4")
    yield ask(203, {"consumerGroup": "CG"})
    yield leave("whoever", "c4", consumerGroup="CG")
    yield leave("id4", "c4", consumerGroup="CG")
    yield leave("id4", "c4", consumerGroup="unknown-group")
    yield ask(352, {"group": "unknown-group"})
    yield leave("id4", "c4")
    yield ask(35, {"consumerGroup": "CG"}, None, "c4")
    yield {"on": "c3", "close": True}
    yield members("CG")
    yield leave("id2", "c2", consumerGroup="CG")
    yield leave("id1", "c1", consumerGroup="CG", producerGroup="PG")
    yield members("CG")
    yield ask(203, {"consumerGroup": "CG"})
    yield ask(204, {"producerGroup": "PG", "topic": "T"})
    yield ask(204, {"producerGroup": "CLIENT_INNER_PRODUCER", "topic": "T"})
    # groups that may not be told
    yield ask(200, None, {"groupName": "Quiet", "notifyConsumerIdsChangedEnable": False})
    yield beat("q1", consumer("Quiet", sub("T")), on="c1")
    yield beat("q2", consumer("Quiet", sub("T")), on="c2")
    yield leave("q2", "c2", consumerGroup="Quiet")
    yield beat("q2", consumer("Quiet", sub("T")), on="c5")
    yield {"on": "c5", "close": True}
    # several groups, bad names, order topics, unit mode, orders of the parts
    yield topic("Ordered", order="true")
    yield beat(
        "id1",
        consumer("CA", sub("Ordered"), unitMode=True),
        consumer("bad name", sub("T")),
        consumer("CB"),
        on="c1",
    )
    yield from (ask(351, {"topic": f"%RETRY%{group}"}) for group in ("CA", "CB", "bad name"))
    yield beat("id1", consumer("CA", sub("T")), on="c1")
    yield ask(351, {"topic": "%RETRY%CA"})
    yield members("CA")
    yield members("bad name")
    yield ask(200, None, {"groupName": "CR", "retryQueueNums": 3})
    yield beat("id1", consumer("CR", sub("T")), on="c1")
    yield ask(351, {"topic": "%RETRY%CR"})
    yield ask(34, None, {"clientID": "id1", "consumerDataSet": [], "producerDataSet": []}, "c1")
    yield ask(34, None, None, "c1")
    yield ask(38, {})


def heartbeat_2() -> Iterator[Step]:
    two = {"heartbeatFingerprint": 7, "withoutSub": False}
    short = {"heartbeatFingerprint": 7, "withoutSub": True}
    yield beat("v1", consumer("V2", sub("T")), on="c1", **two)
    yield beat("v1", consumer("V2"), on="c1", **short)
    yield ask(203, {"consumerGroup": "V2"})
    yield beat("v2", consumer("V2"), on="c2", **(short | {"heartbeatFingerprint": 8}))
    yield beat("v1", consumer("V2"), on="c1", **short)
    yield beat("v1", consumer("V2", sub("T"), sub("T2")), on="c1", **two)
    yield beat("v1", consumer("V3"), on="c1", **short)
    yield ask(203, {"consumerGroup": "V3"})
    yield members("V3")
    yield beat("v1", consumer("V2", sub("T")), on="c1")
    yield beat("v1", consumer("V2", sub("T")), on="c1", **two)


def check_config() -> Iterator[Step]:
    def check(subscription: dict[str, Any] | None) -> Step:
        return ask(46, None, {"clientId": "i", "group": "g", "subscriptionData": subscription})

    yield check(sub("T"))
    yield check(sub("T", "a > 1 AND b IS NOT NULL", kind="SQL92"))
    yield check(sub("T", "a >", kind="SQL92"))
    yield check(sub("T", "", kind="SQL92"))
    yield check(sub("T", "a", kind="GROOVY"))
    yield check(None)
    yield ask(46)


def offsets() -> Iterator[Step]:
    yield topic("O")
    yield beat("id1", consumer("OG", sub("O")), on="c1")
    group = {"consumerGroup": "OG"}
    yield offset(14, "O", 0, **group)
    yield from send("O", 0, 3)
    yield from send("O", 1, 1)
    for name, queue in (("O", 0), ("O", 2), ("O", 77), ("O", -1), ("nope", 0)):
        yield offset(14, name, queue, **group)
        yield offset(30, name, queue)
        yield offset(31, name, queue)
        yield offset(32, name, queue)
    yield offset(14, "O", 0, **group, setZeroIfNotFound="false")
    yield offset(14, "O", 0, **group, setZeroIfNotFound="true")
    yield offset(14, "O", 0, consumerGroup="nope")
    yield offset(14, "O", 0)
    yield offset(14, "O", None, **group)
    yield offset(15, "O", 0, **group, commitOffset="2")
    yield offset(14, "O", 0, **group)
    yield offset(15, "O", 0, **group, commitOffset="1")
    yield offset(14, "O", 0, **group)
    yield offset(15, "O", 0, consumerGroup="nope", commitOffset="1")
    yield offset(15, "nope", 0, **group, commitOffset="1")
    yield offset(15, "nope", 0, consumerGroup="nope", commitOffset="1")
    yield offset(15, "O", None, **group, commitOffset="1")
    yield offset(15, "O", 0, **group)
    yield offset(15, "O", 0, consumerGroup="", commitOffset="1")
    yield offset(15, "O", 0, commitOffset="1")
    yield offset(15, "O", 1, **group, commitOffset="-1")
    yield offset(14, "O", 1, **group)
    yield offset(15, "O", 3, **group, commitOffset="9")
    yield ask(43)
    for moment in ("0", "99999999999999", "-1"):
        for edge in ({}, {"boundaryType": "LOWER"}, {"boundaryType": "UPPER"}):
            yield offset(29, "O", 0, timestamp=moment, **edge)
    yield offset(29, "O", 2, timestamp="0")
    yield offset(29, "O", 2, timestamp="99999999999999")
    yield offset(29, "nope", 0, timestamp="0")
    yield offset(29, "O", 0, timestamp="0", boundaryType="SIDEWAYS")
    yield offset(30, "O", 0, committed="false")
    yield ask(207, {"groupName": "OG", "cleanOffset": "true"})
    yield ask(43)
    yield offset(15, "O", 0, **group, commitOffset="2")
    yield beat("id1", consumer("OG", sub("O")), on="c1")
    yield offset(15, "O", 0, **group, commitOffset="2")
    yield ask(215, {"topic": "O"})
    yield ask(43)
    yield offset(14, "O", 0, **group)


def locks() -> Iterator[Step]:
    yield lock("LG", "a", 0, 1)
    yield lock("LG", "b", 1, 2)
    yield lock("LG", "a", 0)
    yield lock("LG", "b", 0, code=42)
    yield lock("LG", "b", 0)
    yield lock("LG", "a", 0, code=42)
    yield lock("LG", "b", 0)
    yield lock("other", "a", 0)
    yield lock("LG", "a")
    yield lock("nope", "a", 0, code=42)
    yield ask(41)


def assignments() -> Iterator[Step]:
    yield topic("AS", readQueueNums="5", writeQueueNums="8")
    yield {"wait": 1.0}
    yield assignment("AS", "AG", "m1")
    for number in (2, 1, 3):
        yield beat(f"m{number}", consumer("AG", sub("AS")), on=f"m{number}")
    for client in ("m1", "m2", "m3", "stranger", ""):
        yield assignment("AS", "AG", client)
    for strategy in ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "nope", "", None):
        yield assignment("AS", "AG", "m2", strategy)
    yield assignment("nope", "AG", "m1")
    yield assignment("AS", "AG", "m1", messageModel="BROADCASTING")
    yield assignment("AS", "nobody", "m1", messageModel="BROADCASTING")
    yield assignment("%RETRY%AG", "AG", "m1")

    def mode(name: str, group: str, how: str, share: int = 0) -> Step:
        body = {"consumerGroup": group, "mode": how, "popShareQueueNum": share, "topic": name}
        return ask(401, None, body)

    yield ask(402)
    yield mode("%RETRY%AG", "AG", "POP")
    yield mode("nope", "AG", "POP")
    yield mode("AS", "bad group", "POP")
    for share in (0, 1, 2, -1):
        yield mode("AS", "AG", "POP", share)
        yield from (assignment("AS", "AG", client) for client in ("m1", "m2", "m3", "stranger"))
    yield assignment("AS", "AG", "m1", "AVG_BY_CIRCLE")
    yield assignment("AS", "AG", "m1", "nope")
    yield topic("AS1", readQueueNums="1", writeQueueNums="1")
    yield beat("m4", consumer("AG", sub("AS")), on="m4")
    yield mode("AS1", "AG", "POP", 1)
    yield {"wait": 1.0}
    yield from (assignment("AS1", "AG", f"m{number}") for number in (1, 2, 3, 4))
    yield assignment("AS1", "AG", "stranger")
    yield mode("AS", "AG", "PULL")
    yield assignment("AS", "AG", "m1")
    yield ask(402)
    yield ask(400)


STEPS = [
    *topics(), *groups(), *membership(), *heartbeat_2(), *check_config(), *offsets(), *locks(),
    *assignments(),
]  # fmt: skip


class Peer:
    """A connection to the broker that remembers what it was pushed."""

    def __init__(self, host: str, port: int) -> None:
        self.socket = socket.create_connection((host, port))
        self.reader = FrameReader(1 << 26)
        self.opaque = 0
        self.pushed: list[Command] = []
        self.answers: dict[int, Command] = {}

    def receive(self, timeout: float) -> bool:
        if not select.select([self.socket], [], [], timeout)[0]:
            return False
        for frame in self.reader.feed(self.socket.recv(1 << 20)):
            command = read_command(frame)
            if command.is_response:
                self.answers[command.opaque] = command
            else:
                self.pushed.append(command)
        return True

    def ask(self, step: Step) -> Command:
        self.opaque += 1
        text = step["body"]
        body = (
            b""
            if text is None
            else text.encode()
            if isinstance(text, str)
            else json.dumps(text).encode()
        )
        request = Command(step["code"], self.opaque, version=513, ext_fields=step["ext"], body=body)
        self.socket.sendall(request.encode())
        deadline = time.monotonic() + 20
        while self.opaque not in self.answers:
            if time.monotonic() > deadline:
                raise TimeoutError(step)
            self.receive(1)
        return self.answers.pop(self.opaque)


def listen(peers: list[Peer]) -> None:
    """Receive pushes until no peer gets one any more."""
    while sum(peer.receive(QUIET / len(peers)) for peer in peers):
        pass


def told(answer: Command) -> dict[str, Any]:
    """Return an answer as it is kept: a JSON body as a value, other bodies not at all."""
    try:
        body = json.loads(answer.body) if answer.body else None
    except ValueError:
        body = answer.body.decode(errors="replace")  # fastjson's own dialect
    fields = answer._fields()  # None where the header had none, not even an empty object
    return {"code": answer.code, "remark": answer.remark, "ext": fields, "body": body}


def main() -> None:
    host, _, port = sys.argv[1].rpartition(":")
    peers: dict[str, Peer] = {}
    for step in STEPS:
        line = dict(step)
        if "wait" in step:
            time.sleep(step["wait"])
            continue
        name = step["on"]
        if name not in peers:
            peers[name] = Peer(host, int(port))
        if step.get("close"):
            peers.pop(name).socket.close()
            time.sleep(QUIET)
        else:
            line["answer"] = told(peers[name].ask(step))
        listen(list(peers.values()))
        line["pushed"] = {
            name: [[push.code, push.ext] for push in peer.pushed]
            for name, peer in sorted(peers.items())
            if peer.pushed
        }
        for peer in peers.values():
            peer.pushed.clear()
        print(json.dumps(line, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
