"""What each request needs, against the annotations of Java's own headers (5.5.0)."""

from pathlib import Path

import pytest

from pocketmq.broker.access.needs import ANYBODY, popped_from
from pocketmq.broker.access.needs_by_code import needs_of
from pocketmq.protocol import Command
from pocketmq.protocol import RequestCode as Code

VECTORS = Path(__file__).parent.parent / "vectors" / "java-request-needs.txt"
LINES = [line.split() for line in VECTORS.read_text().splitlines()]
OTHERWISE = {
    # Java's builder has code for these, which counts before the annotations.
    Code.PULL_MESSAGE, Code.HEART_BEAT, Code.UNREGISTER_CLIENT, Code.CONSUMER_SEND_MSG_BACK,
    Code.GET_CONSUMER_LIST_BY_GROUP, Code.QUERY_CONSUMER_OFFSET, Code.UPDATE_CONSUMER_OFFSET,
    Code.LOCK_BATCH_MQ, Code.UNLOCK_BATCH_MQ, Code.GET_ROUTEINFO_BY_TOPIC,
    Code.UPDATE_AND_CREATE_TOPIC_LIST,
}  # fmt: skip
STRICTER = {
    Code.GET_ALL_TOPIC_CONFIG, Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, Code.CLONE_GROUP_OFFSET,
}  # fmt: skip
NOT_A_BROKERS = range(1000, 1100), range(100, 106), {205, 216, 217, 219, 327, 901, 902, 903, 904}
TO_CLIENTS = {Code.CHECK_TRANSACTION_STATE, Code.NOTIFY_CONSUMER_IDS_CHANGED}
TO_CLIENTS |= {Code.PUSH_REPLY_MESSAGE_TO_CLIENT, Code.NOTIFY_UNSUBSCRIBE_LITE}
ROCKSDB = {354, 355}  # refused here


def is_compared(code: int) -> bool:
    foreign = any(code in codes for codes in NOT_A_BROKERS)
    return not foreign and code not in OTHERWISE | TO_CLIENTS | ROCKSDB


@pytest.mark.parametrize(
    "line", [line for line in LINES if is_compared(int(line[0]))], ids=" ".join
)
@pytest.mark.parametrize("java", [True, False])
def test_requests_need_what_javas_headers_say(line: list[str], *, java: bool) -> None:
    code, _, resource, actions, *fields = line
    names = {key: f"the-{key}" for key, _ in (field.split(":") for field in fields)}
    if not java and int(code) in STRICTER:
        return
    request = Command.request(int(code), 0, names)
    found = [need for need in needs_of(request, "C1", java=java) or () if need.actions]
    kinds = dict(field.split(":") for field in fields if not field.endswith(":CLUSTER"))
    expected = {f"{kind.title()}:the-{key}" for key, kind in kinds.items()}
    if not expected and resource == "CLUSTER":
        expected = {"Cluster:C1"}
    assert {str(need.resource) for need in found} == expected
    wanted = set(actions.strip("[]").split(","))
    assert all({action.name for action in need.actions} == wanted for need in found)


@pytest.mark.parametrize(
    ("code", "actions"),
    [
        (Code.GET_BROKER_CONFIG, {"GET", "LIST"}),
        (Code.GET_BROKER_EPOCH_CACHE, {"GET", "LIST"}),  # not served
        (Code.UPDATE_BROKER_CONFIG, {"UPDATE"}),
        (Code.GET_BROKER_CLUSTER_ACL_CONFIG, {"UPDATE"}),  # holds secrets
    ],
)
def test_a_row_states_a_right_on_the_cluster_that_java_does_not_ask_for(
    code: Code, actions: set[str]
) -> None:
    request = Command.request(code, 0, {})
    [need] = needs_of(request, "C1") or []
    assert str(need.resource) == "Cluster:C1"
    assert {action.name for action in need.actions} == actions
    assert needs_of(request, "C1", java=True) == [ANYBODY]


@pytest.mark.parametrize(
    ("topic", "found"),
    [
        ("orders", "orders"),
        ("%RETRY%g_orders", "orders"),
        ("%RETRY%g+orders", "orders"),
        ("%RETRY%g", "%RETRY%g"),
        ("%RETRY%g2_orders", "%RETRY%g2_orders"),
        (None, None),
    ],
)
def test_acknowledged_is_what_was_popped(topic: str | None, found: str | None) -> None:
    """Messages that were popped and came again are in a topic of both names."""
    assert popped_from(topic, "g") == found
