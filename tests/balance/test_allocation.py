"""Allocation strategies on cases small enough to check by eye."""

import pickle

import pytest

from pocketmq.balance import allocation
from pocketmq.balance.strategies import STRATEGY_NAMES, strategy_by_name
from pocketmq.errors import AllocationInputInvalid, StrategyUnknown
from pocketmq.model import MessageQueue

ABC = ["192.168.0.1@c1", "192.168.0.2@c2", "192.168.0.3@c3"]
ROOMS = allocation.MachineRoomNearby(allocation.Average(), allocation.RoomInName("-"))
GUARDED: list[allocation.Strategy] = [
    allocation.Average(),
    allocation.AverageByCircle(),
    allocation.ConsistentHash(),
    allocation.MachineRoom(frozenset({"room1"})),
    ROOMS,
    allocation.OwnRule("mine", lambda _group, _member, queues, _members: queues),
]


def queues_on(broker: str, count: int, topic: str = "TopicA") -> list[MessageQueue]:
    return [MessageQueue(topic, broker, number) for number in range(count)]


def numbers(strategy: allocation.Strategy, count: int, members: list[str]) -> list[list[int]]:
    queues = queues_on("broker-a", count)
    return [
        [queue.queue_id for queue in allocation.allocate(strategy, "g", member, queues, members)]
        for member in members
    ]


@pytest.mark.parametrize(
    ("strategy", "count", "members", "shares"),
    [
        (allocation.Average(), 8, ABC, [[0, 1, 2], [3, 4, 5], [6, 7]]),
        (allocation.AverageByCircle(), 8, ABC, [[0, 3, 6], [1, 4, 7], [2, 5]]),
        (allocation.ConsistentHash(), 8, ABC, [[0, 2, 3, 5, 6], [7], [1, 4]]),
        (allocation.Average(), 2, ABC, [[0], [1], []]),
        (allocation.AverageByCircle(), 2, ABC, [[0], [1], []]),
        (allocation.ConsistentHash(), 2, ABC, [[0], [], [1]]),
        (allocation.Average(), 3, ABC, [[0], [1], [2]]),
        (allocation.Average(), 10, list("abcd"), [[0, 1, 2], [3, 4, 5], [6, 7], [8, 9]]),
        (allocation.ConsistentHash(), 10, list("abcd"), [[0, 1], [4, 5, 6, 9], [3], [2, 7, 8]]),
        (allocation.ConsistentHash(virtual_nodes=0), 4, ABC, [[], [], []]),
    ],
)
def test_every_member_gets_the_share_java_gives_it(
    strategy: allocation.Strategy, count: int, members: list[str], shares: list[list[int]]
) -> None:
    assert numbers(strategy, count, members) == shares


def test_ring_positions_are_those_of_java() -> None:
    assert allocation.md5_hash("192.168.0.1@c1-0") == 729287814
    assert allocation.md5_hash(MessageQueue("TopicA", "broker-a", 0).java_text()) == 1888944553


def test_half_a_surrogate_pair_hashes_as_the_question_mark_java_writes_for_it() -> None:
    assert allocation.md5_hash("a\ud83db") == allocation.md5_hash("a?b")
    assert allocation.md5_hash("a\ud83d\ude00b") == allocation.md5_hash("a\N{GRINNING FACE}b")


def test_a_queue_exactly_on_a_node_belongs_to_it_and_the_last_wraps_to_the_first() -> None:
    places = {"a-0": 100, "b-0": 200}
    for position, owner in [(100, "a"), (101, "b"), (200, "b"), (201, "a"), (-5, "a")]:
        places[MessageQueue("TopicA", "broker-a", 0).java_text()] = position
        ring = allocation.ConsistentHash(virtual_nodes=1, hash_function=places.copy().__getitem__)
        assert ring.allocate_all(queues_on("broker-a", 1), ["a", "b"]) == [owner]


def test_the_later_member_takes_a_place_two_members_hash_to() -> None:
    ring = allocation.ConsistentHash(virtual_nodes=3, hash_function=lambda _key: 7)
    assert ring.allocate_all(queues_on("b", 2), ["x", "y"]) == ["y", "y"]


def test_a_member_listed_again_numbers_its_nodes_on_from_those_it_still_has() -> None:
    """Here one of its two nodes is lost to the other, so the next number is 1, not 2."""
    places = {"a-0": 10, "a-1": 10, "a-2": 30, "b-0": 20, "b-1": 40}
    places |= {queue.java_text(): 25 + queue.queue_id * 10 for queue in queues_on("x", 2)}
    ring = allocation.ConsistentHash(virtual_nodes=2, hash_function=places.__getitem__)
    assert ring.allocate_all(queues_on("x", 2), ["a", "a", "b"]) == ["a", "b"]


def test_a_member_cannot_have_fewer_than_no_virtual_nodes() -> None:
    with pytest.raises(AllocationInputInvalid, match="virtual_nodes must be 0 or more, not -1"):
        allocation.ConsistentHash(virtual_nodes=-1)


def test_machine_room_shares_only_queues_of_its_rooms() -> None:
    queues = [*queues_on("room0@b0", 4), *queues_on("room1@b1", 5)]
    strategy = allocation.MachineRoom(frozenset({"room1"}))
    shares = {
        member: [
            (queue.broker_name, queue.queue_id)
            for queue in allocation.allocate(strategy, "g", member, queues, ["c1", "c2"])
        ]
        for member in ("c1", "c2")
    }
    assert shares == {
        "c1": [("room1@b1", 0), ("room1@b1", 1), ("room1@b1", 4)],
        "c2": [("room1@b1", 2), ("room1@b1", 3)],
    }


@pytest.mark.parametrize("broker", ["room1", "room1@", "@room1", "room1@x@y", "@", ""])
def test_machine_room_wants_exactly_one_room_and_one_name(broker: str) -> None:
    strategy = allocation.MachineRoom(frozenset({"room1"}))
    assert strategy.allocate_all(queues_on(broker, 1), ["c1"]) == [None]


def test_nearby_keeps_queues_in_their_room_and_shares_rooms_without_members() -> None:
    queues = [*queues_on("r1-b", 4), *queues_on("r2-b", 4), *queues_on("r3-b", 3)]
    members = ["r1-c1", "r1-c2", "r2-c1"]
    shares = {
        member: [
            (queue.broker_name, queue.queue_id)
            for queue in allocation.allocate(ROOMS, "g", member, queues, members)
        ]
        for member in members
    }
    assert shares == {
        "r1-c1": [("r1-b", 0), ("r1-b", 1), ("r3-b", 0)],
        "r1-c2": [("r1-b", 2), ("r1-b", 3), ("r3-b", 1)],
        "r2-c1": [("r2-b", 0), ("r2-b", 1), ("r2-b", 2), ("r2-b", 3), ("r3-b", 2)],
    }


def test_one_unknown_room_stops_the_whole_allocation() -> None:
    table = allocation.RoomTable(brokers={"a": "r1"}, members={"c1": "r1", "c2": ""})
    strategy = allocation.MachineRoomNearby(allocation.Average(), table)
    with pytest.raises(AllocationInputInvalid, match="room of broker b is unknown"):
        allocation.allocate(strategy, "g", "c1", [*queues_on("a", 1), *queues_on("b", 1)], ["c1"])
    with pytest.raises(AllocationInputInvalid, match="room of member c2 is unknown"):
        allocation.allocate(strategy, "g", "c1", queues_on("a", 1), ["c1", "c2"])
    assert strategy.allocate_all(queues_on("a", 1), ["c1"]) == ["c1"]


@pytest.mark.parametrize("strategy", GUARDED, ids=lambda strategy: strategy.name)
def test_empty_input_is_refused_as_java_refuses_it(strategy: allocation.Strategy) -> None:
    queues = queues_on("room1-b@x", 2)
    for member, some_queues, members, reason in [
        ("", queues, ["room1-c"], "the member id must not be empty"),
        ("", [], [], "the member id must not be empty"),
        ("room1-c", [], ["room1-c"], "there are no queues"),
        ("room1-c", queues, [], "there are no members"),
    ]:
        with pytest.raises(AllocationInputInvalid) as caught:
            allocation.allocate(strategy, "g", member, some_queues, members)
        assert caught.value.reason == reason
    with pytest.raises(AllocationInputInvalid, match="there are no queues"):
        strategy.allocate_all([], ["room1-c"])
    with pytest.raises(AllocationInputInvalid, match="there are no members"):
        strategy.allocate_all(queues, [])


@pytest.mark.parametrize("strategy", GUARDED, ids=lambda strategy: strategy.name)
def test_a_member_that_is_not_listed_gets_nothing_and_the_caller_is_told(
    strategy: allocation.Strategy,
) -> None:
    warnings: list[allocation.MemberUnknown] = []
    queues = queues_on("room1-b@x", 2)
    share = allocation.allocate(strategy, "g", "room1-z", queues, ["room1-c"], warn=warnings.append)
    assert share == []
    assert warnings == [allocation.MemberUnknown("g", "room1-z", ("room1-c",))]
    assert str(warnings[0]) == (
        "group g: member room1-z is not among the 1 members the broker lists, so it gets no queues"
    )


def test_a_listed_member_with_an_empty_share_is_no_reason_to_warn() -> None:
    warnings: list[allocation.MemberUnknown] = []
    assert (
        allocation.allocate(
            allocation.Average(), "g", "b", queues_on("x", 1), ["a", "b"], warn=warnings.append
        )
        == []
    )
    assert warnings == []


def test_a_repeated_member_id_leaves_the_queues_of_its_later_places_to_nobody() -> None:
    queues = queues_on("x", 6)
    members = ["a", "a", "b"]
    assert [
        q.queue_id for q in allocation.allocate(allocation.Average(), "g", "a", queues, members)
    ] == [0, 1]
    assert [
        q.queue_id for q in allocation.allocate(allocation.Average(), "g", "b", queues, members)
    ] == [4, 5]
    assert allocation.Average().allocate_all(queues, members) == ["a", "a", None, None, "b", "b"]
    assert allocation.AverageByCircle().allocate_all(queues, members) == [
        "a",
        None,
        "b",
        "a",
        None,
        "b",
    ]


def test_an_empty_member_id_holds_its_place_but_owns_nothing() -> None:
    assert allocation.Average().allocate_all(queues_on("x", 2), ["", "a"]) == [None, "a"]
    owners = allocation.ConsistentHash().allocate_all(queues_on("x", 50), ["", "a"])
    assert set(owners) == {None, "a"}


def test_config_gives_its_queues_to_whoever_asks() -> None:
    mine = tuple(queues_on("elsewhere", 2))
    strategy = allocation.Configured(mine)
    assert allocation.allocate(strategy, "g", "", [], []) == list(mine)
    assert strategy.allocate_all([*queues_on("a", 1), mine[1]], ["c1", "c2"]) == [None, "c1"]
    assert allocation.Configured().allocate("g", "c1", [], []) == []


def test_config_within_rooms_may_give_queues_of_other_rooms() -> None:
    """Java hands the configured list out for each room, whatever the room holds."""
    far = queues_on("r2-b", 1)
    strategy = allocation.MachineRoomNearby(
        allocation.Configured(tuple(far)), allocation.RoomInName("-")
    )
    queues, members = [*queues_on("r1-b", 1), *far], ["r1-c", "r2-c"]
    assert strategy.allocate("g", "r1-c", queues, members) == far
    assert strategy.allocate_all(queues, members) == [None, "r1-c"]


def test_your_own_function_sees_sorted_lists_and_may_give_nothing() -> None:
    seen: list[object] = []

    def only_first(
        group: str, member: str, queues: object, members: object
    ) -> list[MessageQueue] | None:
        seen.append((group, member, queues, members))
        return None

    strategy = allocation.OwnRule("first", only_first)
    queues = queues_on("b", 2)
    assert allocation.allocate(strategy, "g", "c2", queues[::-1], ["c2", "c1"]) == []
    assert seen == [("g", "c2", queues, ["c1", "c2"])]
    assert strategy.allocate_all(queues, ["c1", "c2"], "g") == [None, None]


def test_equal_queues_count_once() -> None:
    queues = queues_on("b", 2)
    assert allocation.allocate(allocation.Average(), "g", "a", queues + queues, ["a"]) == queues


def test_members_are_sorted_by_utf_16_units_as_java_sorts_them() -> None:
    members = ["\uffee", "\N{GRINNING FACE}"]
    queues = queues_on("b", 2)
    assert (
        allocation.allocate(allocation.Average(), "g", "\N{GRINNING FACE}", queues, members)
        == queues[:1]
    )


@pytest.mark.parametrize("name", STRATEGY_NAMES)
def test_a_strategy_made_by_name_has_that_name(name: str) -> None:
    settings = allocation.StrategySettings(rooms=frozenset({"r"}))
    assert strategy_by_name(name, settings).name == name
    assert strategy_by_name(name.lower(), settings) == strategy_by_name(name, settings)


def test_settings_reach_the_strategy_made_by_name() -> None:
    queues = tuple(queues_on("b", 1))
    resolver = allocation.RoomTable({}, {})
    settings = allocation.StrategySettings(3, frozenset({"r"}), resolver, queues)
    assert strategy_by_name("CONSISTENT_HASH", settings) == allocation.ConsistentHash(3)
    assert strategy_by_name("MACHINE_ROOM", settings) == allocation.MachineRoom(frozenset({"r"}))
    assert strategy_by_name("CONFIG", settings) == allocation.Configured(queues)
    nearby = strategy_by_name("MACHINE_ROOM_NEARBY", settings)
    assert nearby == allocation.MachineRoomNearby(allocation.Average(), resolver)


def test_an_unknown_strategy_is_named_with_the_nearest_known() -> None:
    with pytest.raises(StrategyUnknown) as caught:
        strategy_by_name("AVG_BY_CIRCEL")
    assert caught.value.nearest == "AVG_BY_CIRCLE"
    assert str(caught.value) == (
        "unknown allocation strategy 'AVG_BY_CIRCEL'; did you mean AVG_BY_CIRCLE?"
    )
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with pytest.raises(StrategyUnknown, match="choose from AVG, AVG_BY_CIRCLE, "):
        strategy_by_name("")
    with pytest.raises(StrategyUnknown):
        strategy_by_name("MACHINE_ROOM_NEARBY-MACHINE_ROOM_NEARBY-AVG")


def test_machine_room_by_name_wants_its_rooms() -> None:
    with pytest.raises(AllocationInputInvalid, match="MACHINE_ROOM needs `rooms`"):
        strategy_by_name("MACHINE_ROOM")
