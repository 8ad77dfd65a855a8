"""Laws of the sticky assignment: even, fewest moves, and the same from every state on the way."""

from collections import Counter
from itertools import product
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.balance.sticky import assign, minimum_moves
from pocketmq.model import MessageQueue
from tests.balance.sticky import shapes

OLD, NONE, NEW = range(3)


def owners_of(group: shapes.Group) -> dict[MessageQueue, str]:
    return assign(group.topics, group.members, group.previous)


def on_the_way(
    group: shapes.Group, target: dict[MessageQueue, str], steps: dict[MessageQueue, int]
) -> dict[MessageQueue, str | None]:
    """Return the state in which each moving queue has come as far as `steps` has it."""
    state = dict(group.previous)
    for queue, step in steps.items():
        state[queue] = (group.previous[queue], None, target[queue])[step]
    return state


def random_group(seed: int, topics: int, queues: int, members: int) -> shapes.Group:
    random = Random(seed)
    made = {f"t{n}": shapes.topic(f"t{n}", random.randint(1, queues)) for n in range(topics)}
    names = [f"10.0.0.{n}@{n}" for n in range(members)]
    before = [*names[members // 3 :], *names[: members // 4], "gone", None]
    owners = {queue: random.choice(before) for qs in made.values() for queue in qs}
    return shapes.Group(made, names, owners)


@settings(max_examples=75, deadline=None)
@given(shapes.groups())
def test_every_queue_has_a_member_as_its_owner(group: shapes.Group) -> None:
    owners = owners_of(group)
    assert owners.keys() == set(group.queues)
    assert set(owners.values()) <= set(group.members)


@settings(max_examples=75, deadline=None)
@given(shapes.groups())
def test_numbers_differ_by_one_at_most_in_every_topic_and_over_all(group: shapes.Group) -> None:
    assert max(shapes.spreads(owners_of(group), group.members)) <= 1


@settings(max_examples=50, deadline=None)
@given(shapes.SMALL)
def test_no_balanced_assignment_has_fewer_moves_or_as_few_and_a_better_score(
    group: shapes.Group,
) -> None:
    owners = owners_of(group)
    best = min(
        (shapes.moves(group.previous, other), shapes.extras_score(group, other))
        for other in shapes.every_balanced_assignment(group)
    )
    assert (shapes.moves(group.previous, owners), shapes.extras_score(group, owners)) == best
    assert minimum_moves(group.topics, group.members, group.previous) == best[0]


@settings(max_examples=75, deadline=None)
@given(shapes.groups())
def test_queues_are_kept_and_dealt_by_score_as_sorting_all_pairs_would(group: shapes.Group) -> None:
    owners = owners_of(group)
    numbers = Counter((queue.topic, owner) for queue, owner in owners.items())
    assert owners == shapes.queues_by_score(group, numbers)


@settings(max_examples=60, deadline=None)
@given(shapes.SMALL)
def test_from_every_state_on_the_way_the_same_target_follows(group: shapes.Group) -> None:
    target = owners_of(group)
    moving = [queue for queue in group.queues if group.previous[queue] != target[queue]][:5]
    for steps in product((OLD, NONE, NEW), repeat=len(moving)):
        state = on_the_way(group, target, dict(zip(moving, steps, strict=True)))
        assert assign(group.topics, group.members, state) == target


@settings(max_examples=75, deadline=None)
@given(shapes.groups(), st.randoms(use_true_random=False))
def test_from_random_states_on_the_way_the_same_target_follows(
    group: shapes.Group, random: Random
) -> None:
    target = owners_of(group)
    moving = [queue for queue in group.queues if group.previous[queue] != target[queue]]
    for _ in range(4):
        state = on_the_way(group, target, {queue: random.randint(OLD, NEW) for queue in moving})
        assert assign(group.topics, group.members, state) == target


def test_large_groups_are_confluent_too() -> None:
    random = Random(7)
    for seed, shape in enumerate([(40, 16, 30), (120, 3, 25), (12, 90, 40), (64, 16, 50)]):
        group = random_group(seed, *shape)
        target = owners_of(group)
        assert max(shapes.spreads(target, group.members)) <= 1
        fewest = minimum_moves(group.topics, group.members, group.previous)
        assert shapes.moves(group.previous, target) == fewest
        moving = [queue for queue in group.queues if group.previous[queue] != target[queue]]
        for _ in range(3):
            steps = {queue: random.randint(OLD, NEW) for queue in moving}
            state = on_the_way(group, target, steps)
            assert assign(group.topics, group.members, state) == target


@settings(max_examples=50, deadline=None)
@given(shapes.groups(), st.data())
def test_the_order_of_the_input_does_not_matter(group: shapes.Group, data: st.DataObject) -> None:
    names = data.draw(st.permutations(list(group.topics)))
    topics = {name: data.draw(st.permutations(group.topics[name])) for name in names}
    members = data.draw(st.permutations(group.members))
    previous = dict(data.draw(st.permutations(list(group.previous.items()))))
    assert assign(topics, [*members, members[0]], previous) == owners_of(group)


@settings(max_examples=50, deadline=None)
@given(shapes.groups())
def test_a_balanced_group_moves_nothing(group: shapes.Group) -> None:
    owners = owners_of(group)
    assert assign(group.topics, group.members, owners) == owners
    assert minimum_moves(group.topics, group.members, owners) == 0


@settings(max_examples=75, deadline=None)
@given(shapes.groups(topics=1, queues=40))
def test_a_join_to_one_topic_moves_the_joiners_share_and_nothing_else(group: shapes.Group) -> None:
    before = owners_of(group)
    members = [*group.members, "joiner"]
    after = assign(group.topics, members, before)
    taken = [queue for queue in after if after[queue] == "joiner"]
    assert len(taken) <= -(-len(group.queues) // len(members))
    assert before | dict.fromkeys(taken, "joiner") == after
    assert len(taken) == minimum_moves(group.topics, members, before)


@settings(max_examples=75, deadline=None)
@given(shapes.groups())
def test_a_join_moves_at_least_the_joiners_share_and_no_more_than_levelling_needs(
    group: shapes.Group,
) -> None:
    before = owners_of(group)
    members = [*group.members, "joiner"]
    after = assign(group.topics, members, before)
    taken = sum(owner == "joiner" for owner in after.values())
    assert taken <= -(-len(group.queues) // len(members))
    assert shapes.moves(before, after) == minimum_moves(group.topics, members, before) >= taken


def test_levelling_over_all_topics_may_need_more_moves_than_the_joiners_share() -> None:
    """Two members gave their only extra to the joiner, two others have one too many since."""
    topics = {
        "large": shapes.topic("large", 30),
        "seven": shapes.topic("seven", 7),
        "two": shapes.topic("two", 2),
    }
    members = "abcdefghi"
    previous = dict(zip(topics["large"], [*members * 3, *"abc"], strict=True))
    previous |= dict(zip(topics["seven"], "defghic", strict=True))
    previous |= dict(zip(topics["two"], "de", strict=True))
    assert max(shapes.spreads(previous, members)) <= 1
    after = assign(topics, [*members, "joiner"], previous)
    assert max(shapes.spreads(after, [*members, "joiner"])) <= 1
    assert shapes.moves(previous, after) == 5 > -(-39 // 10)


@settings(max_examples=75, deadline=None)
@given(shapes.groups(members=5))
def test_a_leave_moves_the_leavers_queues_and_no_more_than_levelling_needs(
    group: shapes.Group,
) -> None:
    before = assign(group.topics, [*group.members, "leaver"], group.previous)
    after = assign(group.topics, group.members, before)
    orphans = sum(owner == "leaver" for owner in before.values())
    moved = shapes.moves(before, after)
    assert moved == minimum_moves(group.topics, group.members, before) >= orphans
    if len(group.topics) == 1:
        assert moved == orphans


@settings(max_examples=60, deadline=None)
@given(shapes.groups(), st.integers(0, 9))
def test_retry_topics_are_balanced_on_their_own(group: shapes.Group, count: int) -> None:
    plain = owners_of(group)
    retry = shapes.topic(shapes.RETRY, count)
    together = assign(group.topics | {shapes.RETRY: retry}, group.members, group.previous)
    assert {q: o for q, o in together.items() if q.topic != shapes.RETRY} == plain
    assert {q: o for q, o in together.items() if q.topic == shapes.RETRY} == assign(
        {shapes.RETRY: retry}, group.members, {}
    )
    assert shapes.spread({q: together[q] for q in retry}, group.members) <= 1


@settings(max_examples=50, deadline=None)
@given(shapes.groups())
def test_a_broker_that_goes_and_comes_back_moves_nothing(group: shapes.Group) -> None:
    whole = owners_of(group)
    gone = [queue for queue in group.queues if queue.broker_name == "broker-1"]
    left = {
        name: [queue for queue in queues if queue.broker_name != "broker-1"]
        for name, queues in group.topics.items()
    }
    while_away = assign(left, group.members, whole, gone)
    assert while_away == {queue: whole[queue] for queue in whole if queue not in gone}
    assert assign(group.topics, group.members, whole) == whole
    assert minimum_moves(left, group.members, whole, gone) == 0


@settings(max_examples=60, deadline=None)
@given(shapes.groups(members=4))
def test_members_that_change_while_a_broker_is_away_change_nothing_on_its_return(
    group: shapes.Group,
) -> None:
    """Also if the owners of absent queues are those of before the change."""
    before = assign(group.topics, [*group.members, "leaver"], group.previous)
    gone = {queue for queue in group.queues if queue.broker_name == "broker-1"}
    left = {name: [q for q in queues if q not in gone] for name, queues in group.topics.items()}
    while_away = assign(left, group.members, before, gone)
    known = before | while_away
    assert assign(group.topics, group.members, known) == assign(group.topics, group.members, before)
    assert while_away.items() <= assign(group.topics, group.members, known).items()


def test_without_members_no_queue_has_an_owner() -> None:
    orders = shapes.topic("orders", 3)
    assert assign({"orders": orders}, [], dict.fromkeys(orders, "gone")) == {}
    assert assign({}, ["a"], {}) == {}
    assert minimum_moves({"orders": []}, ["a"], {orders[0]: "a"}) == 0


def test_a_hot_topic_is_shared_although_the_totals_would_be_level_without() -> None:
    """Levelling totals alone may leave one member with all queues of one topic."""
    topics = {"hot": shapes.topic("hot", 16), "cold": shapes.topic("cold", 16)}
    previous = {
        queue: "a" if queue.topic == "hot" else "b" for qs in topics.values() for queue in qs
    }
    owners = assign(topics, ["a", "b"], previous)
    assert Counter((q.topic, o) for q, o in owners.items()) == {
        (name, member): 8 for name in topics for member in "ab"
    }
    assert shapes.moves(previous, owners) == 16
