"""Whole groups on random schedules: several topics, joins, leaves, crashes, foreign members."""

import random
from collections import Counter

import pytest

from pocketmq.balance.allocation import Average
from pocketmq.balance.handover import HandoverSettings, balance_of
from pocketmq.balance.handover import events as ev
from pocketmq.balance.handover.messages import Hello
from pocketmq.balance.sticky import minimum_moves
from pocketmq.model import MessageQueue, sort_queues
from pocketmq.model.group_balance import BalanceMode, QueueStage
from pocketmq.model.java_strings import java_sorted
from tests.balance.handover.world import Shell, World

TOPICS = {"hot": 5, "cold": 3, "%RETRY%g": 1}
QUEUES = [
    MessageQueue(topic, broker, number)
    for topic, count in TOPICS.items()
    for broker in ("a", "b")
    for number in range(count)
]


def settings(name: str, boot: str = "1", **more: object) -> HandoverSettings:
    return HandoverSettings(group="g", client_id=f"{name}@pm1", boot=boot, **more)  # type: ignore[arg-type]


def topics() -> dict[str, list[MessageQueue]]:
    return {topic: [queue for queue in QUEUES if queue.topic == topic] for topic in TOPICS}


def one_owner_each(world: World) -> dict[MessageQueue, str]:
    owners = world.owners()
    assert {queue: who for queue, who in owners.items() if len(who) != 1} == {}
    return {queue: who[0] for queue, who in owners.items()}


def spreads(owners: dict[MessageQueue, str], members: list[str]) -> dict[str, int]:
    found = {}
    for topic in TOPICS:
        counts = [
            sum(owner == member for queue, owner in owners.items() if queue.topic == topic)
            for member in members
        ]
        found[topic] = max(counts) - min(counts)
    return found


def without_fault(world: World) -> list[str]:
    return [text for text in world.broken if "faulty" not in text]


def moved(before: dict[MessageQueue, str], after: dict[MessageQueue, str]) -> int:
    return sum(before[queue] != after[queue] for queue in before)


@pytest.mark.parametrize("overlap", [True, False], ids=["overlap", "drain"])
@pytest.mark.parametrize("seed", range(4))
def test_joins_and_leaves_move_the_fewest_and_give_nothing_twice(seed: int, overlap: bool) -> None:
    world = World(QUEUES, seed)
    world.produce(6.0, 40.0)
    chance = random.Random(seed)
    members = [world.join(settings("m0", overlap=overlap))]
    world.run(1.0)
    for number in range(1, 6):
        before = one_owner_each(world)
        if len(members) > 1 and chance.random() < 0.5:
            leaver = members.pop(chance.randrange(len(members)))
            leaver.feed(ev.Stopping(5.0))
        else:
            members.append(world.join(settings(f"m{number}", overlap=overlap)))
        world.run(1.0)
        after = one_owner_each(world)
        names = [member.me for member in members]
        assert moved(before, after) == minimum_moves(topics(), names, before)
        assert max(spreads(after, names).values()) <= 1
        assert all(shell.left for shell in world.shells if shell not in members)
    world.run(3.0)
    assert world.unfinished() == []
    assert world.broken == []
    # No queue went to and fro: it changed hands as often as the targets said.
    assert all(len(shell.warnings) == 0 for shell in world.shells)


@pytest.mark.parametrize("overlap", [True, False], ids=["overlap", "drain"])
@pytest.mark.parametrize("seed", range(3))
def test_faults_lose_nothing(seed: int, overlap: bool) -> None:
    """Crashes, lost messages on the bus, lost answers; twice only what was in flight."""
    world = World(QUEUES, seed)
    world.lose_bus, world.lose_answers = 0.05, 0.02
    world.produce(8.0, 25.0)
    members = [world.join(settings(f"m{number}", overlap=overlap)) for number in range(4)]
    world.run(4.0)
    world.crash(members[seed % 4])
    world.run(2.0)
    world.join(settings("late", overlap=overlap))
    world.run(20.0 if overlap else 60.0)
    one_owner_each(world)
    assert [text for text in world.broken if text[:2] in ("S1", "S2", "S6")] == []
    assert without_fault(world) == []
    assert world.unfinished() == []
    open_at_crash = len(QUEUES) * 3 + len(QUEUES)
    assert sum(text.startswith("S3") for text in world.broken) <= open_at_crash


@pytest.mark.parametrize("seed", range(2))
def test_members_beside_foreign_ones_are_the_exact_complement(seed: int) -> None:
    world = World(QUEUES, seed)
    world.produce(3.0, 25.0)
    world.registered += ["10.0.0.1@java", "zz@java"]
    members = [world.join(settings(f"m{number}")) for number in range(2)]
    world.run(2.0)
    everyone = java_sorted(world.registered)
    for topic, queues in topics().items():
        ordered = sort_queues(queues)
        shares = dict(zip(ordered, Average().allocate_all(ordered, everyone, "g"), strict=True))
        for queue in queues:
            owned = world.owners()[queue]
            if str(shares[queue]).endswith("@java"):
                assert owned == [], topic
            else:
                assert len(owned) == 1
    assert balance_of(members[0].group).mode is BalanceMode.MIXED
    # A foreign member goes: ours take its share, not before half a second has passed.
    before = world.owners()
    world.registered.remove("zz@java")
    world.notify()
    world.run(0.49)
    waiting = [queue for queue, owned in world.owners().items() if not owned]
    assert [queue for queue in waiting if not before[queue]] == [
        queue for queue, owned in before.items() if not owned
    ]
    world.run(1.0)
    assert len([queue for queue, owned in world.owners().items() if not owned]) < len(waiting)
    # One comes: ours stop, drain and commit its share.
    world.registered.append("yy@java")
    world.notify()
    world.run(1.0)
    everyone = java_sorted(world.registered)
    for queues in topics().values():
        ordered = sort_queues(queues)
        shares = dict(zip(ordered, Average().allocate_all(ordered, everyone, "g"), strict=True))
        for queue in queues:
            assert bool(world.owners()[queue]) == (not str(shares[queue]).endswith("@java"))
    assert world.broken == []


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bus", [0.001, 0.2], ids=["quick bus", "slow bus"])
def test_a_rolling_restart_with_kept_names_moves_nothing(bus: float, seed: int) -> None:
    """Brokers tell of departures by another way than the bus, which may be the quicker one."""
    world = World(QUEUES, seed)
    world.bus_scale = bus
    world.produce(20.0, 20.0)
    shells = [world.join(settings(f"m{number}", return_within=30.0)) for number in range(4)]
    world.run(6.0)
    before = one_owner_each(world)
    for number in range(4):
        others = [shell for shell in shells if shell is not shells[number]]
        reported = [len(shell.reports) for shell in others]
        shells[number].feed(ev.Stopping(5.0))
        world.run(1.5)
        assert shells[number].left
        idle = [queue for queue, owned in world.owners().items() if not owned]
        assert {before[queue] for queue in idle} == {shells[number].me}
        shells[number] = world.join(settings(f"m{number}", boot="2", return_within=30.0))
        world.run(2.5)
        assert one_owner_each(world) == before
        assert [len(shell.reports) for shell in others] == reported
    world.run(4.0)
    assert world.broken == []
    assert world.unfinished() == []


@pytest.mark.parametrize("lost", ["none", "first", "all"])
def test_a_member_that_will_be_back_leaves_when_its_goodbye_was_heard(lost: str) -> None:
    """It runs on until then, and says it again; if it is never heard, until its time is over."""
    world = World(QUEUES, 23)
    shells = [world.join(settings(f"m{number}", return_within=30.0)) for number in range(2)]
    world.run(2.0)
    before = one_owner_each(world)
    world.bus_scale, world.lose_bus = 0.1, float(lost != "none")
    shells[0].feed(ev.Stopping(3.0))
    if lost != "none":
        world.run(0.45)
        assert one_owner_each(world) == before
        assert not shells[0].left
    if lost == "first":
        world.lose_bus = 0.0
    world.run(0.8)
    assert shells[0].left == (lost != "all")
    if lost == "all":
        world.run(2.0)
        assert shells[0].left
    world.run(1.0)
    idle = {before[queue] for queue, owned in world.owners().items() if not owned}
    assert idle == (set() if lost == "all" else {shells[0].me})


def test_nobody_claims_from_a_member_that_will_be_back() -> None:
    """Neither while it leaves nor when it is listed again and has said nothing yet."""
    world = World(QUEUES, 24)
    shells = [world.join(settings(f"m{number}", return_within=30.0)) for number in range(3)]
    world.run(2.0)
    claims = [shell.group.claim_number for shell in shells[1:]]
    shells[0].feed(ev.Stopping(5.0))
    world.run(1.0)
    assert shells[0].left
    world.bus_scale = 2.0
    world.join(settings("m0", boot="2", return_within=30.0))
    world.run(0.5)
    assert all(shell.me in world.registered for shell in shells)
    world.run(8.0)
    assert [shell.group.claim_number for shell in shells[1:]] == claims
    one_owner_each(world)


def test_queues_wait_for_a_member_only_as_long_as_it_said() -> None:
    world = World(QUEUES, 2)
    shells = [world.join(settings(f"m{number}", return_within=3.0)) for number in range(2)]
    world.run(2.0)
    shells[0].feed(ev.Stopping(5.0))
    world.run(2.5)
    assert any(not owned for owned in world.owners().values())
    world.run(1.5)
    assert set(one_owner_each(world).values()) == {shells[1].me}


def test_a_crashed_member_that_restarts_at_once_takes_its_queues_back() -> None:
    """Its id may be listed all the time: the old boot's locks are freed all the same."""
    world = World(QUEUES, 3)
    world.produce(3.0, 20.0)
    shells = [world.join(settings(f"m{number}")) for number in range(3)]
    world.run(2.0)
    before = one_owner_each(world)
    world.faulty = True
    shells[0].alive = False
    for held in shells[0].held.values():
        held.dropped = True
    world.registered.remove("m0@pm1")
    world.join(settings("m0", boot="2"))
    world.run(2.0)
    assert moved(before, one_owner_each(world)) == 0
    world.run(3.0)
    assert world.unfinished() == []
    assert [text for text in world.broken if text[:2] in ("S1", "S2", "S4", "S6")] == []


def test_a_second_process_with_the_same_id_takes_nothing_and_warns() -> None:
    world = World(QUEUES, 4)
    first = world.join(settings("m0"))
    world.run(1.0)
    second = world.join(settings("m0", boot="2"))
    world.run(3.0)
    assert set(first.held) == set(QUEUES)
    assert second.held == {}
    assert len(second.warnings) >= 1
    assert "instance_name" in second.warnings[0]
    assert first.warnings == []
    first.feed(ev.Stopping(1.0))
    world.run(4.0)
    assert set(second.held) == set(QUEUES)


def test_a_forged_hello_frees_no_lock_of_a_living_member() -> None:
    world = World(QUEUES, 17)
    shells = [world.join(settings(f"m{number}")) for number in range(3)]
    world.produce(4.0, 10.0)
    world.run(2.0)
    before = one_owner_each(world)
    liar = Shell(world, settings("m1", boot="0"))
    for broker in "ab":
        world.tell(liar, broker, Hello())
    world.run(25.0)
    assert one_owner_each(world) == before
    assert all(not shell.group.table.gone for shell in shells)
    assert world.broken == []


@pytest.mark.parametrize("overlap", [True, False], ids=["overlap", "drain"])
def test_a_handler_that_never_ends_delays_a_queue_only_for_drain_wait(overlap: bool) -> None:
    world = World(QUEUES, 5)
    world.produce(2.0, 20.0)
    giver = world.join(settings("m0", drain_wait=2.0, overlap=overlap))
    world.run(1.0)
    world.hang = True
    world.run(0.2)
    world.hang = False
    heir = world.join(settings("m1", drain_wait=2.0, overlap=overlap))
    world.run(1.0)
    world.faulty = True
    world.run(6.0)
    assert len(heir.held) == len(QUEUES) // 2
    assert not any(held.stopped for held in giver.held.values())
    assert any("drain_wait_s=2;" in text for text in giver.warnings)
    assert [text for text in world.broken if text[:2] in ("S1", "S2")] == []


def test_a_member_cut_off_fences_and_goes_on_or_gives_up() -> None:
    world = World(QUEUES, 6)
    shells = [world.join(settings(f"m{number}")) for number in range(2)]
    world.run(2.0)
    before = one_owner_each(world)
    cut(world, shells[0], "a")
    world.run(1.0)
    fenced = {
        queue
        for queue, stage in balance_of(shells[0].group).stages.items()
        if stage is QueueStage.FENCED
    }
    assert fenced == {queue for queue in shells[0].held if queue.broker_name == "a"}
    assert fenced
    shells[0].down.discard("a")
    shells[0].feed(ev.Connected("a"))
    world.run(1.0)
    assert one_owner_each(world) == before
    assert QueueStage.FENCED not in balance_of(shells[0].group).stages.values()
    assert world.broken == []


@pytest.mark.parametrize("heard_last", [True, False], ids=["lost last", "no heartbeat"])
def test_a_broker_that_is_back_unnoticed_is_asked_again(heard_last: bool) -> None:
    """The shell says so once at most, and perhaps before it says that the old one closed."""
    world = World(QUEUES, 14)
    shells = [world.join(settings(f"m{number}")) for number in range(2)]
    world.run(2.0)
    before = one_owner_each(world)
    if heard_last:
        shells[0].feed(ev.Connected("a"))
    cut(world, shells[0], "a")
    world.run(0.5)
    assert any(held.fenced for held in shells[0].held.values())
    shells[0].down.discard("a")
    world.run(11.0)
    assert not any(held.fenced for held in shells[0].held.values())
    assert one_owner_each(world) == before
    shells[1].feed(ev.Stopping(1.0))
    world.run(3.0)
    assert set(one_owner_each(world).values()) == {shells[0].me}
    assert world.broken == []


def test_queues_of_a_broker_that_is_back_unnoticed_are_taken() -> None:
    world = World(QUEUES, 15)
    shell = world.join(settings("m0"))
    cut(world, shell, "a")
    world.run(3.0)
    assert {queue.broker_name for queue in shell.held} == {"b"}
    shell.down.discard("a")
    world.run(11.0)
    assert set(shell.held) == set(QUEUES)


def test_a_member_that_no_list_shows_stays_fenced() -> None:
    """The others take it for gone and free its locks: to renew them would prove nothing."""
    world = World(QUEUES, 16)
    shells = [world.join(settings(f"m{number}")) for number in range(2)]
    world.run(2.0)
    world.faulty = True
    for broker in "ab":
        cut(world, shells[0], broker)
    world.registered.remove(shells[0].me)
    world.complete = False  # or the others would have its queues
    shells[0].down.clear()
    world.run(30.0)
    assert all(held.fenced for held in shells[0].held.values())
    assert shells[0].held
    world.registered.append(shells[0].me)
    world.run(12.0)
    assert not any(held.fenced for held in shells[0].held.values())
    one_owner_each(world)
    assert [text for text in world.broken if text[:2] in ("S1", "S2", "S4")] == []


def cut(world: World, shell: Shell, broker: str) -> None:
    shell.down.add(broker)
    shell.feed(ev.Disconnected(broker))


def test_a_hung_member_is_replaced_when_its_leases_have_ended() -> None:
    world = World(QUEUES, 7)
    world.produce(1.0, 10.0)
    shells = [world.join(settings(f"m{number}")) for number in range(2)]
    world.run(2.0)
    world.faulty = True
    shells[0].alive = False  # stopped: it is listed, and says nothing
    for held in shells[0].held.values():
        held.stopped = True
    world.run(75.0)
    assert set(one_owner_each(world).values()) == {shells[1].me}


def test_a_restart_of_a_broker_moves_nothing() -> None:
    world = World(QUEUES, 8)
    shells = [world.join(settings(f"m{number}")) for number in range(3)]
    world.run(2.0)
    before = one_owner_each(world)
    for shell in shells:
        cut(world, shell, "b")
        shell.feed(ev.Routed(frozenset(queue for queue in QUEUES if queue.broker_name == "a")))
    world.locks = {key: value for key, value in world.locks.items() if key[0].broker_name == "a"}
    world.run(20.0)
    assert {q: o[0] for q, o in world.owners().items() if q.broker_name == "a"} == {
        q: o for q, o in before.items() if q.broker_name == "a"
    }
    for shell in shells:
        shell.down.discard("b")
        shell.feed(ev.Routed(frozenset(QUEUES)))
        shell.feed(ev.Connected("b"))
    world.run(2.0)
    assert one_owner_each(world) == before


def test_queues_of_a_vanished_broker_keep_their_owners_though_routes_come_one_by_one() -> None:
    world = World(QUEUES, 12)
    shells = [world.join(settings(f"m{number}")) for number in range(2)]
    world.run(2.0)
    before = one_owner_each(world)
    there = list(QUEUES)
    for topic in TOPICS:
        there = [queue for queue in there if (queue.topic, queue.broker_name) != (topic, "b")]
        for shell in shells:
            shell.feed(ev.Routed(frozenset(there)))
        world.run(1.0)
    world.run(40.0)
    assert one_owner_each(world) == before
    world.run(20.0)
    assert {queue for queue, who in world.owners().items() if who} == set(there)


def test_a_deleted_queue_is_released_at_once() -> None:
    world = World(QUEUES, 12)
    shells = [world.join(settings(f"m{number}")) for number in range(2)]
    world.run(2.0)
    there = [queue for queue in QUEUES if queue != MessageQueue("hot", "b", 4)]
    for shell in shells:
        shell.feed(ev.Routed(frozenset(there)))
    world.run(1.0)
    assert {queue for queue, who in world.owners().items() if who} == set(there)


def test_a_broker_that_does_not_answer_delays_a_start_for_a_second_only() -> None:
    world = World(QUEUES, 13)
    world.complete = False
    shell = world.join(settings("m0"))
    world.run(0.9)
    assert shell.held == {}
    world.run(0.5)
    assert set(shell.held) == set(QUEUES)
    # Nobody is gone as long as not all brokers answer, and then soon.
    other = world.join(settings("m1"))
    world.run(3.0)
    assert set(one_owner_each(world).values()) == {shell.me, other.me}
    world.crash(other)
    world.run(3.0)
    assert set(shell.group.table.listed) == {shell.me, other.me}
    world.complete = True
    world.run(1.5)
    assert set(one_owner_each(world).values()) == {shell.me}


def test_a_silent_bus_moves_nothing() -> None:
    world = World(QUEUES, 10)
    shells = [world.join(settings(f"m{number}")) for number in range(3)]
    world.run(2.0)
    before = one_owner_each(world)
    world.lose_bus = 1.0
    world.run(100.0)
    assert one_owner_each(world) == before
    # Crashes and leaves need no bus.
    world.crash(shells[0])
    world.run(2.0)
    assert set(one_owner_each(world).values()) == {shells[1].me, shells[2].me}
    shells[1].feed(ev.Stopping(0.5))
    world.run(10.0)
    assert shells[1].left
    assert set(one_owner_each(world).values()) == {shells[2].me}


def test_a_member_stops_though_its_broker_is_away() -> None:
    world = World(QUEUES, 11)
    shell = world.join(settings("m0", drain_wait=2.0))
    world.run(1.0)
    cut(world, shell, "a")
    shell.feed(ev.Stopping(0.5))
    world.run(10.0)
    assert shell.left


def test_timers_are_few() -> None:
    """A quiet group is woken for renewals and beacons, not in a loop."""
    world = World(QUEUES, 9)
    shells = [world.join(settings(f"m{number}")) for number in range(3)]
    world.run(3.0)
    before = Counter({shell.me: shell.wakes for shell in shells})
    world.run(60.0)
    assert all(shell.wakes - before[shell.me] < 120 for shell in shells)


@pytest.mark.parametrize("orderly_first", [True, False])
def test_members_of_the_other_kind_take_nothing_until_the_first_kind_has_left(
    orderly_first: bool,
) -> None:
    """Orderly and concurrent members lock under two names: each would get what the other has."""

    def member(name: str, orderly: bool) -> HandoverSettings:
        return settings(name, orderly=orderly, overlap=not orderly)

    world = World(QUEUES, 20)
    world.produce(6.0, 10.0)
    old = [world.join(member(f"m{number}", orderly_first)) for number in (1, 2)]
    world.run(1.5)
    before = one_owner_each(world)
    new = [world.join(member(f"m{number}", not orderly_first)) for number in (0, 3)]
    world.run(3.0)
    assert one_owner_each(world) == before
    for shell in (*old, *new):
        assert len(set(shell.warnings)) == 1
        assert "orderly and concurrent members" in shell.warnings[0]
        assert ("this one takes no queues" in shell.warnings[0]) == (shell in new)
    assert "this one takes no queues" in balance_of(new[0].group).reason
    assert balance_of(old[0].group).reason == ""
    for shell in old:
        shell.feed(ev.Stopping(5.0))
        world.run(2.0)
        assert shell.left
    assert set(one_owner_each(world).values()) == {shell.me for shell in new}
    world.run(3.0)
    assert world.broken == []
    assert world.unfinished() == []


def test_messages_in_flight_of_the_first_kind_are_waited_for() -> None:
    world = World(QUEUES, 22, work=4000.0)
    world.produce(4.0, 10.0)
    old = world.join(settings("m1"))
    world.run(1.5)
    world.join(settings("m0", orderly=True))
    world.run(1.5)
    old.feed(ev.Stopping(5.0))
    world.run(0.2)
    assert any(held.in_flight for held in old.held.values())
    assert all(not owned for owned in world.owners().values())
    world.run(10.0)
    assert old.left
    assert set(one_owner_each(world).values()) == {"m0@pm1"}
    assert world.broken == []


def test_of_two_kinds_that_start_at_once_one_gets_all_queues() -> None:
    world = World(QUEUES, 21)
    for number in range(4):
        world.join(settings(f"m{number}", orderly=number % 2 == 1))
    world.run(3.0)
    assert set(one_owner_each(world).values()) == {"m0@pm1", "m2@pm1"}
