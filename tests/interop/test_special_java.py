"""Transactions, timed messages, requests and replies of Java clients on our cluster.

The lines expected here are those of Java's own broker, where it is not at odds with itself: asked
often, it commits a transaction a second time.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pocketmq.embedded import Cluster
from pocketmq.embedded.settings import Setting
from tests.interop.jvm import Jars
from tests.interop.test_clients_java import run

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

COMMON = "CLUSTER, KEYS, MSG_REGION"


@pytest.fixture(scope="module")
def cluster(jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Yield a cluster for one release: both use the same topics and groups."""
    settings: dict[str, Setting] = {
        "transactionCheckInterval": 2000,
        "transactionTimeOut": 1000,
        "transactionCheckMax": 3,
    }
    directory = tmp_path_factory.mktemp(jars.version)
    with Cluster(data=directory, in_process=False, config=settings) as running:
        yield running


def test_every_fate_of_a_transaction(jars: Jars, tmp_path: Path, cluster: Cluster) -> None:
    rest = "TRAN_MSG, UNIQ_KEY, WAIT, __transactionId__]"
    checked = f"TRACE_ON, TRANSACTION_CHECK_TIMES, {rest}"
    asked = "transactions 0 2 t true true"
    often = "{ask, then commit=2, ask, then roll back=2}"
    assert run(jars, tmp_path, "Special", cluster.address, "transactions") == [
        "sent SEND_OK COMMIT_MESSAGE 0 true",
        "sent SEND_OK ROLLBACK_MESSAGE 0 true",
        "sent SEND_OK UNKNOW 0 true",
        "sent SEND_OK UNKNOW 0 true",
        f"seen commit transactions/0@0 flag 8 [{COMMON}, PGROUP, TAGS, TRACE_ON, {rest}",
        f"seen ask, then commit transactions/0@1 flag 8 [{COMMON}, PGROUP, TAGS, {checked}",
        f"asked {{ask, then commit={asked}, ask, then roll back={asked}}} {often}",
    ]


def test_a_transaction_nobody_knows_of(jars: Jars, tmp_path: Path, cluster: Cluster) -> None:
    assert run(jars, tmp_path, "Special", cluster.address, "givenUp") == [
        "given up 1",
        "asked [1, 2, 3]",
    ]


def test_timed_messages(jars: Jars, tmp_path: Path, cluster: Cluster) -> None:
    kept = "TIMER_DEQUEUE_MS, TIMER_ENQUEUE_MS, TIMER_OUT_MS, TRACE_ON, UNIQ_KEY, WAIT]"
    start = f"timers/0 flag 0 [{COMMON}"
    real = "REAL_QID, REAL_TOPIC, TAGS"
    seen = [
        f"seen past in time {start}, TAGS, TIMER_DELIVER_MS, TRACE_ON, UNIQ_KEY, WAIT]",
        f"seen milliseconds in time {start}, {real}, TIMER_DELAY_MS, {kept}",
        f"seen seconds in time {start}, {real}, TIMER_DELAY_SEC, {kept}",
        f"seen moment in time {start}, {real}, TIMER_DELIVER_MS, {kept}",
    ]
    back = f"seen taken back 4000 {start}, {real}, TIMER_DELAY_MS, {kept}"
    said = run(jars, tmp_path, "Special", cluster.address, "timers")
    if "recalled true" in said:
        assert said == ["far 13", "recalled true", *seen]
    else:  # 4.x clients do not know how
        assert said[:2] == ["far 13", "cannot recall"]
        late = [line for line in said[2:] if not line.startswith("seen taken back")]
        assert (len(said), late) == (7, seen)
        assert back.split("4000 ")[1] in said[5]


def test_requests_and_replies(jars: Jars, tmp_path: Path, cluster: Cluster) -> None:
    rest = "MSG_TYPE, PUSH_REPLY_TIME, REPLY_TO_CLIENT, TRACE_ON, TTL, UNIQ_KEY]"
    said = run(jars, tmp_path, "Special", cluster.address, "requests")
    assert sorted(said) == sorted(
        [
            "replied SEND_OK",
            f"got answer to one true [ARRIVE_TIME, CORRELATION_ID, MSG_REGION, {rest}",
            "replied SEND_OK",
            "got answer to two",
            "no answer",
            "refused 1 push reply message fail, channel of <10.0.0.1@nobody> not found.",
            "refused 1 reply message properties[REPLY_TO_CLIENT] is null",
        ]
    )
