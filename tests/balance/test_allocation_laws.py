"""Laws every strategy keeps, whatever the queues and members."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.balance import allocation
from pocketmq.model import MessageQueue, sort_queues
from pocketmq.model.java_strings import java_hash, java_sorted

NAMES = st.sampled_from(["r1", "r2", "r3", "ä", "\uffee", "\N{GRINNING FACE}"])
ROOM_NAMES = st.builds(lambda room, tail: f"{room}@{tail}", NAMES, st.sampled_from("abcde"))
QUEUES = st.builds(MessageQueue, st.just("topic"), ROOM_NAMES, st.integers(0, 20))
QUEUE_LISTS = st.lists(QUEUES, min_size=1, max_size=60, unique=True)
MEMBERS = st.lists(ROOM_NAMES, min_size=1, max_size=12, unique=True)
MEMBERS_REPEATED = st.lists(ROOM_NAMES, min_size=1, max_size=12)

COMPLETE: list[allocation.Strategy] = [
    allocation.Average(),
    allocation.AverageByCircle(),
    allocation.ConsistentHash(),
    allocation.ConsistentHash(1),
    allocation.ConsistentHash(40),
    allocation.ConsistentHash(10, java_hash),
    allocation.MachineRoomNearby(allocation.Average(), allocation.RoomInName()),
    allocation.MachineRoomNearby(allocation.AverageByCircle(), allocation.RoomInName()),
    allocation.MachineRoomNearby(allocation.ConsistentHash(), allocation.RoomInName()),
    allocation.MachineRoomNearby(
        allocation.MachineRoomNearby(allocation.Average(), allocation.RoomInName()),
        allocation.RoomInName(),
    ),
]
ODD_ONES: list[allocation.Strategy] = [
    allocation.ConsistentHash(0),
    allocation.MachineRoom(frozenset({"r1", "ä"})),
    allocation.MachineRoomNearby(
        allocation.MachineRoom(frozenset({"r1", "r2"})), allocation.RoomInName()
    ),
    allocation.Configured((MessageQueue("topic", "r1@a", 0), MessageQueue("topic", "r2@b", 1))),
    allocation.MachineRoomNearby(
        allocation.Configured((MessageQueue("topic", "r1@a", 0), MessageQueue("topic", "r2@b", 1))),
        allocation.RoomInName(),
    ),
    allocation.OwnRule(
        "last", lambda _g, member, queues, members: queues if member == members[-1] else ()
    ),
]


def name_of(strategy: allocation.Strategy) -> str:
    return strategy.name


def shares(
    strategy: allocation.Strategy, queues: list[MessageQueue], members: list[str]
) -> dict[str, list[MessageQueue]]:
    return {
        member: allocation.allocate(strategy, "g", member, queues, members) for member in members
    }


@pytest.mark.parametrize("strategy", COMPLETE, ids=name_of)
@settings(max_examples=25, deadline=None)
@given(queues=QUEUE_LISTS, members=MEMBERS)
def test_every_queue_has_exactly_one_owner(
    strategy: allocation.Strategy, queues: list[MessageQueue], members: list[str]
) -> None:
    dealt = [queue for share in shares(strategy, queues, members).values() for queue in share]
    assert Counter(dealt) == Counter(queues)


@pytest.mark.parametrize("strategy", [*COMPLETE, *ODD_ONES], ids=name_of)
@settings(max_examples=25, deadline=None)
@given(queues=QUEUE_LISTS, members=MEMBERS_REPEATED)
def test_owners_of_all_queues_are_those_the_members_find_one_by_one(
    strategy: allocation.Strategy, queues: list[MessageQueue], members: list[str]
) -> None:
    """Also with repeated ids; a queue several members claim shows the first of them."""
    ordered, everyone = sort_queues(queues), java_sorted(members)
    first_claim: dict[MessageQueue, str] = {}
    for member in everyone:
        for queue in strategy.allocate("g", member, ordered, everyone):
            first_claim.setdefault(queue, member)
    owners = strategy.allocate_all(ordered, everyone, "g")
    assert owners == [first_claim.get(queue) for queue in ordered]
    assert set(owners) <= {None, *members}


@pytest.mark.parametrize("strategy", [*COMPLETE, *ODD_ONES], ids=name_of)
@settings(max_examples=20, deadline=None)
@given(queues=QUEUE_LISTS, members=MEMBERS_REPEATED, data=st.data())
def test_the_order_of_the_input_does_not_matter(
    strategy: allocation.Strategy,
    queues: list[MessageQueue],
    members: list[str],
    data: st.DataObject,
) -> None:
    other_queues = data.draw(st.permutations(queues))
    other_members = data.draw(st.permutations(members))
    once = shares(strategy, queues, members)
    assert shares(strategy, list(other_queues), list(other_members)) == once


@pytest.mark.parametrize(
    "strategy", [allocation.Average(), allocation.AverageByCircle()], ids=name_of
)
@settings(max_examples=60, deadline=None)
@given(queues=QUEUE_LISTS, members=MEMBERS)
def test_average_shares_differ_by_one_at_most_and_the_first_members_have_more(
    strategy: allocation.Strategy, queues: list[MessageQueue], members: list[str]
) -> None:
    dealt = shares(strategy, queues, members)
    sizes = [len(dealt[member]) for member in java_sorted(members)]
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True)


@settings(max_examples=60, deadline=None)
@given(queues=QUEUE_LISTS, members=MEMBERS)
def test_average_shares_are_blocks_in_the_order_of_members(
    queues: list[MessageQueue], members: list[str]
) -> None:
    dealt = shares(allocation.Average(), queues, members)
    joined = [queue for member in java_sorted(members) for queue in dealt[member]]
    assert joined == sort_queues(queues)


@pytest.mark.parametrize("hash_function", [allocation.ConsistentHash().hash_function, java_hash])
@settings(max_examples=60, deadline=None)
@given(queues=QUEUE_LISTS, members=MEMBERS, joiner=ROOM_NAMES, nodes=st.integers(0, 30))
def test_on_the_ring_a_joiner_only_takes_and_a_leaver_only_gives(
    hash_function: object,
    queues: list[MessageQueue],
    members: list[str],
    joiner: str,
    nodes: int,
) -> None:
    """Holds for colliding positions too, which Java's hashCode has plenty of."""
    assert callable(hash_function)
    strategy = allocation.ConsistentHash(nodes, hash_function)
    without = [member for member in java_sorted(members) if member != joiner]
    if not without:
        return
    small = strategy.allocate_all(queues, without)
    large = strategy.allocate_all(queues, java_sorted([*without, joiner]))
    moved = [(old, new) for old, new in zip(small, large, strict=True) if old != new]
    assert all(new == joiner for _, new in moved)
    assert all(new != joiner or old != joiner for old, new in moved)


@pytest.mark.parametrize("strategy", COMPLETE[6:9], ids=name_of)
@settings(max_examples=25, deadline=None)
@given(queues=QUEUE_LISTS, members=MEMBERS)
def test_nearby_never_takes_a_queue_out_of_a_room_that_has_members(
    strategy: allocation.Strategy, queues: list[MessageQueue], members: list[str]
) -> None:
    rooms = allocation.RoomInName()
    inhabited = {rooms.room_of_member(member) for member in members}
    for member, share in shares(strategy, queues, members).items():
        for queue in share:
            room = rooms.room_of_queue(queue)
            assert room not in inhabited or room == rooms.room_of_member(member)


@pytest.mark.parametrize("strategy", [*COMPLETE, *ODD_ONES], ids=name_of)
@settings(max_examples=10, deadline=None)
@given(queues=QUEUE_LISTS, members=MEMBERS)
def test_asking_again_gives_the_same_answer_and_a_list_of_its_own(
    strategy: allocation.Strategy, queues: list[MessageQueue], members: list[str]
) -> None:
    first = allocation.allocate(strategy, "g", members[0], queues, members)
    again = allocation.allocate(strategy, "g", members[0], queues, members)
    assert again == first
    first.append(MessageQueue("topic", "intruder", 0))
    assert allocation.allocate(strategy, "g", members[0], queues, members) == again
