"""An adaptive producer on real sockets: sick brokers are left alone, asked for, and used again."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from pocketmq.client.producer.tries import AdaptiveRule
from pocketmq.client.producer_options import ProducerOptions
from pocketmq.errors import InvalidInput, SendFailed
from pocketmq.model import Message, MessageQueue
from pocketmq.protocol import Command, RequestCode
from tests.client.producer.stage import Stage, refuses, silent, stage, stores
from tests.client.servers import broker, route
from tests.loops import leap, leaping, until

MESSAGE = Message("orders", b"42 EUR")
PROBE = int(RequestCode.GET_MAX_OFFSET)
BUSY = refuses(2)


def adaptive(*names: str, **settings: Any) -> Any:
    says = dict.fromkeys(names or ("broker-a", "broker-b"), stores)
    return stage(says, queue_choice="adaptive", **settings)


async def warm(on: Stage, count: int = 40) -> None:
    """Send enough that all brokers are connected, and answers are known to be quick."""
    for _ in range(count):
        await on.producer.send(MESSAGE)
    on.producer.sending.faults.fleet.bound.seconds = 0.001  # type: ignore[union-attr]


async def answered(on: Stage) -> None:
    """Wait for the answers to all questions for routes.

    The session's poll asks for one topic after the other, and for none for a few iterations between.
    """
    routes, quiet = on.producer.session.routes, 0
    while quiet < 10:
        await until(lambda: not routes._asking, "the end of all questions")
        await asyncio.sleep(0)
        quiet = 0 if routes._asking else quiet + 1


async def asked_of(on: Stage, send: Callable[[], Any], count: int = 20) -> Counter[str]:
    """Send, and return how many more sends each broker got."""
    before = Counter(on.asked)
    for _ in range(count):
        await send()
    return Counter(on.asked) - before


async def until_avoided(on: Stage, name: str, send: Callable[[], Any]) -> int:
    """Send until a broker is avoided; return how many sends it got meanwhile."""
    before, deadline = on.asked[name], asyncio.get_running_loop().time() + 20.0
    while name not in avoided(on):
        assert asyncio.get_running_loop().time() < deadline
        await send()
    return on.asked[name] - before


def avoided(on: Stage) -> list[str]:
    return [each.broker for each in on.producer.sending.faults.health() if not each.available]


async def test_all_brokers_and_all_their_queues_are_used() -> None:
    async with adaptive("a", "b", "c", queues=2) as on:
        assert isinstance(on.producer.sending.rule, AdaptiveRule)
        queues: set[MessageQueue] = set()

        async def all_used() -> None:
            while len(queues) < 6:
                queues.add((await on.producer.send(MESSAGE)).queue)

        await asyncio.wait_for(all_used(), 20.0)
        assert [each.broker for each in on.producer.sending.faults.health()] == ["a", "b", "c"]


async def test_a_silent_broker_costs_one_early_end_of_a_try_and_no_error() -> None:
    async with adaptive() as on:
        await warm(on)
        on.brokers["broker-a"].say = silent
        assert await until_avoided(on, "broker-a", lambda: on.producer.send(MESSAGE)) == 1
        asked = await asked_of(on, lambda: on.producer.send(MESSAGE))
        assert asked == {"broker-b": 20}
        first, second = on.producer.sending.faults.health()
        assert (first.available, first.unanswered) == (False, 1)
        assert "no response to SEND_MESSAGE_V2 within" in first.reason
        assert (second.available, second.unanswered, second.reason) == (True, 0, "")


async def test_a_broker_that_refuses_three_times_in_a_row_is_left_alone() -> None:
    async with adaptive() as on:
        await warm(on)
        on.brokers["broker-a"].say = BUSY
        assert await until_avoided(on, "broker-a", lambda: on.producer.send(MESSAGE)) == 3
        asked = await asked_of(on, lambda: on.producer.send(MESSAGE))
        assert asked == {"broker-b": 20}


@pytest.mark.parametrize("say", [BUSY, silent], ids=["refusing", "silent"])
async def test_submitted_messages_and_batches_are_sent_elsewhere_too(say: Any) -> None:
    async with adaptive() as on:
        await warm(on)
        on.brokers["broker-a"].say = say

        async def submit() -> None:
            submitted = await asyncio.gather(*[on.producer.submit(MESSAGE) for _ in range(20)])
            assert {receipt.queue.broker_name for receipt in submitted} == {"broker-b"}

        await until_avoided(on, "broker-a", submit)
        asked = await asked_of(on, lambda: on.producer.send_batch([MESSAGE, MESSAGE]))
        assert asked == {"broker-b": 20}
        assert len(on.producer.sending.window) == 0


async def test_one_way_messages_avoid_what_others_found_out_and_prove_nothing() -> None:
    async with adaptive() as on:
        await warm(on)
        on.brokers["broker-a"].say = silent
        for _ in range(20):
            await on.producer.send_oneway(MESSAGE)
        await until(lambda: sum(on.asked.values()) == 60, "the one-way messages to arrive")
        assert avoided(on) == []  # nothing shows that it is sick
        on.brokers["broker-a"].say = BUSY
        await until_avoided(on, "broker-a", lambda: on.producer.send(MESSAGE))
        before = dict(on.asked)
        for _ in range(20):
            await on.producer.send_oneway(MESSAGE)
        arrived = {**before, "broker-b": before["broker-b"] + 20}
        await until(lambda: on.asked == arrived, "the one-way messages to arrive")


async def test_chosen_queues_are_used_however_their_broker_does() -> None:
    async with adaptive() as on:
        await warm(on)
        on.brokers["broker-a"].say = BUSY
        await until_avoided(on, "broker-a", lambda: on.producer.send(MESSAGE))
        on.brokers["broker-a"].say = stores
        queue = MessageQueue("orders", "broker-a", 1)
        send, submit = on.producer.send, on.producer.submit
        keys = [key for key in range(8) if key % 4 < 2]  # by Java's hash: queues of broker-a
        assert [(await send(MESSAGE, queue=queue)).queue for _ in range(4)] == [queue] * 4
        assert [(await submit(MESSAGE, queue=queue)).queue for _ in range(4)] == [queue] * 4
        for key in keys:
            assert (await send(MESSAGE, ordering_key=key)).queue.broker_name == "broker-a"
        assert (await send(MESSAGE, selector=lambda found, _: found[1])).queue == queue
        assert avoided(on) == ["broker-a"]  # nothing is learnt from them, either


async def test_a_chosen_queue_gets_all_the_time_there_is() -> None:
    async with adaptive() as on:
        await warm(on)
        on.brokers["broker-a"].say = silent
        with pytest.raises(SendFailed, match="after 1 try") as caught:
            await on.producer.send(
                MESSAGE, queue=MessageQueue("orders", "broker-a", 0), timeout=0.4
            )
        assert caught.value.elapsed >= 0.39


async def test_a_single_broker_gets_all_the_time_there_is() -> None:
    async with adaptive("alone") as on:
        await warm(on)
        on.brokers["alone"].say = silent
        with pytest.raises(SendFailed, match="after 1 try"):
            await on.producer.send(MESSAGE, timeout=0.4)
        assert avoided(on) == []
        assert on.asked == {"alone": 41}  # not sent a second time for nothing
        on.brokers["alone"].say = BUSY
        with pytest.raises(SendFailed, match="after 1 try"):
            await on.producer.submit(MESSAGE)  # as in Java


@leaping
async def test_a_limit_of_the_users_own_holds_for_each_try_but_the_last() -> None:
    async with adaptive(send_timeout_per_try=0.05) as on:
        await warm(on)
        for each in on.brokers.values():
            each.say = silent
        sending = asyncio.ensure_future(on.producer.send(MESSAGE, timeout=100.0))
        await until(lambda: sum(on.asked.values()) == 43, "the last try")
        await leap(60.0)
        assert not sending.done()
        await leap(41.0)
        with pytest.raises(SendFailed, match="after 3 tries"):
            await sending
        assert sum(on.asked.values()) == 43


@leaping
async def test_a_broker_is_back_with_the_first_answer_to_a_probe(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with adaptive() as on:
        await warm(on)
        sick = on.brokers["broker-a"]
        sick.say = silent
        sick.script[PROBE] = lambda _: None
        with caplog.at_level(logging.INFO, "pocketmq.client"):
            await until_avoided(on, "broker-a", lambda: on.producer.send(MESSAGE))
            await leap(2.0)
            await until(lambda: sick.asked_for(PROBE), "a probe")
            await leap(2.0)
            assert avoided(on) == ["broker-a"]
            sick.say = stores
            sick.script[PROBE] = lambda request: request.reply(1, "any answer")
            await leap(2.0)
            await until(lambda: not avoided(on), "the broker to be back")
        await leap(5.0)  # what a busy machine made slow is forgotten
        asked = await asked_of(on, lambda: on.producer.send(MESSAGE))
        assert asked["broker-a"] > 0
        first, second = [each for each in caplog.messages if each.startswith("broker ")]
        assert first.startswith("broker avoided: group=shop broker=broker-a reason=")
        assert second.startswith("broker used again: group=shop broker=broker-a avoided_for=")


async def test_with_all_brokers_avoided_sends_go_on_and_the_first_success_counts() -> None:
    async with adaptive() as on:
        await warm(on)
        for each in on.brokers.values():
            each.say = BUSY
        for _ in range(3):
            with pytest.raises(SendFailed, match="after 3 tries"):
                await on.producer.send(MESSAGE)
        assert avoided(on) == ["broker-a", "broker-b"]
        for each in on.brokers.values():
            each.say = stores
        receipt = await on.producer.send(MESSAGE)
        assert receipt.queue.broker_name not in avoided(on)


async def test_a_send_that_is_cancelled_blames_nobody_and_leaves_nothing_in_flight() -> None:
    async with adaptive() as on:
        await warm(on)
        for each in on.brokers.values():
            each.say = silent
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await on.producer.send(MESSAGE)
        topic = on.producer.sending.publishing.ready("orders").by_broker
        assert topic is not None
        assert [len(each.record.in_flight) for each in topic.all] == [0, 0]
        assert avoided(on) == []


async def test_a_broker_that_joins_the_route_is_used_and_one_that_left_is_forgotten() -> None:
    async with adaptive("broker-a", "broker-b") as on:
        await warm(on)
        datas = [broker(name, on.producer.session.addresses.master(name)) for name in on.brokers]
        (one, other) = datas
        await on.reroute(route(one, queues=2))
        assert await asked_of(on, lambda: on.producer.send(MESSAGE)) == {"broker-a": 20}
        assert [each.broker for each in on.producer.sending.faults.health()] == ["broker-a"]
        await on.reroute(route(one, other, queues=2))
        assert (await asked_of(on, lambda: on.producer.send(MESSAGE), 500))["broker-b"] > 0


@leaping
async def test_a_broker_that_left_the_route_is_looked_for_without_waiting_for_the_next_refresh() -> (
    None
):
    async with adaptive("broker-a", "broker-b", route_interval=1000.0) as on:
        await warm(on)
        one, other = [
            broker(name, on.producer.session.addresses.master(name)) for name in on.brokers
        ]
        await on.reroute(route(one, queues=2))
        asked = len(on.directory.topics_asked())
        await leap(3.0)
        await until(lambda: len(on.directory.topics_asked()) > asked, "a question for the route")
        await answered(on)  # it would be late after the leap
        on.directory.routes["orders"] = route(one, other, queues=2)
        await leap(3.0)
        publication = on.producer.sending.publishing.ready("orders")
        assert publication is not None
        await until(lambda: len(publication.brokers) == 2, "the broker to be found")
        await leap(3.0)
        await answered(on)
        asked = len(on.directory.topics_asked())
        await leap(30.0)
        await answered(on)
        assert len(on.directory.topics_asked()) == asked  # found: no more questions


@leaping
async def test_a_broker_that_does_not_come_back_is_not_looked_for_for_ever() -> None:
    async with adaptive("broker-a", "broker-b", route_interval=1000.0) as on:
        await warm(on)
        one, _ = [broker(name, on.producer.session.addresses.master(name)) for name in on.brokers]
        await on.reroute(route(one, queues=2))
        search: Any = on.producer.sending.publishing.on_lost
        search = search.__self__
        await until(lambda: bool(search._wanted), "the search to begin")
        await asyncio.sleep(0)  # it takes the time of its beginning
        await leap(121.0)
        await until(lambda: not search._wanted, "the search to end")
        await answered(on)
        asked = len(on.directory.topics_asked())
        await leap(30.0)
        await answered(on)
        assert len(on.directory.topics_asked()) == asked


async def test_java_producers_do_not_look_for_brokers() -> None:
    async with stage() as on:
        await on.producer.send(MESSAGE)
        assert on.producer.sending.publishing.on_lost is None
        assert on.producer.sending.faults.fleet is None


async def test_hooks_see_every_try() -> None:
    class Watch:
        def __init__(self) -> None:
            self.seen: list[tuple[str, bool]] = []

        def before_send(self, context: Any) -> None:
            pass

        def after_send(self, context: Any) -> None:
            self.seen.append((context.queue.broker_name, context.error is None))

    async with adaptive() as on:
        await warm(on)
        watch = Watch()
        on.producer.add_send_hook(watch)
        on.brokers["broker-a"].say = BUSY
        await until_avoided(on, "broker-a", lambda: on.producer.send(MESSAGE))
        seen = Counter(watch.seen)
        assert seen.keys() == {("broker-a", False), ("broker-b", True)}
        assert seen["broker-a", False] == 3


async def test_an_unsafe_receipt_goes_to_another_broker_if_asked_for() -> None:
    def unsafe(request: Command) -> Command:
        answer = stores(request)
        return request.reply(10, "flush timed out", ext=dict(answer.ext))

    async with adaptive(retry_when_not_stored_ok=True) as on:
        on.brokers["broker-a"].say = unsafe
        receipts = [await on.producer.send(MESSAGE) for _ in range(20)]
        assert {receipt.queue.broker_name for receipt in receipts} == {"broker-b"}


def test_the_option_is_one_of_two_words() -> None:
    assert ProducerOptions(group="shop").queue_choice.value == "java"
    with pytest.raises(
        InvalidInput, match="queue_choice must be 'java' or 'adaptive', not 'random'"
    ):
        ProducerOptions(group="shop", queue_choice="random")  # type: ignore[arg-type]
    word: Any = "adaptive"
    options = ProducerOptions(group="shop", queue_choice=word)
    assert "ADAPTIVE" in repr(options)
    for other in ("avoid_slow_brokers", "probe_brokers"):
        both: dict[str, Any] = {other: True}
        with pytest.raises(InvalidInput, match="need queue_choice='java'"):
            ProducerOptions(group="shop", queue_choice=word, **both)
