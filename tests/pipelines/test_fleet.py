"""The estate's numbers are those of `pocketmq.balance`, group by group."""

import json
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq import ClientOptions, Cluster, PushConsumer
from pocketmq.balance import allocation
from pocketmq.balance.sticky import Sticky, assign, minimum_moves
from pocketmq.balance.what_if import (
    BrokerAdded,
    BrokerDown,
    Event,
    MemberJoined,
    MemberLeft,
    QueuesAdded,
    Situation,
    StrategyChanged,
    owners_in,
    what_if,
)
from pocketmq.errors import InvalidInput
from pocketmq.model import MessageQueue
from pocketmq.pipelines.fleet import (
    AddBroker,
    AddQueues,
    Estate,
    FleetEvent,
    Group,
    Join,
    Leave,
    LoseBroker,
    SwitchTo,
    cluster_estate,
    fleet,
    read_estate,
    uniform_estate,
)
from pocketmq.pipelines.fleet.part import measure
from pocketmq.pipelines.fleet.ring import Rings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STRATEGIES: list[allocation.Strategy] = [
    allocation.Average(),
    allocation.AverageByCircle(),
    allocation.ConsistentHash(),
    allocation.ConsistentHash(virtual_nodes=3),
    allocation.ConsistentHash(virtual_nodes=0),
    allocation.MachineRoom(frozenset({"r1"})),
    allocation.MachineRoomNearby(allocation.Average(), allocation.RoomInName()),
    allocation.MachineRoomNearby(allocation.ConsistentHash(2), allocation.RoomInName()),
    Sticky(),
]
BROKERS = ["r1@a", "r1@b", "r2@c", "r3@\U0001f40d"]
MEMBERS = [f"r{n % 2 + 1}@m{n}" for n in range(9)] + ["r1@é", "r2@\U0001f40d"]

topics = st.dictionaries(
    st.sampled_from(["orders", "bills", "é", "t4"]),
    st.dictionaries(st.sampled_from(BROKERS), st.integers(0, 5), max_size=4),
    min_size=1,
)
events = st.lists(
    st.one_of(
        st.builds(Join, st.sampled_from(["r1@zz", "r2@m20", "r1@0"])),
        st.builds(Leave, st.sampled_from([1, 2, -1, 7, "r1@m2"])),
        st.builds(LoseBroker, st.sampled_from(BROKERS)),
        st.builds(AddBroker, st.just("r1@new"), st.integers(1, 4)),
        st.builds(AddQueues, st.integers(1, 3), st.just("orders"), st.sampled_from(BROKERS)),
        st.builds(SwitchTo, st.sampled_from(STRATEGIES)),
    ),
    max_size=4,
)


@st.composite
def estates(draw: st.DrawFn) -> Estate:
    layout = draw(topics)
    groups = draw(
        st.lists(
            st.builds(
                Group,
                st.lists(st.sampled_from(sorted(layout)), min_size=1, unique=True).map(tuple),
                # ids may repeat, as brokers allow
                st.lists(st.sampled_from(MEMBERS), max_size=8).map(tuple),
            ),
            min_size=1,
            max_size=5,
        )
    )
    return Estate(layout, {f"g{n}": group for n, group in enumerate(groups)})


def plain_events(situation: Situation, event: FleetEvent) -> list[Event]:
    """Translate an event of the fleet into the words of `pocketmq.balance`, as far as it befalls this group."""
    match event:
        case Join(member):
            return [] if member in situation.members else [MemberJoined(member)]
        case Leave(which):
            members = situation.members
            if isinstance(which, str):
                return [MemberLeft(which)] if which in members else []
            at = which - 1 if which > 0 else len(members) + which
            return [MemberLeft(members[at])] if 0 <= at < len(members) else []
        case LoseBroker(broker):
            return [BrokerDown(broker)] if broker in situation.brokers() else []
        case AddBroker(broker, queues):
            return [BrokerAdded(broker, dict.fromkeys(situation.topics, queues))]
        case AddQueues(count, topic, broker):
            assert topic is not None
            assert broker is not None
            if topic not in situation.topics:
                return []
            if broker not in situation.brokers():
                return [BrokerAdded(broker, {topic: count})]
            return [QueuesAdded(topic, broker, count)]
        case SwitchTo(strategy):
            return [StrategyChanged(strategy)]


def numbers_alone(
    estate: Estate, name: str, strategy: allocation.Strategy, happening: list[FleetEvent]
) -> list[tuple[int, ...]]:
    """Compute one group's numbers by the rules themselves, from the owners before each event."""
    group = estate.groups[name]
    queues = {
        topic: [
            MessageQueue(topic, broker, number)
            for broker, count in estate.topics[topic].items()
            for number in range(count)
        ]
        for topic in group.topics
    }
    situation = Situation.of(queues, group.member_ids(), strategy, name)
    result: list[tuple[int, ...]] = []
    answer = what_if(situation)
    for event in (None, *happening):
        moved = minimum = added = removed = 0
        if event is not None:
            plain = plain_events(situation, event)
            answer = what_if(situation, plain)
            for one in plain:
                situation = one.apply(situation)
            change = answer.overall
            moved, minimum = change.moved, change.minimum
            added, removed = len(change.added), len(change.removed)
        now = answer.steps[-1].after if answer.steps else answer.before
        previous = {queue: share.member for share in now.shares for queue in share.queues}
        situation = msgspec.structs.replace(situation, previous=previous)
        count = sum(topic.queues for topic in now.topics)
        topic_spread = max(topic.spread for topic in now.topics)
        unowned = len(now.unowned)
        result.append((count, unowned, now.spread, topic_spread, moved, minimum, added, removed))
    return result


def possible(estate: Estate, happening: list[FleetEvent]) -> list[FleetEvent]:
    """Leave out what the estate would refuse."""
    brokers = {b for layout in estate.topics.values() for b, n in layout.items() if n}
    kept: list[FleetEvent] = []
    for event in happening:
        if isinstance(event, LoseBroker):
            if event.broker not in brokers:
                continue
            brokers.discard(event.broker)
        elif isinstance(event, AddBroker):
            if event.broker in brokers:
                continue
            brokers.add(event.broker)
        elif isinstance(event, AddQueues) and (
            event.topic not in estate.topics or event.broker not in brokers
        ):
            continue
        kept.append(event)
    return kept


@settings(max_examples=150)
@given(estate=estates(), happening=events, strategy=st.sampled_from(STRATEGIES))
def test_every_group_gets_the_numbers_it_gets_alone(
    estate: Estate, happening: list[FleetEvent], strategy: allocation.Strategy
) -> None:
    happening = possible(estate, happening)
    stories = measure(estate, strategy, happening)
    for name, story in zip(estate.groups, stories, strict=True):
        assert story == numbers_alone(estate, name, strategy, happening)


def test_sticky_goes_from_owner_to_owner_through_a_fleet_of_events() -> None:
    """Each event starts from the owners that the one before left, also where it means several."""
    members = ("c1", "c2", "c3", "c4")
    estate = Estate({"t": {"a": 5, "b": 6}, "u": {"a": 3}}, {"g": Group(("t", "u"), members)})
    happening: list[FleetEvent] = [Join("c0"), AddQueues(2), Leave("c2"), LoseBroker("b")]
    queues = [MessageQueue("t", "a", n) for n in range(5)]
    queues += [MessageQueue("t", "b", n) for n in range(6)]
    queues += [MessageQueue("u", "a", n) for n in range(3)]
    more = [MessageQueue("t", "a", n) for n in (5, 6)] + [MessageQueue("t", "b", n) for n in (6, 7)]
    more += [MessageQueue("u", "a", n) for n in (3, 4)]
    kept = [queue for queue in queues + more if queue.broker_name == "a"]
    changes = [
        (queues, ["c0", *members]),
        (queues + more, ["c0", *members]),
        (queues + more, ["c0", "c1", "c3", "c4"]),
        (kept, ["c0", "c1", "c3", "c4"]),
    ]
    owners = assign(by_topic(queues), members, {})
    expected = []
    for now, present in changes:
        topics = by_topic(now)
        fewest, before = minimum_moves(topics, present, owners), owners
        owners = assign(topics, present, before)
        assert sum(before.get(queue, owner) != owner for queue, owner in owners.items()) == fewest
        expected.append((fewest, fewest))
    [story] = measure(estate, Sticky(), happening)
    assert [(numbers.moved, numbers.minimum) for numbers in story[1:]] == expected
    assert all(max(numbers.spread, numbers.topic_spread) <= 1 for numbers in story)


def by_topic(queues: list[MessageQueue]) -> dict[str, list[MessageQueue]]:
    return {topic: [queue for queue in queues if queue.topic == topic] for topic in ("t", "u")}


def test_the_estate_shows_what_sticky_saves() -> None:
    estate = uniform_estate(groups=50, queues=16, members=5)
    happening: list[FleetEvent] = [Join("0"), Leave(1), LoseBroker("broker-2")]
    average, sticky = fleet(estate, [allocation.Average(), Sticky()], happening).strategies
    assert average.moved > average.minimum
    assert sticky.moved == sticky.minimum <= average.minimum
    assert {step.strategy for step in sticky.steps} == {"STICKY"}
    assert all(step.uneven == 0 for step in sticky.steps)
    assert not any(worst.moved > worst.minimum for step in sticky.steps for worst in step.worst)


member_lists = st.lists(st.text(min_size=1, max_size=70), max_size=6)
situations = st.lists(
    st.builds(
        lambda queues, members, strategy: Situation.of(
            {topic: [MessageQueue(topic, "b", n) for n in range(count)] for topic, count in queues},
            members,
            strategy,
        ),
        st.lists(st.tuples(st.text(max_size=90), st.integers(0, 4)), max_size=3, unique_by=lambda t: t[0]),
        member_lists,
        st.just(allocation.ConsistentHash(4)),
    ),
    min_size=1,
    max_size=6,
)  # fmt: skip


@settings(max_examples=100)
@given(first=situations, second=situations)
def test_rings_of_many_groups_have_the_owners_that_the_rule_gives(
    first: list[Situation], second: list[Situation]
) -> None:
    rings = Rings.of(allocation.ConsistentHash(4))
    assert rings is not None
    for some in (first, second):  # the second time most positions are known
        assert rings.owners_in(some) == [owners_in(situation) for situation in some]


def test_positions_that_meet_on_the_ring_are_left_to_the_rule() -> None:
    """Two of these members have a virtual node at the same place: 32 bits are soon used twice."""
    seen: dict[int, str] = {}
    number = 0
    while True:
        name = f"m{number}"
        place = allocation.md5_hash(f"{name}-0")
        if place in seen:
            break
        seen[place] = name
        number += 1
    estate = Estate({"t": {"a": 64}}, {"g": Group(("t",), (name, seen[place], "other"))})
    strategy = allocation.ConsistentHash(virtual_nodes=1)
    [story] = measure(estate, strategy, [])
    assert story == numbers_alone(estate, "g", strategy, [])


def test_an_estate_in_many_parts_adds_up() -> None:
    estate = uniform_estate(groups=2500, queues=6, members=4)
    told: list[int] = []
    report = fleet(
        estate, [allocation.Average()], [Leave(1), LoseBroker("broker-0")], progress=told.append
    )
    assert (report.groups, report.members, report.pairs) == (2500, 10_000, 2500)
    assert told == [1024, 2048, 2500]
    start, left, lost = report.strategies[0].steps
    assert (start.queues, start.moved, start.largest_spread) == (15_000, 0, 1)
    # 2,2,1,1 -> 2,2,2 : all but the block's shift stays; each group alone says the same
    alone = numbers_alone(
        estate, "group-7", allocation.Average(), [Leave(1), LoseBroker("broker-0")]
    )
    assert (left.moved, left.minimum) == (2500 * alone[1][4], 2500 * alone[1][5])
    assert (lost.removed, lost.queues) == (2500 * 2, 2500 * 4)


def test_details_hold_every_group(tmp_path: Path) -> None:
    from pyarrow import parquet

    estate = uniform_estate(groups=1100, queues=8, members=3)
    fleet(
        estate, [allocation.Average(), allocation.ConsistentHash()], [Join("zz")], details=tmp_path
    )
    table = parquet.read_table(tmp_path)
    assert table.num_rows == 1100 * 2 * 2
    assert set(table.column("strategy").to_pylist()) == {"AVG", "CONSISTENT_HASH"}
    assert sum(table.column("queues").to_pylist()) == 1100 * 2 * 2 * 8


JSON = {
    "topics": {"orders": {"a": 4, "b": 4}, "bills": {"a": 2}},
    "groups": {
        "shop": {"topics": ["orders", "bills"], "members": ["x", "y"]},
        "audit": {"topics": ["bills"], "members": 3},
    },
}


def test_an_estate_is_read_from_json(tmp_path: Path) -> None:
    path = tmp_path / "estate.json"
    path.write_text(json.dumps(JSON))
    estate = read_estate(path)
    assert estate.groups["audit"].member_ids() == ("c1", "c2", "c3")
    assert estate.topics == JSON["topics"]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_an_estate_is_read_from_tables(tmp_path: Path, suffix: str) -> None:
    import pyarrow as pa
    from pyarrow import csv, parquet

    tables: dict[str, dict[str, list[Any]]] = {
        "topics": {"topic": ["orders", "orders", "7"], "broker": ["a", "b", "a"], "queues": [4, 4, 2]},
        "subscriptions": {"group": ["shop", "shop", "audit"], "topic": ["orders", "7", "7"]},
        "members": {"group": ["shop", "shop"], "member": ["1", "2"]},
    }  # fmt: skip
    for name, columns in tables.items():
        path = tmp_path / f"{name}.{suffix}"
        if suffix == "csv":
            csv.write_csv(pa.table(columns), path)
        elif suffix == "parquet":
            parquet.write_table(pa.table(columns), path)
        else:
            rows = [
                dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
            ]
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read_estate(tmp_path) == Estate(
        {"orders": {"a": 4, "b": 4}, "7": {"a": 2}},
        {"shop": Group(("orders", "7"), ("1", "2")), "audit": Group(("7",), ())},
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not a groups file"),
        ('{"topics": {}, "groups": {}}', "the groups file has no groups"),
        ('{"topics": {}, "groups": {"g": {"topics": ["t"], "members": 1}}}', "t, which is not"),
        ('{"topics": {"t": {"a": -1}}, "groups": {}}', "is not a groups file"),
        ('{"topics": {"t": {}}, "groups": {"g": {"topics": ["t"], "members": [""]}}}', "length"),
        ('{"topics": {"t": {}}, "groups": {"g": {"topics": [], "members": 1}}}', "no topic"),
        ('{"topics": {"t": {}}, "groups": {"g": {"topics": ["t", "t"], "members": 1}}}', "twice"),
    ],
)
def test_what_is_no_estate_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "estate.json"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=message):
        read_estate(path)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (LoseBroker("z"), "no topic has queues on broker z"),
        (AddBroker("a", 2), "broker a has queues already"),
        (AddBroker("n", 0), "at least 1 queue"),
        (AddQueues(0), "cannot add 0 queues"),
        (AddQueues(1, "none"), "no topic none"),
        (AddQueues(1, None, "z"), "no topic has queues on broker z"),
        (Join(""), "empty"),
        (Leave(0), "counted from 1"),
    ],
)
def test_events_that_cannot_happen_are_refused(event: FleetEvent, message: str) -> None:
    estate = Estate({"t": {"a": 4}}, {"g": Group(("t",), ("c",))})
    with pytest.raises(InvalidInput, match=message):
        fleet(estate, [allocation.Average()], [event])


def test_the_estate_of_a_running_cluster(cluster: Cluster) -> None:
    cluster.create_topic("live-orders", queues=3)
    with pytest.raises(InvalidInput, match="no group of the cluster has a member"):
        cluster_estate(cluster.address)
    named = ClientOptions(client_ip="m1", instance_name="live")
    with PushConsumer(cluster.address, group="live-billing", options=named) as consumer:
        consumer.subscribe("live-orders", "*", lambda _: None)
        deadline = monotonic() + 60
        while True:
            try:
                estate, missing = cluster_estate(cluster.address)
                break
            except InvalidInput:
                assert monotonic() < deadline
    assert missing == []
    assert estate == Estate(
        {"live-orders": {"broker-0": 3, "broker-1": 3}},
        {"live-billing": Group(("live-orders",), ("m1@live",))},
    )


def test_spark_computes_the_same(spark: "SparkSession") -> None:
    estate = uniform_estate(groups=2100, queues=6, members=4)
    here, there = (
        fleet(
            estate,
            [allocation.Average(), allocation.ConsistentHash(), Sticky()],
            [Leave(-1), Join("zz"), LoseBroker("broker-1"), SwitchTo(Sticky())],
            spark=session,
        )
        for session in (None, spark)
    )
    assert msgspec.structs.replace(there, seconds=here.seconds) == here
    assert there.strategies[2].moved == there.strategies[2].minimum > 0
