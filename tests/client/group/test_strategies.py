"""Each allocation strategy in a live group: what members hold is what `balance` gives them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pocketmq.balance.allocation import OwnRule, RoomTable, Strategy, StrategySettings
from pocketmq.balance.strategies import strategy_by_name
from pocketmq.errors import AllocationInputInvalid, StrategyUnknown
from pocketmq.model import MessageQueue
from tests.client.group.groups import Member, cluster, member, members, queues_of, shared
from tests.client.servers import Directory, broker, route, serving
from tests.loops import until

QUEUES = [
    MessageQueue("orders", name, queue) for name in ("east@1", "west@2") for queue in range(5)
]
ROOMS = RoomTable(
    brokers={"east@1": "east", "west@2": "west"},
    members={"10.0.0.1@a": "east", "10.0.0.1@b": "west", "10.0.0.1@c": "west"},
)


@asynccontextmanager
async def two_rooms() -> AsyncIterator[str]:
    """A cluster of two brokers whose name server gives them names with rooms."""
    directory = Directory()
    async with cluster(2, 5) as running, serving(directory) as (_, address):
        addresses = [each.address for each in running.brokers.values()]
        rooms = [broker("east@1", addresses[0]), broker("west@2", addresses[1])]
        directory.routes["orders"] = route(*rooms, queues=5)
        directory.routes["TBW102"] = route(*rooms)
        yield address


@pytest.mark.parametrize(
    "name", ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "MACHINE_ROOM", "MACHINE_ROOM_NEARBY"]
)
async def test_a_live_group_holds_what_the_strategy_gives(name: str) -> None:
    settings = StrategySettings(rooms=frozenset({"east"}), resolver=ROOMS)
    strategy = strategy_by_name(name, settings)
    async with two_rooms() as address:
        async with members(
            address, "a", "b", "c", strategy=name, strategy_settings=settings
        ) as group:
            await shared(group, QUEUES, strategy)
            _check_disjoint(group, strategy)
        async with members(address, "a", "b", strategy=strategy) as group:
            await shared(group, QUEUES, strategy)


def _check_disjoint(group: list[Member], strategy: Strategy) -> None:
    held = [queue for one in group for queue in one.queues()]
    assert len(held) == len(set(held))
    owned = strategy.allocate_all(QUEUES, sorted(one.client_id for one in group))
    assert len(held) == sum(owner is not None for owner in owned)


async def test_configured_members_hold_what_they_were_given() -> None:
    first, second = QUEUES[:3], QUEUES[5:]
    async with two_rooms() as address:
        a = StrategySettings(queues=tuple(first))
        b = StrategySettings(queues=tuple(second))
        async with (
            member(address, "a", strategy="CONFIG", strategy_settings=a) as one,
            member(address, "b", strategy="CONFIG", strategy_settings=b) as other,
        ):
            await until(lambda: one.queues() == tuple(first), "the first three")
            await until(lambda: other.queues() == tuple(second), "the last five")


async def test_a_rule_of_ones_own_shares_the_queues() -> None:
    def all_to_the_first(
        group: str, member: str, queues: object, members: object
    ) -> list[MessageQueue]:
        assert isinstance(queues, list)
        assert isinstance(members, list)
        return queues if member == members[0] else []

    rule = OwnRule("FIRST", all_to_the_first)
    async with cluster() as running, members(running.address, "a", "b", strategy=rule) as group:
        await shared(group, queues_of(1, 4), rule)
        assert len(group[0].queues()) == 4


async def test_a_strategy_that_raises_leaves_everything_as_it_is() -> None:
    failing: list[str] = []

    def moody(group: str, member: str, queues: object, members: object) -> list[MessageQueue]:
        assert isinstance(queues, list)
        if failing:
            raise ValueError(failing[0])
        return queues

    rule = OwnRule("MOODY", moody)
    async with cluster() as running, member(running.address, strategy=rule) as one:
        await shared([one], queues_of(1, 4), rule)
        failing.append("no idea")
        joined = one.consumer._life.member
        assert joined is not None
        joined.request_rebalance()
        await until(
            lambda: (
                one.consumer.history[-1].kept_because
                == "the allocation strategy raised an error: ValueError: no idea"
            ),
            "a failed run",
        )
        assert len(one.queues()) == 4


def test_a_strategy_that_cannot_work_is_refused_at_once() -> None:
    with pytest.raises(StrategyUnknown):
        Member("127.0.0.1:1", "a", strategy="AVERAGE")
    with pytest.raises(AllocationInputInvalid):
        Member("127.0.0.1:1", "a", strategy="MACHINE_ROOM")
