"""Concurrent work: what handlers say, and what becomes of messages and offsets."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from pocketmq.balance.profile import V4, V5
from pocketmq.client.group.held_queue import HeldQueue
from pocketmq.client.push.concurrent import ConcurrentWork
from pocketmq.client.push.consume_hooks import ConsumeContext
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


@kinds
async def test_all_messages_are_handled_and_the_offset_passes_them(kind: Any) -> None:
    seen: list[bytes] = []
    async with stands.stand(kind(lambda message: seen.append(message.body))) as (one, _):
        held = one.hold()
        one.arrive(held, stands.messages(100))
        one.arrive(held, stands.messages(20, first=100))
        await until(lambda: one.offsets.get(stands.QUEUE) == 120, "all to be done")
    assert sorted(map(int, seen)) == list(range(120))
    assert (held.process.count, held.process.size) == (0, 0)


@kinds
async def test_lists_are_as_long_as_asked_for(kind: Any) -> None:
    sizes: list[int] = []
    async with stands.stand(
        kind(lambda given: sizes.append(len(given))), batch=True, handler_batch=8
    ) as (
        one,
        _,
    ):
        one.arrive(one.hold(), stands.messages(20))
        await until(lambda: one.offsets.get(stands.QUEUE) == 20, "all to be done")
    assert sorted(sizes) == [4, 8, 8]


@kinds
async def test_a_message_under_a_handler_holds_the_offset(kind: Any) -> None:
    """Offsets pass only what is done, however much after it is."""
    release = threading.Event()

    def handler(message: ReceivedMessage) -> None:
        if message.queue_offset == 3:
            assert release.wait(10)

    async def hanging(message: ReceivedMessage) -> None:
        if message.queue_offset == 3:
            await until(release.is_set, "the release")

    async with stands.stand(handler if kind is plain else hanging) as (one, _):
        held = one.hold()
        one.arrive(held, stands.messages(10))
        await until(lambda: held.process.count == 1, "the others to be done")
        assert one.offsets[stands.QUEUE] == 3
        release.set()
        await until(lambda: one.offsets[stands.QUEUE] == 10, "the last to be done")


@kinds
@pytest.mark.parametrize("profile", [V4, V5])
async def test_a_failed_message_is_sent_back_as_java_does(kind: Any, profile: Any) -> None:
    def handler(message: ReceivedMessage) -> None:
        if message.queue_offset == 1:
            raise ValueError("no")

    async with stands.stand(kind(handler), profile=profile) as (one, taker):
        one.arrive(one.hold(), stands.messages(3))
        await until(lambda: one.offsets.get(stands.QUEUE) == 3, "all to be settled")
        assert taker.sent_back() == [
            {
                "offset": "1001", "group": stands.GROUP, "delayLevel": "0", "originMsgId": "ID1",
                "originTopic": "orders", "unitMode": "false", "maxReconsumeTimes": "16",
                "bname": "broker-a",
            }
        ]  # fmt: skip
        assert taker.copies() == []


async def test_a_retry_topic_not_known_yet_is_looked_for_when_a_message_goes_back() -> None:
    """Its broker makes it then, at the latest, and the next look at all routes may be far."""
    async with stands.stand(lambda message: RetryLater()) as (one, taker):
        routes, retry = one.session.routes, f"%RETRY%{stands.GROUP}"
        await routes.poll(["orders"])  # forgets all others
        assert routes.cached(retry) is None
        one.arrive(one.hold(), stands.messages(1))
        await until(lambda: routes.cached(retry) is not None, "the route of the retry topic")
        assert len(taker.sent_back()) == 1


@kinds
async def test_the_handlers_own_delay_level_and_limit_travel(kind: Any) -> None:
    async with stands.stand(kind(lambda message: RetryLater(-1)), max_reconsume_times=2) as (
        one,
        taker,
    ):
        one.arrive(one.hold(), stands.messages(1))
        await until(lambda: one.offsets.get(stands.QUEUE) == 1, "it to be settled")
        (sent,) = taker.sent_back()
    assert (sent["delayLevel"], sent["maxReconsumeTimes"]) == ("-1", "2")


@kinds
async def test_of_a_list_only_what_is_not_done_comes_again(kind: Any) -> None:
    async with stands.stand(
        kind(lambda given: RetryLater(done=2)), batch=True, handler_batch=5
    ) as (
        one,
        taker,
    ):
        one.arrive(one.hold(), stands.messages(5))
        await until(lambda: one.offsets.get(stands.QUEUE) == 5, "it to be settled")
        assert sorted(sent["offset"] for sent in taker.sent_back()) == ["1002", "1003", "1004"]
        stats = one.work.stats.of("orders")
        assert (stats.ok.value, stats.failed.value) == (2, 3)


@kinds
async def test_a_failed_broadcast_is_given_up(kind: Any) -> None:
    async with stands.stand(kind(lambda message: Consumed.RETRY), model=stands.BROADCASTING) as (
        one,
        taker,
    ):
        one.arrive(one.hold(), stands.messages(3))
        await until(lambda: one.offsets.get(stands.QUEUE) == 3, "it to be settled")
        assert taker.requests == []


async def test_a_copy_goes_to_the_retry_topic_if_the_broker_takes_nothing_back() -> None:
    taker = stands.Taker()
    taker.refuse(RequestCode.CONSUMER_SEND_MSG_BACK)
    async with stands.stand(lambda message: Consumed.RETRY, taker=taker) as (one, _):
        one.arrive(one.hold(), stands.messages(1, first=7, reconsume_times=2, TRAN_MSG="true"))
        await until(lambda: one.offsets.get(stands.QUEUE) == 8, "it to be settled")
    (copy,) = taker.copies()
    properties = decode_properties(copy.ext["i"].encode())
    assert (copy.ext["a"], copy.ext["b"]) == ("CLIENT_INNER_PRODUCER", f"%RETRY%{stands.GROUP}")
    assert (copy.ext["j"], copy.ext["l"], copy.body) == ("3", "16", b"7")
    assert properties == {
        "UNIQ_KEY": "ID7", "RETRY_TOPIC": "orders", "ORIGIN_MESSAGE_ID": "ID7", "DELAY": "5",
        "WAIT": "true",
    }  # fmt: skip


@leaping
async def test_what_cannot_be_sent_anywhere_is_handled_again_here() -> None:
    """Five seconds later, with one more failure on its count, and the offset waits for it."""
    counts: list[int] = []

    async def handler(message: ReceivedMessage) -> Consumed | None:
        if message.queue_offset != 1:
            return None
        counts.append(message.reconsume_times)
        return Consumed.RETRY if len(counts) < 3 else None

    taker = stands.Taker()
    taker.refuse(RequestCode.CONSUMER_SEND_MSG_BACK, RequestCode.SEND_MESSAGE_V2)
    async with stands.stand(handler, taker=taker) as (one, _):
        due, later, now = list[float](), one.work.later, asyncio.get_running_loop().time

        def noting(held: HeldQueue, after: float, callback: Callable[[], None]) -> None:
            due.append(now() + after)
            later(held, after, callback)

        one.work.later = noting  # type: ignore[method-assign]
        began, held = now(), one.hold()
        one.arrive(held, stands.messages(3))
        for tries in (1, 2):
            await until(lambda n=tries: len(due) == n, "all ways to be tried")  # type: ignore[misc]
            await until(lambda: held.process.count == 1, "the others to be settled")
            assert len(taker.copies()) == tries * 3
            assert one.offsets[stands.QUEUE] == 1
            assert due[-1] >= began + 5.0
            with stopped_clock():
                await leap(due[-1] - now() - 0.1)
                assert len(counts) == tries
                began = now()
                await leap(0.2)
        await until(lambda: one.offsets[stands.QUEUE] == 3, "the third try")
    assert counts == [0, 1, 2]
    assert [copy.ext["j"] for copy in taker.copies()] == ["1"] * 3 + ["2"] * 3


@kinds
async def test_a_lost_queues_call_finishes_but_counts_for_nothing(kind: Any) -> None:
    began, release = threading.Event(), threading.Event()
    seen: list[int] = []

    def handler(message: ReceivedMessage) -> None:
        began.set()
        assert release.wait(10)
        seen.append(message.queue_offset)

    async def coro(message: ReceivedMessage) -> None:
        began.set()
        await until(release.is_set, "the release")
        seen.append(message.queue_offset)

    async with stands.stand(handler if kind is plain else coro, threads=1) as (one, taker):
        held = one.hold()
        one.arrive(held, stands.messages(3))
        await until(began.is_set, "the first call")
        one.drop(held)
        release.set()
        await until(lambda: seen == [0], "the call to end")
        await until(lambda: not list(one.work.under_way()), "nothing to be under way")
    assert (seen, one.noted, taker.requests) == ([0], [], [])


async def test_messages_of_a_retry_topic_go_to_the_handler_of_their_own() -> None:
    seen: list[tuple[str, list[int]]] = []

    def of(name: str) -> Callable[[list[ReceivedMessage]], None]:
        return lambda given: seen.append((name, [one.queue_offset for one in given]))

    async with stands.stand(batch=True, handler_batch=4) as (one, taker):
        for topic in ("orders", "refunds"):
            one.handlers[topic] = TopicHandler(topic, of(topic), True)
        queue = MessageQueue(f"%RETRY%{stands.GROUP}", "broker-a", 0)
        held = one.hold(queue)
        topics = ["orders", "orders", "refunds", "orders", "gone"]
        given = [m.with_topic(t) for m, t in zip(stands.messages(5), topics, strict=True)]
        one.arrive(held, given)
        await until(lambda: one.offsets.get(queue) == 5, "all to be settled")
        (sent,) = taker.sent_back()
    assert sorted(seen) == [("orders", [0, 1]), ("orders", [3]), ("refunds", [2])]
    assert (sent["offset"], sent["originTopic"]) == ("1004", "gone")


@kinds
async def test_no_more_calls_at_once_than_allowed(kind: Any) -> None:
    at_once: list[int] = []
    running = 0
    lock = threading.Lock()
    gate = threading.Event()

    def enter(step: int) -> None:
        nonlocal running
        with lock:
            running += step
            at_once.append(running)

    def handler(message: ReceivedMessage) -> None:
        enter(1)
        gate.wait(10)
        enter(-1)

    async def coro(message: ReceivedMessage) -> None:
        enter(1)
        await until(gate.is_set, "the gate")
        enter(-1)

    async with stands.stand(handler if kind is plain else coro, threads=3) as (one, _):
        one.arrive(one.hold(), stands.messages(10))
        await until(lambda: running == 3, "as many as allowed to begin")
        gate.set()
        await until(lambda: one.offsets.get(stands.QUEUE) == 10, "all to be done")
    assert max(at_once) == 3


async def test_a_stuck_call_does_not_hold_up_quick_ones() -> None:
    release = threading.Event()
    done: list[int] = []

    def handler(message: ReceivedMessage) -> None:
        if message.queue_offset == 50:
            release.wait(10)
        done.append(message.queue_offset)

    async with stands.stand(handler, threads=2) as (one, _):
        held = one.hold()
        one.arrive(held, stands.messages(50))
        await until(lambda: one.offsets.get(stands.QUEUE) == 50, "quick ones")
        one.arrive(held, stands.messages(1, first=50))
        await until(lambda: bool(list(one.work.under_way())), "it to be stuck")
        one.arrive(held, stands.messages(1, first=51))
        await until(lambda: done[-1] == 51, "the one behind")
        release.set()
        await until(lambda: one.offsets[stands.QUEUE] == 52, "the stuck one")


async def test_a_handler_has_a_task_of_its_own() -> None:
    """Timeouts and task groups need one; and what one handler does to it harms no other."""
    seen: list[int] = []

    async def handler(message: ReceivedMessage) -> None:
        if message.queue_offset == 0:
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        if message.queue_offset == 1:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(0)
        if message.queue_offset == 2:
            raise asyncio.CancelledError
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(0))
        seen.append(message.queue_offset)

    async with stands.stand(handler, threads=2) as (one, taker):
        one.arrive(one.hold(), stands.messages(6))
        await until(lambda: one.offsets.get(stands.QUEUE) == 6, "all to be settled")
        sent = sorted(back["offset"] for back in taker.sent_back())
    assert (sorted(seen), sent) == ([3, 4, 5], ["1000", "1001", "1002"])


async def test_quick_coroutines_let_the_loop_have_its_turn() -> None:
    turns = 0

    async def handler(message: ReceivedMessage) -> None:
        sum(range(2000))

    async with stands.stand(handler) as (one, _):
        one.arrive(one.hold(), stands.messages(2000))
        while one.offsets.get(stands.QUEUE) != 2000:
            await asyncio.sleep(0)
            turns += 1
    assert turns > 5


async def test_stopping_lets_calls_finish_and_begins_no_more() -> None:
    seen: list[int] = []
    began, release = threading.Event(), threading.Event()

    def handler(message: ReceivedMessage) -> None:
        began.set()
        release.wait(10)
        seen.append(message.queue_offset)

    async with stands.stand(handler, threads=1) as (one, _):
        one.arrive(one.hold(), stands.messages(5))
        await until(began.is_set, "the first call")
        stopping = asyncio.create_task(one.work.stop(10.0))
        await asyncio.sleep(0)
        release.set()
        await stopping
        assert (seen, one.offsets) == ([0], {stands.QUEUE: 1})


async def test_stopping_waits_no_longer_than_told(caplog: pytest.LogCaptureFixture) -> None:
    release = threading.Event()
    hung = asyncio.Event()
    cancelled: list[bool] = []

    async def coro(message: ReceivedMessage) -> None:
        hung.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    async with stands.stand(lambda message: release.wait(10) and None) as (one, _):
        one.handlers["refunds"] = TopicHandler("refunds", coro)
        held = one.hold()
        one.arrive(held, stands.messages(1))
        one.arrive(one.hold(MessageQueue("refunds", "broker-a", 0)), stands.messages(1))
        await hung.wait()
        await until(lambda: len(list(one.work.under_way())) == 2, "both to hang")
        await asyncio.wait_for(one.work.stop(0.01), 5)
        assert one.noted == []
        release.set()
    assert cancelled == [True]
    assert "calls=2" in caplog.text


@leaping
async def test_overdue_messages_are_sent_back_and_hold_nothing_up() -> None:
    release = asyncio.Event()

    async def handler(message: ReceivedMessage) -> None:
        if message.queue_offset < 2:
            await release.wait()

    async with stands.stand(handler, consume_timeout=20.0) as (one, taker):
        held = one.hold()
        one.session.clock = stands.LoopClock()
        one.arrive(held, stands.messages(5))
        await until(lambda: held.process.count == 2, "the others to be done")
        assert one.offsets[stands.QUEUE] == 0
        await leap(19.0)
        assert taker.sent_back() == []
        await leap(2.0)
        await until(lambda: held.process.count == 0, "both to be sent back")
        release.set()
        await until(lambda: not list(one.work.under_way()), "the calls to end")
        sent = [(back["offset"], back["delayLevel"]) for back in taker.sent_back()]
    assert sent == [("1000", "3"), ("1001", "3")]


class Watching:
    def __init__(self) -> None:
        self.told: list[tuple[str, list[int], bool, str | None]] = []

    def before_consume(self, context: ConsumeContext) -> None:
        self.tell("before", context)
        raise RuntimeError("a hook that fails harms nothing")

    def after_consume(self, context: ConsumeContext) -> None:
        assert context.elapsed >= 0
        self.tell("after", context)

    def tell(self, when: str, context: ConsumeContext) -> None:
        offsets = [message.queue_offset for message in context.messages]
        outcome = context.outcome.name if context.outcome else None
        assert (context.group, context.queue) == (stands.GROUP, stands.QUEUE)
        self.told.append((when, offsets, context.success, outcome))


@kinds
async def test_hooks_are_told_before_and_after(kind: Any) -> None:
    def handler(message: ReceivedMessage) -> Consumed | None:
        if message.queue_offset == 1:
            raise ValueError
        return Consumed.RETRY if message.queue_offset == 2 else None

    watching = Watching()
    async with stands.stand(kind(handler), threads=1) as (one, _):
        one.work.add_hook(watching)
        one.arrive(one.hold(), stands.messages(3))
        await until(lambda: one.offsets.get(stands.QUEUE) == 3, "all to be settled")
    assert watching.told == [
        ("before", [0], False, None),
        ("after", [0], True, "SUCCESS"),
        ("before", [1], False, None),
        ("after", [1], False, "EXCEPTION"),
        ("before", [2], False, None),
        ("after", [2], False, "FAILED"),
    ]


def test_the_room_is_what_the_seam_says() -> None:
    from pocketmq.client.push.orderly import OrderlyWork
    from pocketmq.client.push.work import Consuming, Work

    def accept(work: Work, consuming: Consuming) -> None: ...

    def both(one: stands.Stand, first: ConcurrentWork, second: OrderlyWork) -> None:
        accept(first, one)
        accept(second, one)

    assert callable(both)
