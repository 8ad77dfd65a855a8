"""Topics with `queue.type=BatchCQ`: batches of both makes, on brokers of both makes."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pocketmq as mq
from pocketmq.embedded import Cluster
from pocketmq.net import Address
from pocketmq.protocol import Command
from pocketmq.protocol.batch import BatchEntry, encode_batch
from pocketmq.protocol.property_text import decode_properties
from tests import batch_topics
from tests.batch_topics import FIRST, WORDS, make_topic, send_words, split
from tests.broker.background import Caller
from tests.broker.running import pull_fields, records, send_fields
from tests.interop.java_broker import JavaBroker, java_brokers
from tests.interop.jvm import PATIENCE, Admin, Jars, wait_until
from tests.interop.test_clients_java import run

pytestmark = [pytest.mark.java, pytest.mark.line("5.x"), pytest.mark.timeout(600)]

SETTINGS = {"enablePropertyFilter": "true"}


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    data = tmp_path_factory.mktemp("data")
    with Cluster(data=data, in_process=False) as running:
        with mq.Admin(running.address) as admin:
            admin.brokers.change_config(SETTINGS).all()
        yield running


@pytest.fixture(scope="module")
def theirs(jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaBroker]:
    home = tmp_path_factory.mktemp("java")
    with java_brokers(jars, home, "java-0", **SETTINGS) as running:
        yield running


# Java's clients on our broker


def test_javas_batches_on_our_broker(jars: Jars, tmp_path: Path, ours: Cluster) -> None:
    topic = "java-batches"
    with Admin(jars, tmp_path) as admin:
        words = f"-c DefaultCluster -t {topic} -r 1 -w 1 -a +queue.type=BatchCQ"
        assert "success" in admin.run(f"updateTopic -n {ours.address} {words}")
        said = admin.run(f"updateTopic -n {ours.address} {words}")
        assert "attempt to update an unchangeable attribute. key: queue.type" in said
        assert run(jars, tmp_path, "Batches", "send", ours.address, topic, *WORDS) == [
            "abcde SEND_OK 0 1 1",
            "f SEND_OK 5 1 1",
            "ghi SEND_OK 6 1 1",
        ]
        status = admin.run(f"topicStatus -n {ours.address} -t {topic}").split()
        assert status[status.index("broker-0") + 1 :][:3] == ["0", "0", "9"]
    pulled = run(jars, tmp_path, "Batches", "pull", ours.address, topic, "2", "1", "*")
    # Java's client hands out the whole batch, from any offset inside of it.
    assert pulled == [
        "bounds 0 9",
        "2 FOUND 5 a@0:tag-a b@1:tag-b c@2:tag-c d@3:tag-d e@4:tag-e",
        "5 FOUND 6 f@5:tag-f",
        "6 FOUND 9 g@6:tag-g h@7:tag-h i@8:tag-i",
    ]
    tagged = run(
        jars, tmp_path, "Batches", "pull", ours.address, topic, "0", "32", "tag-a || tag-f"
    )
    assert tagged == ["bounds 0 9", "0 FOUND 9 f@5:tag-f"]


def test_javas_push_consumer_takes_and_retries_messages_of_batches(
    jars: Jars, tmp_path: Path, ours: Cluster
) -> None:
    make_topic(ours.address, "java-pushed")
    send_words(ours.address, "java-pushed")
    said = run(jars, tmp_path, "Batches", "push", ours.address, "java-pushed", "9", "b", "h")
    retried = {"b": 1, "h": 1}
    assert said == [f"{each} {retried.get(each, 0)}" for each in "abcdefghi"]
    with mq.Admin(ours.address) as admin:
        wait_until(
            lambda: admin.groups.progress("pushed-java-pushed").lag == 0, "the group to commit"
        )


# Our clients on either broker


@pytest.fixture(params=["ours", "theirs"])
def address(request: pytest.FixtureRequest, jars: Jars) -> str:
    assert jars.is_5
    found: str = request.getfixturevalue(request.param).address
    return found


def test_our_producer_and_pull_consumer(address: str) -> None:
    batch_topics.send_and_pull(address)


def test_our_admin_finds_messages_of_batches(address: str) -> None:
    batch_topics.find(address)


def test_our_push_consumer_retries_single_messages_of_batches(address: str) -> None:
    batch_topics.push_and_retry(address)


def test_our_pop_consumer_acknowledges_messages_of_batches(address: str, ours: Cluster) -> None:
    batch_topics.pop_and_acknowledge(address, in_order=address == ours.address)


def test_spark_reads_from_inside_of_a_batch(address: str) -> None:
    batch_topics.scan_with_spark(address)


# The same questions to both brokers


def ask_both(
    ours: Cluster, theirs: JavaBroker, topic: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    found = []
    for address in (ours.address, theirs.address):
        caller = Caller(Address(*split(make_topic(address, topic))))
        found.append(_story(caller, topic))
        caller.close()
    return found[0], found[1]


def batch_of(letters: str) -> bytes:
    return encode_batch(
        [BatchEntry(each.encode(), f"UNIQ_KEY\1U{each}\2".encode()) for each in letters]
    )


def _story(caller: Caller, topic: str) -> dict[str, Any]:
    """Send and pull in many ways; give everything that both brokers should answer alike."""
    told: dict[str, Any] = {}

    def send(name: str, text: str, letters: str, **fields: str) -> Command:
        code = 310 if len(letters) == 1 else 320
        body = letters.encode() if code == 310 else batch_of(letters)
        given = send_fields(topic, text, m=str(code == 320).lower()) | fields
        answer = caller.ask(code, given, body)
        told[name] = answer.code, answer.remark, answer.ext.get("queueOffset")
        if answer.code == 0:
            told[f"{name} fields"] = sorted(answer.ext), len(answer.ext["msgId"])
        return answer

    sent = send("batch", "UNIQ_KEY\1A\2WAIT\1true\2", "abcde")
    send("single", "UNIQ_KEY\1S\2TAGS\1x\2", "f")
    send("without id", "WAIT\1true\2", "gh")
    send("tagged", "UNIQ_KEY\1B\2TAGS\1red\2KEYS\1outer\2a\0015\2", "ijk")
    send("claiming", "UNIQ_KEY\1C\2INNER_NUM\0017\2INNER_BASE\0019\2", "lm", f="128")
    send("delayed", "UNIQ_KEY\1D\2DELAY\0013\2", "no")
    send("timed", "UNIQ_KEY\1D\2TIMER_DELAY_SEC\00130\2", "no")
    send("single that claims", "UNIQ_KEY\1D\2INNER_NUM\0012\2", "n")
    place = {"topic": topic, "queueId": "0"}
    wait_until(lambda: caller.ask(30, place).ext["offset"] == "13", "the queue's end")
    for offset in range(13):
        for most in (1, 3, 6, 8, 32):
            told[f"pull {most} from {offset}"] = _pull(caller, topic, offset, most)
    for expression, kind in (
        ("red", "TAG"), ("x", "TAG"), ("a = 5", "SQL92"), ("INNER_NUM = 5", "SQL92"),
    ):  # fmt: skip
        told[expression] = _pull(caller, topic, 0, 32, subscription=expression, expressionType=kind)
    told["bounds"] = caller.ask(30, place).ext, caller.ask(31, place).ext
    told["by time"] = caller.ask(29, place | {"timestamp": "0"}).ext
    told["sent back"] = _sent_back(caller, topic, sent)
    return told


def _pull(caller: Caller, topic: str, offset: int, most: int, **fields: Any) -> Any:
    given = pull_fields(topic, offset, maxMsgNums=str(most), sysFlag="4", **fields)
    answer = caller.ask(11, given)
    found = []
    for view in records(answer):
        properties = decode_properties(view.property_bytes)
        properties.pop("CLUSTER", None)
        found.append((view.queue_offset, view.sys_flag, view.stored_body, properties))
    return answer.code, answer.remark, answer.ext, found


def _sent_back(caller: Caller, topic: str, sent: Command) -> Any:
    fields = {
        "offset": str(int(sent.ext["msgId"][16:], 16)), "group": "G", "delayLevel": "0",
        "originMsgId": "U", "originTopic": topic, "unitMode": "false", "maxReconsumeTimes": "16",
    }  # fmt: skip
    answer = caller.ask(36, fields)
    return answer.code, answer.remark


@pytest.mark.usefixtures("jars")
def test_both_brokers_answer_alike(ours: Cluster, theirs: JavaBroker) -> None:
    told, expected = ask_both(ours, theirs, "alike")
    different = {
        name: (told[name], value) for name, value in expected.items() if told[name] != value
    }
    assert different == {}


def test_javas_pull_consumer_reads_our_batches_from_javas_broker_as_from_ours(
    jars: Jars, tmp_path: Path, ours: Cluster, theirs: JavaBroker
) -> None:
    said = []
    for address in (ours.address, theirs.address):
        make_topic(address, "mirrored")
        send_words(address, "mirrored")
        said.append(run(jars, tmp_path, "Batches", "pull", address, "mirrored", "7", "2", "*"))
    assert said[0] == said[1] == ["bounds 0 9", "7 FOUND 9 g@6:tag-g h@7:tag-h i@8:tag-i"]


def test_asyncio_clients_read_batches_too(ours: Cluster) -> None:
    from pocketmq import aio

    async def story() -> list[bytes]:
        consumer = aio.PullConsumer(ours.address, group="aio-pullers", consume_from=FIRST)
        async with consumer.subscribe("aio-batches"):
            got: list[bytes] = []
            async with asyncio.timeout(PATIENCE):
                while len(got) < 9:
                    got += [each.body for each in await consumer.poll(timeout=5)]
        return got

    make_topic(ours.address, "aio-batches")
    send_words(ours.address, "aio-batches")
    assert b"".join(asyncio.run(story())) == b"abcdefghi"
