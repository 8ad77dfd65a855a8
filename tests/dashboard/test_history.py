"""What became of a group's queues: rebalances, their causes, pauses, lag; unknown stays unknown."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.admin.explaining import explain
from pocketmq.balance.allocation import Average
from pocketmq.balance.story.episode import Doubled, QueuePause, Rebalance
from pocketmq.balance.story.history import QUIET, GroupHistory
from pocketmq.balance.story.observation import UNEXPLAINED, GroupObservation, KnownOwners
from pocketmq.balance.what_if.movement import Move
from pocketmq.dashboard.assignment.observed import Lags
from pocketmq.dashboard.assignment.snapshots import TELLS_NOTHING, moment_of
from pocketmq.model import MessageModel, MessageQueue
from pocketmq.protocol.requests.client_calls import PROP_CONSUME_TYPE, RunningInfo
from tests.admin.test_findings import HEALTHY, facts, info, view

Q = tuple(MessageQueue("orders", "a", number) for number in range(4))
OTHER = tuple(MessageQueue("orders", "b", number) for number in range(2))


def moment(at: float, owners: dict[MessageQueue, KnownOwners], **changes: Any) -> GroupObservation:
    """Return a moment whose members are those that hold something, unless told otherwise."""
    members = frozenset(member for held in owners.values() for member in held or ())
    values: dict[str, Any] = {
        "at": at,
        "members": members,
        "untold": {},
        "brokers": frozenset(queue.broker_name for queue in owners),
        "unseen": frozenset(),
        "owners": owners,
        "lags": {},
        "strategies": {},
        "fits": "AVG",
    }
    return GroupObservation(**(values | changes))


def owned(*owners: str, queues: tuple[MessageQueue, ...] = Q) -> dict[MessageQueue, KnownOwners]:
    """Read owners: `-` is nobody, `?` not known, `c1+c2` both."""
    read: dict[str, KnownOwners] = {"-": (), "?": None}
    return {
        queue: read.get(owner, tuple(owner.split("+")))
        for queue, owner in zip(queues, owners, strict=True)
    }


def history(*moments: GroupObservation) -> list[Rebalance]:
    story = GroupHistory()
    for each in moments:
        story.observe(each)
    return story.entries()


START = moment(0, owned("c1", "c1", "c2", "c2"))
THREE = frozenset({"c1", "c2", "c3"})


def test_the_first_look_is_no_change() -> None:
    assert history(START) == []


def test_the_same_picture_again_is_no_change() -> None:
    assert history(START, moment(1, START.owners), moment(2, START.owners)) == []


def test_a_member_that_joins_is_the_reason_of_all_moves_until_the_picture_has_settled() -> None:
    [entry] = history(
        START,
        moment(1, START.owners, members=THREE, fits=None),
        moment(2, owned("c1", "c1", "c2", "c3"), fits=None),
        moment(3, owned("c1", "c1", "c2", "c3")),
        moment(4, owned("c1", "c1", "c2", "c3")),
    )
    assert entry.why == "c3 joined"
    assert (entry.began, entry.ended, entry.settled) == (1, 3, True)
    assert entry.moves == (Move(Q[3], "c2", "c3"),)
    assert (entry.moved, entry.minimum) == (1, 1)
    assert (entry.pauses, entry.doubled) == ((), ())


def test_of_many_causes_the_first_are_named() -> None:
    many = frozenset({"c1", "c2", *"pqrst"})
    [entry] = history(START, moment(1, START.owners, members=many))
    assert entry.why == "p joined; q joined; r joined; and 2 more reasons"
    assert len(entry.causes) == 5


def test_moves_that_were_not_needed_show_against_the_minimum() -> None:
    [entry] = history(START, moment(1, owned("c2", "c2", "c1", "c3")))
    assert (entry.moved, entry.minimum) == (4, 1)


def test_members_that_hand_over_had_to_level_all_topics() -> None:
    """Two topics of three queues: each is even, but together one member has two queues more."""
    bills = tuple(MessageQueue("bills", "a", number) for number in range(3))
    for a, b, minimum in (("c1", "c2", 0), ("c1@pm1", "c2@pm1", 1)):
        start = owned(a, a, b, queues=Q[:3]) | owned(a, a, b, queues=bills)
        end = owned(a, a, b, queues=Q[:3]) | owned(a, b, b, queues=bills)
        [entry] = history(moment(0, start, fits=None), moment(1, end, fits="STICKY"))
        assert (entry.moved, entry.minimum) == (1, minimum)


def test_a_member_that_leaves_causes_a_pause_of_its_queues() -> None:
    one = frozenset({"c1"})
    [entry] = history(
        START,
        moment(1, owned("c1", "c1", "-", "-"), fits=None),
        moment(2, owned("c1", "c1", "c1", "-"), fits=None),
        moment(3, owned("c1", "c1", "c1", "-"), fits=None),
        moment(4, owned("c1", "c1", "c1", "c1"), members=one),
    )
    assert entry.why == "c2 left"
    assert entry.moves == (Move(Q[2], "c2", "c1"), Move(Q[3], "c2", "c1"))
    assert entry.pauses == (
        QueuePause(Q[2], "c2", "c1", 1, 2, 0, 2),  # seen once, at most between the looks around it
        QueuePause(Q[3], "c2", "c1", 1, 4, 2, 4),
    )


def test_a_pause_that_goes_on_has_no_end_and_grows() -> None:
    looks = [START] + [moment(at, owned("c1", "c1", "c2", "-"), fits=None) for at in range(1, 4)]
    [entry] = history(*looks)
    assert entry.ended is None
    assert entry.pauses == (QueuePause(Q[3], "c2", None, 1, None, 2, None),)
    assert entry.moves == (Move(Q[3], "c2", None),)


def test_a_queue_unowned_from_the_first_look_has_a_pause_of_unknown_length() -> None:
    [entry] = history(
        moment(0, owned("c1", "c1", "c2", "-"), fits=None),
        moment(5, owned("c1", "c1", "c2", "-"), fits=None),
        moment(6, owned("c1", "c1", "c2", "c2")),
    )
    assert entry.why == "queues without an owner were assigned"
    assert entry.pauses == (QueuePause(Q[3], None, "c2", 0, 6, 5, None),)
    assert entry.moves == (Move(Q[3], None, "c2"),)


def test_two_owners_at_once_are_told_with_the_time_they_were_seen() -> None:
    [entry] = history(
        START,
        moment(1, owned("c1", "c1", "c2", "c2+c3"), fits=None),
        moment(3, owned("c1", "c1", "c2", "c2+c3"), fits=None),
        moment(4, owned("c1", "c1", "c2", "c3")),
    )
    assert entry.doubled == (Doubled(Q[3], ("c2", "c3"), 1, 3, over=True),)
    assert entry.moves == (Move(Q[3], "c2", "c3"),)


def test_what_a_silent_member_holds_is_unknown_and_has_not_moved() -> None:
    [entry] = history(
        START,
        moment(1, owned("c1", "c1", "?", "?"), members=START.members, untold={"c2": "timed out"}),
        moment(2, owned("c1", "c1", "?", "?"), members=START.members, untold={"c2": "timed out"}),
        moment(3, START.owners),
    )
    assert entry.why == "c2 stopped reporting its queues: timed out"
    assert (entry.moved, entry.moves, entry.pauses) == (0, (), ())


def test_a_queue_that_was_unknown_and_then_another_members_has_moved() -> None:
    entries = history(
        START,
        moment(1, owned("c1", "c1", "?", "?"), members=START.members, untold={"c2": "timed out"}),
        moment(9, owned("c1", "c1", "c1", "c1")),
    )
    assert [entry.why for entry in entries] == [
        "c2 stopped reporting its queues: timed out",
        "c2 left after it had stopped responding",
    ]
    assert entries[1].moves == (Move(Q[2], "c2", "c1"), Move(Q[3], "c2", "c1"))
    assert entries[1].pauses == ()


def test_a_member_found_silent_while_it_left_has_left() -> None:
    [entry] = history(
        START,
        moment(1, owned("c1", "c1", "?", "?"), members=START.members, untold={"c2": "closed"}),
        moment(2, owned("c1", "c1", "-", "-"), fits=None),
        moment(3, owned("c1", "c1", "c1", "c1")),
    )
    assert entry.why == "c2 left after it had stopped responding"
    assert entry.pauses[0] == QueuePause(Q[2], "c2", "c1", 2, 3, 0, 3)  # last seen held at 0


def test_a_silent_member_that_answers_with_other_queues_explains_the_move() -> None:
    entries = history(
        START,
        moment(1, owned("c1", "c1", "c2", "?"), untold={"c2": "slow"}),
        moment(2, owned("c1", "c1", "c2", "c1")),
    )
    assert [entry.why for entry in entries][1:] == ["c2 responds again"]


BOTH = {**owned("c1", "c1", "c2", "c2"), **owned("c1", "c2", queues=OTHER)}


@pytest.mark.parametrize(
    ("before", "now", "why"),
    [
        pytest.param(BOTH, {"owners": START.owners}, "b is gone, with 2 queues", id="broker gone"),
        pytest.param(
            START.owners, {"owners": BOTH}, "b is available, with 2 queues", id="broker came"
        ),
        pytest.param(
            BOTH, {"owners": BOTH, "unseen": frozenset({"b"})}, "b stopped responding", id="silent"
        ),
        pytest.param(
            START.owners,
            {"owners": START.owners | {MessageQueue("orders", "a", 4): ("c2",)}},
            "orders has 1 queue more on a",
            id="queues added",
        ),
        pytest.param(
            START.owners,
            {"owners": owned("c1", "c2", queues=Q[:2])},
            "orders has 2 queues less on a",
            id="queues removed",
        ),
        pytest.param(
            START.owners,
            {"owners": START.owners | {MessageQueue("bills", "a", 0): ("c2",)}},
            "bills was subscribed",
            id="topic subscribed",
        ),
        pytest.param(
            START.owners | {MessageQueue("bills", "a", 0): ("c2",)},
            {"owners": START.owners},
            "bills was unsubscribed or deleted",
            id="topic gone",
        ),
        pytest.param(
            START.owners,
            {"owners": owned("c1", "c2", "c1", "c2"), "fits": "AVG_BY_CIRCLE"},
            "the strategy changed from AVG to AVG_BY_CIRCLE",
            id="another strategy",
        ),
        pytest.param(
            START.owners,
            {
                "owners": owned("c1", "c2", "c1", "-"),
                "fits": None,
                "strategies": {"c1": "AVG_BY_CIRCLE", "c2": "AVG"},
            },
            "members use different strategies (1 × AVG, 1 × AVG_BY_CIRCLE)",
            id="different strategies",
        ),
        pytest.param(
            START.owners, {"owners": owned("c2", "c2", "c1", "c1")}, UNEXPLAINED.text, id="unknown"
        ),
    ],
)
def test_each_cause_is_named(
    before: dict[MessageQueue, KnownOwners], now: dict[str, Any], why: str
) -> None:
    [entry] = history(moment(0, before), moment(1, **now))
    assert entry.why == why


def test_a_queue_that_is_gone_ends_its_pause_and_has_not_moved() -> None:
    [entry] = history(
        START,
        moment(1, owned("c1", "c1", "c2", "-"), fits=None),
        moment(2, owned("c1", "c1", "c2", queues=Q[:3])),
    )
    assert entry.moves == ()
    assert entry.pauses == (QueuePause(Q[3], "c2", None, 1, 2, 0, None),)


def test_a_rebalance_that_no_strategy_explains_ends_when_nothing_happens_any_more() -> None:
    moved = owned("c2", "c1", "c2", "c1")
    looks = [moment(at, moved, fits=None) for at in (1, 2, QUIET, QUIET + 1)]
    assert history(START, *looks[:-1])[0].ended is None
    [entry] = history(START, *looks)
    assert (entry.ended, entry.settled) == (1, False)


def test_a_cause_after_a_settled_picture_begins_another_rebalance() -> None:
    entries = history(
        START,
        moment(1, owned("c1", "c1", "c2", "c3")),
        moment(2, owned("c1", "c1", "c1", "c3")),
    )
    assert [(entry.number, entry.why) for entry in entries] == [(1, "c3 joined"), (2, "c2 left")]


def test_members_of_a_broadcasting_group_come_and_go_and_nothing_moves() -> None:
    every: dict[MessageQueue, KnownOwners] = dict.fromkeys(Q, ("c1", "c2"))
    [entry] = history(
        moment(0, owned("c1", "c1", "c1", "c1"), shared=False, fits=None),
        moment(1, every, shared=False, fits=None),
    )
    assert (entry.why, entry.moved, entry.doubled, entry.ended) == ("c2 joined", 0, (), 1)


def test_who_read_a_queue_of_a_broadcasting_group_did_not_own_it() -> None:
    """Else a pause that began before would be told as shorter than it was seen."""
    looks: list[tuple[str, bool]] = [
        ("?", True), ("-", True), ("?", True), ("c1", False), ("-", True), ("c1", True),
    ]  # fmt: skip
    entries = history(
        *(
            moment(3 * at, owned(owner, queues=Q[:1]), shared=shared, fits=None)
            for at, (owner, shared) in enumerate(looks)
        )
    )
    assert entries[-1].pauses == (QueuePause(Q[0], None, "c1", 3, 15, 9, None),)


def test_old_rebalances_are_forgotten_their_moves_before_them() -> None:
    story = GroupHistory(most_entries=3, most_moves=8)
    flip = [owned("c1", "c1", "c2", "c2"), owned("c2", "c2", "c1", "c1")]
    for at in range(6):
        story.observe(moment(at, flip[at % 2]))
    assert [(each.number, each.moved, len(each.moves)) for each in story.entries()] == [
        (3, 4, 0),
        (4, 4, 4),
        (5, 4, 4),
    ]


def test_a_queue_tells_since_when_it_has_its_owner() -> None:
    story = GroupHistory()
    for each in (START, moment(7, owned("c1", "c1", "c2", "c3"))):
        story.observe(each)
    assert [story.since(queue) for queue in Q] == [None, None, None, 7]
    assert [story.owners(queue) for queue in Q] == [("c1",), ("c1",), ("c2",), ("c3",)]


# Facts


def test_a_moment_takes_from_facts_what_is_known() -> None:
    now = moment_of(HEALTHY, 5.0, "AVG")
    assert now.owners == owned("c1", "c1", "c2", "c2")
    assert (now.members, now.brokers, now.shared) == (
        frozenset({"c1", "c2"}),
        frozenset({"a", "b"}),
        True,
    )
    assert now.lags == dict.fromkeys(Q, 5)


def test_a_member_that_joins_during_a_query_is_no_part_of_what_has_settled() -> None:
    joining = facts(views={"a": view("c1")}, running={"c1": info(*Q), "c2": info()})
    assert explain(joining).fits == "AVG"
    entry, *others = history(
        moment(0, owned(*["c1"] * 4)),
        moment_of(joining, 1, "AVG"),
        moment(2, owned("c1", "c1", "c2", "c2")),
    )
    assert (entry.why, entry.moved, others) == ("c2 joined", 2, [])


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"silent": {"c2": "timed out"}}, id="a silent member"),
        pytest.param({"unseen_brokers": {"c": "refused"}}, id="a broker down"),
    ],
)
def test_nobody_is_certain_only_if_all_have_been_heard(changes: dict[str, Any]) -> None:
    missing = facts(running={"c1": info(*Q[:2])}, **changes)
    assert moment_of(missing, 0).owners == owned("c1", "c1", "?", "?")
    heard = facts(running={"c1": info(*Q[:2]), "c2": info()})
    assert moment_of(heard, 0).owners == owned("c1", "c1", "-", "-")


def test_a_member_that_tells_of_no_queues_leaves_them_unknown() -> None:
    pull = RunningInfo(properties={PROP_CONSUME_TYPE: "CONSUME_ACTIVELY"})
    now = moment_of(facts(running={"c1": info(*Q[:2]), "c2": pull}), 0)
    assert now.owners == owned("c1", "c1", "?", "?")
    assert now.untold == {"c2": TELLS_NOTHING}


def test_a_lag_that_nobody_told_is_not_zero() -> None:
    assert moment_of(facts(progress={}), 0).lags == {}


def test_a_broadcasting_group_shares_nothing() -> None:
    everyone = facts(views={"a": view("c1", model=MessageModel.BROADCASTING)})
    assert not moment_of(everyone, 0).shared


def test_javas_strategies_are_told_by_their_names() -> None:
    java = "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely@7a81197d"
    running = {
        "c1": RunningInfo(properties={"allocateMessageQueueStrategy": java}),
        "c2": RunningInfo(properties={"allocateMessageQueueStrategy": "AVG_BY_CIRCLE"}),
    }
    assert moment_of(facts(running=running), 0).strategies == {"c1": "AVG", "c2": "AVG_BY_CIRCLE"}


# Laws

owner_sets = st.sampled_from(["c1", "c2", "c3", "-"])
pictures = st.lists(st.tuples(*[owner_sets] * 4), min_size=2, max_size=8)


@given(pictures, st.data())
@settings(max_examples=150)
def test_the_moves_lead_from_the_first_picture_to_the_last(
    looks: list[tuple[str, ...]], data: st.DataObject
) -> None:
    fits = [data.draw(st.sampled_from([None, "AVG"])) for _ in looks]
    moments = [
        moment(at, owned(*look), members=THREE, fits=fit)
        for at, (look, fit) in enumerate(zip(looks, fits, strict=True))
    ]
    picture = dict(moments[0].owners)
    for entry in history(*moments):
        assert entry.minimum <= entry.moved == len(entry.moves)
        for move in entry.moves:
            assert picture[move.queue] == (() if move.previous is None else (move.previous,))
            picture[move.queue] = () if move.owner is None else (move.owner,)
        for pause in entry.pauses:
            assert pause.most is None or 0 <= pause.least < pause.most
    assert picture == moments[-1].owners


@given(st.lists(st.tuples(*[st.booleans()] * 4), min_size=1, max_size=8))
@settings(max_examples=100)
def test_what_is_merely_not_known_never_moves_and_never_pauses(
    looks: list[tuple[bool, ...]],
) -> None:
    truth = ("c1", "c1", "c2", "c2")
    moments = [
        moment(at, owned(*(w if seen else "?" for w, seen in zip(truth, look, strict=True))),
               members=START.members)
        for at, look in enumerate(looks, 1)
    ]  # fmt: skip
    assert history(START, *moments) == []


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 12))
@settings(max_examples=60)
def test_a_strategys_own_moves_are_never_fewer_than_the_minimum(
    before: int, after: int, count: int
) -> None:
    queues = tuple(MessageQueue("t", "a", number) for number in range(count))

    def divided(at: float, size: int) -> GroupObservation:
        members = [f"c{number}" for number in range(size)]
        owners = Average().allocate_all(queues, members)
        held = {queue: (who,) for queue, who in zip(queues, owners, strict=True) if who}
        return moment(at, dict(held), members=frozenset(members))

    for entry in history(divided(0, before), divided(1, after)):
        assert 0 <= entry.minimum <= entry.moved <= count


some_owners = st.one_of(
    st.none(),
    st.just(()),
    st.sets(st.sampled_from(["c1", "c2", "c3"]), min_size=1, max_size=2).map(
        lambda held: tuple(sorted(held))
    ),
)
looks = st.builds(
    lambda owners, untold, unseen, fits, shared: {
        "owners": owners,
        "untold": dict.fromkeys(untold, "slow"),
        "unseen": frozenset(unseen),
        "fits": fits,
        "shared": shared,
    },
    st.dictionaries(st.sampled_from([*Q, *OTHER]), some_owners),
    st.sets(st.sampled_from(["c1", "c4"])),
    st.sets(st.sampled_from(["a", "b"])),
    st.sampled_from([None, "AVG", "AVG_BY_CIRCLE"]),
    st.sampled_from([True, True, True, False]),
)


@given(st.lists(looks, min_size=1, max_size=10))
@settings(max_examples=200)
def test_whatever_happens_is_told_within_its_bounds(seen: list[dict[str, Any]]) -> None:
    story = GroupHistory(most_entries=5, most_moves=20)
    for at, look in enumerate(seen):
        untold = frozenset(look["untold"])
        holding = frozenset(who for held in look["owners"].values() for who in held or ())
        story.observe(moment(at * 3, **look, members=holding | untold))
    entries = story.entries()
    assert len(entries) <= 5
    assert [entry.number for entry in entries] == sorted(entry.number for entry in entries)
    assert sum(len(entry.moves) for entry in entries[:-1]) <= 20
    for entry in entries:
        assert entry.causes
        assert 0 <= entry.minimum <= entry.moved
        assert entry.ended is None or entry.began <= entry.ended
        for pause in entry.pauses:
            assert pause.least >= 0
            assert pause.most is None or pause.most >= pause.least
            assert pause.ended is None or pause.ended >= pause.began + pause.least
        for doubled in entry.doubled:
            assert doubled.began <= doubled.last
    assert all(entry.ended is not None for entry in entries[:-1])


# Lag


def test_a_lag_not_known_is_a_gap_and_so_is_the_sum() -> None:
    lags = Lags()
    lags.add(1, {Q[0]: 5, Q[1]: 7}, list(Q[:2]))
    lags.add(2, {Q[0]: 6}, list(Q[:2]))
    lags.add(3, {Q[0]: 0, Q[1]: 2}, list(Q[:2]))
    assert lags.of(Q[0]) == [(1, 5), (2, 6), (3, 0)]
    assert lags.of(Q[1]) == [(1, 7), (2, None), (3, 2)]
    assert lags.total() == [(1, 12), (2, None), (3, 2)]
    assert lags.span() == (1, 3)


def test_a_queue_that_came_later_has_no_lag_before() -> None:
    lags = Lags()
    lags.add(1, {Q[0]: 5}, [Q[0]])
    lags.add(2, {Q[0]: 5, Q[1]: 9}, list(Q[:2]))
    assert lags.of(Q[1]) == [(1, None), (2, 9)]
    assert lags.total() == [(1, 5), (2, 14)]
    assert lags.of(Q[3]) == [(1, None), (2, None)]


@given(
    st.lists(st.dictionaries(st.sampled_from(Q), st.integers(-5, 2**62)), max_size=20),
    st.integers(4, 40),
    st.integers(1, 9),
)
@settings(max_examples=100)
def test_lags_keep_the_newest_looks_within_their_bounds(
    looks: list[dict[MessageQueue, int]], cells: int, rows: int
) -> None:
    lags = Lags(most_cells=cells, most_rows=rows)
    for at, look in enumerate(looks):
        lags.add(at, look, list(Q))
    kept = min(len(looks), rows, cells // 4)
    for queue in Q:
        expected = [(at, look.get(queue)) for at, look in enumerate(looks)]
        assert lags.of(queue) == expected[len(looks) - kept :]


def test_lags_of_queues_long_gone_are_let_go() -> None:
    lags = Lags()
    for at in range(200):
        here = MessageQueue("t", "a", at)
        lags.add(at, {here: at, Q[0]: 1}, [here, Q[0]])
    assert lags.of(Q[0])[-1] == (199, 1)
    assert len(lags.of(Q[0])) == 200
    assert len(lags._columns) <= 70
