"""Pops of a queue of batches: each message by itself, which Java's broker does not do."""

from pathlib import Path

from pocketmq.protocol.batch import BatchEntry, encode_batch
from tests.broker.pop.counter import ack, bodies, committed, pop
from tests.broker.pop.test_recovery import copy_of
from tests.broker.running import Client, LoopClock, client, running, send_fields
from tests.loops import leap, leaping

T = "batches"


async def create(peer: Client) -> None:
    fields = {
        "topic": T, "defaultTopic": "TBW102", "readQueueNums": "1", "writeQueueNums": "1",
        "perm": "6", "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
        "attributes": "+queue.type=BatchCQ",
    }  # fmt: skip
    assert (await peer.ask(17, fields)).code == 0


async def send(peer: Client, names: str) -> None:
    body = encode_batch([BatchEntry(each.encode(), f"K\1{each}\2".encode(), 7) for each in names])
    answer = await peer.ask(320, send_fields(T, "UNIQ_KEY\1B\2", m="true"), body)
    assert "batchUniqId" in answer.ext


async def test_a_pop_takes_single_messages_of_a_batch() -> None:
    async with running() as (_, address), client(address) as peer:
        await create(peer)
        await send(peer, "abcde")
        await send(peer, "fg")
        first = await pop(peer, T, maxMsgNums=3)
        second = await pop(peer, T, maxMsgNums=3)
        third = await pop(peer, T)
        assert [bodies(each) for each in (first, second, third)] == [
            ["a", "b", "c"],
            ["d", "e"],
            ["f", "g"],
        ]
        assert [each.properties["K"] for each in second] == ["d", "e"]
        assert await pop(peer, T) == []
        await ack(peer, T, first[0], *second)
        assert await committed(peer, T) == 1
        await ack(peer, T, *first[1:])
        assert await committed(peer, T) == 5


@leaping
async def test_a_message_of_a_batch_comes_back_alone() -> None:
    async with running() as (_, address), client(address) as peer:
        await create(peer)
        await send(peer, "abcd")
        messages = await pop(peer, T, invisibleTime=3000)
        await ack(peer, T, messages[0], messages[2])
        await leap(4)
        back = await pop(peer, T)
        assert [(each.body, each.tries) for each in back] == [(b"b", 1), (b"d", 1)]
        await ack(peer, T, *back)
        assert await committed(peer, T) == 4


@leaping
async def test_copies_of_a_batchs_messages_are_told_apart_after_a_crash(tmp_path: Path) -> None:
    """All messages of a batch lie at one position of the log; their copies name their origins."""
    clock = LoopClock()
    data = tmp_path / "data"
    async with running(data, clock) as (_, address), client(address) as peer:
        await create(peer)
        await send(peer, "abcd")
        await pop(peer, T, maxMsgNums=2, invisibleTime=3000)
        await pop(peer, T, maxMsgNums=2, invisibleTime=30_000)
        await leap(4)
        assert sorted(bodies(await pop(peer, T, invisibleTime=60_000))) == ["a", "b"]
        killed = copy_of(data, "killed")
    async with running(killed, clock) as (_, address), client(address) as peer:
        await leap(28)
        assert sorted(bodies(await pop(peer, T))) == ["c", "d"]
