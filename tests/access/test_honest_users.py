"""Users with the usual rules: everything their clients do is allowed."""

import threading
from collections.abc import Iterator

import pytest

import pocketmq as mq
from pocketmq.embedded import Cluster
from pocketmq.embedded.settings import Setting
from pocketmq.protocol.signature import SigningUser, sign
from tests.access.attempts import Request, acl, create_user
from tests.wire_client import WireClient

CONFIG: dict[str, Setting] = {
    "authenticationEnabled": True,
    "authorizationEnabled": True,
    "initAuthenticationUser": '{"username":"root","password":"root-secret"}',
}
TOPICS = ("pushed", "paid", "popped", "prices")
SHOP = mq.Credentials(access_key="shop", secret_key="shop-secret")
WATCHER = mq.Credentials(access_key="watcher", secret_key="watcher-secret")


def made(cluster: Cluster, *requests: Request) -> None:
    (broker,) = cluster.brokers.values()
    with WireClient(broker.address) as root:
        for code, fields, body in requests:
            signed = dict(fields)
            sign(SigningUser("root", b"root-secret"), code, signed, body)
            answer = root.ask(code, signed, body)
            assert answer.code == 0, answer.remark


@pytest.fixture(scope="module", params=[False, True], ids=["signed", "bound"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    quick = {"transactionCheckInterval": 300, "transactionTimeOut": 500}
    config = CONFIG | quick | {"messageDelayLevel": "1s 1s 1s 1s 1s"}
    with Cluster(config=config | {"requireSignedCode": request.param}) as cluster:
        for topic in TOPICS:
            cluster.create_topic(topic, 1)
        made(
            cluster,
            create_user("shop", password="shop-secret"),
            *(acl("shop", f"Topic:{topic}", "Pub", "Sub") for topic in TOPICS),
            acl("shop", "Group:billing*", "Sub"),
            create_user("watcher", password="watcher-secret"),
            acl("watcher", "Cluster:*", "Get", "List"),
            acl("watcher", "Topic:*", "Get"),
            acl("watcher", "Group:*", "Get"),
        )
        yield cluster


def test_what_is_sent_is_consumed_and_retried(cluster: Cluster) -> None:
    seen: list[bytes] = []
    done = threading.Event()

    def handle(message: mq.ReceivedMessage) -> None:
        seen.append(message.body)
        if len(seen) == 1:
            raise ValueError("once")
        if len(seen) == 3:
            done.set()

    consumer = mq.PushConsumer(
        cluster.address, group="billing-push", credentials=SHOP, consume_from="first"
    )
    consumer.subscribe("pushed", handler=handle)
    with (
        consumer,
        mq.Producer(cluster.address, group="shop", credentials=SHOP, send_timeout=30.0) as producer,
    ):
        assert producer.send(mq.Message("pushed", b"x")).ok
        assert producer.send_batch([mq.Message("pushed", b"y")]).ok
        assert done.wait(60), seen
    assert sorted(seen) in ([b"x", b"x", b"y"], [b"x", b"y", b"y"])


def test_transactions_end_and_are_asked_about(cluster: Cluster) -> None:
    asked = threading.Event()

    def check(message: mq.ReceivedMessage) -> mq.TransactionState:
        asked.set()
        return mq.TransactionState.COMMIT

    consumer = mq.PullConsumer(
        cluster.address, group="billing-pull", credentials=SHOP, consume_from="first"
    )
    with (
        mq.Producer(
            cluster.address, group="pay", credentials=SHOP, send_timeout=30.0, check=check
        ) as producer,
        consumer.subscribe("paid"),
    ):
        message = mq.Message("paid", b"a")
        producer.send_in_transaction(message, lambda *_: mq.TransactionState.COMMIT)
        assert [each.body for each in consumer.poll(30.0)] == [b"a"]
        message = mq.Message("paid", b"b")
        producer.send_in_transaction(message, lambda *_: mq.TransactionState.UNKNOWN)
        assert asked.wait(60)
        assert [each.body for each in consumer.poll(30.0)] == [b"b"]


def test_messages_are_popped_and_acknowledged(cluster: Cluster) -> None:
    with mq.Producer(
        cluster.address, group="shop", credentials=SHOP, send_timeout=30.0
    ) as producer:
        assert producer.send(mq.Message("popped", b"p")).ok
    consumer = mq.PopConsumer(
        cluster.address, group="billing-pop", credentials=SHOP, consume_from="first"
    )
    with consumer.subscribe("popped"):
        (message,) = consumer.receive(10, invisible=30.0, timeout=30.0)
        consumer.change_invisible(message, 0.1)
        (again,) = consumer.receive(10, invisible=30.0, timeout=30.0)
        assert again.reconsume_times == 1
        consumer.ack(again)


def test_requests_are_answered(cluster: Cluster) -> None:
    with mq.Producer(
        cluster.address, group="desk", credentials=SHOP, send_timeout=30.0
    ) as producer:
        consumer = mq.PushConsumer(
            cluster.address, group="billing-price", credentials=SHOP, consume_from="first"
        )

        def answer(message: mq.ReceivedMessage) -> None:
            producer.reply(message, b"42 EUR")

        consumer.subscribe("prices", "*", answer)
        with consumer:
            reply = producer.request(mq.Message("prices", b"a book?"), timeout=30.0)
            assert reply.body == b"42 EUR"


def test_an_operator_who_may_look_sees_everything(cluster: Cluster) -> None:
    with mq.Admin(cluster.address, credentials=WATCHER) as admin:
        assert admin.brokers.status().all()
        assert admin.brokers.config().all()
        assert admin.topics.configs().all()
        assert admin.groups.configs().all()
        assert "paid" in admin.topics.names()
        assert not admin.topics.status("paid").missing
        assert admin.overview.groups(["billing-push"])[0].group == "billing-push"
