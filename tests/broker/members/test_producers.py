"""The table of producers: heartbeats, leaving, silence, and a connection for a check."""

from pocketmq.broker.members.consumers import ClientInfo
from pocketmq.broker.members.producers import MAX_MEMBERSHIPS, OnlineProducers
from pocketmq.protocol.peers import Language
from tests.broker.wire import Wire

BUSY = 64 * 1024


def client(name: str) -> ClientInfo:
    return ClientInfo(name, Language.JAVA, 409)


def table_of(*wires: Wire) -> OnlineProducers:
    table = OnlineProducers()
    for wire in wires:
        table.register("g", wire, client(wire.remote_address), 0.0)
    return table


def test_a_heartbeat_adds_a_connection_to_its_group() -> None:
    wire = Wire("a")
    table = table_of(wire)

    assert list(table.groups["g"]) == [wire]
    assert table.find("a") is wire


def test_a_connection_stays_the_client_it_first_was() -> None:
    wire = Wire("a")
    table = table_of(wire)
    table.register("g", wire, client("other"), 5.0)

    assert table.groups["g"][wire].client == client("a")
    assert table.groups["g"][wire].last_seen == 5.0
    assert table.find("other") is None


def test_a_group_goes_with_its_last_connection() -> None:
    a, b = Wire("a"), Wire("b")
    table = table_of(a, b)
    table.unregister("g", a)
    assert list(table.groups["g"]) == [b]
    table.unregister("g", b)
    table.unregister("g", b)
    table.unregister("unknown", b)

    assert table.groups == {}
    assert table.find("b") is None


def test_a_client_is_found_as_long_as_one_of_its_groups_is_left() -> None:
    """Java forgets a client that leaves one of two groups, and replies no longer reach it."""
    wire = Wire("a")
    table = table_of(wire)
    table.register("h", wire, client("a"), 0.0)
    table.unregister("g", wire)

    assert table.find("a") is wire


def test_a_closed_connection_leaves_all_its_groups() -> None:
    a, b = Wire("a"), Wire("b")
    table = table_of(a, b)
    table.register("h", a, client("a"), 0.0)
    table.closed(a)
    table.closed(a)

    assert {group: list(members) for group, members in table.groups.items()} == {"g": [b]}
    assert table.find("a") is None


def test_an_old_connection_that_closes_late_does_not_hide_the_new_one() -> None:
    old, new = Wire("old"), Wire("new")
    table = OnlineProducers()
    table.register("g", old, client("a"), 0.0)
    table.register("g", new, client("a"), 1.0)
    table.closed(old)

    assert table.find("a") is new


def test_connections_without_heartbeat_for_120_s_are_let_go() -> None:
    a, b = Wire("a"), Wire("b")
    table = table_of(a, b)
    table.register("h", a, client("a"), 0.0)
    table.register("g", b, client("b"), 10.0)

    assert table.expire(120.0, 120.0) == []
    assert table.expire(120.5, 120.0) == [a]
    assert {group: list(members) for group, members in table.groups.items()} == {"g": [b]}


def test_checks_go_to_the_connections_in_turn() -> None:
    a, b, c = Wire("a"), Wire("b"), Wire("c")
    table = table_of(a, b, c)

    assert [table.available("g") for _ in range(4)] == [b, c, a, b]


def test_busy_and_closed_connections_are_passed_over() -> None:
    a, b, c = Wire("a"), Wire("b"), Wire("c")
    b.unsent, c.closed = BUSY, True
    table = table_of(a, b, c)

    assert [table.available("g") for _ in range(3)] == [a, a, a]


def test_a_busy_connection_will_do_if_there_is_no_better_one() -> None:
    a, b = Wire("a"), Wire("b")
    a.unsent, b.closed = BUSY, True
    table = table_of(a, b)

    assert table.available("g") is a
    a.closed = True
    assert table.available("g") is None


def test_three_connections_are_tried_and_no_more() -> None:
    wires = [Wire(str(number)) for number in range(5)]
    table = table_of(*wires)
    for wire in wires[1:4]:
        wire.closed = True

    assert table.available("g") is None  # tried 1, 2, 3
    assert table.available("g") is wires[4]  # tried 2, 3, 4


def test_a_group_without_members_has_no_connection() -> None:
    assert OnlineProducers().available("g") is None


def test_a_full_table_takes_few_groups_of_each_connection() -> None:
    greedy = [Wire(f"greedy-{number}") for number in range(16)]
    table = OnlineProducers()
    for wire in greedy:
        for number in range(MAX_MEMBERSHIPS // 16):
            table.register(f"g{number}", wire, client("greedy"), 0.0)
    wire = Wire("late")
    for number in range(20):
        table.register(f"late-{number}", wire, client("late"), 0.0)

    assert table.find("late") is wire
    assert table.count_of(wire) == 16
    table.closed(greedy[0])
    table.register("another", wire, client("late"), 0.0)
    assert table.count_of(wire) == 17
