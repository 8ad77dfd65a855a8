"""What is told of a group's health, from stories whose ends are known."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq import MessageQueue, RebalanceEvent
from pocketmq.balance.story.spans import overlaps, rest, total, union
from pocketmq.cli.pipeline.health import print_report
from pocketmq.errors import InvalidInput
from pocketmq.model.rebalance_event import Handover
from pocketmq.pipelines.health import (
    DeliveryRecord,
    GroupHealth,
    HealthReport,
    Observations,
    OffsetSample,
    QueueName,
    examine,
    read_events,
)
from pocketmq.pipelines.health.figures import Quantiles, quantiles
from pocketmq.pipelines.health.observed import AND_MORE, BadLine
from pocketmq.pipelines.health.page import page


def queues(*names: str) -> tuple[MessageQueue, ...]:
    """`a1` is queue 1 of broker a."""
    return tuple(MessageQueue("orders", name[0], int(name[1:])) for name in names)


ALL = ("a0", "a1", "b0", "b1")


def event(
    member: str,
    at: float,
    before: Sequence[str],
    after: Sequence[str],
    *,
    members: Iterable[str] = (),
    route: Sequence[str] = ALL,
    trigger: str = "timer",
    took: float = 0.0,
) -> RebalanceEvent:
    return RebalanceEvent(
        group="shop",
        client_id=member,
        topic="orders",
        strategy="AVG",
        trigger=trigger,
        started=at - took,
        carried_out=took,
        members=tuple(members) or None,
        queues=queues(*route),
        before=queues(*before),
        after=queues(*after),
        revoked=queues(*(name for name in before if name not in after)),
        assigned={f"{name[0]}:{name[1:]}": 0 for name in after if name not in before},
    )


def group(
    *events: RebalanceEvent, **more: list[OffsetSample] | list[DeliveryRecord]
) -> GroupHealth:
    report = examine(Observations(list(events), **more))  # type: ignore[arg-type]
    assert [one.group for one in report.groups] == ["shop"]
    return report.groups[0]


def story(health: GroupHealth, name: str) -> list[tuple[str, float, float, str]]:
    wanted = QueueName("orders", name[0], int(name[1:]))
    [queue] = [one for one in health.queues if one.queue == wanted]
    return [(one.member, one.since, one.until, one.ended) for one in queue.owners]


JOIN = (
    event("m1", 10.0, (), ALL, members=["m1"], trigger="start"),
    event("m2", 20.0, (), ("b0", "b1"), members=["m1", "m2"], trigger="start"),
    event("m1", 21.5, ALL, ("a0", "a1"), members=["m1", "m2"], trigger="members changed"),
    event("m1", 40.0, ("a0", "a1"), (), trigger="stop"),
)


def test_a_join_moves_queues_and_both_own_them_for_a_while() -> None:
    health = group(*JOIN)
    assert story(health, "a0") == [("m1", 10.0, 40.0, "stopped")]
    assert story(health, "b0") == [("m1", 10.0, 21.5, "released"), ("m2", 20.0, 40.0, "held")]
    assert [(str(m.queue), m.left, m.took, m.pause, m.overlap) for m in health.handovers] == [
        ("b:0", "m1", "m2", 0.0, 1.5),
        ("b:1", "m1", "m2", 0.0, 1.5),
    ]
    assert (health.shared_seconds, health.unowned_seconds) == (3.0, 0.0)
    assert health.duplicates is None


def test_what_happens_close_together_is_one_rebalance_of_the_group() -> None:
    first, second, third = group(*JOIN).rebalances
    assert (first.joined, first.first_taken, first.moved, first.minimum) == (["m1"], 4, 0, 0)
    assert (second.joined, second.moved, second.minimum) == (["m2"], 2, 2)
    assert (second.since, second.until, second.cause) == (20.0, 21.5, "m2 joined")
    assert (second.after.topics, second.after.group, second.after.unowned) == ({"orders": 0}, 0, 0)
    assert (third.left, third.after.unowned) == (["m1"], 2)


def test_a_rebalance_is_over_when_every_queue_has_one_owner() -> None:
    """The next one may follow within a second."""
    three = ["m1", "m2", "m3"]
    health = group(
        *JOIN[:2],
        event("m1", 20.9, ALL, ("a0", "a1"), members=["m1", "m2"]),
        event("m3", 21.9, (), ("b1",), members=three),
        event("m2", 23.0, ("b0", "b1"), ("b0",), members=three),
    )
    assert [(one.since, one.until, one.cause) for one in health.rebalances] == [
        (10.0, 10.0, "m1 joined"),
        (20.0, 20.9, "m2 joined"),
        (21.9, 23.0, "m3 joined"),
    ]


def test_more_moves_than_needed_are_counted_against_the_fewest() -> None:
    both = ["m1", "m2"]
    health = group(
        event("m1", 10.0, (), ("a0", "a1"), members=both),
        event("m2", 10.5, (), ("b0", "b1"), members=both),
        event("m1", 30.0, ("a0", "a1"), ("b0", "b1"), members=both),
        event("m2", 30.5, ("b0", "b1"), ("a0", "a1"), members=both),
    )
    assert (health.moved, health.minimum) == (4, 0)


def test_a_dead_member_owned_its_queues_until_its_last_sign_of_life() -> None:
    """Nobody says good-bye for it: the others' member lists tell."""
    both = ["m1", "m2"]
    events = (
        event("m1", 10.0, (), ("a0", "a1"), members=both),
        event("m2", 10.0, (), ("b0", "b1"), members=both),
        event("m1", 50.0, ("a0", "a1"), ALL, members=["m1"], trigger="members changed"),
    )
    given = DeliveryRecord(
        time=33.0, group="shop", client_id="m2", topic="orders", broker="b", queue=0, offset=7
    )
    health = group(*events, deliveries=[given])
    assert story(health, "b0") == [("m2", 10.0, 33.0, "died"), ("m1", 50.0, 50.0, "held")]
    assert story(health, "b1") == [("m2", 10.0, 33.0, "died"), ("m1", 50.0, 50.0, "held")]
    assert [(m.pause, m.died) for m in health.handovers] == [(17.0, True), (17.0, True)]
    assert health.longest_pause == 17.0
    assert health.rebalances[-1].cause == "m2 died"
    assert (health.moved, health.minimum) == (2, 2)


def test_a_death_that_left_no_sign_is_dated_when_the_others_knew() -> None:
    health = group(
        event("m1", 10.0, (), ("a0",), members=["m1", "m2"]),
        event("m2", 10.0, (), ("b0",), members=["m1", "m2"]),
        event("m1", 50.0, ("a0",), ("a0", "b0"), members=["m1"]),
    )
    assert story(health, "b0") == [("m2", 10.0, 50.0, "died"), ("m1", 50.0, 50.0, "held")]


def test_a_member_that_was_only_missing_from_a_list_has_owned_its_queues_throughout() -> None:
    health = group(
        event("m1", 10.0, (), ("a0", "a1"), members=["m1", "m2"]),
        event("m2", 11.0, (), ("b0", "b1"), members=["m1", "m2"]),
        event("m1", 20.0, ("a0", "a1"), ("a0", "a1"), members=["m1"]),
        event("m2", 30.0, ("b0", "b1"), ("b0", "b1"), members=["m1", "m2"]),
    )
    assert story(health, "b0") == [("m2", 11.0, 30.0, "held")]
    assert health.handovers == []


def test_a_member_whose_good_bye_comes_late_has_not_died() -> None:
    """The broker tells the others that it left before its own event is read."""
    health = group(
        event("m1", 10.0, (), ("a0",), members=["m1", "m2"]),
        event("m2", 10.0, (), ("b0",), members=["m1", "m2"]),
        event("m1", 50.0, ("a0",), ("a0", "b0"), members=["m1"]),
        event("m2", 50.2, ("b0",), (), trigger="stop"),
    )
    assert story(health, "b0") == [("m2", 10.0, 50.2, "stopped"), ("m1", 50.0, 50.2, "held")]


def test_queues_of_a_lost_broker_are_not_without_owner() -> None:
    health = group(
        event("m1", 10.0, (), ALL, members=["m1"]),
        event("m1", 20.0, ALL, ("a0", "a1"), members=["m1"], route=("a0", "a1")),
        event("m1", 35.0, ("a0", "a1"), ALL, members=["m1"], took=1.0),
    )
    [b0] = [queue for queue in health.queues if str(queue.queue) == "b:0"]
    assert b0.absent == [(20.0, 34.0)]
    assert b0.unowned == [(34.0, 35.0)]
    assert [one.cause for one in health.rebalances] == ["m1 joined", "b lost", "b came"]
    assert (health.moved, health.minimum) == (0, 0)


def test_messages_given_to_both_owners_are_duplicates_of_the_move() -> None:
    def given(member: str, time: float, offset: int) -> DeliveryRecord:
        return DeliveryRecord(
            time=time, group="shop", client_id=member, topic="orders", broker="b", queue=0,
            offset=offset,
        )  # fmt: skip

    deliveries = [
        given("m1", 19.0, 1), given("m1", 19.5, 2), given("m1", 20.5, 3),
        given("m2", 21.0, 2), given("m2", 21.1, 3), given("m2", 21.2, 4), given("m2", 21.3, 4),
    ]  # fmt: skip
    health = group(*JOIN, deliveries=deliveries)
    assert [move.duplicates for move in health.handovers] == [2, 0]
    assert (health.deliveries, health.duplicates) == (7, 3)


def test_a_queue_that_comes_back_soon_flaps() -> None:
    both = ["m1", "m2"]
    events = []
    for turn, at in enumerate((10.0, 20.0, 30.0, 200.0)):
        owner, other = ("m1", "m2") if turn % 2 == 0 else ("m2", "m1")
        events.append(event(other, at, ("a0",) if turn else (), (), members=both))
        events.append(event(owner, at + 0.5, (), ("a0",), members=both))
    assert [(move.took, move.at) for move in group(*events).flapping] == [("m1", 30.5)]


def sample(time: float, queue: int, committed: int | None, highest: int) -> OffsetSample:
    return OffsetSample(
        time=time, group="shop", topic="orders", broker="a", queue=queue,
        committed=committed, highest=highest,
    )  # fmt: skip


def test_lag_is_summed_over_queues_and_its_spikes_are_found() -> None:
    samples = [sample(float(t), q, 100 * t, 100 * t + 10) for t in range(10, 20) for q in (0, 1)]
    samples[8] = sample(14.0, 0, 0, 400)
    samples[10] = sample(15.0, 0, 100, 500)
    lag = group(*JOIN, offsets=samples).lag
    assert lag is not None
    assert (lag.median, lag.largest, lag.last) == (20, 410, 20)
    # while the second queue's sample of the same time is not in yet, the first one's counts
    [spike] = lag.spikes
    assert (spike.since, spike.until, spike.peak) == (14.0, 15.0, 410)


def test_a_group_without_offsets_lags_by_all_there_is() -> None:
    assert sample(1.0, 0, None, 42).lag == 42
    assert sample(1.0, 0, 50, 42).lag == 0


def test_what_is_no_event_is_kept_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(JOIN[0].to_json() + b"\n\n{}\n\xff\n" + JOIN[1].to_json())
    bad: list[BadLine] = []
    assert read_events(path, bad) == [JOIN[0], JOIN[1]]
    assert [line.where for line in bad] == ["events.jsonl line 3", "events.jsonl line 4"]
    assert "group" in bad[0].reason


def test_no_event_at_all_and_a_group_unknown_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no rebalance events found"):
        examine(Observations([]))
    with pytest.raises(InvalidInput, match="no rebalance events of group bills"):
        examine(Observations(list(JOIN)), groups=["bills"])
    with pytest.raises(InvalidInput, match="cannot read"):
        read_events(tmp_path / "none", [])


@pytest.mark.parametrize(
    ("lines", "unread"),
    [(b"hello\n", "1 line"), (b"hello\n" * 1200, "1,200 lines")],
)
def test_a_file_of_something_else_is_told_by_its_first_line(
    lines: bytes, unread: str, tmp_path: Path
) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(lines)
    bad: list[BadLine] = []
    observed = Observations(read_events(path, bad), bad=bad)
    told = f"{unread} could not be read, first: events.jsonl line 1: JSON is malformed"
    for groups in ([], ["shop"]):
        with pytest.raises(InvalidInput, match=f"no rebalance events.*; {told}"):
            examine(observed, groups=groups)


def test_bad_lines_that_are_not_listed_are_not_counted_as_one() -> None:
    bad = [BadLine("t a:0 offset 0", "odd"), BadLine(AND_MORE, "7 more")]
    with pytest.raises(InvalidInput, match="more than 1 lines could not be read, first: t a:0"):
        examine(Observations([], bad=bad))


def test_a_report_is_json() -> None:
    report = examine(Observations(list(JOIN)))
    plain = msgspec.json.decode(msgspec.json.encode(report))
    assert plain["groups"][0]["group"] == "shop"
    assert plain["groups"][0]["rebalances"][1]["moved"] == 2


spans = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 30)).map(
        lambda pair: (float(min(pair)), float(max(pair)))
    )
)


@given(spans)
def test_spans_add_up_second_by_second(some: list[tuple[float, float]]) -> None:
    held = [sum(a <= second < b for a, b in some) for second in range(30)]
    assert total(union(some)) == sum(count > 0 for count in held)
    assert total(rest((0.0, 30.0), some)) == sum(count == 0 for count in held)
    assert total(overlaps(some)) == sum(count > 1 for count in held)


M1, M2, FAR = "10.0.0.1@1@pm1", "10.0.0.1@2@pm1", "10.0.0.2@1@pm1"


def sticky(member: str, at: float, after: Sequence[str], *records: Handover) -> RebalanceEvent:
    """Return an event of version 2, written by its own encoder."""
    plain = event(member, at, (), after, took=0.05)
    told = msgspec.structs.replace(plain, strategy="STICKY", mode="sticky", handovers=records)
    return RebalanceEvent.from_json(told.to_json())


def part(name: str, kind: str = "overlap", heir: str | None = M2, **told: float) -> Handover:
    [queue] = queues(name)
    return Handover(queue=queue, kind=kind, giver=M1, heir=heir, offset=5, **told)


HANDED_OVER = (
    sticky(M1, 10.0, ALL),
    sticky(M2, 20.0, ("b0",), part("b0", started=20.008)),
    sticky(M1, 20.0, ("a0", "a1", "b1"), part("b0", stopped=20.0, drained=20.3)),
    sticky(FAR, 30.0, ("b1",), part("b1", heir=FAR, started=29.97)),
    sticky(M1, 30.0, ("a0", "a1"), part("b1", heir=FAR, stopped=30.0)),
    sticky(M1, 40.0, ("a0",), part("a1", "lost", heir=None, stopped=40.0)),
)


def test_hand_overs_are_counted_by_kind_with_the_time_without_owner() -> None:
    health = group(*HANDED_OVER)
    figures = health.figures
    assert health.modes == ["sticky"]
    assert figures.kinds == {"lost": 1, "overlap": 2}
    assert figures.lost == 1
    assert figures.without_owner is not None
    assert figures.without_owner.count == 2
    assert figures.without_owner.p50 == 0.0
    assert figures.without_owner.p99 == pytest.approx(0.008)
    assert figures.by_kind == {"overlap": figures.without_owner}
    assert figures.draining is not None
    assert figures.draining.longest == pytest.approx(0.3)
    first, second = health.handovers
    assert (first.left, first.took, first.kind, first.offset) == (M1, M2, "overlap", 5)
    assert first.overlap == 0.0
    assert second.overlap == pytest.approx(0.03)


def test_two_owners_between_machines_are_counted_and_called_doubtful() -> None:
    figures = group(*HANDED_OVER).figures
    assert figures.two_owners == pytest.approx(0.03)
    assert figures.doubtful == pytest.approx(0.03)
    near = [
        RebalanceEvent.from_json(each.to_json().replace(FAR.encode(), b"10.0.0.1@9@pm1"))
        for each in HANDED_OVER
    ]
    figures = group(*near).figures
    assert figures.two_owners == pytest.approx(0.03)
    assert figures.doubtful == 0.0


def test_events_of_both_versions_stand_side_by_side() -> None:
    old = [msgspec.json.decode(each.to_json()) for each in JOIN]
    for each in old:
        for name in ("mode", "handovers", "moved", "minimum"):
            del each[name]
        each["version"] = 1
    plain = [RebalanceEvent.from_json(msgspec.json.encode(each)) for each in old]
    health = group(*plain)
    assert health == group(*JOIN)
    assert (health.modes, health.figures.kinds, health.figures.by_kind) == (["java"], {}, {})
    assert health.figures.without_owner is not None
    both = group(*plain, *[msgspec.structs.replace(e, started=e.started + 90) for e in HANDED_OVER])
    assert both.modes == ["java", "sticky"]


def test_a_queue_at_a_foreign_member_is_not_without_owner() -> None:
    away = sticky(M1, 20.0, ("a0", "a1", "b0"), part("b1", "foreign", heir=None, stopped=20.0))
    [queue] = queues("b1")
    record = Handover(queue=queue, kind="foreign", heir=M1, offset=9, started=25.0)
    health = group(sticky(M1, 10.0, ALL), away, sticky(M1, 25.0, ALL, record))
    [away_queue] = [one for one in health.queues if one.untold]
    assert away_queue.untold == [(20.0, 25.0)]
    assert away_queue.unowned == [(9.95, 10.0)]  # while its first owner started
    assert health.figures.kinds == {"foreign": 2}
    assert "b:1 with a foreign member for 5 s" in page(HealthReport([health], []))


def test_quantiles_are_by_nearest_rank() -> None:
    found = quantiles([float(n) for n in range(200, 0, -1)])
    assert found == Quantiles(200, 100.0, 198.0, 200.0)
    assert quantiles([3.0]) == Quantiles(1, 3.0, 3.0, 3.0)
    assert quantiles([]) is None


def test_the_page_shows_hand_overs_by_kind_and_doubts_clocks() -> None:
    html = page(examine(Observations(list(HANDED_OVER))))
    assert "Hand-overs by kind" in html
    assert f"{M1} → {M2}" in html
    assert "mode sticky" in html
    assert "their clocks may differ" in html
    assert "queues lost to a refused lock" in html
    plain = page(examine(Observations(list(JOIN))))
    assert "Hand-overs by kind" not in plain
    assert "mode java" not in plain


def test_the_command_prints_how_queues_changed_hands(capsys: pytest.CaptureFixture[str]) -> None:
    print_report(examine(Observations(list(HANDED_OVER))))
    printed = " ".join(capsys.readouterr().out.split())
    for words in (
        "mode sticky",
        "hand-overs 1 lost, 2 overlap",
        "without owner, a moved queue p50 0 ms, p99 8 ms",
        "two owners, uncertain 0.03 s of it between machines, whose clocks may differ",
        "drain time of previous owners p50 300 ms, p99 300 ms",
    ):
        assert words in printed


def test_the_page_stands_alone_and_shows_names_as_they_are() -> None:
    """Nothing is fetched, and no name of a member or queue becomes markup."""
    from xml.etree import ElementTree as ET

    from pocketmq.pipelines.health.page import page

    odd = '<script>alert("1")</script>&'
    both = ["m1", odd]
    events = [
        event("m1", 10.0, (), ALL, members=["m1"], trigger="start"),
        event(odd, 20.0, (), ("b0", "b1"), members=both, trigger="start"),
        event("m1", 21.5, ALL, ("a0", "a1"), members=both),
        event("m1", 60.0, ("a0", "a1"), ("a0",), members=both, route=("a0", "b0", "b1")),
    ]
    offsets = [sample(float(t), q, 100 * t, 100 * t + 10) for t in range(10, 60) for q in (0, 1)]
    offsets[40] = sample(30.0, 0, 0, 5000)
    text = page(examine(Observations(events, offsets, [])))
    assert "<script" not in text
    assert "http" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "url(" not in text
    assert "@import" not in text
    plots = [f"<svg{part.split('</svg>')[0]}</svg>" for part in text.split("<svg")[1:]]
    assert len(plots) == 3
    for plot in plots:
        ET.fromstring(plot)
    assert plots[0].count('class="shared"') == 2
    assert "b:0 with two owners for 1.5 s" in plots[0]
    assert "spike of 5,010 messages" in plots[1]
    assert "2 moved" in plots[2]
