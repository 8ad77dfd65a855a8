"""What browsers are sent: pictures, what has changed in them, words, and experiments."""

import gc
import time
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.admin.admin import Admin
from pocketmq.admin.explaining import explain
from pocketmq.admin.facts import GroupFacts
from pocketmq.admin.findings import GroupFinding
from pocketmq.balance import what_if
from pocketmq.balance.allocation import Average, AverageByCircle
from pocketmq.balance.story.episode import Doubled, QueuePause, Rebalance
from pocketmq.balance.story.history import GroupHistory
from pocketmq.balance.story.observation import Cause
from pocketmq.balance.what_if.movement import Move
from pocketmq.dashboard.assignment import queue_map, timeline_text
from pocketmq.dashboard.assignment.experiment import Compared, try_events
from pocketmq.dashboard.assignment.observed import Series
from pocketmq.dashboard.assignment.snapshots import GroupSnapshot, SnapshotTaker, moment_of, thinned
from pocketmq.dashboard.assignment.summary_text import grouped, standing, trial_result
from pocketmq.errors import AllocationInputInvalid
from pocketmq.model import MessageModel, MessageQueue, sort_queues
from pocketmq.protocol.requests import client_calls, stats
from tests.admin.test_findings import HEALTHY, NOW, QUEUES, facts, info, view


def looked(*looks: GroupFacts) -> GroupSnapshot:
    """Return the last of successive looks, a second apart."""
    looking = SnapshotTaker(Admin(), "g")
    return [looking._digest(each, float(at)) for at, each in enumerate(looks, 1000)][-1]


def picture_of(*looks: GroupFacts) -> queue_map.QueueMapData:
    return looked(*looks).queue_map


def test_a_picture_holds_every_queue_with_its_owner() -> None:
    picture = picture_of(HEALTHY)
    assert (picture.topics, picture.brokers) == (["orders"], ["a"])
    assert (picture.t, picture.b, picture.q) == ([0] * 4, [0] * 4, [0, 1, 2, 3])
    assert picture.members == [queue_map.Seat(0, "c1", 2, 10), queue_map.Seat(1, "c2", 2, 10)]
    assert (picture.owner, picture.expected) == ([0, 0, 1, 1], [0, 0, 1, 1])
    assert (picture.lag, picture.since) == ([5] * 4, [None] * 4)


def test_nobody_several_and_unknown_are_told_apart() -> None:
    both = facts(running={"c1": info(*QUEUES[:3]), "c2": info(QUEUES[2])})
    picture = picture_of(both)
    assert picture.owner == [0, 0, queue_map.SEVERAL, queue_map.NO_OWNER]
    assert picture.several == {"2": [0, 1]}
    silent = facts(running={"c1": info(*QUEUES[:2])}, silent={"c2": "timed out"})
    later = picture_of(HEALTHY, silent)
    assert later.owner == [0, 0, queue_map.UNKNOWN_OWNER, queue_map.UNKNOWN_OWNER]
    assert later.was == [queue_map.NO_OWNER, queue_map.NO_OWNER, 1, 1]
    assert later.members[1] == queue_map.Seat(1, "c2", 0, None, "timed out")


def test_a_lag_not_known_is_not_zero_for_the_member_either() -> None:
    picture = picture_of(facts(progress={QUEUES[0]: stats.QueueProgress(broker_offset=3)}))
    assert picture.lag == [3, None, None, None]
    assert [each.lag for each in picture.members] == [None, None]


def test_members_keep_their_seats_while_others_come_and_go() -> None:
    seats = queue_map.Seats()
    assert seats.take(["b", "c"]) == {"b": 0, "c": 1}
    assert seats.take(["a", "b", "c"]) == {"b": 0, "c": 1, "a": 2}
    assert seats.take(["a", "c"]) == {"c": 1, "a": 2}
    assert seats.take(["a", "c", "d"]) == {"c": 1, "a": 2, "d": 0}


def test_who_broadcasts_or_pops_owns_nothing() -> None:
    everyone = info(*QUEUES)
    broadcasting = facts(
        views={"a": view("c1", "c2", model=MessageModel.BROADCASTING)},
        running={"c1": everyone, "c2": everyone},
    )
    popping = facts(
        running={
            member: client_calls.RunningInfo(
                mq_pop_table=dict.fromkeys(QUEUES, client_calls.PopProcessQueueInfo())
            )
            for member in ("c1", "c2")
        }
    )
    for each, word in ((broadcasting, "broadcasts"), (popping, "POP")):
        look = looked(each)
        assert look.queue_map.owner == []
        assert [seat.name for seat in look.queue_map.members] == ["c1", "c2"]
        assert word in standing(look)
        assert {finding.kind for finding in look.findings} <= {"different subscriptions"}


# What is sent


def applied(shown: dict[str, Any] | None, changes: dict[str, Any]) -> dict[str, Any]:
    """Do what the browser does with what it is sent."""
    if "whole" in changes:
        return msgspec.json.decode(msgspec.json.encode(changes["whole"]), type=dict[str, Any])
    assert shown is not None
    for name in ("owner", "expected", "lag", "since", "was"):
        column = changes.get(name, [])
        for position, value in zip(column[::2], column[1::2], strict=True):
            shown[name][position] = value
    return shown | {
        name: changes[name] for name in ("members", "several", "moved") if name in changes
    }


seats = st.integers(-3, 3)
columns = st.lists(st.tuples(seats, seats, st.none() | st.integers(0, 9)), min_size=1, max_size=6)


@given(st.lists(columns, min_size=1, max_size=6))
@settings(max_examples=100)
def test_a_browser_that_is_sent_changes_shows_the_same_as_one_that_is_sent_all(
    looks: list[list[tuple[int, int, int | None]]],
) -> None:
    before: queue_map.QueueMapData | None = None
    shown: dict[str, Any] | None = None
    for look in looks:
        now = queue_map.QueueMapData(
            topics=["t"],
            brokers=["b"],
            t=[0] * len(look),
            b=[0] * len(look),
            q=list(range(len(look))),
            members=[queue_map.Seat(0, f"c{len(look)}", len(look), None)],
            owner=[each[0] for each in look],
            several={},
            expected=[each[1] for each in look],
            lag=[each[2] for each in look],
            since=[each[2] for each in look],
            was=[each[1] for each in look],
        )
        shown = applied(shown, queue_map.patch(before, now))
        assert shown == msgspec.to_builtins(now)
        before = now


def test_an_unchanged_picture_costs_nothing() -> None:
    assert queue_map.patch(picture_of(HEALTHY), picture_of(HEALTHY)) == {}


def test_one_moved_queue_is_sent_alone() -> None:
    moved = facts(running={"c1": info(QUEUES[0]), "c2": info(*QUEUES[1:])})
    looking = SnapshotTaker(Admin(), "g")
    first, second = looking._digest(HEALTHY, 1000.0), looking._digest(moved, 1001.0)
    changes = queue_map.patch(first.queue_map, second.queue_map)
    assert changes["owner"] == [1, 1]
    assert changes["since"] == [1, 1001]


def test_lines_are_thinned_and_keep_their_newest_point() -> None:
    series: Series = [(float(at), at) for at in range(1000)]
    short = thinned(series)
    assert len(short) <= 240
    assert short[-1] == (999.0, 999)
    assert thinned(series[:240]) == series[:240]


def test_a_thinned_line_is_broken_where_the_lag_was_unknown() -> None:
    """Else it would be drawn straight across the time in which nobody looked."""
    for lost in range(1, 998):
        series: Series = [(float(at), None if at == lost else at) for at in range(1000)]
        assert (float(lost), None) in thinned(series)
    unknown: Series = [(float(at), None) for at in range(1000)]
    assert len(thinned(unknown)) <= 240


# Words


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "Every queue has one owner, as AVG assigns them."),
        (
            {"running": {"c1": info(*QUEUES[:3]), "c2": info(QUEUES[2])}},
            "Of 4 queues, 1 has no owner and 1 has several owners.",
        ),
        (
            {"running": {"c1": info(*QUEUES[:2])}, "silent": {"c2": "timed out"}},
            "Of 4 queues, 2 have an unknown owner.",
        ),
        (
            {"running": {"c1": info(QUEUES[0], QUEUES[3]), "c2": info(*QUEUES[1:3])}},
            "Every queue has one owner, but no known strategy explains the assignment.",
        ),
        (
            {"views": {"a": view()}, "running": {}, "queues": {}},
            "The group is offline: no broker lists a member. Its messages accumulate.",
        ),
        (
            {"views": {}, "running": {}, "queues": {}, "unseen_brokers": {"a": "refused"}},
            "It is unknown whether the group has members: not every broker has responded.",
        ),
        ({"queues": {}}, "No subscribed topic has queues."),
    ],
)
def test_how_a_group_stands_is_one_sentence(changes: dict[str, Any], text: str) -> None:
    assert standing(looked(facts(**changes))) == text


def test_a_picture_that_no_strategy_gives_may_be_under_way() -> None:
    going = facts(running={"c1": info(QUEUES[0], QUEUES[3]), "c2": info(*QUEUES[1:3])})
    text = standing(looked(HEALTHY, going))
    assert text == "Every queue has one owner; a rebalance is in progress."


def test_an_offline_group_shows_the_queues_it_has_consumed() -> None:
    offline = facts(views={"a": view(), "b": view()}, running={}, queues={})
    assert picture_of(offline).owner == [queue_map.NO_OWNER] * 4
    gone = looked(HEALTHY, offline)
    assert [entry.why for entry in gone.rebalances] == ["c1 left; c2 left"]


@pytest.mark.parametrize(
    ("queues", "text"),
    [
        (QUEUES, "orders a 0–3"),
        ((QUEUES[0], QUEUES[2], QUEUES[3]), "orders a 0, 2–3"),
        (
            (QUEUES[0], MessageQueue("orders", "b", 7), MessageQueue("x", "b", 1)),
            "orders a 0; b 7; x b 1",
        ),
        (tuple(MessageQueue("t", "a", 2 * n) for n in range(14)), "t a " + ", ".join(map(str, range(0, 24, 2))) + "; …"),
    ],
)  # fmt: skip
def test_queues_are_written_as_runs(queues: tuple[MessageQueue, ...], text: str) -> None:
    assert timeline_text.compact(queues) == text


def test_findings_of_a_kind_are_told_together() -> None:
    twice = [GroupFinding("owned twice", f"q{n}", "held by a and b", "wait") for n in range(8)]
    one = GroupFinding("split view", "b", "it does not list c", "look")
    assert grouped([*twice[:1], one, *twice[1:]]) == [
        (
            "owned twice: 8 cases",
            [*(f"q{n}: held by a and b" for n in range(5)), "and 3 more"],
            "wait",
        ),
        ("split view: b", ["Evidence: it does not list c"], "look"),
    ]


ENTRY = Rebalance(
    number=1,
    began=10,
    ended=14,
    settled=True,
    causes=(Cause("member left", "c2", "c2 left"),),
    moved=2,
    minimum=2,
    moves=(Move(QUEUES[2], "c2", "c1"), Move(QUEUES[3], "c2", None)),
    pauses=(
        QueuePause(QUEUES[2], "c2", "c1", 10, 12, 0, 3),
        QueuePause(QUEUES[3], "c2", "c1", 11, 14, 2, 4),
    ),
    doubled=(Doubled(QUEUES[0], ("c1", "c3"), 12, 12, over=True),),
)


def test_a_rebalance_is_summed_up_and_told_in_full() -> None:
    assert timeline_text.summary(ENTRY) == (
        "2 queues moved, minimum 2 · 2 paused, longest 2 s to 4 s · 1 with several owners"
    )
    assert timeline_text.entry_detail(ENTRY) == {
        "number": 1,
        "lines": [
            "Reason: c2 left",
            "orders a 2 had no owner for at most 3 s",
            "orders a 3 had no owner for 2 s to 4 s",
            "orders a 0 was owned by c1 and c3 at the same time, seen once",
        ],
        "moves": [("c2", "c1", 1, "orders a 2"), ("c2", "no owner", 1, "orders a 3")],
    }


def test_pauses_that_overlap_are_one_span() -> None:
    going = msgspec.structs.replace(ENTRY.pauses[0], began=30, ended=None)
    assert timeline_text.open_spans([*ENTRY.pauses, going], 33) == [(10, 14), (30, 33)]
    far_apart = QueuePause(QUEUES[2], "c2", "c1", 40, 60, 3, 30)
    assert timeline_text.open_spans([far_apart], 99) == [(40, 43)], "as far as it was seen"


def test_what_has_not_changed_is_told_as_before() -> None:
    recounting = timeline_text.TimelineText()
    later = msgspec.structs.replace(ENTRY, number=2, pauses=())
    rows, spans = recounting.rows([ENTRY, later], 20)
    assert ([row["number"] for row in rows], spans) == ([1, 2], [(10, 14)])
    moved = msgspec.structs.replace(later, moved=3)
    again, _ = recounting.rows([ENTRY, moved], 21)
    assert again[0] is rows[0]
    assert again[1]["sum"] == "3 queues moved, minimum 2 · 1 with several owners"


# What if


def test_an_experiment_tells_moves_balance_and_every_strategy() -> None:
    trial = try_events(HEALTHY, "AVG", [what_if.MemberJoined("c3")], {"c1": 0, "c2": 4})
    assert (trial.before.owner, trial.after.owner) == ([0, 0, 4, 4], [0, 0, 4, 5])
    assert trial.after.moved == [3]
    assert trial.compared[:2] == [
        Compared("AVG", True, 1, 1, 0, 1, 1, 1, idle=0),
        Compared("AVG_BY_CIRCLE", False, 1, 1, 0, 2, 1, 3, idle=0),
    ]
    assert trial.compared[-1] == Compared("STICKY", False, 1, 1, 0, 1, 1, 1, idle=0)
    result = trial_result(trial)
    assert result["sum"] == "1 queue would move, minimum 1."
    assert result["lines"] == [
        "Max−min over all topics: 0 before, 1 after.",
        "orders: 1 to 2 queues per member (max−min 1).",
    ]
    assert result["moves"] == [("c2", "c3", 1, "orders a 3")]


def test_a_killed_broker_takes_its_queues_along() -> None:
    more = facts(queues={"orders": (*QUEUES, MessageQueue("orders", "b", 0))})
    result = trial_result(try_events(more, "AVG", [what_if.BrokerDown("b")], {}))
    assert result["sum"] == "1 queue would move, minimum 1, 1 queue would be gone."
    refused = {each["strategy"]: each["refused"] for each in result["compared"]}
    assert refused["AVG"] is None
    assert "room" in str(refused["MACHINE_ROOM_NEARBY-AVG"])


def test_a_change_of_strategy_is_compared_from_the_picture_of_now() -> None:
    trial = try_events(HEALTHY, "AVG", [what_if.StrategyChanged(AverageByCircle())], {})
    assert trial.movement.moved == 2
    circle = trial.compared[1]
    assert (circle.strategy, circle.moved, circle.moved_from_now) == ("AVG_BY_CIRCLE", 0, 2)


def test_a_group_with_hand_over_is_tried_from_its_owners() -> None:
    """STICKY keeps what members own, wherever that is; AVG would start from its own blocks."""
    a, b, java = "10.0.0.1@1@pm1", "10.0.0.1@2@pm1", "10.0.0.9@1"
    running = {a: info(QUEUES[0], QUEUES[3]), b: info(QUEUES[1], QUEUES[2])}
    both = facts(views={"a": view(a, b)}, running=running)
    trial = try_events(both, "STICKY", [what_if.MemberLeft(b)], {a: 0, b: 1})
    assert trial.before.owner == [0, 1, 1, 0]
    assert trial.after.owner == [0, 0, 0, 0]
    assert trial.answer.start == what_if.Movement(0, 0, [], [], [])
    used = trial.compared[0]
    assert used == Compared("STICKY", True, 0, 0, 0, 2, 2, 2, idle=0)
    joined = facts(views={"a": view(a, b, java)}, running=running)
    mixed = try_events(joined, "STICKY", [what_if.MemberJoined("c")], {})
    share = next(each for each in mixed.last.shares if each.member == java)
    assert share.queues == [QUEUES[2]]  # the third of four, as AVG gives it


def test_a_group_that_switches_to_sticky_keeps_what_it_owns_now() -> None:
    """Not what AVG would make of it first: a member in front of the others shifts all blocks."""
    compared = try_events(HEALTHY, "AVG", [what_if.MemberJoined("c0")], {}).compared
    switched = {each.strategy: each.moved_from_now for each in compared}
    assert (switched["AVG"], switched["STICKY"]) == (3, 1)


@pytest.mark.parametrize(("c1_owns", "moved"), [(2, 2), (1, 1)])
def test_sticky_is_compared_from_the_owners_of_now(c1_owns: int, moved: int) -> None:
    """What a member that leaves gives up is what it owns, not what a fresh start would give it."""
    three = QUEUES[:3]
    running = {"c1": info(*three[:c1_owns]), "c2": info(*three[c1_owns:])}
    group = facts(queues={"orders": three}, running=running)
    compared = try_events(group, "AVG", [what_if.MemberLeft("c1")], {}).compared
    assert {each.strategy: each.moved for each in compared}["STICKY"] == moved


def test_idle_members_are_counted() -> None:
    joiners = [what_if.MemberJoined(f"d{number}") for number in range(3)]
    idle = {each.strategy: each.idle for each in try_events(HEALTHY, "AVG", joiners, {}).compared}
    assert (idle["AVG"], idle["STICKY"]) == (1, 1)


def test_what_cannot_happen_is_refused() -> None:
    with pytest.raises(AllocationInputInvalid, match="stranger is not a member of the group"):
        try_events(HEALTHY, None, [what_if.MemberLeft("stranger")], {})


# Size


def large(members: int, each: int = 1000) -> GroupFacts:
    """Return a group of ten topics, with so many queues each."""
    names = [f"10.0.0.1@c{number:03}" for number in range(members)]
    held: dict[str, list[MessageQueue]] = {name: [] for name in names}
    queues = {}
    for topic in (f"t{number}" for number in range(10)):
        ordered = sort_queues([MessageQueue(topic, f"b{n % 4}", n // 4) for n in range(each)])
        queues[topic] = tuple(ordered)
        for queue, owner in zip(ordered, Average().allocate_all(ordered, names), strict=True):
            assert owner is not None
            held[owner].append(queue)
    everyone = view(*names)
    progress = stats.QueueProgress(broker_offset=9, consumer_offset=4)
    return facts(
        views=dict.fromkeys(("b0", "b1", "b2", "b3"), everyone),
        running={name: info(*held[name]) for name in names},
        queues=queues,
        progress={queue: progress for each in queues.values() for queue in each},
    )


def digested(each: int) -> tuple[float, GroupSnapshot, dict[str, Any]]:
    """Look at a group that a member has joined; return the processor time, what is seen and sent."""
    first, second = large(100, each), large(101, each)
    looking = SnapshotTaker(Admin(), "g")
    looking._digest(first, 1000.0)
    gc.disable()  # a collection would look at all that tests before this one have left
    try:
        began = time.thread_time()
        look = looking._digest(second, 1001.0)
        changes = queue_map.patch(picture_of(first), look.queue_map)
        return time.thread_time() - began, look, changes
    finally:
        gc.enable()


def test_a_look_at_ten_thousand_queues_of_a_hundred_members_is_digested_quickly() -> None:
    """In the time of ten looks at a tenth of them, and not of a hundred."""
    tenth = min(digested(100)[0] for _ in range(3))
    for _ in range(3):
        took, look, changes = digested(1000)
        if took < 30 * tenth:
            break
    assert took < 30 * tenth, (took, tenth)
    [entry] = look.rebalances
    assert entry.why == "10.0.0.1@c100 joined"
    assert entry.moved == len(entry.moves) > entry.minimum == 90
    assert len(changes["owner"]) == 2 * entry.moved
    assert look.total_lag == [(1000.0, 50_000), (1001.0, 50_000)]


def test_a_story_and_its_picture_have_the_same_order() -> None:
    story = explain(HEALTHY)
    now = moment_of(HEALTHY, NOW / 1000, story.strategy)
    history = GroupHistory()
    history.observe(now)
    picture = queue_map.live_map(story, now, history, {"c1": 0, "c2": 1})
    shown = [
        MessageQueue(picture.topics[t], picture.brokers[b], q)
        for t, b, q in zip(picture.t, picture.b, picture.q, strict=True)
    ]
    assert shown == [each.queue for each in story.queues]
