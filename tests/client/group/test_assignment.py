"""Queues assigned by the broker instead of by the members (5.x)."""

from pocketmq.balance.allocation import Average, AverageByCircle
from pocketmq.protocol import RequestCode
from tests.client.group.groups import cluster, member, members, queues_of, send, shared
from tests.loops import until

AVG = Average()


async def test_a_group_takes_what_the_broker_assigns() -> None:
    queues = queues_of(2, 4)
    async with (
        cluster(2) as running,
        members(running.address, "a", "b", client_rebalance=False) as (a, b),
    ):
        await shared([a, b], queues, AVG)
        async with member(running.address, "c", client_rebalance=False) as c:
            await shared([a, b, c], queues, AVG)
            await send(running.address, 32)
            await until(lambda: sum(len(one.got) for one in (a, b, c)) == 32, "everything")
        await shared([a, b], queues, AVG)
        event = a.consumer.history[-1]
        assert (event.queues, event.members) == (None, None)


async def test_members_that_choose_and_members_that_ask_agree() -> None:
    async with (
        cluster(2) as running,
        member(running.address, "a", client_rebalance=False, strategy="AVG_BY_CIRCLE") as a,
        member(running.address, "b", strategy="AVG_BY_CIRCLE") as b,
    ):
        await shared([a, b], queues_of(2, 4), AverageByCircle())


async def test_the_broker_is_asked_only_if_it_shall_decide() -> None:
    asked: list[int] = []

    def note(code: int, fields: dict[str, str], body: bytes) -> None:
        asked.append(code)

    async with cluster() as running, member(running.address) as one:
        await shared([one], queues_of(1, 4), AVG)
        one.consumer.session.calls.hooks += (note,)
        joined = one.consumer._life.member
        assert joined is not None
        joined.request_rebalance()
        await until(lambda: RequestCode.GET_CONSUMER_LIST_BY_GROUP in asked, "a run")
        assert RequestCode.QUERY_ASSIGNMENT not in asked
