"""Log lines that peers can cause: a few of them, and a count of the others."""

import asyncio
import logging

import pytest

from pocketmq.net import Limits
from pocketmq.net.limited_logs import PERIOD, CutOffLog
from tests.loops import leap, leaping, until
from tests.net.peers import Raw, Recorder, echo, serving

KIB, MIB = 1024, 1024 * 1024


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]


@leaping
async def test_cut_off_connections_are_logged_once_and_then_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = CutOffLog(logging.getLogger("pocketmq.net"))
    for number in range(1000):
        log.cut_off(f"10.0.0.1:{number}", "slow")
    assert lines(caplog) == ['client disconnected: address=10.0.0.1:0 reason="slow"']
    await leap(PERIOD + 0.1)
    count = 'clients disconnected: count=999 seconds=10 last=10.0.0.1:999 reason="slow"'
    assert lines(caplog)[1:] == [count]


@leaping
async def test_after_a_quiet_period_a_cut_off_connection_is_logged_at_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = CutOffLog(logging.getLogger("pocketmq.net"))
    log.cut_off("a:1", "slow")
    await leap(PERIOD + 0.1)
    log.cut_off("b:2", "slow")
    assert lines(caplog) == [
        'client disconnected: address=a:1 reason="slow"',
        'client disconnected: address=b:2 reason="slow"',
    ]
    log.close()


async def test_closing_logs_what_was_counted(caplog: pytest.LogCaptureFixture) -> None:
    log = CutOffLog(logging.getLogger("pocketmq.net"))
    log.cut_off("a:1", "slow")
    log.cut_off("b:2", "silent")
    log.close()
    assert lines(caplog)[1:] == [
        'clients disconnected: count=1 seconds=10 last=b:2 reason="silent"'
    ]


async def test_memory_pressure_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """Eight peers that stall with large frames cost two lines, not eight."""
    owner = Recorder(echo)
    size = 900 * KIB
    begun = (size - 4).to_bytes(4, "big") + (100).to_bytes(4, "big") + bytes(size - 16)
    async with serving(owner, Limits(memory=4 * MIB)) as (_, address):
        peers = [Raw(address) for _ in range(8)]
        sending = [asyncio.create_task(peer.send(begun)) for peer in peers]
        try:
            await until(lambda: len(owner.closed) > 2, "several cut off")
            told = [line for line in lines(caplog) if "disconnected: " in line]
            assert len(told) == 1
            assert "too slow under memory pressure" in told[0]
        finally:
            for task in sending:
                task.cancel()
            await asyncio.gather(*sending, return_exceptions=True)
            for peer in peers:
                peer.socket.close()
    told = [line for line in lines(caplog) if "disconnected: " in line]
    assert len(told) == 2
    assert told[1].startswith("clients disconnected: count=")
