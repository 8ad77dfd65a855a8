"""Messages that follow another one in a burst: where they would go one by one, with fewer calls."""

import asyncio
import gc
import os
import sys
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import pocketmq
from pocketmq import errors
from pocketmq.client.producer.hooks import SendContext
from pocketmq.model import Message, SendReceipt
from pocketmq.protocol.property_text import decode_properties
from tests.client.producer.stage import Stage, TestBroker, refuses, silent, stage, stores

core = pytest.importorskip("pocketmq_core")

BODIES = [b"%d" % number for number in range(100)]
SOURCES = str(Path(pocketmq.__file__).parent)


async def ready(on: Stage) -> None:
    """Make connections to both brokers and templates of all queues; the first queue is next."""
    await on.begin_with(0)
    for _ in range(4):
        await on.producer.send(Message("orders", b"x"))
    await asyncio.gather(*[on.producer.send(Message("orders", b"x")) for _ in range(4)])
    await on.begin_with(0)
    for each in on.brokers.values():
        each.batches.clear()


async def burst(on: Stage, *messages: Message, **settings: Any) -> list[Any]:
    """Send messages in one event-loop iteration; return their receipts or errors."""
    sends = [on.producer.send(message, **settings) for message in messages]
    return await asyncio.gather(*sends, return_exceptions=True)


def numbered(tag: str | None = None) -> list[Message]:
    return [Message("orders", body, tag) for body in BODIES]


def seen(broker: TestBroker) -> list[tuple[Any, ...]]:
    """Return what a broker got, but for what differs from run to run."""
    found = []
    for request in broker.sends:
        properties = decode_properties(request.ext["i"].encode())
        prefix, number = properties["UNIQ_KEY"][:-4], properties.pop("UNIQ_KEY")[-4:]
        rest = {name: text for name, text in request.ext.items() if name not in "gi"}
        found.append((request.body, rest, properties, len(prefix), int(number, 16)))
    return found


class Counted:
    """Counts the messages that the core posts for a producer; with `pure` it posts none."""

    def __init__(self, on: Stage, *, pure: bool = False) -> None:
        self.followed = 0
        self._follow = None if pure else on.producer._follow
        on.producer._follow = self

    def __call__(self, message: Message, delay_level: int | None) -> Any:
        posted = None if self._follow is None else self._follow(message, delay_level)
        self.followed += posted is not None
        return posted


@pytest.mark.parametrize("tag", [None, "paid"])
async def test_messages_of_a_burst_go_where_they_would_go_one_by_one(tag: str | None) -> None:
    outcomes = []
    for pure in (False, True):
        async with stage(queues=3) as on:
            await ready(on)
            counted = Counted(on, pure=pure)
            receipts = await burst(on, *numbered(tag))
            assert (counted.followed > 80) is not pure
            got = [seen(each) for each in on.brokers.values()]
            first = min(row[-1] for rows in got for row in rows)
            rows = [[(*row[:-1], row[-1] - first) for row in rows] for rows in got]
            outcomes.append((rows, [(each.queue, each.status) for each in receipts]))
            window = on.producer.sending.window
            assert (len(window), window.bytes) == (0, 0)
            ids = [each.message_id for each in receipts]
            assert ids == sorted(set(ids))
    assert outcomes[0] == outcomes[1]


async def test_a_message_that_follows_passes_few_functions() -> None:
    """Each costs a tenth of a microsecond and more. The number may fall.

    One of several: with the next millisecond on the clock a burst may begin anew.
    """
    async with stage() as on:
        await ready(on)
        on.producer.sending.window.try_enter(0)  # so that more than one is open
        passed: list[list[str]] = []

        def note(frame: FrameType, event: str, _: Any) -> None:
            if event == "call" and frame.f_code.co_filename.startswith(SOURCES):
                passed[-1].append(frame.f_code.co_qualname)

        begun = []
        for _ in range(10):
            passed.append([])
            coroutine = on.producer.send(Message("orders", b"x"))
            sys.setprofile(note)
            try:
                coroutine.send(None)
            finally:
                sys.setprofile(None)
            begun.append(coroutine)
        for coroutine in begun:
            coroutine.close()
        on.producer.sending.window.leave(0)
        assert len(on.producer.sending.window) == 0
        assert min(passed, key=len) == ["Producer.send", "SendWindow.try_enter"]


@pytest.mark.parametrize(
    "odd",
    [
        Message("orders", b"x" * 5000),  # compressed
        Message("orders", b"x", keys=["A17"]),
        Message("orders", b"x", properties={"region": "eu"}),
        Message("orders", b"x", priority=3),
        Message("orders", b"x", flag=1),
        Message("orders", b"x", tag="other"),
        Message("TBW102", b"x"),
    ],
    ids=["large", "keys", "properties", "priority", "flag", "tag", "topic"],
)
async def test_one_that_is_not_plain_takes_its_own_way_amid_a_burst(odd: Message) -> None:
    async with stage() as on:
        await ready(on)
        some = numbered()[:9]
        receipts = await burst(on, *some, odd, *some)
        assert all(isinstance(each, SendReceipt) for each in receipts), receipts
        assert sum(on.asked.values()) == 19


async def test_turns_begin_again_after_the_last_one() -> None:
    async with stage() as on:
        await ready(on)
        publication = await on.producer.sending.publishing.find("orders", 5.0)
        publication.robin.index = 2**31 - 1 - 9
        receipts = await burst(on, *numbered()[:20])
        turns = [*range(2**31 - 9, 2**31), *range(11)]
        assert [each.queue for each in receipts] == [publication.queues[n % 4] for n in turns]
        assert publication.robin.index == 10


async def test_a_burst_of_several_topics_and_producers_is_kept_apart() -> None:
    async with (
        stage() as on,
        pocketmq.aio.Producer(on.producer.client_options.name_servers, group="other") as other,
    ):
        await ready(on)
        await other.send(Message("orders", b"x"))
        sends = []
        for body in BODIES:
            sends += [
                on.producer.send(Message("orders", body)),
                other.send(Message("orders", body)),
            ]
        receipts = await asyncio.gather(*sends)
        assert len({each.message_id for each in receipts}) == 200
        assert (len(on.producer.sending.window), len(other.sending.window)) == (0, 0)


async def test_what_a_broker_refuses_is_tried_elsewhere() -> None:
    async with stage({"broker-a": refuses(2, "[REJECTREQUEST]busy"), "broker-b": stores}) as on:
        await ready(on)
        receipts = await burst(on, *numbered())
        assert {each.queue.broker_name for each in receipts} == {"broker-b"}
        assert on.asked == {"broker-a": 50, "broker-b": 100}
        assert (len(on.producer.sending.window), on.producer.sending.window.bytes) == (0, 0)


async def test_what_gets_no_response_in_time_is_told_of() -> None:
    async with stage({"broker-a": silent}, send_timeout=0.3) as on:
        publication = await on.producer.sending.publishing.find("orders", 5.0)
        outcomes = await burst(on, *numbered())  # the first one connects
        outcomes += await burst(on, *numbered())
        assert {type(each) for each in outcomes} == {errors.SendTimedOut}
        assert publication.queues
        assert (len(on.producer.sending.window), on.producer.sending.window.bytes) == (0, 0)


@pytest.mark.parametrize("after_its_receipt", [False, True])
async def test_one_that_is_cancelled_leaves_the_window_once(*, after_its_receipt: bool) -> None:
    """A task may be cancelled when it has its receipt already, and has not run since."""
    async with stage() as on:
        await ready(on)
        window = on.producer.sending.window
        tasks = [asyncio.create_task(on.producer.send(each)) for each in numbered()[:20]]
        await asyncio.sleep(0)
        assert len(window) == 20
        if after_its_receipt:
            # A response is handed over in one iteration, and its task runs in the next one.
            while len(window) == 20:  # noqa: ASYNC110 - a later iteration is too late
                await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert asyncio.CancelledError in {type(each) for each in outcomes}
        assert (len(window), window.bytes) == (0, 0)
        assert isinstance(await on.producer.send(Message("orders", b"x")), SendReceipt)


async def test_a_hook_that_comes_amid_a_burst_is_called_for_the_rest() -> None:
    class Hook:
        called = 0

        def before_send(self, _: SendContext) -> None:
            self.called += 1

        def after_send(self, _: SendContext) -> None:
            pass

    async with stage() as on:
        await ready(on)
        hook = Hook()
        first = [asyncio.ensure_future(on.producer.send(each)) for each in numbered()[:10]]
        await asyncio.sleep(0)
        on.producer.add_send_hook(hook)
        second = [on.producer.send(each) for each in numbered()[:10]]
        await asyncio.gather(*first, *second)
        assert hook.called == 10


async def test_a_window_that_is_full_admits_them_in_their_order() -> None:
    async with stage(window=5) as on:
        await ready(on)
        receipts = await burst(on, *numbered())
        assert all(isinstance(each, SendReceipt) for each in receipts)
        bodies = [int(row[0]) for each in on.brokers.values() for row in seen(each)]
        assert sorted(bodies) == list(range(100))


async def test_a_producer_that_is_closed_amid_a_burst_refuses_the_rest() -> None:
    async with stage() as on:
        await ready(on)
        begun = [asyncio.ensure_future(on.producer.send(each)) for each in numbered()[:10]]
        await asyncio.sleep(0)
        closing = asyncio.ensure_future(on.producer.close())
        await asyncio.sleep(0)
        late = await burst(on, *numbered()[:3])
        assert {type(each) for each in late} == {errors.ClientClosed}
        assert all(isinstance(each, SendReceipt) for each in await asyncio.gather(*begun))
        await closing


async def test_a_route_that_changes_amid_a_burst_is_used_by_the_next_one() -> None:
    async with stage() as on:
        await ready(on)
        await burst(on, *numbered())
        only = on.directory.routes["orders"]
        left = [each for each in only.queue_datas if each.broker_name == "broker-b"]
        await on.reroute(type(only)(queue_datas=left, broker_datas=only.broker_datas))
        receipts = await burst(on, *numbered())
        assert {each.queue.broker_name for each in receipts} == {"broker-b"}


async def test_connections_that_break_cost_no_later_burst_anything() -> None:
    async with stage() as on:
        await ready(on)
        for each in on.brokers.values():
            for connection in each.open:
                connection.abort()
        for _ in range(3):
            outcomes = await burst(on, *numbered())
        assert all(isinstance(each, SendReceipt) for each in outcomes)


async def test_a_topic_counts_by_its_letters() -> None:
    """A name may be decoded anew for each message."""
    async with stage() as on:
        await ready(on)
        counted = Counted(on)
        await burst(on, *[Message(b"orders".decode(), body) for body in BODIES])
        assert counted.followed > 80


async def test_large_messages_are_written_one_by_one() -> None:
    """So that a full socket is noticed, and the rest is held back."""
    async with stage(compress_from=1 << 20) as on:
        await ready(on)
        counted = Counted(on)
        large = Message("orders", b"x" * (1 << 16))
        receipts = await burst(on, *[large] * 9)
        assert all(isinstance(each, SendReceipt) for each in receipts)
        assert counted.followed == 0


async def test_no_message_follows_one_that_is_no_longer_open() -> None:
    """The timer of that one is theirs; it may be gone."""
    async with stage({"broker-a": stores}) as on:
        await ready(on)
        await asyncio.gather(*[on.producer.send(Message("orders", b"x")) for _ in range(8)])
        counted = Counted(on)
        abandoned = on.producer.send(Message("orders", b"x"))
        abandoned.send(None)
        abandoned.close()
        assert isinstance(await on.producer.send(Message("orders", b"x")), SendReceipt)
        assert counted.followed == 0


async def test_an_interrupt_after_a_message_was_posted_frees_its_place_once() -> None:
    async with stage() as on:
        await ready(on)

        def interrupt(frame: FrameType, event: str, _: Any) -> None:
            if event == "return" and frame.f_code.co_qualname == "Outbox.add":
                sys.setprofile(None)
                raise KeyboardInterrupt

        on.producer.sending.window.try_enter(0)  # so that more than one is open
        first = on.producer.send(Message("orders", b"x"))
        sys.setprofile(interrupt)
        with pytest.raises(KeyboardInterrupt):
            first.send(None)
        assert sys.getprofile() is None
        on.producer.sending.window.leave(0)
        assert isinstance(await on.producer.send(Message("orders", b"y")), SendReceipt)
        first.close()
        assert (len(on.producer.sending.window), on.producer.sending.window.bytes) == (0, 0)


async def test_a_closed_producer_is_collected_even_if_a_hook_knows_it() -> None:
    class Hook:
        producer: Any = None

        def before_send(self, _: SendContext) -> None:
            pass

        def after_send(self, _: SendContext) -> None:
            pass

    async with stage() as on:
        producer = pocketmq.aio.Producer(on.producer.client_options.name_servers, group="other")
        hook = Hook()
        async with producer:
            await asyncio.gather(*[producer.send(each) for each in numbered()])
            hook.producer = producer
            producer.add_send_hook(hook)
        gone = weakref.ref(producer)
        del producer, hook
        await asyncio.sleep(0)
        gc.collect()
        assert gone() is None


async def begun_in(act: Callable[[], Any], on: Stage) -> Any:
    """Begin a burst, and do something before it leaves."""
    coroutines = [on.producer.send(each) for each in numbered()[:5]]
    for each in coroutines:
        each.send(None)
    try:
        return act()
    finally:
        for each in coroutines:
            each.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forks beside threads
async def test_a_fork_amid_a_burst_sends_nothing() -> None:
    async with stage() as on:
        await ready(on)

        def fork() -> int:
            child = os.fork()
            if child == 0:
                try:
                    on.producer.send(Message("orders", b"x")).send(None)
                except errors.ClientForked:
                    os._exit(7)
                finally:
                    os._exit(1)
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

        assert await begun_in(fork, on) == 7


async def test_another_thread_is_refused_amid_a_burst() -> None:
    async with stage() as on:
        await ready(on)

        def send() -> None:
            with pytest.raises(errors.WrongLoop):
                on.producer.send(Message("orders", b"x")).send(None)

        def send_elsewhere() -> None:
            with ThreadPoolExecutor() as pool:
                pool.submit(send).result()

        await begun_in(send_elsewhere, on)
