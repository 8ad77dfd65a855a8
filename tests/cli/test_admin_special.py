"""`pocketmq admin` where a cluster is set up specially: traces, dead letters, accounts of 4.x."""

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

import pocketmq as mq
from pocketmq import Cluster
from pocketmq.cli import run
from tests.cli.admin_desk import Desk, columns
from tests.server_process import POCKETMQ, wait_for


def test_what_happened_to_a_message_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with Cluster(config={"traceTopicEnable": True}) as cluster:
        desk = Desk(cluster, capsys)
        cluster.create_topic("orders", queues=1)
        with mq.Producer(cluster.address, group="shop", trace=True, send_timeout=30.0) as producer:
            receipt = producer.send(mq.Message("orders", b"42 EUR"))
        lines = columns(desk.lines("queryMsgTraceById", "-i", receipt.message_id))
        assert lines[0] == [
            "#Type",
            "#ProducerGroup",
            "#ClientHost",
            "#SendTime",
            "#CostTimes",
            "#Status",
        ]
        assert (lines[1][0], lines[1][1], lines[1][-1]) == ("Pub", "shop", "success")
        code, _, err = desk.ends("queryMsgTraceById", "-i", "0" * 32)
        assert (code, err.count("\n")) == (3, 1)


def test_a_member_handles_a_message_on_demand(capsys: pytest.CaptureFixture[str]) -> None:
    with Cluster() as cluster:
        desk = Desk(cluster, capsys)
        cluster.create_topic("orders", queues=1)
        handled: list[bytes] = []
        with mq.PushConsumer(cluster.address, group="billing", consume_from="first") as consumer:
            consumer.subscribe("orders", "*", lambda message: handled.append(message.body))
            with mq.Producer(cluster.address, group="shop", send_timeout=30.0) as producer:
                receipt = producer.send(mq.Message("orders", b"42 EUR"))
            wait_for(lambda: handled == [b"42 EUR"], "the message")
            (member,) = desk.json("consumerStatus", "-g", "billing")
            target = ("-t", "orders", "-g", "billing", "-d", member)
            (said,) = desk.lines("queryMsgById", "-i", receipt.message_id, *target)
            assert "consumeResult=CR_SUCCESS" in said
            assert handled == [b"42 EUR"] * 2


def test_dead_letters_are_shown_and_sent_again(capsys: pytest.CaptureFixture[str]) -> None:
    with Cluster() as cluster:
        desk = Desk(cluster, capsys)
        cluster.create_topic("orders", queues=1)
        code, _, err = desk.ends("deadLetters", "-g", "billing")
        assert (code, "dead letter of group 'billing'" in err) == (3, True)
        tries: list[bytes] = []

        def refuse(message: mq.ReceivedMessage) -> None:
            tries.append(message.body)
            raise mq.RetryLater(delay_level=-1)

        with mq.PushConsumer(cluster.address, group="billing", consume_from="first") as consumer:
            consumer.subscribe("orders", "*", refuse)
            with mq.Producer(cluster.address, group="shop", send_timeout=30.0) as producer:
                receipt = producer.send(mq.Message("orders", b"42 EUR", keys=["A17"]))
            wait_for(lambda: desk.ends("deadLetters", "-g", "billing")[0] == 0, "a dead letter")
        shown = columns(desk.lines("deadLetters", "-g", "billing"))
        assert (shown[1][0], shown[1][-3:]) == (receipt.message_id, ["orders", "42", "EUR"])
        (line,) = desk.lines("deadLetters", "-g", "billing", "--resend")
        assert line.startswith(f"resent {receipt.message_id} to orders as ")
        found = columns(desk.lines("queryMsgByKey", "-t", "orders", "-k", "A17"))
        assert len(found) == 3


def test_accounts_of_4x_brokers(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "plain_acl.json"
    root = {"accessKey": "rooted-1", "secretKey": "secret12", "admin": True}
    file.write_text(json.dumps({"accounts": [root]}))
    config: dict[str, str | int | bool] = {"aclEnable": True, "aclFile": str(file)}
    with Cluster(config=config) as cluster:
        common = ["-n", cluster.address, "-c", "DefaultCluster"]
        common += ["--access-key", "rooted-1", "--secret-key", "secret12"]
        made = ["-a", "alice-01", "-s", "alice123", "-i", "DENY", "-t", "orders=PUB|SUB"]
        assert run(["admin", "updateAclConfig", *made, *common]) == 0
        assert "create or update plain access config to" in capsys.readouterr().out
        assert "alice-01" in file.read_text()
        assert run(["admin", "clusterAclConfigVersion", *common]) == 0
        assert columns(capsys.readouterr().out.splitlines())[1][:2] == [
            "DefaultCluster",
            "broker-0",
        ]
        assert run(["admin", "updateGlobalWhiteAddr", "-g", "10.0.0.1", "-y", *common]) == 0
        assert "10.0.0.1" in file.read_text()
        assert run(["admin", "deleteAclConfig", "-a", "alice-01", "-y", *common]) == 0
        assert "alice-01" not in file.read_text()
        capsys.readouterr()


def test_a_question_is_asked_before_something_is_destroyed() -> None:
    with Cluster(in_process=False) as cluster:
        cluster.create_topic("orders", queues=1)
        target = ("-n", cluster.address, "-t", "orders", "-c", "DefaultCluster")
        question = b"Delete topic orders and its messages from cluster DefaultCluster?"
        for answer, code in ((b"n\n", 130), (b"y\n", 0)):
            keyboard, terminal = pty.openpty()
            try:
                with subprocess.Popen(
                    [str(POCKETMQ), "admin", "deleteTopic", *target],
                    stdin=terminal,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                ) as child:
                    os.write(keyboard, answer)
                    _, err = child.communicate(timeout=60)
            finally:
                os.close(keyboard)
                os.close(terminal)
            assert (child.returncode, question in err) == (code, True)
        with mq.Admin(cluster.address) as admin:
            assert "orders" not in admin.topics.names()
