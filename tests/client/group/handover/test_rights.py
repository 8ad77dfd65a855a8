"""Without the bus a STICKY consumer joins as a foreign member would, and says what is missing."""

import json
import logging
import shlex
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import pocketmq as mq
from pocketmq.cli import run
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
        request_timeout=30.0,
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
        mq.Producer(cluster.address, group="shop", credentials=SHOP, send_timeout=30.0) as producer,
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
        mq.Producer(cluster.address, group="shop", credentials=SHOP, send_timeout=30.0) as producer,
    ):
        assert one.balance.mode is BalanceMode.STICKY
        assert producer.send(mq.Message("orders", b"x")).ok
        assert seen.wait(20)


def command_in(reason: str) -> list[str]:
    """Return the arguments of the command that a reason names."""
    words = shlex.split(reason.partition("can run: ")[2].partition(" (")[0])
    assert words[0] == "pocketmq"
    return words[1:]


def test_the_command_that_is_named_grants_the_right_where_rules_are_kept(cluster: Cluster) -> None:
    with consumer(cluster, ROOT):
        pass
    with consumer(cluster, SHOP) as one:
        command = command_in(one.balance.reason)
    assert run([*command, "-n", cluster.address, *_signed(ROOT)]) == 0
    with consumer(cluster, SHOP) as one:
        assert one.balance.mode is BalanceMode.STICKY


def test_the_command_that_is_named_grants_the_right_where_accounts_are_kept(tmp_path: Path) -> None:
    """As on 4.x, whose brokers know no rules."""
    root = mq.Credentials(access_key="rooted-1", secret_key="secret12")
    shop = mq.Credentials(access_key="shopper", secret_key="secret12")
    accounts = [
        {"accessKey": "rooted-1", "secretKey": "secret12", "admin": True},
        {
            "accessKey": "shopper",
            "secretKey": "secret12",
            "defaultTopicPerm": "DENY",
            "topicPerms": ["orders=PUB|SUB"],
            "groupPerms": ["billing=SUB"],
        },
    ]
    file = tmp_path / "plain_acl.json"
    file.write_text(json.dumps({"accounts": accounts}))
    with Cluster(config={"aclEnable": True, "aclFile": str(file)}) as cluster:
        made = [
            "admin",
            "updateTopic",
            "-c",
            "DefaultCluster",
            "-t",
            "orders",
            "-r",
            "4",
            "-w",
            "4",
        ]
        assert run([*made, "-n", cluster.address, *_signed(root)]) == 0
        with consumer(cluster, root) as one:
            assert one.balance.mode is BalanceMode.STICKY
        with consumer(cluster, shop) as one:
            assert one.balance.mode is BalanceMode.JAVA
            command = command_in(one.balance.reason)
        assert command[:2] == ["admin", "updateAclConfig"]
        command[command.index("-s") + 1] = shop.secret_key
        command[command.index("-t") + 1] += ",orders=PUB|SUB"  # as the reason says
        assert run([*command, "-n", cluster.address, *_signed(root)]) == 0
        with consumer(cluster, shop) as one:
            assert one.balance.mode is BalanceMode.STICKY


def _signed(user: mq.Credentials) -> list[str]:
    return ["--access-key", user.access_key, "--secret-key", user.secret_key]
