"""A broker on a store that was repaired: every message is there, delayed ones come as they should."""

import shutil
from pathlib import Path

from pocketmq.broker.upkeep.stored_formats import check_broker_store, repair_broker_store
from pocketmq.store.checking import check_store
from pocketmq.store.repair import repair_store
from tests.broker.running import LoopClock, client, pull_fields, records, running, send_fields
from tests.loops import leap, leaping

SEND, PULL, COMMIT, QUERY = 310, 11, 15, 14
OFFSET = {"consumerGroup": "CG", "topic": "T", "queueId": "0"}
DELAYED = "UNIQ_KEY\1K\2DELAY\x013\2"
TIMED = "UNIQ_KEY\1L\2TIMER_DELAY_SEC\x0120\2"


async def fill(path: Path) -> None:
    async with running(path, LoopClock()) as (_, address), client(address) as peer:
        for _ in range(3):
            assert (await peer.ask(SEND, send_fields("T"), b"x")).code == 0
        await peer.ask(PULL, pull_fields("T", sysFlag="4"))
        assert (await peer.ask(COMMIT, OFFSET | {"commitOffset": "2"})).code == 0
        for properties in (DELAYED, TIMED):
            assert (await peer.ask(SEND, send_fields("T", properties), b"later")).code == 0


async def bodies(path: Path) -> tuple[list[bytes], str | None]:
    """Return what the topic holds after the delays, and how far the group was at the start."""
    clock = LoopClock()
    async with running(path, clock) as (_, address):
        async with client(address) as peer:
            offset = (await peer.ask(QUERY, OFFSET | {"setZeroIfNotFound": "false"})).ext
            clock.forward(30)
            await leap(30)
        async with client(address) as peer:
            pulled = await peer.ask(PULL, pull_fields("T", sysFlag="4"))
            return [bytes(each.stored_body) for each in records(pulled)], offset.get("offset")


@leaping
async def test_without_its_index(tmp_path: Path) -> None:
    await fill(tmp_path)
    shutil.rmtree(tmp_path / "index")
    repair_store(tmp_path)
    assert await bodies(tmp_path) == ([b"x", b"x", b"x", b"later", b"later"], "2")
    assert check_store(tmp_path).sound


@leaping
async def test_without_its_metadata(tmp_path: Path) -> None:
    await fill(tmp_path)
    (tmp_path / "meta.sqlite").unlink()
    repair_store(tmp_path)
    assert await bodies(tmp_path) == ([b"x", b"x", b"x", b"later", b"later"], None)
    assert check_store(tmp_path).sound


@leaping
async def test_topics_of_messages_that_wait_are_set_up_again_without_metadata(
    tmp_path: Path,
) -> None:
    """None of them was delivered yet: only the properties of waiting messages name their topics."""
    half = "UNIQ_KEY\1M\2TRAN_MSG\1true\2PGROUP\1PG\2"
    async with running(tmp_path, LoopClock()) as (_, address), client(address) as peer:
        for topic, properties, flag in (("D", DELAYED, "0"), ("E", TIMED, "0"), ("F", half, "4")):
            fields = send_fields(topic, properties) | {"e": "3", "f": flag}
            assert (await peer.ask(SEND, fields, b"later")).code == 0
    (tmp_path / "meta.sqlite").unlink()
    assert repair_broker_store(tmp_path).topics == ["D", "E", "F"]
    clock = LoopClock()
    async with running(tmp_path, clock) as (_, address):
        async with client(address) as peer:
            clock.forward(30)
            await leap(30)
        async with client(address) as peer:
            for topic in ("D", "E"):
                pulled = await peer.ask(PULL, pull_fields(topic, sysFlag="4", queueId="3"))
                assert [bytes(each.stored_body) for each in records(pulled)] == [b"later"]
    assert check_broker_store(tmp_path).sound
