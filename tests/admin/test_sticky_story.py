"""Groups with hand-over are recognised, and told: who owns what, where it goes, how far it is."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.admin.explaining import Explanation, explain
from pocketmq.admin.facts import LONGEST_REASON, BalanceReport, GroupFacts, balance_reports
from pocketmq.admin.sticky_story import hands_over
from pocketmq.balance.sticky import assign
from pocketmq.cli.admin.balance import sticky_lines
from pocketmq.model import MessageQueue
from pocketmq.model.group_balance import LONGEST_STAGES, BalanceMode, QueueStage, stages_text
from pocketmq.protocol.requests import client_calls
from tests.admin.test_findings import HEALTHY, PUSH, QUEUES, info, kinds, view

A, B, C = "10.0.0.1@1@pm1", "10.0.0.1@2@pm1", "10.0.0.1@3@pm1"
JAVA = "10.0.0.9@77"


def telling(
    *queues: MessageQueue, mode: str = "sticky", reason: str = "", **stages: QueueStage
) -> client_calls.RunningInfo:
    """Return the running info of a member that reports stages: `q3=…` is queue 3."""
    named = {QUEUES[int(name[1:])]: stage for name, stage in stages.items()}
    properties = {
        client_calls.PROP_BALANCE_MODE: mode,
        client_calls.PROP_BALANCE_STAGES: stages_text(named),
    }
    if reason:
        properties[client_calls.PROP_BALANCE_REASON] = reason
    return msgspec.structs.replace(info(*queues), properties=PUSH | properties)


def facts(running: dict[str, client_calls.RunningInfo], **changes: Any) -> GroupFacts:
    found = msgspec.structs.replace(
        HEALTHY,
        views={"a": view(*running)},
        running=running,
        reports=balance_reports(running, HEALTHY.queues),
    )
    return msgspec.structs.replace(found, **changes)


def story(running: dict[str, client_calls.RunningInfo], **changes: Any) -> Explanation:
    found = explain(facts(running, **changes))
    assert found.sticky is not None
    return found


def test_a_balanced_group_is_recognised_by_its_ids_alone() -> None:
    found = story({A: info(QUEUES[0], QUEUES[3]), B: info(QUEUES[1], QUEUES[2])})
    assert found.sticky is not None
    assert (found.strategy, found.fits) == ("STICKY", "STICKY")
    assert (found.sticky.mode, found.sticky.moves, found.sticky.balanced) == (
        BalanceMode.STICKY, 0, True,
    )  # fmt: skip
    assert [each.expected for each in found.queues] == [A, B, B, A]
    assert {each.why for each in found.queues} == {"STICKY: stays with its owner"}
    assert found.findings == ()
    assert sticky_lines(found.sticky) == [
        "mode sticky: every member hands queues over",
        "balanced: yes, no queue has to move",
    ]


def test_a_joiner_is_on_its_way_to_the_share_that_the_members_compute() -> None:
    running = {A: info(*QUEUES), B: info()}
    target = assign(HEALTHY.queues, [A, B], dict.fromkeys(QUEUES, A))
    moving = [queue for queue, owner in target.items() if owner == B]
    assert len(moving) == 2
    found = story(running)
    assert found.sticky is not None
    assert (found.sticky.moves, found.sticky.balanced, found.fits) == (2, False, None)
    assert [each.queue for each in found.queues if each.expected == B] == sorted(
        moving, key=lambda queue: queue.queue_id
    )
    assert f"STICKY: goes from {A} to {B}" in {each.why for each in found.queues}
    assert "balanced: no, 2 to move, 0 without owner" in sticky_lines(found.sticky)


def test_a_giver_that_drains_a_queue_is_not_a_second_owner() -> None:
    running = {
        A: telling(QUEUES[0], QUEUES[1], QUEUES[2], q2=QueueStage.DRAINING),
        B: telling(QUEUES[2], QUEUES[3], q2=QueueStage.BEHIND_BARRIER),
    }
    found = story(running)
    assert [each.holders for each in found.queues] == [(A,), (A,), (B,), (B,)]
    assert found.queues[2].why == (
        f"STICKY: stays with its owner; {A}: finishes its last messages; "
        f"{B}: handles messages, commits when the previous owner has finished"
    )
    assert found.queues[2].stages == {A: QueueStage.DRAINING, B: QueueStage.BEHIND_BARRIER}
    assert found.findings == ()
    assert found.sticky is not None
    assert found.sticky.stages == {"behind barrier": 1, "draining": 1}
    assert "in transition: 1 behind barrier, 1 draining" in sticky_lines(found.sticky)


def test_a_queue_between_two_owners_is_being_taken() -> None:
    running = {
        A: telling(*QUEUES[:2]),
        B: telling(*QUEUES[2:], q3=QueueStage.TAKING),
    }
    found = story(running)
    assert found.queues[3].holders == ()
    assert found.queues[3].why.startswith(f"STICKY: goes to {B}; {B}: locks it")
    [finding] = found.findings
    assert (finding.kind, finding.subject) == ("unowned queues", "orders:a:3")
    assert finding.evidence == f"{B} is to own them"
    assert found.sticky is not None
    assert (found.sticky.unowned, found.sticky.balanced) == (1, False)


def test_fenced_queues_are_a_problem() -> None:
    running = {
        A: telling(*QUEUES[:2], q0=QueueStage.FENCED, q1=QueueStage.FENCED),
        B: telling(*QUEUES[2:]),
    }
    found = story(running)
    assert kinds(list(found.findings)) == [("fenced queues", f"{A} orders:a:0, orders:a:1")]
    assert found.queues[0].holders == (A,)


def test_foreign_members_keep_their_share_and_ours_divide_the_rest() -> None:
    # AVG over the sorted ids A, B, JAVA gives the last one the last queue.
    running = {A: telling(*QUEUES[:2], mode="mixed"), B: telling(QUEUES[2]), JAVA: info(QUEUES[3])}
    found = story(running)
    assert found.sticky is not None
    assert (found.sticky.mode, found.sticky.foreign) == (BalanceMode.MIXED, (JAVA,))
    assert (found.sticky.foreign_strategy, found.sticky.moves) == ("AVG", 0)
    assert found.queues[3].why == f"AVG: the share of {JAVA}, which does not hand over"
    assert sticky_lines(found.sticky)[0] == (
        "mode mixed: 1 foreign member with the share that AVG gives them; the others divide the "
        "rest"
    )
    running[B], running[JAVA] = telling(*QUEUES[2:]), info()
    found = story(running)
    assert found.queues[3].expected == JAVA
    assert found.queues[3].why.endswith(f"; {B} leaves it")


def test_the_strategy_of_foreign_members_is_inferred() -> None:
    running = {A: info(QUEUES[0], QUEUES[3]), B: info(QUEUES[1]), JAVA: info(QUEUES[2])}
    found = story(running)
    assert found.sticky is not None
    assert (found.sticky.foreign_strategy, found.sticky.moves) == ("AVG_BY_CIRCLE", 0)


def test_while_a_member_is_silent_nothing_is_claimed_about_balance() -> None:
    found = story(
        {A: info(*QUEUES[:2])}, views={"a": view(A, B)}, silent={B: "timed out"}
    )  # fmt: skip
    assert found.sticky is not None
    assert (found.sticky.moves, found.sticky.balanced, found.fits) == (None, None, None)
    assert [each.expected for each in found.queues] == [None] * 4
    assert {each.why for each in found.queues} == {
        "STICKY: unknown, since not every member and broker has responded"
    }
    assert "balanced: unknown" in sticky_lines(found.sticky)[1]


def test_a_member_that_may_not_hand_over_says_why_and_is_explained_as_java() -> None:
    reason = "no right Pub on topic POCKETMQ_BALANCE"
    running = {"c1": telling(*QUEUES[:2], mode="java", reason=reason), "c2": info(*QUEUES[2:])}
    found = story(running)
    assert found.sticky is not None
    assert (found.strategy, found.sticky.mode, found.fits) == ("AVG", BalanceMode.JAVA, "AVG")
    assert found.sticky.reasons == {"c1": reason}
    assert kinds(list(found.findings)) == [("no hand-over", "c1")]
    assert found.findings[0].evidence == reason
    assert sticky_lines(found.sticky) == ["mode java: no member hands queues over"]


def test_groups_of_java_are_as_they_were() -> None:
    assert not hands_over(HEALTHY)
    found = explain(HEALTHY)
    assert (found.sticky, found.strategy, found.fits) == (None, "AVG", "AVG")


@pytest.mark.parametrize(
    "stages",
    ["", "[1]", "{", "[" * 100_000, '{"orders@a:x": "running"}', "x" * (LONGEST_STAGES + 1)],
)
def test_hostile_stages_are_unknown_and_named(stages: str) -> None:
    hostile = msgspec.structs.replace(
        info(*QUEUES[:2]),
        properties=PUSH
        | {client_calls.PROP_BALANCE_MODE: "sticky", client_calls.PROP_BALANCE_STAGES: stages},
    )
    found = story({A: hostile, B: telling(*QUEUES[2:])})
    assert found.sticky is not None
    assert (found.sticky.mode, found.sticky.moves) == (BalanceMode.STICKY, 0)
    assert kinds(list(found.findings)) == [("unclear report", A)]


def test_an_unknown_mode_and_an_endless_reason_are_bounded() -> None:
    properties = {
        client_calls.PROP_BALANCE_MODE: "telepathy",
        client_calls.PROP_BALANCE_REASON: "\x1b[2J\n" + "x" * 10**6,
    }
    running = {A: msgspec.structs.replace(info(), properties=PUSH | properties)}
    [report] = balance_reports(running, HEALTHY.queues).values()
    assert (report.mode, report.unclear) == (None, True)
    assert len(report.reason) == LONGEST_REASON + 1
    assert report.reason.isprintable()
    assert report.reason.startswith(" [2J x")


def test_stages_of_queues_that_do_not_exist_or_simply_run_are_ignored() -> None:
    invented = {
        MessageQueue("orders", "a", 99): QueueStage.FENCED,
        QUEUES[0]: QueueStage.RUNNING,
        QUEUES[1]: QueueStage.FENCED,
    }
    properties = PUSH | {client_calls.PROP_BALANCE_STAGES: stages_text(invented)}
    running = {A: msgspec.structs.replace(info(*QUEUES), properties=properties)}
    assert balance_reports(running, HEALTHY.queues) == {
        A: BalanceReport(stages={QUEUES[1]: QueueStage.FENCED})
    }


@settings(max_examples=100)
@given(
    st.integers(1, 3), st.integers(0, 12), st.integers(1, 4), st.randoms(use_true_random=False)
)  # fmt: skip
def test_moves_to_go_are_those_of_the_members(
    topics: int, count: int, members: int, random: Any
) -> None:
    queues = {
        f"t{topic}": tuple(MessageQueue(f"t{topic}", "a", number) for number in range(count))
        for topic in range(topics)
    }
    names = [f"10.0.0.1@{number}@pm1" for number in range(members)]
    owners = {q: random.choice(names) for some in queues.values() for q in some}
    running = {
        name: info(*[queue for queue, owner in owners.items() if owner == name]) for name in names
    }
    found = story(running, queues=queues, progress={})
    target = assign(queues, names, owners)
    assert found.sticky is not None
    assert found.sticky.moves == sum(owners[queue] != owner for queue, owner in target.items())
    assert {each.queue: each.expected for each in found.queues} == target
