"""Transactions, replies and traces between our clients and Java's, on Java's broker and on ours."""

import asyncio
import base64
import re
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from pocketmq.client.producer.producer import Producer
from pocketmq.client.producer.transactions import TransactionReceipt
from pocketmq.client.push.consumer import PushConsumer
from pocketmq.embedded import Cluster
from pocketmq.embedded.settings import Setting
from pocketmq.errors import RequestTimedOut, SendFailed
from pocketmq.model import ConsumeFromWhere, Message, PullFlag, TransactionState
from pocketmq.protocol import DeliveryContext, ReceivedMessage, RequestCode, trace_text
from pocketmq.protocol.pulled import decode_pulled
from pocketmq.protocol.requests.reading import PullRequest
from tests.interop.groups import Member
from tests.interop.java_broker import java_brokers
from tests.interop.jvm import Admin, Jars, Process, wait_until
from tests.wire_client import WireClient

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

COMMIT, ROLLBACK = TransactionState.COMMIT, TransactionState.ROLLBACK
UNKNOWN = TransactionState.UNKNOWN
QUEUES = 4
TRACES = "RMQ_SYS_TRACE_TOPIC"
SETTINGS: dict[str, Setting] = {
    "traceTopicEnable": True,
    "transactionTimeOut": 1000,
    "transactionCheckInterval": 1000,
}
A_CHECK = 300.0
"""A Java broker that has just heard of an end may take a minute before it asks about the next."""


class Java:
    """A name server with a broker that asks soon, and Java clients on them."""

    def __init__(self, jars: Jars, home: Path, address: str, broker: str) -> None:
        self.jars = jars
        self.home = home
        self.address = address
        self.broker = broker

    def client(self, kind: str, group: str, topic: str) -> Process:
        words = [kind, self.address, group, topic]
        return Process(self.jars.compiled(self.home, "Exchange", *words), self.home)

    def consumer(self, topic: str) -> Member:
        words = [self.address, f"readers-of-{topic}", topic, "reader"]
        return Member(self.jars.compiled(self.home, "Member", *words), self.home)

    def pull(self, topic: str) -> list[ReceivedMessage]:
        """Everything in a topic, read by hand."""
        found: list[ReceivedMessage] = []
        with WireClient(self.broker) as client:
            for queue in range(QUEUES):
                header = PullRequest(
                    consumer_group="by-hand",
                    topic=topic,
                    queue_id=queue,
                    queue_offset=0,
                    max_msg_nums=32,
                    sys_flag=int(PullFlag.SUBSCRIPTION),
                    commit_offset=0,
                    suspend_timeout_millis=0,
                    subscription="*",
                    sub_version=0,
                    expression_type="TAG",
                )
                answer = client.ask(RequestCode.PULL_MESSAGE, header)
                if answer.code == 0:
                    found += decode_pulled(answer.body, DeliveryContext())
        return found


@contextmanager
def java_cluster(jars: Jars, home: Path) -> Iterator[Java]:
    settings = {"brokerClusterName": "DefaultCluster", **SETTINGS}
    with java_brokers(jars, home, "broker-a", **settings) as running:
        yield Java(jars, home, running.address, running.brokers["broker-a"])


@contextmanager
def our_cluster(jars: Jars, home: Path) -> Iterator[Java]:
    with Cluster(data=home / "data", in_process=False, config=SETTINGS) as running:
        (only,) = running.brokers.values()
        yield Java(jars, home, running.address, only.address)


@pytest.fixture(scope="module", params=[java_cluster, our_cluster], ids=["java", "ours"])
def java(
    request: pytest.FixtureRequest, jars: Jars, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Java]:
    with request.param(jars, tmp_path_factory.mktemp("java")) as running:
        yield running


@asynccontextmanager
async def producing(java: Java, group: str, **settings: Any) -> AsyncIterator[Producer]:
    async with Producer(java.address, group=group, send_timeout=30.0, **settings) as producer:
        yield producer


def consuming(java: Java, group: str, **settings: Any) -> PushConsumer:
    first = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    return PushConsumer(java.address, group=group, consume_from=first, **settings)


async def until(condition: Callable[[], object], what: str) -> None:
    """Wait in a thread of its own: the loop goes on."""
    await asyncio.to_thread(wait_until, condition, what, A_CHECK)


def test_consumers_see_what_was_committed(java: Java) -> None:
    states = {"rolled back": ROLLBACK, "committed": COMMIT}
    ran_in: dict[str, int] = {}

    def in_a_thread(message: Message, transaction_id: str) -> TransactionState:
        ran_in[transaction_id] = threading.get_ident()
        return states[message.body.decode()]

    async def on_the_loop(message: Message, transaction_id: str) -> TransactionState:
        return in_a_thread(message, transaction_id)

    async def story() -> list[TransactionReceipt]:
        async with producing(java, "shop") as producer:
            return [
                await producer.send_in_transaction(Message("bought", body.encode()), local)
                for body in states
                for local in (in_a_thread, on_the_loop)
            ]

    with java.consumer("bought") as consumer:
        receipts = asyncio.run(story())
        wait_until(lambda: len(consumer.got) >= 2, "two messages")
        assert [body for _, body in consumer.got] == ["committed", "committed"]
    assert [receipt.state for receipt in receipts] == [ROLLBACK, ROLLBACK, COMMIT, COMMIT]
    own = threading.get_ident()
    assert [ran_in[receipt.message_id] == own for receipt in receipts] == [False, True] * 2


def test_a_broker_asks_until_it_is_told(java: Java) -> None:
    asked: list[ReceivedMessage] = []

    def check(message: ReceivedMessage) -> TransactionState | None:
        asked.append(message)
        if len(asked) == 1:
            raise LookupError("the database is away")
        return None if len(asked) == 2 else COMMIT

    def unknown(_: Message, __: str) -> None:
        raise RuntimeError("crashed in the middle")

    async def story() -> TransactionReceipt:
        async with producing(java, "patient", check=check) as producer:
            message = Message("checked", b"at last", tag="t", keys=["k1", "k2"])
            receipt = await producer.send_in_transaction(message, unknown)
            await until(lambda: java.pull("checked"), "a message that was committed")
            return receipt

    receipt = asyncio.run(story())
    assert (receipt.state, str(receipt.error)) == (UNKNOWN, "crashed in the middle")
    assert len(asked) == 3
    for message in asked:
        assert (message.topic, message.body, message.tag) == ("checked", b"at last", "t")
        assert message.keys == ["k1", "k2"]
        assert message.transaction_id == receipt.message_id
    (committed,) = java.pull("checked")
    assert (committed.body, committed.message_id) == (b"at last", receipt.message_id)


def test_another_producer_answers_for_one_that_was_killed(java: Java) -> None:
    """Ours dies, Java's answers."""
    words = [java.address, "relay", "relayed"]
    script = [sys.executable, "-m", "tests.interop.half_sender", *words]
    root = Path(__file__).parents[2]
    with java.client("transacting", "relay", "relayed") as alive:
        alive.say("transact bad start")  # only brokers it has sent to know a 5.x producer
        wait_until(lambda: len(alive.lines) >= 2, "a Java producer")
        for body in ("bad news", "good news"):
            with Process([*script, body], root) as dying:
                wait_until(lambda: dying.lines, "a half message")
                (said,) = dying.lines
            wait_until(
                lambda: f"asked {said.split()[1]} {body}" in alive.lines,  # noqa: B023 - at once
                "a check",
                A_CHECK,
            )
        wait_until(lambda: java.pull("relayed"), "a message that was committed")
        assert [message.body for message in java.pull("relayed")] == [b"good news"]


def test_ours_answers_for_a_java_producer_that_was_killed(java: Java) -> None:
    asked: list[tuple[str | None, bytes]] = []

    async def check(message: ReceivedMessage) -> TransactionState:
        asked.append((message.transaction_id, message.body))
        return COMMIT if message.body.startswith(b"good") else ROLLBACK

    async def story(dying: Process) -> None:
        async with producing(java, "heirs", check=check):
            dying.kill()
            await until(lambda: len(asked) >= 2, "two checks")
            await until(lambda: java.pull("inherited"), "a message that was committed")

    with java.client("transacting", "heirs", "inherited") as dying:
        dying.say("transact bad will")
        dying.say("transact good will")
        wait_until(lambda: len(dying.lines) >= 3, "two half messages")
        ids = [re.fullmatch(r"transacted UNKNOW (\w+)", line) for line in dying.lines[1:3]]
        asyncio.run(story(dying))
    first, second = [found[1] for found in ids if found is not None]
    assert set(asked) == {(first, b"bad will"), (second, b"good will")}
    assert [message.body for message in java.pull("inherited")] == [b"good will"]


def test_a_java_consumer_replies_to_us(java: Java) -> None:
    long = "so much " * 2000

    async def story() -> list[ReceivedMessage]:
        async with producing(java, "askers") as producer:
            return list(
                await asyncio.gather(
                    *(
                        producer.request(Message("questions", text.encode()), 30.0)
                        for text in ("hello", long)
                    )
                )
            )

    with java.client("replying", "repliers", "questions") as replying:
        wait_until(lambda: "ready" in replying.lines, "a Java consumer")
        replies = asyncio.run(story())
        wait_until(lambda: len(replying.lines) == 3, "two acknowledgements")
        assert replying.lines == ["ready", "replied SEND_OK", "replied SEND_OK"]
    assert [reply.body.decode() for reply in replies] == ["you said hello", f"you said {long}"]
    for reply in replies:
        assert reply.topic == "DefaultCluster_REPLY_TOPIC"
        assert reply.user_properties["mood"] == "good"
        assert reply.store_host == java.broker


def test_we_reply_to_a_java_client(java: Java) -> None:
    long = "tell me " * 1000
    texts = ("short", long)

    async def story(asking: Process) -> None:
        async with producing(java, "answering") as producer:

            async def reply(asked: ReceivedMessage) -> None:
                body = b"you said " + asked.body
                assert (await producer.reply(asked, body, properties={"mood": "fine"})).ok

            consumer = consuming(java, "riddle-solvers")
            consumer.subscribe("riddles", handler=reply)
            async with consumer:
                for text in texts:
                    asking.say(f"ask {text}")
                await until(lambda: len(asking.lines) == 3, "two replies")

    with java.client("requesting", "riddlers", "riddles") as asking:
        wait_until(lambda: "ready" in asking.lines, "a Java producer")
        asyncio.run(story(asking))
        assert asking.lines[1:] == [f"reply you said {text} fine" for text in texts]


def test_a_request_nobody_replies_to(java: Java) -> None:
    """The client that waited no longer, and is gone, is not reached any more."""

    async def story() -> None:
        async with producing(java, "lonely") as producer:
            with pytest.raises(RequestTimedOut) as timed_out:
                await producer.request(Message("void", b"anybody?"), 0.5)
            assert timed_out.value.timeout == 0.5
            assert "'void'" in str(timed_out.value)
        await until(lambda: java.pull("void"), "the request to be stored")
        (asked,) = java.pull("void")
        async with producing(java, "late", retries=0) as producer:
            with pytest.raises(SendFailed) as failed:
                await producer.reply(asked, b"me")
            assert f"channel of <{asked.properties['REPLY_TO_CLIENT']}> not found" in str(
                failed.value
            )

    asyncio.run(story())


def test_java_reads_our_traces(java: Java) -> None:
    async def story() -> tuple[str, list[str], TransactionReceipt]:
        async with producing(java, "watched", trace=True) as producer:
            message = Message("traced", b"body", tag="t", keys=["k1", "k2"])
            sent = await producer.send(message)
            batch = await producer.send_batch([Message("traced", b"%d" % n) for n in range(3)])
            ended = await producer.send_in_transaction(message, lambda _, __: COMMIT)
        consumer = consuming(java, "watched-too", trace=True)
        handled: list[str] = []
        consumer.subscribe("traced", handler=lambda message: handled.append(message.message_id))
        async with consumer:
            await until(lambda: len(handled) == 5, "all messages")
        return sent.message_id, batch.message_id.split(","), ended

    sent, batch, ended = asyncio.run(story())
    told, *of_consumer = [each for each in java.pull(TRACES) if sent in each.keys]
    assert set(told.keys) == {sent, "k1", "k2", *batch, ended.message_id}
    events = trace_text.decode_traced(told.body.decode())
    assert [kind_and_id(event) for event in events] == [
        (trace_text.TracedKind.NORMAL, sent),
        *[(trace_text.TracedKind.NORMAL, each) for each in batch],
        (trace_text.TracedKind.HALF, ended.message_id),
        (COMMIT, ended.message_id),
    ]
    with Process(java.jars.compiled(java.home, "Exchange", "traces"), java.home) as reading:
        texts = [message.body for message in (told, *of_consumer)]
        for text in texts:
            reading.say(f"trace {base64.b64encode(text).decode()}")
        wait_until(lambda: len(reading.lines) > len(texts), "Java's reading of the traces")
        assert [base64.b64decode(line.split()[1]) for line in reading.lines[1:]] == texts
        assert len(texts) > 1
    with Admin(java.jars, java.home) as admin:
        took = r"+127\.0\.0\.1 +[-\d]+ [:\d]+ +\d+ms +success"
        shown = admin.run(f"queryMsgTraceById -n {java.address} -i {sent}")
        assert re.search(rf"Pub +watched {took}", shown)
        assert re.search(rf"Sub +watched-too {took}", shown)
        shown = admin.run(f"queryMsgTraceById -n {java.address} -i {batch[1]}")
        assert re.search(rf"Pub +watched {took}", shown)


def kind_and_id(event: trace_text.Traced) -> tuple[object, str]:
    assert isinstance(event, trace_text.TracedSend | trace_text.TracedEnd)
    if isinstance(event, trace_text.TracedEnd):
        return event.state, event.message_id
    assert (event.group, event.topic, event.ok) == ("watched", "traced", True)
    return event.kind, event.message_id
