"""A broker that is alive keeps its name, its address and its place in the routes."""

import json

import pytest

from pocketmq.errors import NoPermission
from pocketmq.nameserver import NameServer, NameServerConfig
from pocketmq.nameserver.route_registry import RouteRegistry
from tests.loops import leap, leaping
from tests.nameserver.shapes import addresses, broker, topics
from tests.nameserver.wire import Peer, broker_fields, running

OTHER_HOST = "127.0.0.2"


async def masters(peer: Peer) -> dict[str, dict[str, str]]:
    table = json.loads(_quoted((await peer.ask(106)).body))["brokerAddrTable"]
    return {name: data["brokerAddrs"] for name, data in table.items()}


def _quoted(body: bytes) -> bytes:
    return body.replace(b"{0:", b'{"0":').replace(b",1:", b',"1":')


async def owner_and_other(server: NameServer, host: str = OTHER_HOST) -> tuple[Peer, Peer]:
    owner, other = await Peer.to(server), await Peer.to(server, host)
    assert (await owner.register("b", 0, "b:1", "t", "u")).code == 0
    return owner, other


@pytest.mark.parametrize("host", ["127.0.0.1", OTHER_HOST])
@pytest.mark.parametrize("cluster", ["c", "another"])
async def test_a_live_brokers_name_is_not_taken_over_by_another_address(
    host: str, cluster: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with running() as server:
        owner, other = await owner_and_other(server, host)
        refused = await other.register("b", 0, "6.6.6.6:1", "t", "u", clusterName=cluster)
        assert (refused.code, refused.remark) == (
            16,
            (
                "broker b with id 0 is registered by b:1, which is alive; "
                "stop that broker first, or give this one another brokerName"
            ),
        )
        assert await masters(other) == {"b": {"0": "b:1"}}
        assert "REGISTER_BROKER (103) was refused with code 16: broker b with id 0" in caplog.text
        await owner.close()
        await other.close()


async def test_a_broker_that_comes_back_at_another_address_is_let_in_at_once() -> None:
    async with running() as server:
        owner, other = await owner_and_other(server)
        await owner.close()
        while await masters(other):
            pass
        assert (await other.register("b", 0, "b:2", "t", "u")).code == 0
        assert await masters(other) == {"b": {"0": "b:2"}}
        await other.close()


@leaping
async def test_an_owner_on_a_dead_connection_is_replaced_after_70_seconds_of_silence() -> None:
    async with running() as server:
        owner, other = await owner_and_other(server)
        await leap(69)
        assert (await other.register("b", 0, "b:2", "t", "u")).code == 16
        await leap(2)
        assert (await other.register("b", 0, "b:2", "t", "u")).code == 0
        assert await masters(other) == {"b": {"0": "b:2"}}
        await owner.close()
        await other.close()


@leaping
@pytest.mark.parametrize("code", [904, 322])
async def test_other_hosts_do_not_keep_a_silent_owner_alive(code: int) -> None:
    async with running() as server:
        owner, other = await owner_and_other(server)
        await leap(40)
        assert (await other.ask(code, broker_fields("b", 0, "b:1"))).code == 0
        await leap(31)
        assert (await other.register("b", 0, "b:2", "t", "u")).code == 0
        await owner.close()
        await other.close()


@leaping
@pytest.mark.parametrize("code", [904, 322])
async def test_an_owner_is_alive_by_what_comes_from_its_host(code: int) -> None:
    async with running() as server:
        owner, other = await owner_and_other(server)
        again = await Peer.to(server)
        await leap(40)
        assert (await again.ask(code, broker_fields("b", 0, "b:1"))).code == 0
        await leap(31)
        assert (await other.register("b", 0, "b:2", "t", "u")).code == 16
        for peer in (owner, other, again):
            await peer.close()


async def test_slaves_and_a_changed_address_on_the_owners_connection_are_let_in() -> None:
    async with running() as server:
        owner, slave = await owner_and_other(server)
        assert (await slave.register("b", 1, "s:1", "t", "u")).code == 0
        assert (await owner.register("b", 0, "b:3", "t", "u")).code == 0
        assert await masters(owner) == {"b": {"0": "b:3", "1": "s:1"}}
        await owner.close()
        await slave.close()


@pytest.mark.parametrize("name", ["b", "evil"])
async def test_a_live_brokers_address_is_not_claimed_from_another_host(name: str) -> None:
    """A claim under another name would take the owner out of the routes."""
    async with running() as server:
        owner, other = await owner_and_other(server)
        refused = await other.register(name, 0, "b:1", "x", "y")
        assert refused.code == 16
        assert "broker address b:1 is registered from another host" in str(refused.remark)
        assert await masters(other) == {"b": {"0": "b:1"}}
        await owner.close()
        await other.close()


@pytest.mark.parametrize("cluster", ["c", "another"])
async def test_a_live_broker_is_not_unregistered_from_another_host(cluster: str) -> None:
    async with running() as server:
        owner, other = await owner_and_other(server)
        fields = broker_fields("b", 0, "b:1") | {"clusterName": cluster}
        refused = await other.ask(104, fields)
        assert refused.code == 16
        assert refused.remark == (
            "broker b:1 is alive; only itself or a super user's signed request unregisters it"
        )
        assert await masters(other) == {"b": {"0": "b:1"}}
        again = await Peer.to(server)  # the broker's own host, on a new connection
        assert (await again.ask(104, broker_fields("b", 0, "b:1"))).code == 0
        assert await masters(other) == {}
        for peer in (owner, other, again):
            await peer.close()


async def test_the_setting_that_allows_it_cannot_be_changed_over_the_wire() -> None:
    async with running() as server:
        peer = await Peer.to(server)
        assert (await peer.ask(318, {}, b"brokerTakeOverEnable=true\n")).code == 16
        await peer.close()


async def test_with_the_setting_the_last_to_register_is_found_as_in_java() -> None:
    async with running(NameServerConfig(broker_take_over_enable=True)) as server:
        owner, other = await owner_and_other(server)
        assert (await other.register("b", 0, "b:2", "t", "u")).code == 0
        assert await masters(other) == {"b": {"0": "b:2"}}
        assert (await owner.ask(104, broker_fields("b", 0, "b:2"))).code == 0
        assert await masters(other) == {}
        await owner.close()
        await other.close()


class TestTerms:
    """A controller counts the terms of masters; the later one is right."""

    def registered(self, term: int) -> RouteRegistry:
        table = RouteRegistry()
        table.register(broker(address="old:1"), topics("t", "u", state=term), 1, 0.0)
        return table

    def test_a_master_of_a_later_term_replaces_a_live_one(self) -> None:
        table = self.registered(3)
        new = broker(address="new:1")
        table.register(new, topics("t", "u", state=4), 2, 1.0, take_over=False)
        assert addresses(table) == {0: "new:1"}

    def test_a_term_is_no_argument_where_no_controller_counts(self) -> None:
        table = self.registered(0)
        with pytest.raises(NoPermission, match="registered by old:1"):
            table.register(
                broker(address="new:1"), topics("t", "u", state=9), 2, 1.0, take_over=False
            )

    def test_a_replica_of_some_time_may_become_master_while_the_old_one_lives(self) -> None:
        """Leaders of a DLedger group change so; one that has just come as a replica does not."""
        table = RouteRegistry()
        replica, master = broker(broker_id=1, address="r:1"), broker(address="old:1")
        table.register(replica, topics("t", "u"), 2, 0.0, take_over=False)
        table.register(master, topics("t", "u"), 1, 0.0, take_over=False)
        promoted = broker(address="r:1")
        for connection, now in ((2, 30.0), (3, 60.0)):
            table.register(master, topics("t", "u"), 1, now, take_over=False)
            with pytest.raises(NoPermission):
                table.register(promoted, topics("t", "u"), connection, now, take_over=False)
        table.register(replica, topics("t", "u"), 2, 60.0, take_over=False)
        table.register(promoted, topics("t", "u"), 2, 75.0, take_over=False)
        assert addresses(table) == {0: "r:1"}

    def test_one_of_the_same_term_is_refused(self) -> None:
        table = self.registered(3)
        with pytest.raises(NoPermission, match="registered by old:1"):
            table.register(
                broker(address="new:1"), topics("t", "u", state=3), 2, 1.0, take_over=False
            )
        assert addresses(table) == {0: "old:1"}

    @pytest.mark.parametrize("cluster", ["c", "another"])
    def test_one_of_an_earlier_term_is_passed_over_in_silence_as_in_java(
        self, cluster: str
    ) -> None:
        table = self.registered(3)
        late = broker(address="new:1", cluster=cluster)
        table.register(late, topics("t", "u", state=2), 2, 1.0, take_over=False)
        assert addresses(table) == {0: "old:1"}
