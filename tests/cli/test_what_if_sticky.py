"""`admin what-if` on groups whose members hand over, over real sockets."""

import time
from collections.abc import Callable
from typing import Any

import pytest

import pocketmq as mq
from pocketmq.model import MessageQueue
from tests.cli.admin_desk import Desk
from tests.dashboard.spoken import SpokenGroup

A, B, JAVA = "10.0.0.1@1@pm1", "10.0.0.1@2@pm1", "10.0.0.9@7"


def until(desk: Desk, wanted: Callable[[Any], bool], *arguments: str) -> Any:
    """Ask until the answer is as wanted: members are listed a little after they joined."""
    deadline = time.monotonic() + 60
    while True:
        answer = desk.json("what-if", "-g", "billing", *arguments)
        if wanted(answer):
            return answer
        assert time.monotonic() < deadline, answer


def members(count: int) -> Callable[[Any], bool]:
    return lambda answer: len(answer["before"]["shares"]) == count


def held(ownership: Any, member: str) -> list[int]:
    shares = {share["member"]: share["queues"] for share in ownership["shares"]}
    return [queue["queue_id"] for queue in shares[member]]


def test_events_start_from_the_owners_of_now(capsys: pytest.CaptureFixture[str]) -> None:
    with mq.Cluster() as cluster:
        cluster.create_topic("orders", queues=4)
        desk = Desk(cluster, capsys)
        queues = [MessageQueue("orders", name, n) for name in cluster.brokers for n in range(4)]
        with SpokenGroup("billing", ["orders"], desk.brokers.values()) as group:
            group.join(A, [queues[0], queues[3]])
            group.join(B, [queues[1], queues[2]])
            answer = until(desk, members(2), "--join", "new", "--switch-to", "AVG")
            assert answer["strategy"] == "STICKY"
            assert answer["start"]["moved"] == 0
            assert held(answer["before"], A) == [0, 3]
            joined, switched = answer["steps"]
            assert joined["movement"]["moved"] == joined["movement"]["minimum"] == 1
            assert switched["strategy"] == "AVG"
            plain = desk.lines("what-if", "-g", "billing", "--leave", B)
            assert plain[:2] == ["STICKY", "since the owners before: 0 queues moved, minimum 0"]
            assert any(line.startswith(f"{B} leaves: 2 queues moved, minimum 2") for line in plain)

            group.hold(A, [queues[0], queues[1], queues[3]])
            group.hold(B, [queues[2]])
            waiting = until(desk, lambda found: found["start"]["moved"] > 0)
            assert waiting["start"]["moved"] == waiting["start"]["minimum"] == 1


def test_foreign_members_are_recognised_or_named(capsys: pytest.CaptureFixture[str]) -> None:
    with mq.Cluster() as cluster:
        cluster.create_topic("orders", queues=4)
        desk = Desk(cluster, capsys)
        queues = [MessageQueue("orders", name, n) for name in cluster.brokers for n in range(4)]
        with SpokenGroup("billing", ["orders"], desk.brokers.values()) as group:
            group.join(A, queues[:3])
            group.join(JAVA, [queues[3]])
            answer = until(desk, members(2))
            assert held(answer["before"], JAVA) == [2, 3]
            by_turns = until(desk, members(2), "--mixed", "AVG_BY_CIRCLE")
            assert held(by_turns["before"], JAVA) == [1, 3]
            joined = desk.json("what-if", "-g", "billing", "--join", "zz", "--foreign", "zz")
            assert held(joined["steps"][0]["after"], JAVA) == [2]
            assert held(joined["steps"][0]["after"], "zz") == [3]
            code, out, err = desk.ends(
                *("what-if", "-g", "billing", "--strategy", "AVG", "--foreign", "zz")
            )
            assert (code, out) == (2, "")
            assert "--foreign and --mixed apply to STICKY only" in err
