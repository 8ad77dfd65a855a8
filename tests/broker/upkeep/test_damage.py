"""One damaged record costs one message, however it is read: the broker serves all the others."""

from pathlib import Path

import pytest

from pocketmq.broker.metrics.families import metrics_text
from pocketmq.protocol import RequestCode as Code
from tests.broker.pop.counter import create, got, pop_fields
from tests.broker.running import (
    LoopClock,
    client,
    position,
    pull_fields,
    records,
    running,
    send_fields,
)
from tests.loops import leap, leaping

pytestmark = pytest.mark.damaged_store

SEND = 310
BODY_SIZE_AT, BODY_AT = 84, 88
COUNT, HIT = 9, 4


async def fill(path: Path, properties: str = "UNIQ_KEY\1K\2KEYS\1k\2") -> list[int]:
    """Store some messages and stop the broker; return where they are in the log."""
    places = []
    async with running(path, LoopClock()) as (_, address), client(address) as peer:
        await create(peer, "T")
        for number in range(COUNT):
            answer = await peer.ask(SEND, send_fields("T", properties), b"message %d" % number)
            places.append(position(answer))
    return places


def flip(path: Path, at: int) -> None:
    (file,) = (path / "commitlog").iterdir()
    with file.open("r+b") as opened:
        opened.seek(at)
        (byte,) = opened.read(1)
        opened.seek(at)
        opened.write(bytes([byte ^ 4]))


OTHERS = [b"message %d" % number for number in range(COUNT) if number != HIT]


@pytest.mark.parametrize("at", [BODY_SIZE_AT + 3, BODY_SIZE_AT, BODY_AT + 1])
async def test_pull_pop_view_query_and_retry(
    tmp_path: Path, at: int, caplog: pytest.LogCaptureFixture
) -> None:
    places = await fill(tmp_path)
    flip(tmp_path, places[HIT] + at)
    async with running(tmp_path) as (broker, address), client(address) as peer:
        pulled = await peer.ask(Code.PULL_MESSAGE, pull_fields("T"))
        assert [each.stored_body for each in records(pulled)] == OTHERS
        assert pulled.ext is not None
        assert pulled.ext["nextBeginOffset"] == str(COUNT)

        alone = pull_fields("T", HIT, maxMsgNums="1")
        answer = await peer.ask(Code.PULL_MESSAGE, alone)
        assert (answer.body, (answer.ext or {})["nextBeginOffset"]) == (b"", str(HIT + 1))

        popped = await peer.ask(Code.POP_MESSAGE, pop_fields("T"))
        assert [each.body for each in got(popped, "T")] == OTHERS

        for number, place in enumerate(places):
            answer = await peer.ask(Code.VIEW_MESSAGE_BY_ID, {"offset": str(place)})
            assert (answer.code == 0) == (number != HIT)

        times = {"beginTimestamp": "0", "endTimestamp": str(1 << 50)}
        fields = {"topic": "T", "key": "k", "maxNum": "32"} | times
        answer = await peer.ask(Code.QUERY_MESSAGE, fields)
        assert [each.stored_body for each in records(answer)] == OTHERS

        fields = {"offset": str(places[HIT]), "group": "G", "delayLevel": "0"}
        answer = await peer.ask(Code.CONSUMER_SEND_MSG_BACK, fields)
        assert answer.code == 1
        assert f"look message by offset failed, {places[HIT]}" in (answer.remark or "")
        (line,) = [
            each
            for each in metrics_text(broker.state).splitlines()
            if each.startswith("pocketmq_storage_damaged_records_total{")
        ]
        assert line.endswith(" 1.0")
    reports = [each for each in caplog.records if "damaged record" in each.message]
    assert [each.levelname for each in reports] == ["ERROR"]
    where = f"topic=T queue=0 queue_offset={HIT} log_position={places[HIT]}"
    assert where in reports[0].message
    assert "pocketmq store check --repair" in reports[0].message


@pytest.mark.parametrize("wait", ["DELAY\x013\2", "TIMER_DELAY_SEC\x0120\2"])
@leaping
async def test_delayed_messages_around_a_damaged_one_are_delivered(
    tmp_path: Path, wait: str
) -> None:
    places = await fill(tmp_path, "UNIQ_KEY\1K\2" + wait)
    flip(tmp_path, places[HIT] + BODY_AT)
    clock = LoopClock()
    async with running(tmp_path, clock) as (_, address):
        clock.forward(30)
        await leap(30)
        async with client(address) as peer:
            pulled = await peer.ask(Code.PULL_MESSAGE, pull_fields("T", sysFlag="4"))
            assert [each.stored_body for each in records(pulled)] == OTHERS
