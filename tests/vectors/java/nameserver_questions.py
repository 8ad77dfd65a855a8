"""Put scenarios to a live Java name server and write down what it answers.

    python -m tests.vectors.java.nameserver_questions 127.0.0.1:9876 > tests/vectors/java-nameserver.jsonl

Each line is one scenario: steps on named connections, each with its answer. The name server must
be new; every scenario leaves it without brokers.
"""

import json
import random
import socket
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from pocketmq.model import DataVersion, TopicConfig
from pocketmq.model.topics import TopicMapping
from pocketmq.protocol import Command, encode_body
from pocketmq.protocol.command import read_command
from pocketmq.protocol.frame import FrameReader
from pocketmq.protocol.registration import Registration, encode_registration
from pocketmq.protocol.requests.topics import TopicTableBody

Step = dict[str, Any]
V5, V49, V48 = 513, 407, 383
OFF = "supportActingMaster=false\norderMessageEnable=false\ndeleteTopicWithBrokerRegistration=false\nenableTopicList=true\nenableAllTopicList=true\nreturnOrderTopicConfigToBroker=true\n"


class Java:
    """A name server and the connections to it; keeps a scenario's steps."""

    def __init__(self, address: str) -> None:
        host, port = address.split(":")
        self.address = (host, int(port))
        self.sockets: dict[str, socket.socket] = {}
        self.steps: list[Step] = []

    def ask(
        self,
        code: int,
        ext: dict[str, str] | None = None,
        body: bytes = b"",
        *,
        on: str = "tool",
        version: int = V5,
    ) -> Command:
        if on not in self.sockets:
            self.sockets[on] = socket.create_connection(self.address, timeout=10)
        sock = self.sockets[on]
        request = msgspec.structs.replace(Command.request(code, 1, ext, body), version=version)
        sock.sendall(request.encode())
        reader = FrameReader(1 << 24)
        frames: list[Any] = []
        while not frames:
            data = sock.recv(1 << 16)
            if not data:
                raise ConnectionError("the name server hung up")
            frames += reader.feed(data)
        answer = read_command(frames[0])
        step: Step = {"on": on, "code": code, "ext": ext or {}, "version": version}
        step |= _body("body", body)
        got: Step = {"code": answer.code, "remark": answer.remark, "ext": answer.ext}
        step["answer"] = got | _body("body", answer.body)
        self.steps.append(step)
        if code == 104:
            time.sleep(0.05)  # Java unregisters on another thread
        return answer

    def close(self, on: str) -> None:
        if on in self.sockets:
            self.sockets.pop(on).close()
            self.steps.append({"close": on})
            time.sleep(0.08)

    def end(self) -> list[Step]:
        for on in list(self.sockets):
            if on != "tool":
                self.close(on)
        steps, self.steps = self.steps, []
        self.ask(318, body=OFF.encode())
        left = self.ask(106).body
        assert left == b'{"brokerAddrTable":{},"clusterAddrTable":{}}', left
        self.sockets.pop("tool").close()
        self.steps = []
        return steps


def _body(name: str, body: bytes) -> Step:
    if not body:
        return {}
    try:
        return {name: body.decode()}
    except UnicodeDecodeError:
        return {f"{name}Hex": body.hex()}


def topics(
    *configs: TopicConfig,
    version: int = 1,
    state: int = 0,
    mappings: list[TopicMapping] | None = None,
) -> Registration:
    return Registration(
        topics=TopicTableBody(
            data_version=DataVersion(
                counter=version, timestamp=1000 + version, state_version=state
            ),
            topic_config_table={each.topic_name: each for each in configs},
            topic_queue_mapping_info_map={each.topic or "": each for each in mappings or []},
        )
    )


def register(
    java: Java,
    name: str,
    broker_id: int,
    registration: Registration | None,
    *,
    address: str = "",
    cluster: str = "",
    on: str = "",
    version: int = V5,
    compressed: bool = False,
    acting: bool | None = False,
    **ext: str,
) -> Command:
    address = address or f"{name}-{broker_id}:10911"
    fields = {
        "brokerName": name,
        "brokerAddr": address,
        "clusterName": cluster or f"cluster-of-{name}",
        "haServerAddr": f"ha-of-{address}",
        "brokerId": str(broker_id),
        "compressed": str(compressed).lower(),
        "bodyCrc32": "0",
    }
    if acting is not None and version >= 413:
        fields["enableActingMaster"] = str(acting).lower()
    body = (
        b""
        if registration is None
        else encode_registration(registration, compressed=compressed, version=version)
    )
    return java.ask(103, fields | ext, body, on=on or address, version=version)


def unregister(java: Java, name: str, broker_id: int, address: str = "") -> None:
    address = address or f"{name}-{broker_id}:10911"
    java.ask(
        104,
        {
            "brokerName": name,
            "brokerAddr": address,
            "clusterName": f"cluster-of-{name}",
            "brokerId": str(broker_id),
        },
        on=address,
    )


def topic(name: str, queues: int = 4, perm: int = 6, flag: int = 0) -> TopicConfig:
    return TopicConfig(
        topic_name=name,
        read_queue_nums=queues,
        write_queue_nums=queues,
        perm=perm,
        topic_sys_flag=flag,
    )


def sweep(java: Java, names: list[str], known_topics: list[str]) -> None:
    """Ask everything that can be asked."""
    for code in (106, 206, 304, 311, 312, 313):
        java.ask(code)
    for each in known_topics:
        java.ask(105, {"topic": each})
        java.ask(105, {"topic": each}, version=V48)
        java.ask(105, {"topic": each, "acceptStandardJsonOnly": "true"}, version=V48)
    for name in names:
        java.ask(224, {"cluster": f"cluster-of-{name}"})
        java.ask(901, {"clusterName": f"cluster-of-{name}", "brokerName": name})


# Scenarios written by hand


def masters_and_slaves(java: Java) -> None:
    ab = topics(topic("a"), topic("b", 8, 7, 3), topic("unit", flag=1), topic("sub", flag=2))
    register(java, "b1", 0, ab)
    register(java, "b1", 1, ab)
    register(java, "b1", 2, ab, version=V49)
    register(java, "b2", 1, ab, version=V49)  # a slave of 4.9 alone: its topics do not count
    register(java, "b3", 1, ab)  # of 5.x: they do
    sweep(java, ["b1", "b2", "b3", "none"], ["a", "b", "none"])
    java.close("b1-0:10911")
    sweep(java, ["b1"], ["a"])
    unregister(java, "b1", 1)
    sweep(java, ["b1"], ["a"])
    unregister(java, "b1", 2)
    sweep(java, ["b1"], ["a"])


def versions(java: Java) -> None:
    register(java, "b1", 0, topics(topic("a"), topic("b")))
    key = {
        "brokerName": "b1",
        "brokerAddr": "b1-0:10911",
        "clusterName": "cluster-of-b1",
        "brokerId": "0",
    }
    for counter in (1, 2):
        java.ask(322, key, encode_body(DataVersion(counter=counter, timestamp=1001)))
    java.ask(322, key)
    java.ask(
        322, key | {"brokerAddr": "stranger:1"}, encode_body(DataVersion(counter=1, timestamp=1001))
    )
    register(java, "b1", 0, topics(topic("a", 16), topic("b", 16)))  # same version: not looked at
    java.ask(105, {"topic": "a"})
    register(java, "b1", 0, topics(topic("a", 16), topic("c", 16)))  # but what is missing is added
    sweep(java, [], ["a", "b", "c"])
    register(java, "b1", 0, topics(topic("a", 16), topic("c", 16), version=2))
    sweep(java, [], ["a", "b", "c"])
    register(java, "b1", 0, topics(topic("d"), version=3))  # one alone is welcome once known
    sweep(java, [], ["a", "d"])
    java.ask(904, {"clusterName": "cluster-of-b1", "brokerAddr": "b1-0:10911", "brokerName": "b1"})
    java.ask(904, {"clusterName": "x", "brokerAddr": "x:1", "brokerName": "x"})


def lone_topic_first(java: Java) -> None:
    register(java, "b1", 0, topics(topic("a")))
    java.ask(105, {"topic": "a"})
    register(java, "b1", 0, topics(topic("a"), topic("b")))
    register(java, "b1", 1, topics(topic("a")))
    register(java, "b1", 0, topics(topic("c")))
    sweep(java, ["b1"], ["a", "b", "c"])


def without_topics(java: Java) -> None:
    register(java, "b1", 0, None)
    sweep(java, ["b1"], ["a"])
    key = {
        "brokerName": "b1",
        "brokerAddr": "b1-0:10911",
        "clusterName": "cluster-of-b1",
        "brokerId": "0",
    }
    java.ask(322, key, encode_body(DataVersion()))
    java.ask(322, key, encode_body(DataVersion(counter=1)))


def forms(java: Java) -> None:
    attributes = msgspec.structs.replace(topic("t1"), attributes={"message.type": "FIFO"})
    mapping = TopicMapping(
        topic="t2", bname="b1", total_queues=8, epoch=3, curr_id_map={0: 0, 4: 1}
    )
    register(java, "b1", 0, topics(attributes, topic("t2"), mappings=[mapping]), compressed=True)
    register(java, "b2", 0, topics(topic("t1", perm=4), topic("t2")), compressed=True, version=V49)
    register(
        java,
        "b3",
        0,
        topics(topic("t1"), topic("t2"), mappings=[msgspec.structs.replace(mapping, bname="b3")]),
    )
    register(java, "b4", 0, topics(topic("t1"), topic("t2")), version=V48)
    old = topics(topic("t1"), topic("t2"))
    body = encode_body(old.topics)
    fields = {
        "brokerName": "b5",
        "brokerAddr": "b5-0:10911",
        "clusterName": "cluster-of-b5",
        "haServerAddr": "h",
        "brokerId": "0",
    }
    java.ask(103, fields, body, on="b5-0:10911", version=30)
    java.ask(103, fields | {"bodyCrc32": "12345"}, body, on="b5-0:10911", version=30)
    sweep(java, ["b1"], ["t1", "t2"])


def permissions(java: Java) -> None:
    register(java, "b1", 0, topics(topic("a", perm=7), topic("b", perm=4)))
    register(java, "b2", 0, topics(topic("a", perm=6), topic("c", perm=2)))
    for code in (205, 205, 327):
        java.ask(code, {"brokerName": "b1"})
        sweep(java, [], ["a", "b"])
    java.ask(205, {"brokerName": "b2"})
    java.ask(205, {"brokerName": "none"})
    java.ask(327, {"brokerName": "none"})
    register(java, "b2", 0, topics(topic("a", perm=6), topic("c", perm=2)))
    sweep(java, [], ["a", "c"])
    register(java, "b2", 0, topics(topic("a", perm=6), topic("c", perm=2), version=2))
    sweep(java, [], ["a", "c"])


def single_topics(java: Java) -> None:
    register(java, "b1", 0, topics(topic("a"), topic("b")))
    register(java, "b2", 0, topics(topic("a"), topic("b")))
    for name, queues in (("b1", 3), ("none", 5)):
        for each in ("a", "new"):
            data = {
                "queueDatas": [
                    {
                        "brokerName": name,
                        "perm": 6,
                        "readQueueNums": queues,
                        "writeQueueNums": queues,
                        "topicSysFlag": 0,
                    }
                ]
            }
            java.ask(217, {"topic": each}, json.dumps(data).encode())
            sweep(java, [], ["a", "new"])
    java.ask(217, {"topic": "empty"}, b'{"queueDatas":[]}')
    java.ask(217, {"topic": "empty"})
    java.ask(216, {"topic": "a", "clusterName": "cluster-of-b1"})
    java.ask(216, {"topic": "b", "clusterName": "none"})
    sweep(java, [], ["a", "b"])
    java.ask(216, {"topic": "a", "clusterName": "cluster-of-b2"})
    java.ask(216, {"topic": "b"})
    java.ask(216, {"topic": "none"})
    sweep(java, [], ["a", "b"])
    register(java, "b1", 0, topics(topic("a"), topic("b")))
    sweep(java, [], ["a", "b"])


def values(java: Java) -> None:
    java.ask(101, {"namespace": "one", "key": "k"})
    java.ask(219, {"namespace": "one"})
    java.ask(100, {"namespace": "one", "key": "k", "value": "v=1;é"})
    java.ask(100, {"namespace": "one", "key": "k2", "value": ""})
    java.ask(101, {"namespace": "one", "key": "k"})
    java.ask(101, {"namespace": "one", "key": "k2"})
    java.ask(219, {"namespace": "one"})
    java.ask(102, {"namespace": "one", "key": "k2"})
    java.ask(102, {"namespace": "one", "key": "k3"})
    java.ask(102, {"namespace": "two", "key": "k"})
    java.ask(219, {"namespace": "one"})
    java.ask(219, {"namespace": "two"})
    java.ask(102, {"namespace": "one", "key": "k"})
    java.ask(101, {"namespace": "one", "key": "k"})
    java.ask(219, {"namespace": "one"})


def order(java: Java) -> None:
    register(java, "b1", 0, topics(topic("a"), topic("b")))
    java.ask(100, {"namespace": "ORDER_TOPIC_CONFIG", "key": "a", "value": "b1:4"})
    register(java, "b1", 0, topics(topic("a"), topic("b")))
    sweep(java, [], ["a"])
    java.ask(318, body=b"orderMessageEnable=true\nreturnOrderTopicConfigToBroker = false\n")
    register(java, "b1", 0, topics(topic("a"), topic("b")))
    sweep(java, [], ["a", "b"])
    java.ask(102, {"namespace": "ORDER_TOPIC_CONFIG", "key": "a"})
    sweep(java, [], ["a"])
    java.ask(318, body=b"kvConfigPath=/x\norderMessageEnable=false\n")
    for key in ("configBlackList", "configStorePath", "rocketmqHome"):
        java.ask(318, body=f"{key}=x".encode())
    java.ask(318, body=b"nobodyKnowsThis=1")
    java.ask(318)
    java.ask(318, body=b"enableTopicList=false\nenableAllTopicList=false\n")
    sweep(java, ["b1"], ["a"])


def acting_masters(java: Java) -> None:
    java.ask(318, body=b"supportActingMaster=true\n")
    ab = topics(topic("a"), topic("b", perm=7), topic("rmq_sys_SYNC_BROKER_MEMBER_b1"))
    for name, acting in (("b1", True), ("b2", False)):
        for broker_id in (0, 1, 2):
            register(java, name, broker_id, ab, acting=acting)
    probes = ["a", "b", "rmq_sys_SYNC_BROKER_MEMBER_b1"]
    sweep(java, ["b1"], probes)
    java.close("b1-0:10911")
    java.close("b2-0:10911")
    sweep(java, ["b1", "b2"], probes)
    register(java, "b1", 1, ab, acting=True)
    register(java, "b2", 1, ab, acting=False)
    sweep(java, ["b1", "b2"], probes)
    java.ask(327, {"brokerName": "b1"})
    sweep(java, ["b1"], probes)
    java.close("b1-1:10911")
    sweep(java, ["b1"], probes)
    register(java, "b1", 0, ab, acting=True)
    sweep(java, ["b1"], probes)


def zones(java: Java) -> None:
    ab = topics(topic("a"), topic("b"))
    register(java, "b1", 0, ab, __ZONE_NAME="z1")
    register(java, "b2", 0, ab, __ZONE_NAME="z2")
    register(java, "b3", 1, ab, __ZONE_NAME="z2")
    register(java, "b4", 0, ab)
    java.ask(106)
    for zone, mode in (
        ("Z1", "true"),
        ("z2", "TRUE"),
        ("z3", "true"),
        ("z1", "false"),
        (" ", "true"),
    ):
        java.ask(105, {"topic": "a", "__ZONE_NAME": zone, "__ZONE_MODE": mode}, version=V48)


def roles_change(java: Java) -> None:
    ab = topics(topic("a"), topic("b"), state=1)
    register(java, "b1", 0, ab, address="x:1")
    register(java, "b1", 1, ab, address="y:1")
    later = topics(topic("a"), topic("b"), version=2, state=2)
    register(java, "b1", 0, later, address="y:1")  # the slave is elected
    java.ask(106)
    register(java, "b1", 0, ab, address="x:1")  # the old master comes back and is not heard
    java.ask(106)
    key = {"brokerName": "b1", "clusterName": "cluster-of-b1", "brokerId": "0"}
    java.ask(322, key | {"brokerAddr": "x:1"}, encode_body(ab.topics.data_version))
    java.ask(322, key | {"brokerAddr": "y:1"}, encode_body(later.topics.data_version))
    register(java, "b1", 1, later, address="x:1")
    java.ask(106)
    register(java, "b1", 0, later, address="z:1")  # same state: the last one counts
    sweep(java, ["b1"], ["a"])


def filter_servers(java: Java) -> None:
    ab = topics(topic("a"), topic("b"))
    register(java, "b1", 0, msgspec.structs.replace(ab, filter_server_list=["f1:1", "f2:2"]))
    register(java, "b2", 0, ab)
    sweep(java, [], ["a"])
    register(java, "b1", 0, msgspec.structs.replace(ab, filter_server_list=["f3:1"]))
    sweep(java, [], ["a"])
    register(java, "b1", 0, ab)
    sweep(java, [], ["a"])


def absent_topics(java: Java) -> None:
    register(java, "b1", 0, topics(topic("a"), topic("b"), topic("c")))
    register(java, "b2", 0, topics(topic("a"), topic("b"), topic("c")))
    register(java, "b1", 0, topics(topic("a"), topic("b"), version=2))
    sweep(java, [], ["c"])
    java.ask(318, body=b"deleteTopicWithBrokerRegistration=true\n")
    register(java, "b1", 0, topics(topic("a"), topic("d"), version=2))
    sweep(java, [], ["a", "b", "c", "d"])
    register(java, "b2", 0, topics(topic("a"), topic("d"), version=2))
    sweep(java, [], ["a", "b", "c", "d"])


def unknown_codes(java: Java) -> None:
    for code in (10, 11, 34, 905, 99999):
        java.ask(code, {"topic": "a"})


HAND_WRITTEN = [
    masters_and_slaves, versions, lone_topic_first, without_topics, forms, permissions,
    single_topics, acting_masters, zones, roles_change, filter_servers, absent_topics,
    unknown_codes, values,
]  # fmt: skip


def at_random(java: Java, seed: int) -> None:
    """Brokers of four names come, go and change; every question is asked now and then."""
    chance = random.Random(seed)
    acting = {name: chance.random() < 0.5 for name in "pqrs"}
    pool = ["ta", "tb", "tc", "td", "te"]
    if chance.random() < 0.6:
        java.ask(318, body=b"supportActingMaster=true\n")
    if chance.random() < 0.2:
        java.ask(318, body=b"deleteTopicWithBrokerRegistration=true\n")
    for _ in range(40):
        name, broker_id = chance.choice("pqrs"), chance.randrange(3)
        action = chance.choices(
            ["register", "unregister", "close", "wipe", "add", "delete", "one", "version"],
            [12, 2, 3, 1, 1, 2, 2, 2],
        )[0]
        address = f"{name}-{broker_id}:10911"
        if action == "register":
            chosen = chance.sample(pool, chance.randrange(2, 5))
            registration = topics(
                *(
                    topic(each, chance.choice([1, 4, 8]), chance.choice([2, 4, 6, 7]))
                    for each in chosen
                ),
                version=chance.randrange(1, 4),
            )
            register(
                java,
                name,
                broker_id,
                registration,
                acting=acting[name],
                version=chance.choice([V5, V5, V49]) if not acting[name] else V5,
                compressed=chance.random() < 0.5,
            )
        elif action == "unregister":
            unregister(java, name, broker_id)
        elif action == "close":
            java.close(address)
        elif action == "wipe":
            java.ask(205, {"brokerName": name})
        elif action == "add":
            java.ask(327, {"brokerName": name})
        elif action == "delete":
            java.ask(
                216,
                {
                    "topic": chance.choice(pool),
                    **({"clusterName": f"cluster-of-{name}"} if chance.random() < 0.5 else {}),
                },
            )
        elif action == "one":
            each = chance.choice(pool)
            data = {
                "queueDatas": [
                    {
                        "brokerName": name,
                        "perm": 6,
                        "readQueueNums": 2,
                        "writeQueueNums": 2,
                        "topicSysFlag": 0,
                    }
                ]
            }
            java.ask(217, {"topic": each}, json.dumps(data).encode())
        else:
            key = {
                "brokerName": name,
                "brokerAddr": address,
                "clusterName": f"cluster-of-{name}",
                "brokerId": str(broker_id),
            }
            java.ask(322, key, encode_body(DataVersion(counter=1, timestamp=1001)))
        question = chance.randrange(8)
        if question == 0:
            java.ask(chance.choice([106, 206, 304, 311, 312, 313]))
        elif question == 1:
            java.ask(chance.choice([224]), {"cluster": f"cluster-of-{name}"})
        else:
            java.ask(105, {"topic": chance.choice(pool)}, version=chance.choice([V5, V48]))
    sweep(java, list("pqrs"), pool)


def main() -> None:
    java = Java(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 12
    randoms: list[tuple[str, Callable[[Java], None]]] = [
        (f"at_random_{seed}", partial(at_random, seed=seed)) for seed in range(count)
    ]
    by_hand: list[tuple[str, Callable[[Java], None]]] = [
        (each.__name__, each) for each in HAND_WRITTEN
    ]
    # What is ordered stays in a name server's memory, so it comes last.
    for name, scenario in [*by_hand, *randoms, ("order", order)]:
        scenario(java)
        print(json.dumps({"name": name, "steps": java.end()}, ensure_ascii=False))


if __name__ == "__main__":
    main()
