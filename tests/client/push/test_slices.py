"""Messages in slices: many calls for one hand-over, and still each message for itself."""

import asyncio
import threading
import time
from typing import Any

import pytest

from pocketmq.client.push.handlers import Consumed
from pocketmq.model import MessageQueue
from pocketmq.protocol import ReceivedMessage
from tests.client.push import stands
from tests.loops import leap, leaping, until


class Hanging:
    """A handler, plain or not, that hangs at some offsets until it is released."""

    def __init__(self, *offsets: int) -> None:
        self.at = offsets
        self.seen: list[int] = []
        self.begun: list[int] = []
        self._release = threading.Event()

    def plain(self, message: ReceivedMessage) -> None:
        self.begun.append(message.queue_offset)
        if message.queue_offset in self.at:
            assert self._release.wait(10)
        self.seen.append(message.queue_offset)

    async def coroutine(self, message: ReceivedMessage) -> None:
        self.begun.append(message.queue_offset)
        if message.queue_offset in self.at:
            await until(self._release.is_set, "the release")
        self.seen.append(message.queue_offset)

    def release(self) -> None:
        self._release.set()


kinds = pytest.mark.parametrize("kind", ["plain", "coroutine"])


@kinds
async def test_slow_calls_of_one_slice_run_side_by_side(kind: str) -> None:
    """Each of twenty waits for all the others: fewer at once would never end."""
    met, together = asyncio.Barrier(20), threading.Barrier(20)

    def plain(message: ReceivedMessage) -> None:
        together.wait(10)

    async def coroutine(message: ReceivedMessage) -> None:
        await met.wait()

    async with stands.stand(plain if kind == "plain" else coroutine, threads=20) as (one, _):
        one.arrive(one.hold(), stands.messages(40))
        await until(lambda: one.offsets.get(stands.QUEUE) == 40, "all to be done")


@kinds
async def test_what_was_done_before_a_call_that_hangs_is_settled_meanwhile(kind: str) -> None:
    handler = Hanging(9)
    async with stands.stand(getattr(handler, kind), threads=1) as (one, _):
        held = one.hold()
        one.arrive(held, stands.messages(10))
        await until(lambda: one.offsets.get(stands.QUEUE) == 9, "those before it to be settled")
        assert handler.begun[-1] == 9
        assert handler.seen == list(range(9))
        handler.release()
        await until(lambda: one.offsets[stands.QUEUE] == 10, "the last")


@kinds
async def test_what_is_behind_a_call_that_hangs_is_done_by_others(kind: str) -> None:
    handler = Hanging(0, 5)
    async with stands.stand(getattr(handler, kind), threads=3) as (one, _):
        held = one.hold()
        one.arrive(held, stands.messages(100))
        await until(lambda: held.process.count == 2, "all but two")
        assert one.offsets[stands.QUEUE] == 0
        handler.release()
        await until(lambda: one.offsets[stands.QUEUE] == 100, "all")
    assert sorted(handler.seen) == sorted(handler.begun) == list(range(100))


@pytest.mark.parametrize(("count", "first"), [(8, "handler"), (9, "pull")])
@pytest.mark.parametrize("size", [1, 4])
async def test_what_many_are_pulled_with_lets_the_next_pull_leave_first(
    count: int, first: str, size: int
) -> None:
    """The broker works on it meanwhile. A few, sent just now, do not wait for anything."""
    order: list[str] = []

    async def handle(_: ReceivedMessage | list[ReceivedMessage]) -> None:
        order.append("handler")

    wanted = stands.stand(handle, batch=size > 1, handler_batch=size)
    async with wanted as (one, _):
        held = one.hold()
        one.arrive(held, stands.messages(count))
        asyncio.get_running_loop().call_soon(order.append, "pull")  # as requests are flushed
        await until(lambda: held.process.count == 0, "all to be done")
    assert order[0] == first


async def test_a_task_that_is_cancelled_before_it_begins_is_replaced() -> None:
    """As by an application that cancels all tasks of its loop."""
    done: list[int] = []

    async def handle(message: ReceivedMessage) -> None:
        done.append(message.queue_offset)

    async with stands.stand(handle) as (one, _):
        before = asyncio.all_tasks()
        one.arrive(one.hold(), stands.messages(3))
        (spare,) = asyncio.all_tasks() - before
        spare.cancel()
        await until(lambda: len(done) == 3, "all to be done")
    assert done == [0, 1, 2]


@kinds
async def test_no_message_of_a_slice_begins_after_its_queue_was_lost(kind: str) -> None:
    handler = Hanging(3)
    async with stands.stand(getattr(handler, kind), threads=1) as (one, _):
        held, other = one.hold(), one.hold(MessageQueue("orders", "broker-a", 1))
        one.arrive(held, stands.messages(50))
        await until(lambda: handler.begun[-1:] == [3], "the fourth call")
        one.drop(held)
        handler.release()
        one.arrive(other, stands.messages(1, first=100, queue_id=1))
        await until(lambda: one.offsets.get(other.queue) == 101, "the other queue")
    assert handler.begun == [0, 1, 2, 3, 100]
    assert one.offsets.get(stands.QUEUE, 0) <= 3


@kinds
async def test_stopping_begins_no_more_of_a_slice_and_settles_what_is_done(kind: str) -> None:
    handler = Hanging(3)
    async with stands.stand(getattr(handler, kind), threads=1) as (one, _):
        one.arrive(one.hold(), stands.messages(50))
        await until(lambda: handler.begun[-1:] == [3], "the fourth call")
        stopping = asyncio.create_task(one.work.stop(10.0))
        await asyncio.sleep(0)
        handler.release()
        await stopping
        assert (handler.seen, one.offsets[stands.QUEUE]) == ([0, 1, 2, 3], 4)


@leaping
@pytest.mark.parametrize("quick", [0, 1, 6, 40])
async def test_the_time_of_one_call_does_not_count_for_the_next_of_its_slice(quick: int) -> None:
    """Fifteen seconds for the first slow one, ten for the second: neither is longer than twenty."""
    begun: list[int] = []

    async def handler(message: ReceivedMessage) -> None:
        begun.append(message.queue_offset)
        if message.queue_offset >= quick:
            await asyncio.sleep(15.0 if message.queue_offset == quick else 1000.0)

    async with stands.stand(handler, consume_timeout=20.0, threads=1) as (one, taker):
        one.session.clock = stands.LoopClock()
        held = one.hold()
        one.arrive(held, stands.messages(quick + 2))
        await until(lambda: begun[-1:] == [quick], "the first slow call")
        await leap(16.0)
        await until(lambda: begun[-1:] == [quick + 1], "the second slow call")
        await leap(6.0)
        await until(lambda: held.process.count == 1, "all but one to be settled")
        assert taker.sent_back() == []
        await leap(20.0)
        await until(lambda: held.process.count == 0, "the second to be sent back")
        assert [back["offset"] for back in taker.sent_back()] == [str(quick + 1001)]
        await one.work.stop(0.0)


@kinds
async def test_a_handler_may_do_to_its_list_what_it_likes(kind: str) -> None:
    def plain(given: list[ReceivedMessage]) -> Consumed | None:
        given.sort(key=lambda one: -one.queue_offset)
        refused = any(one.queue_offset == 7 for one in given)
        given.clear()
        return Consumed.RETRY if refused else None

    async def coroutine(given: list[ReceivedMessage]) -> Consumed | None:
        return plain(given)

    handler = plain if kind == "plain" else coroutine
    async with stands.stand(handler, batch=True, handler_batch=4) as (one, taker):
        one.arrive(one.hold(), stands.messages(10))
        await until(lambda: one.offsets.get(stands.QUEUE) == 10, "all to be settled")
        sent = sorted(back["offset"] for back in taker.sent_back())
    assert sent == ["1004", "1005", "1006", "1007"]


@kinds
@pytest.mark.parametrize("batch", [False, True])
async def test_every_call_is_counted_once(kind: str, batch: bool) -> None:
    def plain(given: Any) -> Consumed | None:
        first = given[0] if batch else given
        return Consumed.RETRY if first.queue_offset == 8 else None

    async def coroutine(given: Any) -> Consumed | None:
        return plain(given)

    handler = plain if kind == "plain" else coroutine
    began = time.monotonic()
    async with stands.stand(handler, batch=batch, handler_batch=4) as (one, _):
        one.arrive(one.hold(), stands.messages(40))
        one.arrive(one.hold(), stands.messages(40, first=40))
        await until(lambda: one.offsets.get(stands.QUEUE) == 80, "all to be settled")
        stats = one.work.stats.of("orders")
    calls, failed = (20, 4) if batch else (80, 1)
    assert (stats.consume_rt.times, stats.ok.value, stats.failed.value) == (
        calls,
        80 - failed,
        failed,
    )
    # In milliseconds: all of them took no longer than all of this in each thread or task.
    assert 0 < stats.consume_rt.value < (time.monotonic() - began) * 1000 * one.options.threads


async def test_quick_plain_calls_are_settled_together() -> None:
    """The loop is held up until all is done: one report is enough for all of them."""
    seen: list[int] = []
    async with stands.stand(lambda message: seen.append(message.queue_offset)) as (one, _):
        one.arrive(one.hold(), stands.messages(2000))
        while len(seen) < 2000:
            time.sleep(0.0001)  # noqa: ASYNC251 - holding the loop up is the point
        await until(lambda: one.offsets.get(stands.QUEUE) == 2000, "all to be settled")
    assert (seen, len(one.noted)) == (list(range(2000)), 1)


async def test_quick_coroutines_have_one_turn_at_a_time() -> None:
    """A task that let the loop have its turn continues; no other one joins it."""
    tasks: set[object] = set()
    others = 0

    async def handler(message: ReceivedMessage) -> None:
        tasks.add(asyncio.current_task())
        end = time.monotonic_ns() + 500_000
        while time.monotonic_ns() < end:
            pass

    async with stands.stand(handler) as (one, _):
        one.arrive(one.hold(), stands.messages(60))
        while one.offsets.get(stands.QUEUE) != 60:
            await asyncio.sleep(0)
            others += 1
    assert len(tasks) == 1
    assert others >= 60 * 500_000 // 3_500_000, "the loop's other work had its turns"


@kinds
async def test_a_hook_added_meanwhile_is_called_from_then_on(kind: str) -> None:
    handler = Hanging(1)
    told: list[int] = []

    class Hook:
        def before_consume(self, context: Any) -> None:
            told.append(context.messages[0].queue_offset)

        def after_consume(self, context: Any) -> None:
            assert context.success

    async with stands.stand(getattr(handler, kind), threads=1) as (one, _):
        one.arrive(one.hold(), stands.messages(5))
        await until(lambda: handler.begun[-1:] == [1], "the second call")
        one.work.add_hook(Hook())
        handler.release()
        await until(lambda: one.offsets.get(stands.QUEUE) == 5, "all")
    assert told == [2, 3, 4]


@kinds
async def test_failures_of_one_slice_are_settled_each_for_itself(kind: str) -> None:
    errors = {2: ValueError, 5: KeyError, 6: SystemError}

    def plain(message: ReceivedMessage) -> None:
        if message.queue_offset in errors:
            raise errors[message.queue_offset]

    async def coroutine(message: ReceivedMessage) -> None:
        plain(message)

    async with stands.stand(plain if kind == "plain" else coroutine) as (one, taker):
        one.arrive(one.hold(), stands.messages(300))
        await until(lambda: one.offsets.get(stands.QUEUE) == 300, "all to be settled")
        sent = sorted(back["offset"] for back in taker.sent_back())
    assert sent == ["1002", "1005", "1006"]
