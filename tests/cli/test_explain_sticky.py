"""`admin explain` of groups whose members report hand-overs, over real sockets."""

import time
from collections.abc import Callable

import pytest

import pocketmq as mq
from pocketmq.model import MessageQueue
from pocketmq.model.group_balance import QueueStage, stages_text
from pocketmq.model.rebalance_event import Handover
from pocketmq.protocol.requests.client_calls import (
    PROP_BALANCE_MODE,
    PROP_BALANCE_REASON,
    PROP_BALANCE_STAGES,
)
from tests.cli.admin_desk import Desk
from tests.dashboard.spoken import PUSH, SpokenGroup

A, B = "10.0.0.1@1@pm1", "10.0.0.1@2@pm1"


def until(desk: Desk, wanted: Callable[[list[str]], bool]) -> list[str]:
    """Explain until the lines are as wanted: members are listed a little after they joined."""
    deadline = time.monotonic() + 60
    while True:
        code, out, _ = desk.ends("explain", "-g", "billing")
        lines = [line.rstrip() for line in out.splitlines()]
        if code in (0, 1) and wanted(lines):
            assert (code == 0) is (lines[-1] == "no problems found")
            return lines
        assert time.monotonic() < deadline, out


def test_modes_stages_and_hostile_reports(capsys: pytest.CaptureFixture[str]) -> None:
    with mq.Cluster() as cluster:
        cluster.create_topic("orders", queues=4)
        desk = Desk(cluster, capsys)
        queues = [MessageQueue("orders", name, n) for name in cluster.brokers for n in range(4)]
        stages = {queues[1]: QueueStage.DRAINING, queues[0]: QueueStage.RUNNING}
        giving = {PROP_BALANCE_MODE: "sticky", PROP_BALANCE_STAGES: stages_text(stages)}
        stages = {queues[1]: QueueStage.BEHIND_BARRIER}
        taking = {PROP_BALANCE_MODE: "sticky", PROP_BALANCE_STAGES: stages_text(stages)}
        with SpokenGroup("billing", ["orders"], desk.brokers.values()) as group:
            group.join(A, [queues[0], queues[1], queues[3]], PUSH | giving)
            group.join(B, [queues[1], queues[2]], PUSH | taking)
            lines = until(desk, lambda lines: "2 members" in lines[0])
            assert lines[:4] == [
                "group billing: 2 members, CLUSTERING, strategy STICKY",
                "mode sticky: every member hands queues over",
                "balanced: yes, no queue has to move",
                "in transition: 1 behind barrier, 1 draining",
            ]
            assert lines[-1] == "no problems found"
            told = desk.json("explain", "-g", "billing")
            assert told["sticky"]["mode"] == "sticky"
            assert told["queues"][1]["stages"] == {A: "draining", B: "behind barrier"}

            hostile = {PROP_BALANCE_MODE: "\x1b[2J", PROP_BALANCE_STAGES: '{"a@b:1": 7}' * 9000}
            group.hold(A, [queues[0], queues[3]], PUSH | hostile)
            lines = until(desk, lambda lines: lines[-1] != "no problems found")
            assert f"1. unclear report: {A}" in lines
            assert "\x1b" not in "".join(lines)

            group.join("10.0.0.9@7")
            lines = until(desk, lambda lines: "3 members" in lines[0])
            assert lines[1].startswith("mode mixed: 1 foreign member with the share that AVG gives")
            assert "  10.0.0.9@7 (foreign)" in lines


def test_a_member_that_may_not_hand_over(capsys: pytest.CaptureFixture[str]) -> None:
    with mq.Cluster() as cluster:
        cluster.create_topic("orders", queues=4)
        desk = Desk(cluster, capsys)
        queues = [MessageQueue("orders", name, n) for name in cluster.brokers for n in range(4)]
        why = "no right Pub on topic POCKETMQ_BALANCE"
        report = {PROP_BALANCE_MODE: "java", PROP_BALANCE_REASON: why}
        with SpokenGroup("billing", ["orders"], desk.brokers.values()) as group:
            group.join("c1", queues, PUSH | report)
            lines = until(desk, lambda lines: "1 members" in lines[0])
        assert lines[:2] == [
            "group billing: 1 members, CLUSTERING, strategy AVG",
            "mode java: no member hands queues over",
        ]
        assert lines[-3:-1] == ["1. no hand-over: c1", f"   evidence: {why}"]


def test_members_of_our_own_from_sticky_to_mixed_and_back(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with mq.Cluster(brokers=2) as cluster:
        cluster.create_topic("orders", queues=4)
        desk = Desk(cluster, capsys)

        def member(name: str, strategy: str) -> mq.PushConsumer:
            made = mq.PushConsumer(
                cluster.address, group="billing", strategy=strategy, instance_name=name
            )
            return made.subscribe("orders", "*", lambda message: None)

        balanced = "balanced: yes, no queue has to move"
        with member("anna", "STICKY") as anna, member("bert", "STICKY"):
            lines = until(desk, lambda lines: "2 members" in lines[0] and balanced in lines[2])
            assert lines[0].endswith("strategy STICKY")
            assert lines[1] == "mode sticky: every member hands queues over"
            assert [line.endswith("@pm1") for line in lines[3:5]] == [True, True]
            with member("carl", "AVG"):
                lines = until(desk, lambda lines: "3 members" in lines[0] and balanced in lines[2])
                assert lines[1].startswith("mode mixed: 1 foreign member with the share that AVG")
                assert sum(line.endswith("which does not hand over") for line in lines) == 2
            lines = until(desk, lambda lines: "2 members" in lines[0] and balanced in lines[2])
            assert lines[1].startswith("mode sticky")
            taken = [each for event in anna.history for each in event.handovers]
        assert {each.kind for each in taken} >= {"overlap", "foreign"}
        assert all(each.stopped is not None for each in taken if each.giver == anna_id(taken))


def anna_id(taken: list[Handover]) -> str:
    [found] = {
        name for each in taken for name in (each.giver, each.heir) if name and "anna" in name
    }
    return found
