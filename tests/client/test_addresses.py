"""Where brokers are, by the rules of Java's client."""

import pytest

from pocketmq.client.addresses import BrokerAddresses, BrokerProcess
from pocketmq.errors import BrokerNotFound
from pocketmq.model import MessageQueue
from tests.client.servers import broker, route


def known(*brokers: tuple[str, dict[int, str]]) -> BrokerAddresses:
    table = BrokerAddresses()
    for name, addresses in brokers:
        data = broker(name)
        data.broker_addrs.update(addresses)
        table.take([data])
    return table


def test_writers_need_a_master() -> None:
    table = known(("a", {0: "h:1", 1: "h:2"}), ("b", {1: "h:3"}))
    assert table.master("a") == "h:1"
    with pytest.raises(BrokerNotFound, match="broker 'b'"):
        table.master("b")
    with pytest.raises(BrokerNotFound, match="broker 'c'"):
        table.master("c")


@pytest.mark.parametrize(
    ("addresses", "wanted", "found"),
    [
        ({0: "m:1", 1: "s:1"}, 0, 0),
        ({0: "m:1", 1: "s:1"}, 1, 1),
        ({0: "m:1", 2: "s:2"}, 1, 2),  # a missing slave: the next id
        ({0: "m:1", 3: "s:3"}, 1, 0),  # then any
        ({1: "s:1", 2: "s:2"}, 0, 1),  # no master: any
    ],
)
def test_readers_take_what_is_there(addresses: dict[int, str], wanted: int, found: int) -> None:
    table = known(("a", addresses))
    assert table.for_reading("a", wanted) == BrokerProcess("a", found, addresses[found])


def test_readers_that_want_one_process_only_get_no_other() -> None:
    table = known(("a", {0: "m:1", 2: "s:2"}))
    assert table.for_reading("a", 1, only_this=True).broker_id == 2
    with pytest.raises(BrokerNotFound):
        table.for_reading("a", 5, only_this=True)
    with pytest.raises(BrokerNotFound):
        table.for_reading("b", 0)
    with pytest.raises(BrokerNotFound):
        known(("a", {1: "s:1"})).for_reading("a", 0, only_this=True)


def test_a_changed_route_replaces_a_brokers_addresses() -> None:
    table = known(("a", {0: "h:1", 1: "h:2"}))
    table.take([broker("a", "h:9")])
    assert table.places() == [BrokerProcess("a", 0, "h:9")]
    assert "h:9" in table
    assert "h:1" not in table


def test_addresses_no_route_has_are_dropped_with_their_versions() -> None:
    table = known(("a", {0: "h:1", 1: "h:2"}), ("b", {0: "h:3"}))
    for address in ("h:1", "h:2", "h:3"):
        table.note_version(address, 401)
    assert table.keep_only([route(broker("a", "h:1"))]) == ["h:2", "h:3"]
    assert table.places() == [BrokerProcess("a", 0, "h:1")]
    assert (table.version("h:1"), table.version("h:2"), table.version("h:3")) == (401, 0, 0)
    assert table.keep_only([route(broker("a", "h:1"))]) == []


def test_masters_can_be_listed_alone() -> None:
    table = known(("a", {0: "h:1", 1: "h:2"}), ("b", {1: "h:3"}))
    assert table.places(masters_only=True) == [BrokerProcess("a", 0, "h:1")]
    assert len(table.places()) == 3


@pytest.mark.parametrize("wrong", ["nonsense", "", "host:99999", "[::1", "x y:1"])
def test_invalid_addresses_are_ignored(wrong: str, caplog: pytest.LogCaptureFixture) -> None:
    table = known(("a", {0: wrong, 1: "s:1"}), ("b", {0: wrong}))
    assert table.any_of("a") == BrokerProcess("a", 1, "s:1")
    for name in ("a", "b"):
        with pytest.raises(BrokerNotFound):
            table.master(name)
    assert caplog.text.count("invalid address in route") == 2


def test_a_logical_queue_is_served_by_its_leader_of_now() -> None:
    table = known(("a", {0: "h:1"}), ("b", {0: "h:2"}))
    logical = MessageQueue("fixed", "__syslo__global__", 0)
    other = MessageQueue("other", "__syslo__global__", 0)
    plain = MessageQueue("orders", "a", 0)
    assert table.writer(plain) == "h:1"
    with pytest.raises(BrokerNotFound, match="__syslo__global__"):
        table.writer(logical)
    table.lead("fixed", {logical: "a"})
    table.lead("other", {other: "b"})
    assert [table.writer(queue) for queue in (plain, logical, other)] == ["h:1", "h:1", "h:2"]
    table.lead("fixed", {logical: "b"})
    assert table.holder(logical) == "b"
    table.lead("fixed", {})
    assert table.holder(logical) == "__syslo__global__"
    assert table.holder(other) == "b"
