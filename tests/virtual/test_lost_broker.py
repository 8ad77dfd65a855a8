"""A member that cannot reach one broker keeps its queues elsewhere, and others take those there."""

import asyncio
from pathlib import Path

import pytest

from pocketmq.model import MessageQueue
from tests.virtual.loop import run_virtually
from tests.virtual.schedule import comes_to_rest
from tests.virtual.sticky import StickyWorld
from tests.virtual.world import Person, virtual_clients

pytestmark = pytest.mark.usefixtures(virtual_clients.__name__)


async def lose_one_broker(directory: Path, *, orderly: bool) -> None:
    world = StickyWorld(1, directory, {"orderly": orderly, "settle": 0.05})
    try:
        await world.begin()
        for _ in range(3):
            await world.join()
        await comes_to_rest(world)
        first, lost = world.members[0], world.houses[0]
        elsewhere = at("broker-1", first)
        assert at("broker-0", first)
        assert elsewhere
        first.lose_broker(lost.proxy.address)
        for _ in range(80):
            await world.send(4)
            await asyncio.sleep(1.0)
        assert world.misplaced() == {}
        assert at("broker-0", first) == set()
        assert at("broker-1", first) >= elsewhere
        assert world.unseen() == []
        first.find_broker()
        await asyncio.sleep(60.0)
        assert at("broker-0", first)
        await comes_to_rest(world)
        assert world.last_stored == world.offsets()  # nothing was stored unseen
        assert world.broken == []
    finally:
        await world.end()


def at(broker: str, member: Person) -> set[MessageQueue]:
    return {queue for queue in member.queues() if queue.broker_name == broker}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("orderly", [False, True])
def test_the_queues_of_a_broker_that_one_member_lost_are_taken_by_others(
    tmp_path: Path, orderly: bool
) -> None:
    run_virtually(lose_one_broker(tmp_path, orderly=orderly))
