"""What pages are given about a real cluster, whole and in pieces."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from pocketmq import aio
from pocketmq.dashboard.assignment.snapshots import poller_of
from pocketmq.dashboard.pages.cluster import state_of
from pocketmq.dashboard.settings import DashboardSettings
from pocketmq.dashboard.views import Views, silenced
from pocketmq.dashboard.watch import ClusterWatch
from pocketmq.embedded.aio import Cluster


def states(views: Views) -> dict[str, tuple[str, str | None]]:
    poller = views.cluster()
    brokers = silenced(poller.value or (), poller.problem)
    return {each.place.broker: (state_of(each).text, state_of(each).tone) for each in brokers}


async def test_a_broker_that_is_down_is_red_and_so_are_all_when_nothing_responds() -> None:
    async with Cluster(brokers=2) as cluster, aio.Admin(cluster.address, timeout=30.0) as admin:
        views = Views(admin)
        await views.cluster().sample()
        assert states(views) == dict.fromkeys(("broker-0", "broker-1"), ("up", "good"))
        await cluster.kill("broker-0")
        await views.cluster().sample()
        assert states(views) == {"broker-0": ("no response", "bad"), "broker-1": ("up", "good")}
        await cluster.stop()
        await views.cluster().sample()
        assert "no name server responds" in (views.cluster().problem or "")
        assert states(views) == dict.fromkeys(("broker-0", "broker-1"), ("no response", "bad"))
        points = views.rates.since("in", 0.0)
        assert [value is None for _, value in points] == [False, True, True]
        await views.close()


@asynccontextmanager
async def forwarded(address: str) -> AsyncIterator[tuple[str, Callable[[], None]]]:
    """Yield another address of a server, and a function that cuts it off."""
    host, port = address.split(":")
    open_ends: list[asyncio.StreamWriter] = []
    tasks: set[asyncio.Task[None]] = set()

    async def pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(1 << 16):
                target.write(data)

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(host, int(port))
        open_ends.extend((writer, back))
        tasks.update({asyncio.create_task(pass_on(reader, back))})
        await pass_on(there, writer)

    server = await asyncio.start_server(meet, "127.0.0.1", 0)

    def cut() -> None:
        server.close()
        for each in open_ends:
            each.transport.abort()

    own = server.sockets[0].getsockname()
    try:
        yield f"{own[0]}:{own[1]}", cut
    finally:
        cut()
        await asyncio.gather(*tasks)


async def test_brokers_that_respond_are_up_though_no_name_server_does() -> None:
    async with (
        Cluster() as cluster,
        forwarded(cluster.address) as (address, cut),
        aio.Admin(address, timeout=30.0) as admin,
    ):
        views = Views(admin)
        await views.cluster().sample()
        cut()
        await views.cluster().sample()
        assert states(views) == {"broker-0": ("up", "good")}
        assert views.cluster().problem is None
        await views.topics().sample()
        assert "no name server responds" in (views.topics().problem or "")
        await views.close()


async def _ignore(_: object) -> None:
    pass


async def test_rates_lags_and_assignments_are_sampled_though_no_page_is_open() -> None:
    async with Cluster() as cluster:
        await cluster.create_topic("orders", queues=2)
        consumer = aio.PushConsumer(cluster.address, group="billing")
        consumer.subscribe("orders", "*", _ignore)
        async with consumer:
            watch = ClusterWatch(aio.Admin(cluster.address), DashboardSettings())
            await watch.admin.start()
            try:
                for job in watch.samples():
                    await job()
                views = watch.views
                assert [value for _, value in views.group_lags.since("billing", 0.0)] == [0]
                assert len(views.topic_rates.since("orders", 0.0)) == 1
                assert len(views.rates.since("in", 0.0)) == 1
                snapshot = poller_of(views.pollers, watch.admin, "billing").value
                assert snapshot is not None
                assert len(snapshot.moment.members) == 1
            finally:
                await watch.close()
