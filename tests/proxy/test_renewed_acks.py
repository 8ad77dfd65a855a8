"""Acks of messages that the proxy renews, on the native core: by the short way while none was."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pocketmq import native
from pocketmq.proxy.renewals import Renewals
from pocketmq.proxy.translation.limits import ProxyLimits
from pocketmq.proxy.translation.receipts import read_receipt_handle
from tests.loops import until
from tests.proxy.peers import PATIENCE, QUICK, Served, code
from tests.proxy.test_native_port import calling
from tests.proxy.test_short_ways import Watched, patient, short_way, watched

__all__ = ["patient"]

pytestmark = [
    pytest.mark.skipif(native.core is None, reason="the native core is not built"),
    pytest.mark.usefixtures("patient"),
]


@asynccontextmanager
async def consuming(
    count: int, limits: ProxyLimits = QUICK
) -> AsyncIterator[tuple[Served, Renewals, list[str]]]:
    """Serve a push consumer that has received some messages: the handles of their receipts."""
    async with calling(limits=limits) as served:
        peer = served.peer
        stream = await peer.consume("g", "normal")
        await peer.receive("normal", "g", auto_renew=True)
        for number in range(count):
            await peer.send("normal", b"%d" % number)
        got: list[str] = []
        while len(got) < count:
            messages = await peer.received("normal", "g", auto_renew=True)
            got += [each.system_properties.receipt_handle for each in messages]
        yield served, short_way(served)._state.renewals, got
        stream.cancel()


async def acknowledge(served: Served, *handles: str) -> Watched:
    acks = watched(served, "AckMessage")
    for handle in handles:
        assert code(await served.peer.ack("normal", "g", handle)) == "OK"
    return acks


async def test_acks_of_a_push_consumer_take_the_short_way_and_end_renewals() -> None:
    async with consuming(6) as (served, renewals, handles):
        assert len(renewals) == 6
        acks = await acknowledge(served, *handles)
        assert acks.begun == [True]  # the first one: the others are the core's
        assert len(renewals) == 0
        assert (await served.admin.groups.progress("g", "normal")).lag == 0


async def test_an_ack_whose_receipt_was_replaced_takes_the_usual_way() -> None:
    limits = ProxyLimits(
        min_long_polling=0.1, default_invisible_time=60.0, renew_ahead=59.0, renew_interval=0.2
    )
    async with consuming(2, limits) as (served, renewals, (first, second)):

        def is_settled(handle: str) -> bool:
            """Renewed twice: the next renewal is not due for minutes."""
            given = read_receipt_handle(handle)
            newest = renewals.newest("peer@1", "g", given)
            return newest is not None and newest.visible_at_ms > given.visible_at_ms + 100_000

        await until(lambda: is_settled(first) and is_settled(second), "renewals", PATIENCE)
        acks = await acknowledge(served, first, second)
        assert acks.begun == [True, True]
        assert len(renewals) == 0
        assert (await served.admin.groups.progress("g", "normal")).lag == 0
