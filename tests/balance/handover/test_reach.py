"""Brokers that some members cannot reach: nothing stays without an owner, nothing else moves."""

from collections import Counter

import pytest

from pocketmq.balance.handover import balance_of
from pocketmq.balance.handover import events as ev
from pocketmq.balance.handover.reach import substituted
from pocketmq.model import MessageQueue
from pocketmq.model.group_balance import QueueStage
from tests.balance.handover.test_groups import QUEUES, cut, one_owner_each, settings, spreads
from tests.balance.handover.world import Shell, World

LAWS = ("S1", "S2", "S4", "S6")


def laws_broken(world: World) -> list[str]:
    return [text for text in world.broken if text[:2] in LAWS]


def at(broker: str, shell: Shell) -> set[MessageQueue]:
    return {queue for queue in shell.held if queue.broker_name == broker}


@pytest.mark.parametrize("overlap", [True, False], ids=["overlap", "drain"])
@pytest.mark.parametrize("seed", range(2))
def test_others_take_the_queues_of_a_broker_that_one_member_lost(seed: int, overlap: bool) -> None:
    world = World(QUEUES, seed)
    world.produce(90.0, 2.0)
    shells = [world.join(settings(f"m{number}", overlap=overlap)) for number in range(3)]
    world.run(2.0)
    before = one_owner_each(world)
    elsewhere, in_flight = at("b", shells[0]), 3 * len(at("a", shells[0]))
    assert in_flight
    assert elsewhere
    world.faulty = True
    cut(world, shells[0], "a")
    world.run(14.0)
    assert one_owner_each(world) == before, "its connection may be back at once"
    assert all(held.fenced for queue, held in shells[0].held.items() if queue.broker_name == "a")
    world.run(1.1)
    assert shells[0].group.lost == {"a"}
    world.run(64.9)
    after = one_owner_each(world)
    assert at("a", shells[0]) == set()
    assert at("b", shells[0]) >= elsewhere
    assert QueueStage.FENCED not in balance_of(shells[0].group).stages.values()
    world.run(10.0)
    assert one_owner_each(world) == after, "nothing goes to and fro"
    shells[0].down.discard("a")
    shells[0].feed(ev.Connected("a"))
    world.run(20.0)
    assert max(spreads(one_owner_each(world), [shell.me for shell in shells]).values()) <= 1
    assert at("a", shells[0])
    assert world.unfinished() == []
    assert laws_broken(world) == []
    assert sum(text.startswith("S3") for text in world.broken) <= in_flight


def test_others_take_the_queues_of_a_broker_that_one_member_never_reached() -> None:
    world = World(QUEUES, 5)
    shells = [world.join(settings(f"m{number}")) for number in range(3)]
    shells[2].down.add("a")
    world.run(5.0)
    assert any(not owned for owned in world.owners().values())
    world.run(30.0)
    after = one_owner_each(world)
    assert at("a", shells[2]) == set()
    assert at("b", shells[2])
    # Its requests are answered again, and no more is said about it.
    shells[2].down.discard("a")
    world.run(30.0)
    assert shells[2].group.lost == frozenset()
    assert max(spreads(one_owner_each(world), [shell.me for shell in shells]).values()) <= 1
    assert after.keys() == one_owner_each(world).keys()
    assert world.broken == []


def test_a_broker_that_was_away_for_all_moves_nothing() -> None:
    """Its locks are free after a restart, and members find it again one after another."""
    world = World(QUEUES, 8)
    shells = [world.join(settings(f"m{number}")) for number in range(3)]
    world.run(2.0)
    before = one_owner_each(world)
    world.faulty = True
    for shell in shells:
        cut(world, shell, "a")
    world.run(40.0)
    assert all(shell.group.lost == {"a"} for shell in shells)
    world.locks = {key: lock for key, lock in world.locks.items() if key[0].broker_name != "a"}
    for shell in shells:
        shell.down.discard("a")
        shell.feed(ev.Connected("a"))
        world.run(4.0)
    world.run(20.0)
    assert one_owner_each(world) == before
    assert world.broken == []


def test_a_list_that_shows_the_member_proves_that_the_broker_answers() -> None:
    """The connection may have been there all the time, as to a slave that was promoted."""
    world = World(QUEUES, 9)
    shells = [world.join(settings(f"m{number}")) for number in range(2)]
    world.run(2.0)
    cut(world, shells[0], "a")
    world.run(90.0)
    assert shells[0].group.lost == {"a"}
    members = tuple(world.registered)
    asked = shells[0].group.unanswered["a"]
    for asked_at, lost in ((asked, {"a"}), (asked + 0.1, set[str]())):
        shells[0].feed(ev.MembersListed(members, True, frozenset({"a", "b"}), asked_at))
        assert shells[0].group.lost == lost


def test_substitutes_share_the_queues_evenly_and_keep_what_they_have() -> None:
    queues = [MessageQueue("t", broker, number) for number in range(6) for broker in "ab"]
    target = {queue: "xyz"[queue.queue_id // 2] for queue in queues}
    lost = {"a": frozenset({"x"})}
    moved = substituted(target, lost, target, ["x", "y", "z"])
    assert moved.keys() == {MessageQueue("t", "a", 0), MessageQueue("t", "a", 1)}
    assert Counter(moved.values()) == {"y": 1, "z": 1}
    owners = {**target, MessageQueue("t", "a", 0): "z", MessageQueue("t", "a", 1): "z"}
    assert set(substituted(target, lost, owners, ["x", "y", "z"]).values()) == {"z"}
    everyone = {"a": frozenset("xyz")}
    assert substituted(target, everyone, owners, ["x", "y", "z"]) == {}
