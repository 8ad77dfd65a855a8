"""Without the bus a STICKY consumer joins as a foreign member would, and says what is missing."""

import logging
import threading
from collections.abc import Iterator

import pytest

import pocketmq as mq
from pocketmq.embedded import Cluster
from pocketmq.model.group_balance import BalanceMode
from tests.access.attempts import acl, create_user
from tests.access.test_honest_users import CONFIG, made

SHOP = mq.Credentials(access_key="shop", secret_key="shop-secret")
ROOT = mq.Credentials(access_key="root", secret_key="root-secret")


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(config=CONFIG) as cluster:
        cluster.create_topic("orders", 4)
        made(
            cluster,
            create_user("shop", password="shop-secret"),
            acl("shop", "Topic:orders", "Pub", "Sub"),
            acl("shop", "Group:billing", "Sub"),
        )
        yield cluster


def consumer(cluster: Cluster, user: mq.Credentials, *seen: threading.Event) -> mq.PushConsumer:
    made_one = mq.PushConsumer(
        cluster.address,
        group="billing",
        credentials=user,
        strategy="STICKY",
        settle=0.01,
        consume_from="first",
    )

    def handle(_: mq.ReceivedMessage) -> None:
        for each in seen:
            each.set()

    return made_one.subscribe("orders", "*", handle)


def test_a_topic_that_cannot_be_made_is_told_once_and_the_consumer_works_as_in_java(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    seen = threading.Event()
    with (
        caplog.at_level(logging.WARNING, "pocketmq.client"),
        consumer(cluster, SHOP, seen) as one,
        mq.Producer(cluster.address, group="shop", credentials=SHOP) as producer,
    ):
        assert producer.send(mq.Message("orders", b"x")).ok
        assert seen.wait(20)
        balance = one.balance
        assert (balance.mode, balance.strategy) == (BalanceMode.JAVA, "AVG")
        assert "pocketmq admin updateTopic" in balance.reason
        assert "-t POCKETMQ_BALANCE -r 1 -w 1" in balance.reason
        assert not balance.client_id.endswith("@pm1")
    told = [each for each in caplog.messages if "STICKY is not possible" in each]
    assert len(told) == 1


def test_a_missing_right_is_named_and_once_it_is_granted_the_consumer_hands_over(
    cluster: Cluster,
) -> None:
    with consumer(cluster, ROOT) as one:  # the administrator's consumer makes the topic
        assert one.balance.mode is BalanceMode.STICKY
    with consumer(cluster, SHOP) as one:
        assert one.balance.mode is BalanceMode.JAVA
        assert "pocketmq admin createAcl" in one.balance.reason
        assert "-s User:shop -r Topic:POCKETMQ_BALANCE -a Pub,Sub -d Allow" in one.balance.reason
    made(cluster, acl("shop", "Topic:POCKETMQ_BALANCE", "Pub", "Sub"))
    seen = threading.Event()
    with (
        consumer(cluster, SHOP, seen) as one,
        mq.Producer(cluster.address, group="shop", credentials=SHOP) as producer,
    ):
        assert one.balance.mode is BalanceMode.STICKY
        assert producer.send(mq.Message("orders", b"x")).ok
        assert seen.wait(20)
