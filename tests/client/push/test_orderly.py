"""Orderly work: order, locks, waiting in place, and setting messages aside."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from pocketmq.balance.profile import V4, V5
from pocketmq.client.group.held_queue import HeldQueue, HoldState
from pocketmq.client.push.calls import LONG_ENOUGH, MOST_CALLS, Pace
from pocketmq.client.push.handlers import Consumed, RetryLater, TopicHandler
from pocketmq.model import MessageQueue
from pocketmq.protocol import ReceivedMessage, RequestCode
from pocketmq.protocol.property_text import decode_properties
from tests.client.push import stands
from tests.loops import leap, leaping, stopped_clock, until


def plain(do: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return do


def coroutine(do: Callable[[Any], Any]) -> Callable[[Any], Any]:
    async def handler(given: Any) -> Any:
        return do(given)

    return handler


def waiting(do: Callable[[Any], Any]) -> Callable[[Any], Any]:
    async def handler(given: Any) -> Any:
        await asyncio.sleep(0)
        return do(given)

    return handler


kinds = pytest.mark.parametrize("kind", [plain, coroutine, waiting])
OTHER = MessageQueue("orders", "broker-a", 1)


@kinds
async def test_each_queue_is_handled_in_order_and_one_call_at_a_time(kind: Any) -> None:
    seen: dict[int, list[int]] = {0: [], 1: []}
    running: list[int] = []

    def handler(message: ReceivedMessage) -> None:
        running.append(message.queue_id)
        assert running.count(message.queue_id) == 1
        seen[message.queue_id].append(message.queue_offset)
        running.remove(message.queue_id)

    async with stands.stand(kind(handler), orderly=True) as (one, _):
        first, second = one.hold(), one.hold(OTHER)
        for start in range(0, 300, 50):
            one.arrive(first, stands.messages(50, start))
            one.arrive(second, stands.messages(50, start, queue_id=1))
            await asyncio.sleep(0)
        await until(lambda: one.offsets == {stands.QUEUE: 300, OTHER: 300}, "all to be done")
    assert seen == {0: list(range(300)), 1: list(range(300))}
    assert (first.process.count, first.at_work) == (0, 0)


@kinds
async def test_lists_are_cut_in_order(kind: Any) -> None:
    seen: list[list[int]] = []
    async with stands.stand(
        kind(lambda given: seen.append([one.queue_offset for one in given])),
        batch=True,
        handler_batch=4,
        orderly=True,
    ) as (one, _):
        one.arrive(one.hold(), stands.messages(10))
        await until(lambda: one.offsets.get(stands.QUEUE) == 10, "all to be done")
    assert seen == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


@leaping
async def test_a_failed_message_waits_in_place_and_those_behind_it_wait_too() -> None:
    seen: list[tuple[int, int]] = []

    async def handler(message: ReceivedMessage) -> None:
        seen.append((message.queue_offset, message.reconsume_times))
        if message.queue_offset == 2 and message.reconsume_times < 2:
            raise ValueError("not yet")

    async with stands.stand(handler, orderly=True, suspend_queue=1.0) as (one, taker):
        with stopped_clock():
            one.arrive(one.hold(), stands.messages(4))
            await until(lambda: len(seen) == 3, "the first failure")
            await until(lambda: one.offsets.get(stands.QUEUE) == 2, "what is before it to be noted")
            await leap(0.9)
            assert len(seen) == 3
            await leap(0.2)
        await until(lambda: len(seen) == 4, "the second")
        await leap(1.1)
        await until(lambda: one.offsets.get(stands.QUEUE) == 4, "all to be done")
        assert taker.requests == []
    assert seen == [(0, 0), (1, 0), (2, 0), (2, 1), (2, 2), (3, 0)]


@leaping
@pytest.mark.parametrize(("wish", "rest"), [(5.0, 5.0), (0.0001, 0.01), (99.0, 30.0)])
async def test_a_handler_may_say_how_long_its_queue_rests(wish: float, rest: float) -> None:
    seen: list[int] = []

    async def handler(message: ReceivedMessage) -> RetryLater | None:
        seen.append(message.reconsume_times)
        return RetryLater(wait=wish) if len(seen) == 1 else None

    async with stands.stand(handler, orderly=True) as (one, _):
        with stopped_clock():
            one.arrive(one.hold(), stands.messages(1))
            await until(lambda: one.work.stats.of("orders").failed.value == 1, "the failure")
            await leap(rest * 0.9)
            before = len(seen)
            await leap(rest * 0.2)
        await until(lambda: one.offsets.get(stands.QUEUE) == 1, "the second try")
    assert (before, seen) == (1, [0, 1])


@kinds
@pytest.mark.parametrize(("profile", "counted"), [(V4, "2"), (V5, "3")])
async def test_a_message_that_failed_too_often_is_set_aside(
    kind: Any, profile: Any, counted: str
) -> None:
    """It goes to the retry topic, where its count makes it a dead letter, and order goes on."""
    seen: list[tuple[int, int]] = []

    def handler(message: ReceivedMessage) -> Consumed | None:
        seen.append((message.queue_offset, message.reconsume_times))
        return Consumed.RETRY if message.queue_offset == 1 else None

    async with stands.stand(
        kind(handler), orderly=True, suspend_queue=0.01, max_reconsume_times=2, profile=profile
    ) as (one, taker):
        one.arrive(one.hold(), stands.messages(3))
        await until(lambda: one.offsets.get(stands.QUEUE) == 3, "all to be settled")
        (copy,) = taker.copies()
        assert taker.sent_back() == []
    assert seen == [(0, 0), (1, 0), (1, 1), (1, 2), (2, 0)]
    properties = decode_properties(copy.ext["i"].encode())
    assert (copy.ext["b"], copy.ext["j"], copy.ext["l"]) == (f"%RETRY%{stands.GROUP}", counted, "2")
    assert (properties["RETRY_TOPIC"], properties["DELAY"]) == ("orders", "5")


async def test_what_cannot_be_set_aside_is_tried_on() -> None:
    seen: list[int] = []
    taker = stands.Taker()

    def handler(message: ReceivedMessage) -> Consumed:
        seen.append(message.reconsume_times)
        if len(seen) == 4:
            taker.script[RequestCode.SEND_MESSAGE_V2] = accept
        return Consumed.RETRY

    accept = taker.script[RequestCode.SEND_MESSAGE_V2]
    taker.refuse(RequestCode.SEND_MESSAGE_V2)
    async with stands.stand(
        handler, orderly=True, suspend_queue=0.01, max_reconsume_times=1, taker=taker
    ) as (one, _):
        one.arrive(one.hold(), stands.messages(1))
        await until(lambda: one.offsets.get(stands.QUEUE) == 1, "it to be set aside")
    assert seen == [0, 1, 2, 3]


@leaping
async def test_nothing_is_handled_without_the_lock() -> None:
    """Asked for after 0.1 s; if refused, again 3 s later, until it is granted."""
    seen: list[int] = []

    async def handler(message: ReceivedMessage) -> None:
        seen.append(message.queue_offset)

    async with stands.stand(handler, orderly=True) as (one, _):
        with stopped_clock():
            held = one.hold()
            held.process.locked = False
            one.locks = [False, True]
            one.arrive(held, stands.messages(2))
            await leap(0.05)
            assert one.lock_calls == 0
            await leap(0.1)
            assert one.lock_calls == 1
            await leap(2.9)
            assert (one.lock_calls, seen) == (1, [])
            await leap(0.2)  # the task begins again and asks 0.1 s later
            await leap(0.2)
            assert (one.lock_calls, seen) == (2, [])
            await leap(0.02)
        await until(lambda: one.offsets.get(stands.QUEUE) == 2, "all to be done")


@leaping
async def test_an_old_lock_is_none() -> None:
    async with stands.stand(coroutine(lambda message: None), orderly=True) as (one, _):
        held = one.hold()
        await leap(31.0)
        with stopped_clock():
            one.arrive(held, stands.messages(1))
            await leap(0.05)
            assert one.offsets == {}
        await leap(0.2)
        await leap(0.2)
        await until(lambda: one.offsets.get(stands.QUEUE) == 1, "it to be done under a new lock")
        assert one.lock_calls == 1


@kinds
async def test_a_lost_lock_stops_the_queue_at_once(kind: Any) -> None:
    """Also within a stretch of quick calls."""
    seen: list[int] = []
    holder: list[Any] = []

    def handler(message: ReceivedMessage) -> None:
        seen.append(message.queue_offset)
        if message.queue_offset == 25:
            holder[0].process.locked = False

    async with stands.stand(kind(handler), orderly=True) as (one, _):
        held = one.hold()
        holder.append(held)
        one.locks = [False] * 100
        one.arrive(held, stands.messages(100))
        await until(lambda: one.offsets.get(stands.QUEUE) == 26, "what is done to be noted")
        await until(lambda: one.lock_calls == 1, "the lock to be asked for")
        assert (seen, held.process.count) == (list(range(26)), 74)


@kinds
async def test_a_lost_queue_stops_at_once_and_counts_for_nothing(kind: Any) -> None:
    seen: list[int] = []
    holder: list[Any] = []

    def handler(message: ReceivedMessage) -> None:
        seen.append(message.queue_offset)
        if message.queue_offset == 25:
            holder[0].enter(HoldState.DROPPED)

    async with stands.stand(kind(handler), orderly=True) as (one, _):
        held = one.hold()
        holder.append(held)
        one.arrive(held, stands.messages(100))
        await until(lambda: held.dropped and held.at_work == 0, "it to be idle")
        assert await held.until_idle(1.0)
        one.drop(held)
        assert seen == list(range(26))
        assert max(one.noted, default=0) < 26


@pytest.mark.parametrize("kind", [plain, coroutine])
async def test_a_queue_taken_again_waits_for_the_handler_of_its_last_holding(kind: Any) -> None:
    """Sought, reset or lost and won back: never two calls for one queue at the same time."""
    entered: list[int] = []
    gate, async_gate = threading.Event(), asyncio.Event()

    def handler(message: ReceivedMessage) -> None:
        entered.append(message.queue_offset)
        if len(entered) == 1:
            gate.wait(10.0)

    async def async_handler(message: ReceivedMessage) -> None:
        entered.append(message.queue_offset)
        if len(entered) == 1:
            await async_gate.wait()

    async with stands.stand(handler if kind is plain else async_handler, orderly=True) as (one, _):
        first = one.hold()
        one.arrive(first, stands.messages(3))
        await until(lambda: entered == [0], "the first call")
        for _ in range(2):  # the last of several holdings goes on
            one.drop(first)
            first = one.hold()
            one.arrive(first, stands.messages(2))
            one.arrive(first, stands.messages(1, 2))
        await asyncio.sleep(0.05)  # time in which a second call would begin
        assert entered == [0]
        gate.set()
        async_gate.set()
        await until(lambda: one.offsets == {stands.QUEUE: 3}, "the rest")
        assert entered == [0, 0, 1, 2]


async def test_a_queue_is_busy_as_long_as_its_handler_is() -> None:
    release = threading.Event()
    async with stands.stand(lambda message: release.wait(10) and None, orderly=True) as (one, _):
        held = one.hold()
        one.arrive(held, stands.messages(1))
        await until(lambda: held.at_work == 1, "the call")
        assert not await held.until_idle(0.01)
        release.set()
        assert await held.until_idle(5.0)
        assert one.offsets == {stands.QUEUE: 1}


@leaping
async def test_long_work_makes_a_break_for_other_queues() -> None:
    """After a minute the task ends and another begins, 10 ms later."""
    breaks: list[tuple[int, float]] = []
    seen: list[int] = []

    async def handler(message: ReceivedMessage) -> None:
        seen.append(message.queue_offset)
        asyncio.get_running_loop().ahead += 25.0  # type: ignore[attr-defined]

    profile = msgspec.structs.replace(V5, lock_max_age=1000.0)
    async with stands.stand(handler, orderly=True, profile=profile) as (one, _):
        later = one.work.later

        def noting(held: HeldQueue, after: float, callback: Callable[[], None]) -> None:
            breaks.append((len(seen), after))
            later(held, after, callback)

        one.work.later = noting  # type: ignore[method-assign]
        one.session.clock = stands.LoopClock()
        one.arrive(one.hold(), stands.messages(8))
        await until(lambda: one.offsets.get(stands.QUEUE) == 8, "all to be done", 1000)
    assert breaks == [(3, 0.01), (6, 0.01)]


async def test_broadcasting_needs_no_lock() -> None:
    async with stands.stand(
        coroutine(lambda message: None), orderly=True, model=stands.BROADCASTING
    ) as (one, _):
        held = one.hold()
        held.process.locked = False
        one.arrive(held, stands.messages(3))
        await until(lambda: one.offsets.get(stands.QUEUE) == 3, "all to be done")
        assert one.lock_calls == 0


async def test_retried_messages_go_to_the_handler_of_their_own_topic_in_order() -> None:
    seen: list[tuple[str, list[int]]] = []

    def of(name: str) -> Callable[[list[ReceivedMessage]], None]:
        return lambda given: seen.append((name, [one.queue_offset for one in given]))

    async with stands.stand(handler_batch=4, orderly=True) as (one, _):
        for topic in ("orders", "refunds"):
            one.handlers[topic] = TopicHandler(topic, of(topic), True)
        queue = MessageQueue(f"%RETRY%{stands.GROUP}", "broker-a", 0)
        topics = ["orders", "orders", "refunds", "orders"]
        given = [m.with_topic(t) for m, t in zip(stands.messages(4), topics, strict=True)]
        one.arrive(one.hold(queue), given)
        await until(lambda: one.offsets.get(queue) == 4, "all to be done")
    assert seen == [("orders", [0, 1]), ("refunds", [2]), ("orders", [3])]


async def test_a_topic_without_a_handler_waits_for_one() -> None:
    seen: list[int] = []
    async with stands.stand(orderly=True, suspend_queue=0.01) as (one, _):
        one.arrive(one.hold(), stands.messages(2))
        await until(lambda: one.work.stats.of("orders").failed.value >= 2, "some tries")
        one.handlers["orders"] = TopicHandler("orders", lambda m: seen.append(m.queue_offset))
        await until(lambda: one.offsets.get(stands.QUEUE) == 2, "all to be done")
    assert seen == [0, 1]


async def test_stopping_lets_the_call_finish_and_notes_it() -> None:
    began, release = threading.Event(), threading.Event()
    seen: list[int] = []

    def handler(message: ReceivedMessage) -> None:
        began.set()
        release.wait(10)
        seen.append(message.queue_offset)

    async with stands.stand(handler, orderly=True) as (one, _):
        one.arrive(one.hold(), stands.messages(5))
        await until(began.is_set, "the first call")
        stopping = asyncio.create_task(one.work.stop(10.0))
        await asyncio.sleep(0)
        release.set()
        await stopping
        assert (seen, one.offsets) == ([0], {stands.QUEUE: 1})


def test_a_pace_grows_with_quick_calls_and_shrinks_with_slow_ones() -> None:
    pace = Pace()
    sizes = []
    for _ in range(6):
        pace.learn(pace.calls, pace.calls * 1000)
        sizes.append(pace.calls)
    assert sizes == [4, 16, 64, 256, MOST_CALLS, MOST_CALLS]
    pace.learn(10, 10 * LONG_ENOUGH)
    assert pace.calls == 1
