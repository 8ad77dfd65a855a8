"""What is found wrong with a group, and why queues are where they are: pure, over facts."""

from typing import Any

import msgspec
import pytest

from pocketmq.admin.explaining import explain
from pocketmq.admin.facts import GroupFacts
from pocketmq.admin.findings import GroupFinding, findings
from pocketmq.model import MessageModel, MessageQueue, Subscription
from pocketmq.protocol.peers import Language, version_number
from pocketmq.protocol.requests import client_calls, groups, stats

NOW = 1_000_000_000
QUEUES = tuple(MessageQueue("orders", "a", number) for number in range(4))
PUSH = {"PROP_CONSUME_TYPE": "CONSUME_PASSIVELY", "PROP_CONSUMEORDERLY": "false"}


def view(
    *members: str, model: MessageModel = MessageModel.CLUSTERING
) -> groups.ConsumerConnections:
    connections = [
        groups.ClientConnection(client_id=member, client_addr=f"10.0.0.1:{port}")
        for port, member in enumerate(members)
    ]
    return groups.ConsumerConnections(connection_set=connections, message_model=model)


def info(*queues: MessageQueue, expression: str = "*", **held: Any) -> client_calls.RunningInfo:
    fresh = {"last_pull_timestamp": NOW, "last_consume_timestamp": NOW} | held
    return client_calls.RunningInfo(
        properties=PUSH,
        subscription_set=[Subscription(topic="orders", sub_string=expression)],
        mq_table={queue: client_calls.ProcessQueueBody(**fresh) for queue in queues},
    )


HEALTHY = GroupFacts(
    group="g",
    views={"a": view("c1", "c2"), "b": view("c1", "c2")},
    unseen_brokers={},
    running={"c1": info(*QUEUES[:2]), "c2": info(*QUEUES[2:])},
    silent={},
    queues={"orders": QUEUES},
    progress={queue: stats.QueueProgress(broker_offset=9, consumer_offset=4) for queue in QUEUES},
    now_ms=NOW,
)


def facts(**changes: Any) -> GroupFacts:
    return msgspec.structs.replace(HEALTHY, **changes)


def kinds(found: list[GroupFinding]) -> list[tuple[str, str]]:
    return [(each.kind, each.subject) for each in found]


def test_nothing_is_wrong_with_a_healthy_group() -> None:
    assert findings(HEALTHY) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param(
            {"views": {"a": view("c1", "c2"), "b": view("c1")}},
            [("split view", "b")],
            id="brokers list different members",
        ),
        pytest.param(
            {"views": {"a": view("c1", "c2", "c2")}},
            [("same client id", "c2")],
            id="two processes with one id",
        ),
        pytest.param(
            {"running": {"c1": info(*QUEUES[:2]), "c2": info(*QUEUES[2:], expression="paid")}},
            [("different subscriptions", "g")],
            id="different subscriptions",
        ),
        pytest.param(
            {"running": {"c1": info(*QUEUES[:2]), "c2": info(QUEUES[2])}},
            [("unowned queues", "orders:a:3")],
            id="a queue nobody holds",
        ),
        pytest.param(
            {"running": {"c1": info(*QUEUES[:3]), "c2": info(*QUEUES[2:])}},
            [("owned twice", "orders:a:2")],
            id="a queue two hold",
        ),
        pytest.param(
            {"running": {"c1": info(*QUEUES), "c2": info()}},
            [("idle members", "c2")],
            id="a member without queues",
        ),
        pytest.param(
            {"running": {"c1": info(*QUEUES[:2])}, "silent": {"c2": "timed out"}},
            [("member silent", "c2"), ("ownership unknown", "orders:a:2, orders:a:3")],
            id="what a silent member holds is unknown, not nothing",
        ),
        pytest.param(
            {"unseen_brokers": {"c": "refused"}},
            [("broker silent", "c")],
            id="a broker is down",
        ),
        pytest.param(
            {"views": {"a": view()}, "running": {}},
            [("no members", "g")],
            id="nobody is there",
        ),
        pytest.param(
            {"running": {"c1": info(*QUEUES[:2]), "c2": info(*QUEUES[2:], last_pull_timestamp=1)}},
            [("not pulled", "c2 orders:a:2"), ("not pulled", "c2 orders:a:3")],
            id="a member that does not pull",
        ),
        pytest.param(
            {
                "running": {
                    "c1": info(*QUEUES[:3]),
                    "c2": info(QUEUES[3], cached_msg_count=5, last_consume_timestamp=NOW - 61_000),
                }
            },
            [("handler stuck", "c2 orders:a:3")],
            id="a handler that hangs",
        ),
    ],
)
def test_each_trouble_is_found_and_nothing_else(
    changes: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert kinds(findings(facts(**changes))) == expected


def test_an_orderly_member_without_its_lock() -> None:
    orderly = msgspec.structs.replace(
        info(*QUEUES[2:]), properties=PUSH | {"PROP_CONSUMEORDERLY": "true"}
    )
    found = findings(facts(running={"c1": info(*QUEUES[:2]), "c2": orderly}))
    assert kinds(found) == [("not locked", "c2 orders:a:2"), ("not locked", "c2 orders:a:3")]


def test_every_queue_is_told_with_its_strategy() -> None:
    story = explain(HEALTHY)
    assert (story.strategy, story.members, story.silent) == ("AVG", ("c1", "c2"), ())
    assert [(each.queue.queue_id, each.holders, each.lag, each.why) for each in story.queues] == [
        (0, ("c1",), 5, "AVG: queue 1 of 4 goes to member 1 of 2"),
        (1, ("c1",), 5, "AVG: queue 2 of 4 goes to member 1 of 2"),
        (2, ("c2",), 5, "AVG: queue 3 of 4 goes to member 2 of 2"),
        (3, ("c2",), 5, "AVG: queue 4 of 4 goes to member 2 of 2"),
    ]


def test_another_strategy_is_recognised_by_its_picture() -> None:
    running = {"c1": info(QUEUES[0], QUEUES[2]), "c2": info(QUEUES[1], QUEUES[3])}
    assert explain(facts(running=running)).strategy == "AVG_BY_CIRCLE"


def test_a_picture_no_strategy_gives_is_told_as_such() -> None:
    running = {"c1": info(QUEUES[0], QUEUES[3]), "c2": info(QUEUES[1], QUEUES[2])}
    story = explain(facts(running=running))
    assert story.strategy is None
    assert {each.why for each in story.queues} == {"no common strategy gives this assignment"}


def test_the_queues_of_a_silent_member_are_where_the_strategy_puts_them() -> None:
    story = explain(facts(running={"c1": info(*QUEUES[:2])}, silent={"c2": "timed out"}))
    assert story.strategy == "AVG"
    assert [each.expected for each in story.queues] == ["c1", "c1", "c2", "c2"]
    assert [each.holders for each in story.queues] == [("c1",), ("c1",), (), ()]


def test_members_that_broadcast_all_hold_everything() -> None:
    views = {"a": view("c1", "c2", model=MessageModel.BROADCASTING)}
    running = {"c1": info(*QUEUES), "c2": info(*QUEUES)}
    story = explain(facts(views=views, running=running))
    assert (story.findings, story.strategy) == ((), None)
    assert story.queues[0].why == "broadcasting: every member reads every queue"


def test_lag_that_nobody_told_is_unknown() -> None:
    assert {each.lag for each in explain(facts(progress={})).queues} == {None}


def grpc() -> client_calls.RunningInfo:
    return msgspec.structs.replace(info(), properties=PUSH | {"PROP_CLIENT_PROTOCOL": "GRPC"})


def test_grpc_clients_own_no_queue_and_nothing_is_wrong_with_that() -> None:
    story = explain(facts(running={"c1": grpc(), "c2": grpc()}))
    assert (story.findings, story.strategy, story.popping) == ((), None, ("c1", "c2"))
    assert {each.why for each in story.queues} == {"POP: its messages go to any member that asks"}


def test_a_group_that_is_popped_and_pulled_handles_messages_twice() -> None:
    found = findings(facts(running={"c1": info(*QUEUES), "c2": grpc()}))
    assert kinds(found) == [("popped and pulled", "g")]
    assert found[0].evidence == "c2 pop as gRPC clients, c1 own queues"


def test_every_member_is_shown_with_its_language_and_release() -> None:
    members = view("c1", "c2")
    java, unknown = members.connection_set
    java = msgspec.structs.replace(java, language=Language.JAVA, version=version_number(5, 0, 7))
    views = {"a": msgspec.structs.replace(members, connection_set=[java, unknown])}
    assert explain(facts(views=views)).clients["c1"] == "JAVA V5_0_7"
    assert explain(facts(views=views)).clients["c2"].startswith("? ")
