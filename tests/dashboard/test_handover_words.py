"""Hand-overs as the pages show them: modes, states, marks on the map, words."""

import re
from pathlib import Path

import msgspec

import pocketmq.dashboard.assignment
from pocketmq.admin.admin import Admin
from pocketmq.admin.explaining import explain
from pocketmq.admin.facts import GroupFacts
from pocketmq.dashboard import handover_words
from pocketmq.dashboard.assignment.queue_map import QueueMapData, patch
from pocketmq.dashboard.assignment.snapshots import GroupSnapshot, SnapshotTaker
from pocketmq.dashboard.assignment.summary_text import standing
from pocketmq.dashboard.pages.group_tables import queue_rows
from pocketmq.dashboard.views import GroupView
from pocketmq.model.group_balance import QueueStage
from tests.admin.test_findings import HEALTHY, QUEUES, info, view
from tests.admin.test_sticky_story import JAVA, A, B, facts, telling

BALANCED = facts({A: telling(*QUEUES[:2]), B: telling(*QUEUES[2:])})
HANDING_OVER = facts(
    {
        A: telling(*QUEUES[:3], q2=QueueStage.DRAINING, q0=QueueStage.FENCED),
        B: telling(*QUEUES[2:], q2=QueueStage.BEHIND_BARRIER),
    }
)


def looked(*looks: GroupFacts) -> GroupSnapshot:
    taker = SnapshotTaker(Admin(), "g")
    return [taker._digest(each, float(at)) for at, each in enumerate(looks, 1000)][-1]


def test_the_map_marks_the_most_urgent_state_of_each_queue() -> None:
    numbers = {stage: number for number, stage in enumerate(handover_words.STATES, 1)}
    picture = looked(HANDING_OVER).queue_map
    assert picture.stage == [
        numbers[QueueStage.FENCED], 0, numbers[QueueStage.BEHIND_BARRIER], 0,
    ]  # fmt: skip
    assert looked(BALANCED).queue_map.stage == [0, 0, 0, 0]
    assert looked(HEALTHY).queue_map.stage == []


def test_states_are_numbered_in_the_browser_as_here() -> None:
    here = Path(str(pocketmq.dashboard.assignment.__file__)).parent
    source = (here / "drawing" / "queues.js").read_text()
    [listed] = re.findall(r"STATES = \[(.*)\]", source)
    names = re.findall(r'"([^"]*)"', listed)
    assert names[0] == ""
    assert [{"being taken": "taking"}.get(name, name) for name in names[1:]] == [
        stage.value for stage in handover_words.STATES
    ]
    assert set(QueueStage) == {*handover_words.STATES, QueueStage.RUNNING}


def test_only_states_that_changed_are_sent() -> None:
    before, now = looked(BALANCED).queue_map, looked(BALANCED, HANDING_OVER).queue_map
    assert patch(before, now)["stage"] == [0, 1, 2, 3]
    assert patch(now, now) == {}
    plain = msgspec.structs.replace(before, stage=[])
    assert isinstance(plain, QueueMapData)
    assert "whole" in patch(plain, before)


def test_the_giver_of_a_queue_is_not_counted_as_a_second_owner() -> None:
    snapshot = looked(BALANCED, HANDING_OVER)
    assert standing(snapshot) == "Every queue has one owner, as STICKY assigns them."
    assert snapshot.rebalances == []


def test_a_group_on_its_way_says_how_many_queues_are_still_to_move() -> None:
    joined = facts({A: telling(*QUEUES), B: telling()})
    snapshot = looked(joined)
    assert standing(snapshot) == "Every queue has one owner; 2 queues are still to move."
    assert snapshot.moment.fits is None
    assert handover_words.mode_note(snapshot.story.sticky) == "2 to move"
    one = facts({A: telling(*QUEUES[:3]), B: telling(QUEUES[3])})
    assert standing(looked(one)) == "Every queue has one owner; 1 queue is still to move."


def test_a_rebalance_lasts_until_the_target_is_reached() -> None:
    alone = facts({A: telling(*QUEUES)})
    joined = facts({A: telling(*QUEUES), B: telling()})
    half = facts({A: telling(*QUEUES[:3]), B: telling(QUEUES[3])})
    [entry] = looked(alone, joined, half).rebalances
    assert (entry.ended, entry.moved) == (None, 1)
    target = {each.queue: each.expected for each in explain(half).queues}
    mine = [queue for queue in QUEUES if target[queue] == B]
    done = facts({A: telling(*[q for q in QUEUES if q not in mine]), B: telling(*mine)})
    [entry] = looked(alone, joined, half, done).rebalances
    assert (entry.ended is not None, entry.settled, entry.moved) == (True, True, 2)


def test_modes_in_words() -> None:
    assert (handover_words.mode_name(None), handover_words.mode_note(None)) == ("as in Java", "")
    balanced = explain(BALANCED).sticky
    assert (handover_words.mode_name(balanced), handover_words.mode_note(balanced)) == (
        "sticky",
        "balanced",
    )
    mixed = explain(
        facts({A: telling(*QUEUES[:2]), B: telling(QUEUES[2]), JAVA: info(QUEUES[3])})
    ).sticky
    assert mixed is not None
    assert handover_words.mode_name(mixed) == "mixed"
    assert handover_words.mode_words(mixed)[0].startswith(
        f"{JAVA} does not hand over and keeps what AVG assigns"
    )
    why = "no right Pub on topic POCKETMQ_BALANCE"
    degraded = explain(
        facts(
            {"c1": telling(*QUEUES[:2], mode="java", reason=why),
             "c2": telling(*QUEUES[2:], mode="java", reason=why)}
        )
    ).sticky  # fmt: skip
    assert degraded is not None
    assert handover_words.mode_words(degraded) == [
        "Queues change hands as in Java.",
        f"c1, c2: {why}",
    ]
    silent = explain(
        facts({A: telling(*QUEUES[:2])}, views={"a": view(A, B)}, silent={B: "timed out"})
    ).sticky
    assert handover_words.mode_note(silent) == "balance unknown"


def test_the_table_of_queues_names_states_with_their_members() -> None:
    rows = queue_rows(GroupView(HANDING_OVER, explain(HANDING_OVER)))
    assert handover_words.state_text(rows[2].stages) == f"draining ({A}), behind barrier ({B})"
    assert handover_words.state_of(rows[2].stages) is QueueStage.BEHIND_BARRIER
    assert handover_words.state_text(rows[1].stages) == ""
    assert handover_words.state_of({A: QueueStage.RUNNING}) is None
