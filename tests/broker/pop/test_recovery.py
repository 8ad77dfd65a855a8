"""What is out outlives the broker: stopped, killed, or with only its journal."""

import shutil
from pathlib import Path

from pocketmq.broker.pop.pops import Pops
from tests.broker.pop.counter import ack, bodies, committed, create, hide, pop, send
from tests.broker.running import LoopClock, client, running
from tests.loops import leap, leaping, until

T = "kept"


def copy_of(data: Path, name: str) -> Path:
    """Copy a directory in use: what a killed broker leaves behind."""
    target = data.with_name(name)
    shutil.copytree(data, target)
    return target


@leaping
async def test_a_restarted_broker_knows_what_is_out(tmp_path: Path) -> None:
    clock = LoopClock()
    async with running(tmp_path, clock) as (_, address), client(address) as peer:
        await create(peer, T)
        await send(peer, T, *"abcdef")
        messages = await pop(peer, T, maxMsgNums=5, invisibleTime=30_000)
        await ack(peer, T, messages[0], messages[2])
        longer = await hide(peer, T, messages[3], 120_000)
    async with running(tmp_path, clock) as (_, address), client(address) as peer:
        assert await committed(peer, T) == 1
        assert bodies(await pop(peer, T)) == ["f"]
        await ack(peer, T, messages[1])
        assert await committed(peer, T) == 3
        await leap(31)
        back = await pop(peer, T)
        assert sorted(bodies(back)) == ["e", "f"]
        await ack(peer, T, longer)
        assert await committed(peer, T) == 6


@leaping
async def test_a_killed_broker_forgets_no_acknowledgement(tmp_path: Path) -> None:
    clock = LoopClock()
    data = tmp_path / "data"
    async with running(data, clock) as (_, address), client(address) as peer:
        await create(peer, T)
        await send(peer, T, *"abcdef")
        messages = await pop(peer, T, invisibleTime=30_000)
        await ack(peer, T, *messages[:3])
        ordered = await pop(peer, T, "O", order="true", maxMsgNums=3, invisibleTime=30_000)
        await ack(peer, T, ordered[0], group="O")
        killed = copy_of(data, "killed")
    async with running(killed, clock) as (_, address), client(address) as peer:
        assert await committed(peer, T) == 3
        assert await pop(peer, T) == []
        assert await pop(peer, T, "O", order="true") == []
        await ack(peer, T, messages[3])
        await leap(31)
        assert sorted(bodies(await pop(peer, T))) == ["e", "f"]
        assert bodies(await pop(peer, T, "O", order="true", maxMsgNums=2)) == ["b", "c"]


@leaping
async def test_what_was_brought_back_is_not_brought_back_again(tmp_path: Path) -> None:
    clock = LoopClock()
    data = tmp_path / "data"
    async with running(data, clock) as (_, address), client(address) as peer:
        await create(peer, T)
        await send(peer, T, "a", "b")
        await pop(peer, T, invisibleTime=1000)
        await leap(2)
        (first,) = await pop(peer, T, maxMsgNums=1, invisibleTime=60_000)
        assert first.tries == 1
        killed = copy_of(data, "killed")
    async with running(killed, clock) as (_, address), client(address) as peer:
        await leap(5)
        (second,) = await pop(peer, T)
        assert sorted([first.body, second.body]) == [b"a", b"b"]
        await ack(peer, T, first, second)
        assert await committed(peer, "%RETRY%G_kept") == 2


@leaping
async def test_a_topic_deleted_before_the_kill_stays_so(tmp_path: Path) -> None:
    """A new topic of an old name has nothing to do with what was popped from the old one."""
    clock = LoopClock()
    data = tmp_path / "data"
    async with running(data, clock) as (_, address), client(address) as peer:
        await create(peer, T)
        await send(peer, T, *"abcd")
        messages = await pop(peer, T)
        await ack(peer, T, *messages[:2])
        assert (await peer.ask(215, {"topic": T})).code == 0
        await create(peer, T)
        await send(peer, T, *"wxyz")
        killed = copy_of(data, "killed")
    async with running(killed, clock) as (_, address), client(address) as peer:
        assert bodies(await pop(peer, T)) == ["w", "x", "y", "z"]


@leaping
async def test_a_long_journal_is_replaced_by_what_it_came_to(tmp_path: Path) -> None:
    clock = LoopClock()
    data = tmp_path / "data"
    async with running(data, clock) as (broker, address), client(address) as peer:
        await create(peer, T)
        await send(peer, T, *"abc")
        messages = await pop(peer, T, invisibleTime=300_000)
        await ack(peer, T, messages[0])
        await leap(31)
        await leap(2)
        store = broker.state.store
        await until(lambda: store.metadata.documents("pops"), "it to be saved")
        await ack(peer, T, messages[2])
        killed = copy_of(data, "killed")
    async with running(killed, clock) as (broker, address), client(address) as peer:
        assert isinstance(broker.state.pops, Pops)
        in_flight = broker.state.pops.table.all_in_flight.find(T, "G", 0)
        assert in_flight is not None
        assert list(in_flight.held) == [1]
        await ack(peer, T, messages[1])
        assert await committed(peer, T) == 3


@leaping
async def test_after_the_clock_is_set_back_messages_come_back_when_their_time_is_over(
    tmp_path: Path,
) -> None:
    """Also those of ordered pops, and over a restart."""
    clock = LoopClock()
    data = tmp_path / "data"
    async with running(data, clock) as (_, address), client(address) as peer:
        await create(peer, T)
        await send(peer, T, "a")
        clock.forward(86_400)
        await leap(2)  # the broker notices
        assert bodies(await pop(peer, T, invisibleTime=8000)) == ["a"]
        assert bodies(await pop(peer, T, "O", order="true", invisibleTime=8000)) == ["a"]
        clock.forward(-86_400)
        killed = copy_of(data, "killed")
        await leap(5)
        assert not await pop(peer, T)
        assert not await pop(peer, T, "O", order="true")
        await leap(15)
        assert bodies(await pop(peer, T)) == ["a"]
        assert bodies(await pop(peer, T, "O", order="true")) == ["a"]
    async with running(killed, clock) as (_, address), client(address) as peer:
        await leap(15)
        assert bodies(await pop(peer, T)) == ["a"]
        assert bodies(await pop(peer, T, "O", order="true")) == ["a"]
