"""Push consumers with STICKY hand queues over: nothing twice, nothing lost, the fewest moves."""

import asyncio
import signal
import sys
from contextlib import AsyncExitStack

import msgspec
import pytest

from pocketmq.balance.story.handed_over import handed_over
from pocketmq.client.consumer_options import PushConsumerOptions
from pocketmq.errors import InvalidInput
from pocketmq.model import MessageModel
from pocketmq.model.group_balance import BalanceMode, QueueStage
from pocketmq.model.rebalance_event import RebalanceEvent
from tests.client.group.groups import Member, cluster, member, send
from tests.client.group.handover.sticky import all_seen, even, sticky, stream
from tests.loops import until


def held(one: Member) -> dict[str, object]:
    return {f"{q.broker_name}:{q.queue_id}": q for q in one.queues()}


@pytest.mark.parametrize("orderly", [False, True])
async def test_nothing_is_handled_twice_when_members_join_and_leave(orderly: bool) -> None:
    async with cluster(2) as running, AsyncExitStack() as stack:
        a = await stack.enter_async_context(sticky(running.address, "a", orderly=orderly))
        await even(a, queues=8)
        async with stream(running) as bodies:
            async with sticky(running.address, "b", orderly=orderly) as b:
                await even(a, b, queues=8)
                async with sticky(running.address, "c", orderly=orderly) as c:
                    await even(a, b, c, queues=8)
                await even(a, b, queues=8)
            await even(a, queues=8)
        seen = await all_seen(bodies, a, b, c)
        assert {body: n for body, n in seen.items() if n > 1} == {}
        assert b.got
        assert c.got


async def test_a_join_moves_the_fewest_queues_and_tells_how() -> None:
    async with cluster(2) as running, sticky(running.address, "a") as a:
        await even(a, queues=8)
        async with sticky(running.address, "b") as b:
            await even(a, b, queues=8)
            kept = set(a.queues())
            async with sticky(running.address, "c") as c:
                await even(a, b, c, queues=8)
                assert len(kept - set(a.queues())) <= 2
            moves = [h for e in b.consumer.history if e.topic == "orders" for h in e.handovers]
            overlaps = [h for h in moves if h.heir == b.client_id + "@pm1"]
            assert {h.kind for h in overlaps} >= {"overlap"}
            assert all(h.started and h.giver == a.client_id + "@pm1" for h in overlaps[:4])
            first = next(e for e in b.consumer.history if e.topic == "orders" and e.assigned)
            assert (first.mode, first.version, first.strategy) == ("sticky", 2, "STICKY")
            assert len(first.assigned) == 4
            left = [e for e in a.consumer.history if e.topic == "orders" and e.revoked]
            assert all(h.stopped and h.drained for h in left[0].handovers)


async def test_a_handover_that_takes_long_is_told_when_it_stops_and_when_it_ends() -> None:
    hold = asyncio.Event()

    async def handle(_: object) -> None:
        await hold.wait()

    async with cluster(1, 2) as running, sticky(running.address, "a", handler=handle) as a:
        await even(a, queues=2)
        await send(running.address, 2)
        await until(lambda: a.consumer.history, "the first event")
        async with sticky(running.address, "b") as b:
            await even(a, b, queues=2)

            def told() -> list[RebalanceEvent]:
                return [e for e in a.consumer.history if e.topic == "orders" and not e.assigned]

            await until(told, "the hand-over")
            (stopped,) = told()
            (first,) = stopped.handovers
            assert (first.kind, first.heir) == ("overlap", b.client_id + "@pm1")
            assert first.stopped is not None
            assert first.drained is None
            assert [first.queue] == list(stopped.revoked)
            hold.set()
            await until(lambda: len(told()) == 2, "its end")
            ended = told()[1]
            (last,) = ended.handovers
            assert last.drained is not None
            assert msgspec.structs.replace(last, drained=None) == first
            assert (ended.trigger, ended.revoked) == ("hand-over finished", ())
            assert ended.before == ended.after == a.queues()
            (whole,) = [
                each
                for each in handed_over([*a.consumer.history, *b.consumer.history])
                if each.giver == a.client_id + "@pm1"
            ]
            assert whole.without_owner is not None
            assert whole.draining == last.drained - first.stopped


async def test_the_balance_names_mode_members_owners_and_stages() -> None:
    async with cluster(1) as running, sticky(running.address, "a") as a:
        await even(a, queues=4)
        balance = a.consumer.balance
        assert (balance.mode, balance.reason) == (BalanceMode.STICKY, "")
        assert balance.client_id == "10.0.0.1@a@pm1"
        mine = {q: s for q, s in balance.stages.items() if q.topic == "orders"}
        assert set(mine.values()) == {QueueStage.RUNNING}
        assert set(mine) == set(a.queues())
        async with member(running.address, "java") as foreign:
            await until(lambda: len(foreign.queues()) == 2, "the share of the foreign member")
            await until(lambda: len(a.queues()) == 2, "the rest for ours")
            assert a.consumer.balance.mode is BalanceMode.MIXED
            assert a.consumer.balance.foreign == ("10.0.0.1@java",)
            assert foreign.consumer.balance.mode is BalanceMode.JAVA
            assert set(a.queues()).isdisjoint(foreign.queues())


_DOOMED = """
import asyncio, sys
from tests.client.group.handover.sticky import sticky
async def main():
    async with sticky(sys.argv[1], "doomed") as one:
        while not one.got:
            await asyncio.sleep(0.01)
        print("working", flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""


async def test_the_queues_of_a_killed_member_are_taken_at_once_and_nothing_is_lost() -> None:
    async with cluster(2) as running, sticky(running.address, "a") as a:
        await even(a, queues=8)
        async with stream(running) as bodies:
            doomed = await asyncio.create_subprocess_exec(
                sys.executable, "-c", _DOOMED, running.address, stdout=asyncio.subprocess.PIPE
            )
            assert doomed.stdout is not None
            async with asyncio.timeout(60):
                assert await doomed.stdout.readline() == b"working\n"
            await until(lambda: len(a.queues()) == 4, "two members to share")
            doomed.send_signal(signal.SIGKILL)
            await doomed.wait()
            await even(a, queues=8)  # before the group's next look, up to 20 s later
            count = len(bodies)
            await until(lambda: len(bodies) > count + 20, "more messages")
        # What the killed member handled since its last commit is handled again, the rest once.
        mine = set(a.bodies)
        assert len(mine) == len(a.bodies)
        last = bodies[count:]
        await until(lambda: set(last) <= set(a.bodies), "all messages since")


async def test_listeners_hear_of_queues_that_come_and_go() -> None:
    came: list[object] = []
    went: list[object] = []
    async with cluster(1) as running, sticky(running.address, "a") as a:
        a.consumer.on_assigned(came.extend)
        a.consumer.on_revoked(went.extend)
        await even(a, queues=4)
        async with sticky(running.address, "b") as b:
            await even(a, b, queues=4)
            given = set(b.queues())
            await until(lambda: set(went) == given, "the listener to hear of given queues")
        await even(a, queues=4)
        await until(lambda: given <= set(came), "the listener to hear of queues that are back")


async def test_a_lone_member_stops_at_once() -> None:
    loop = asyncio.get_running_loop()
    async with cluster(1) as running:
        async with sticky(running.address, "a", stop_wait=60.0) as a:
            await even(a, queues=4)
            began = loop.time()
        assert loop.time() - began < 30.0


async def test_a_member_that_is_soon_back_finds_its_queues_unmoved() -> None:
    settings = {"return_within": 20.0}
    async with cluster(2) as running, sticky(running.address, "a", **settings) as a:
        async with sticky(running.address, "b", **settings) as b:
            await even(a, b, queues=8)
            mine, theirs = set(a.queues()), set(b.queues())
        async with sticky(running.address, "b", **settings) as again:
            await until(lambda: set(again.queues()) == theirs, "the queues that waited")
            assert set(a.queues()) == mine


async def test_queues_wait_for_a_member_though_the_goodbye_comes_after_its_absence() -> None:
    """A broker may be late with an answer to a held pull; it tells of departures another way."""
    settings = {"return_within": 60.0, "stop_wait": 1000.0}
    async with cluster(1) as running, sticky(running.address, "a", **settings) as a:
        member = a.consumer._life.member
        assert member is not None
        assert member.sticky is not None
        bus = member.sticky._bus
        async with sticky(running.address, "b", **settings) as b:
            await even(a, b, queues=4)
            mine, theirs = set(a.queues()), set(b.queues())
            since = member.session.clock.now()
            bus._listening["broker-0"].cancel()
        await until(lambda: len(a.consumer.balance.members) == 1, "a list without b")
        for brokers in (frozenset[str](), frozenset({"broker-0"})):
            bus.listen(brokers)
        await bus.until_listening(10.0)
        async with sticky(running.address, "b", **settings) as again:
            await until(lambda: set(again.queues()) == theirs, "the queues that waited")
            assert set(a.queues()) == mine
            moves = [each for event in a.consumer.history for each in event.handovers]
            assert [
                each for each in moves if max(each.started or 0, each.stopped or 0) > since
            ] == []


async def test_a_reset_of_offsets_starts_the_queues_again() -> None:
    async with cluster(1) as running, sticky(running.address, "a") as a:
        await even(a, queues=4)
        async with stream(running) as bodies:
            await until(lambda: len(bodies) > 40, "messages")
        await all_seen(bodies, a)
        running_member = a.consumer._life.member
        assert running_member is not None
        await running_member.reset_offsets("orders", dict.fromkeys(a.queues(), 0))
        await until(lambda: len(a.got) == 2 * len(bodies), "all messages a second time")
        assert len(a.queues()) == 4


async def test_an_unsubscribed_topic_is_left() -> None:
    async with cluster(1, 4, "orders", "refunds") as running, sticky(running.address, "a") as a:
        await even(a, queues=4)
        a.consumer.subscribe("refunds", "*", a.handle)
        await until(lambda: len(a.queues("refunds")) == 4, "the new topic's queues")
        a.consumer.unsubscribe("refunds")
        await until(lambda: a.queues("refunds") == (), "the topic to be left")
        assert len(a.queues()) == 4


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"model": MessageModel.BROADCASTING}, "broadcasting"),
        ({"client_rebalance": False}, "client_rebalance=True"),
        ({"orderly": True, "handover": "overlap"}, "orderly=True"),
        ({"handover": "java"}, "Java's strategies"),
        ({"handover": "quick"}, "'auto', 'overlap', 'drain', 'java'"),
        ({"strategy": "AVG", "handover": "drain"}, "strategy='STICKY'"),
        ({"strategy": "AVG", "return_within": 5.0}, "strategy='STICKY'"),
        ({"return_within": 5.0}, "instance_name"),
    ],
)
def test_what_cannot_work_is_refused(settings: dict[str, object], text: str) -> None:
    from pocketmq.client.push.consumer import PushConsumer

    with pytest.raises(InvalidInput, match=text):
        PushConsumer(group="billing", **{"strategy": "STICKY", **settings})  # type: ignore[arg-type]
    assert PushConsumerOptions(group="billing", strategy="sticky").sticky is not None


async def test_a_backlog_moves_with_its_queue_and_is_handled_once() -> None:
    """Most of it is cached by the giver, which must neither handle nor commit it."""
    async with cluster(1) as running, sticky(running.address, "a", threads=2) as a:
        await even(a, queues=4)
        async with stream(running, every=0.0) as bodies:
            await until(lambda: len(bodies) > 300, "a backlog")
        async with sticky(running.address, "b", threads=2) as b:
            await even(a, b, queues=4)
            await until(
                lambda: any(h.drained for e in a.consumer.history for h in e.handovers),
                "the giver to finish what it had started",
            )
            seen = await all_seen(bodies, a, b)
            assert {body: n for body, n in seen.items() if n > 1} == {}
            assert len(b.got) > 20
