"""Messages that share batches: who travels with whom, when, and with which receipt."""

import asyncio
import zlib
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from pocketmq.balance.producer.plan import SendMode
from pocketmq.client.producer.hooks import SendContext
from pocketmq.client.producer.lanes import PATIENCE
from pocketmq.client.producer.shared_batches import LoopBatch
from pocketmq.errors import (
    ClientClosed,
    InvalidInput,
    QueueNotSelected,
    ResponseCode,
    SendFailed,
    SendTimedOut,
)
from pocketmq.model import Message, MessageQueue, SendReceipt
from pocketmq.protocol import RequestCode
from tests.client.producer.stage import Stage, silent, stage, stores
from tests.client.producer.storing import Storing, turns
from tests.loops import leap, leaping, until

SINGLE = int(RequestCode.SEND_MESSAGE_V2)
BATCH = int(RequestCode.SEND_BATCH_MESSAGE)


def message(number: int, **parts: Any) -> Message:
    return Message("orders", b"%03d" % number, **parts)


def bodies(*numbers: int) -> list[bytes]:
    return [b"%03d" % number for number in numbers]


async def storing(on: Stage, name: str = "broker-a", *, held: bool = True) -> Storing:
    """Make the broker store, with a connection open and queues known."""
    await on.producer.send(Message("orders", b"first"))
    return Storing(on.brokers[name], name=ord(name[-1]), held=held)


def check(store: Storing, sent: bytes, receipt: SendReceipt) -> None:
    kept = store.queues[receipt.queue.queue_id][receipt.queue_offset]
    assert (kept.body, kept.properties["UNIQ_KEY"], kept.place) == (
        sent, receipt.message_id, receipt.offset_message_id,
    )  # fmt: skip


async def test_what_comes_while_one_is_in_flight_travels_together() -> None:
    async with stage({"broker-a": stores}) as on:
        store = await storing(on)
        futures = [on.producer.submit(message(n)) for n in range(6)]
        await until(lambda: store.waiting == 1, "the first request")
        assert store.requests == [bodies(0)]
        store.go_on()
        receipts = await asyncio.gather(*futures)
        assert store.requests == [bodies(0), bodies(1, 2, 3, 4, 5)]
        assert store.codes == [SINGLE, BATCH]
        for n, receipt in enumerate(receipts):
            check(store, b"%03d" % n, receipt)
        assert len({receipt.message_id for receipt in receipts}) == 6
        assert [receipt.queue for receipt in receipts[1:]] == [receipts[1].queue] * 5
        assert len(on.producer.sending.window) == 0


async def test_a_batch_that_is_held_waits_for_company() -> None:
    async with stage({"broker-a": stores}) as on:
        store = await storing(on, held=False)
        sharing = on.producer.submitting.sharing
        assert sharing is not None

        def make(topic: str, timeout: float | None, opened: float, deadline: float) -> LoopBatch:
            batch = LoopBatch(topic, timeout, opened, deadline)
            batch.hold = 0.01
            return batch

        sharing.plain_lane("orders", SendMode.ASYNC).make = make
        first = on.producer.submit(message(0))
        await asyncio.sleep(0)
        second = on.producer.submit(message(1))
        await asyncio.gather(first, second)
        assert store.requests == [bodies(0, 1)]


async def test_a_timeout_is_checked_even_if_it_equals_that_of_the_open_batch() -> None:
    async with stage({"broker-a": stores}) as on:
        store = await storing(on)
        futures = [on.producer.submit(message(n), timeout=1) for n in range(3)]
        with pytest.raises(InvalidInput, match="timeout must be in seconds"):
            on.producer.submit(message(3), timeout=True)
        store.held = False
        store.go_on()
        await asyncio.gather(*futures)
        assert store.requests == [bodies(0), bodies(1, 2)]


async def test_each_batch_goes_to_the_next_queue() -> None:
    async with stage({"broker-a": stores}, queues=4) as on:
        store = await storing(on, held=False)
        used = []
        for n in range(8):
            futures = [on.producer.submit(message(10 * n + k)) for k in range(3)]
            receipts = await asyncio.gather(*futures)
            used += [receipts[0].queue.queue_id, receipts[1].queue.queue_id]
        assert [(b - a) % 4 for a, b in pairwise(used)] == [1] * 15
        assert len(store.requests) == 16


async def test_tags_keys_and_properties_are_each_messages_own() -> None:
    async with stage({"broker-a": stores}) as on:
        store = await storing(on)
        properties = {"n": "1"}
        sent = [
            message(0),
            message(1, tag="paid", keys=["A1", "A2"]),
            message(2),
            message(3, properties=properties, flag=7),
        ]
        futures = [on.producer.submit(each) for each in sent]
        properties["n"] = "changed later"
        await until(lambda: store.waiting, "the first request")
        store.go_on()
        receipts = await asyncio.gather(*futures)
        kept = {each.body: each.properties for queue in store.queues.values() for each in queue}
        assert store.requests[1] == bodies(1, 2, 3)
        assert (kept[b"001"]["TAGS"], kept[b"001"]["KEYS"]) == ("paid", "A1 A2")
        assert kept[b"002"] == {"WAIT": "true", "UNIQ_KEY": receipts[2].message_id}
        assert kept[b"003"]["n"] == "1"
        assert all(each["WAIT"] == "true" for each in kept.values())
        for n, receipt in enumerate(receipts):
            check(store, b"%03d" % n, receipt)


async def test_only_messages_of_the_same_topic_and_queue_share() -> None:
    async with stage({"broker-a": stores}, queues=4) as on:
        store = await storing(on)
        one, other = MessageQueue("orders", "broker-a", 1), MessageQueue("orders", "broker-a", 2)
        futures = []
        for n in range(0, 12, 4):
            futures += [
                on.producer.submit(message(n), queue=one),
                on.producer.submit(message(n + 1), selector=lambda queues, _: queues[2]),
                on.producer.submit(message(n + 2)),
                on.producer.submit(Message("TBW102", b"%03d" % (n + 3))),
            ]
        await until(lambda: store.waiting == 4, "a request of each kind")
        store.go_on()
        receipts = await asyncio.gather(*futures)
        assert sorted(store.requests[4:]) == [
            bodies(4, 8), bodies(5, 9), bodies(6, 10), bodies(7, 11)
        ]  # fmt: skip
        assert {each.queue for each in receipts[0::4]} == {one}
        assert {each.queue for each in receipts[1::4]} == {other}
        assert {each.queue.topic for each in receipts[3::4]} == {"TBW102"}


async def test_keys_of_one_queue_share_and_keep_their_order() -> None:
    async with stage({"broker-a": stores}, queues=2) as on:
        store = await storing(on)
        futures = [on.producer.submit(message(n), ordering_key=f"k{n % 5}") for n in range(40)]
        await until(lambda: store.waiting == 2, "a request to each queue")
        store.go_on()
        receipts = await asyncio.gather(*futures)
        assert len(store.requests) == 4
        for kept in store.queues.values():
            assert [each.body for each in kept] == sorted(each.body for each in kept)
        for key in range(5):
            assert len({receipt.queue for receipt in receipts[key::5]}) == 1


async def test_a_chosen_queue_has_one_batch_in_flight_however_many_are_full() -> None:
    async with stage({"broker-a": stores}, batch_bytes=400, send_timeout=30.0) as on:
        store = await storing(on)
        queue = MessageQueue("orders", "broker-a", 1)
        futures = [on.producer.submit(message(n), queue=queue) for n in range(11)]
        short = [on.producer.submit(message(n), queue=queue, timeout=0.1) for n in range(11, 13)]
        futures += [on.producer.submit(message(n), queue=queue) for n in range(13, 15)]
        room = asyncio.create_task(on.producer.room())
        results = await asyncio.gather(*short, return_exceptions=True)
        assert [type(each) for each in results] == [SendTimedOut] * 2
        assert all(each.attempts == 0 for each in results if isinstance(each, SendFailed))
        assert store.requests == [bodies(0)]
        assert not room.done()
        rounds = 0
        while not all(each.done() for each in futures):
            await until(lambda: store.waiting == 1, "one request")
            store.answer()
            rounds += 1
            await turns()
        assert rounds == 4
        assert [each.body for each in store.queues[1]] == bodies(*range(11), 13, 14)
        await room


async def test_what_cannot_share_goes_alone_in_its_order() -> None:
    async with stage({"broker-a": stores}, queues=1, compress_from=100, batch_bytes=1000) as on:
        store = await storing(on)
        sent = [
            *[message(n) for n in range(3)],
            Message("orders", b"large" * 100),
            *[message(n) for n in range(3, 5)],
        ]
        futures = [on.producer.submit(each) for each in sent]
        await until(lambda: store.waiting, "requests")
        assert len(store.requests) == 3
        store.go_on()
        await asyncio.gather(*futures)
        assert store.requests[:2] == [bodies(0), bodies(1, 2)]
        assert store.codes == [SINGLE, BATCH, SINGLE, BATCH]
        assert zlib.decompress(store.requests[2][0]) == b"large" * 100
        assert store.requests[3] == bodies(3, 4)


@pytest.mark.parametrize("delayed", [{"delay_level": 3}, {"delay": 5.0}, {"deliver_at": 5.0}])
async def test_delayed_messages_never_share(delayed: dict[str, Any]) -> None:
    async with stage({"broker-a": stores}) as on:
        store = await storing(on, held=False)
        queue = MessageQueue("orders", "broker-a", 0)
        futures = [on.producer.submit(message(n), **delayed) for n in range(3)]
        futures += [on.producer.submit(message(n), queue=queue, **delayed) for n in range(3, 6)]
        await asyncio.gather(*futures)
        assert store.codes == [SINGLE] * 6


async def test_messages_with_priorities_never_share() -> None:
    """Their broker chooses a queue for each of them."""
    async with stage({"broker-a": stores}) as on:
        store = await storing(on)
        urgent = [message(n, priority=n) for n in range(3)]
        futures = [on.producer.submit(each) for each in (*urgent, message(3), message(4))]
        await until(lambda: store.waiting, "requests")
        store.go_on()
        await asyncio.gather(*futures)
        together = [sent for sent in store.requests if len(sent) > 1]
        assert all(set(sent) <= set(bodies(3, 4)) for sent in together)
        assert sorted(body for sent in store.requests for body in sent) == bodies(*range(5))


@pytest.mark.parametrize("settings", [{"batch_bytes": 400}, {"window": 8}])
async def test_batches_are_bounded_in_bytes_and_number(settings: dict[str, Any]) -> None:
    async with stage({"broker-a": stores}, **settings) as on:
        await on.producer.send(message(0))
        store = Storing(on.brokers["broker-a"])
        receipts = await asyncio.gather(*[on.producer.submit(message(n)) for n in range(50)])
        for n, receipt in enumerate(receipts):
            check(store, b"%03d" % n, receipt)
        batches = [each for each in on.brokers["broker-a"].sends if each.code == BATCH]
        assert batches
        if "batch_bytes" in settings:
            assert max(len(each.body) for each in batches) <= 400
            assert max(map(len, store.requests)) == 5  # 77 bytes each
        else:
            assert max(map(len, store.requests)) == 4


async def test_no_batch_is_larger_than_a_message_may_be() -> None:
    async with stage({"broker-a": stores}, max_message_size=300) as on:
        store = await storing(on, held=False)
        await asyncio.gather(*[on.producer.submit(message(n)) for n in range(30)])
        assert max(map(len, store.requests)) == 3


async def test_nothing_is_shared_with_batches_turned_off() -> None:
    async with stage({"broker-a": stores}, batch_bytes=0) as on:
        store = await storing(on)
        futures = [on.producer.submit(message(n)) for n in range(5)]
        await until(lambda: store.waiting == 5, "all requests")
        store.go_on()
        await asyncio.gather(*futures)
        assert store.codes == [SINGLE] * 5


# Failures


async def test_a_message_that_brokers_refuse_harms_no_other() -> None:
    async with stage({"broker-a": stores}) as on:
        store = await storing(on)
        store.bad = set(bodies(3))
        futures = [on.producer.submit(message(n)) for n in range(6)]
        await until(lambda: store.waiting, "the first request")
        store.go_on()
        results = await asyncio.gather(*futures, return_exceptions=True)
        for n, result in enumerate(results):
            if n == 3:
                assert isinstance(result, SendFailed)
                assert (result.code, result.attempts) == (ResponseCode.MESSAGE_ILLEGAL, 1)
            else:
                assert isinstance(result, SendReceipt)
                check(store, b"%03d" % n, result)
        assert store.requests[1:] == [bodies(1, 2, 3, 4, 5), *[bodies(n) for n in range(1, 6)]]
        assert sorted(store.bodies) == bodies(0, 1, 2, 4, 5)
        assert len(on.producer.sending.window) == 0


@pytest.mark.parametrize("remark", ["message body size exceeded", "something else"])
async def test_a_batch_too_large_for_a_broker_is_sent_apart_in_order(remark: str) -> None:
    """As 5.x says it. To a chosen queue one after the other, so that any broker keeps the order."""
    async with stage({"broker-a": stores}) as on:
        store = await storing(on)
        queue = MessageQueue("orders", "broker-a", 1)
        futures = [on.producer.submit(message(n), queue=queue) for n in range(5)]
        await until(lambda: store.waiting == 1, "the first request")
        store.answer()
        store.most, store.refusal, store.remark = 1, ResponseCode.SYSTEM_ERROR, remark
        await until(lambda: store.waiting == 1, "the batch")
        futures += [on.producer.submit(message(n), queue=queue) for n in range(5, 7)]
        while store.waiting:
            store.answer()
            await until(lambda: store.waiting or all(each.done() for each in futures), "the next")
            assert store.waiting <= 1
        fails = [each.exception() is not None for each in futures]
        if remark == "something else":
            assert fails == [False, *[True] * 6]
        else:
            assert not any(fails)
            assert [each.body for each in store.queues[1]] == bodies(*range(7))


async def test_another_refusal_is_each_messages_own() -> None:
    async with stage({"broker-a": stores}) as on:
        store = await storing(on)
        store.bad, store.refusal = set(bodies(3)), ResponseCode.NO_PERMISSION
        futures = [on.producer.submit(message(n)) for n in range(6)]
        await until(lambda: store.waiting, "the first request")
        store.go_on()
        results = await asyncio.gather(*futures, return_exceptions=True)
        assert isinstance(results[0], SendReceipt)
        failed = [each for each in results[1:] if isinstance(each, SendFailed)]
        assert [each.code for each in failed] == [ResponseCode.NO_PERMISSION] * 5
        assert len({id(each) for each in failed}) == 5
        assert all(each.last_error is not None and each.__cause__ for each in failed)
        assert len(store.requests) == 2


async def test_a_batch_whose_connection_breaks_is_tried_elsewhere() -> None:
    async with stage() as on:
        await on.begin_with(0)
        for n in range(4):
            await on.producer.send(message(n))
        await on.begin_with(0)
        broken = Storing(on.brokers["broker-a"], held=True)
        other = Storing(on.brokers["broker-b"], name=2)
        futures = [on.producer.submit(message(n)) for n in range(6)]
        await until(lambda: broken.waiting == 1, "the first request")
        broken.cut()
        receipts = await asyncio.gather(*futures)
        assert {receipt.queue.broker_name for receipt in receipts} == {"broker-b"}
        for n, receipt in enumerate(receipts):
            check(other, b"%03d" % n, receipt)


@leaping
async def test_a_broker_that_hangs_does_not_hold_messages_for_others() -> None:
    async with stage({"broker-a": stores, "broker-b": stores}) as on:
        await on.begin_with(0)
        for n in range(4):
            await on.producer.send(message(n))
        await on.begin_with(0)
        on.brokers["broker-a"].say = silent
        other = Storing(on.brokers["broker-b"], name=2)
        futures = [on.producer.submit(message(0), timeout=60.0)]
        for n in range(1, 12):
            futures.append(on.producer.submit(message(n), timeout=60.0))
            await asyncio.sleep(PATIENCE / 2)

        def lucky() -> list[SendReceipt]:
            return [each.result() for each in futures if each.done()]

        await until(lucky, "messages that the other broker has stored")
        assert not futures[0].done(), "the broker that hangs still has time to answer"
        for receipt in lucky():
            check(other, other.queues[receipt.queue.queue_id][receipt.queue_offset].body, receipt)
        await leap(61.0)
        await asyncio.gather(*futures, return_exceptions=True)
        await on.producer.flush()


async def test_messages_with_other_timeouts_do_not_share() -> None:
    async with stage({"broker-a": stores}) as on:
        store = await storing(on)
        timeouts = [None, None, None, 0.1, 0.1, 5.0]
        futures = [on.producer.submit(message(n), timeout=t) for n, t in enumerate(timeouts)]
        results = await asyncio.gather(*futures[3:5], return_exceptions=True)
        assert [type(each) for each in results] == [SendTimedOut] * 2
        assert not any(each.done() for each in (*futures[:3], futures[5]))
        store.go_on()
        assert all(each.ok for each in await asyncio.gather(*futures[:3], futures[5]))
        assert bodies(1, 2) in store.requests
        assert bodies(3, 4) in store.requests


async def test_a_choice_that_fails_fails_its_message_alone() -> None:
    async with stage({"broker-a": stores}) as on:
        await storing(on, held=False)
        missing = MessageQueue("orders", "broker-x", 0)

        def fails(*_: object) -> MessageQueue:
            raise ValueError("no idea")

        futures = [
            on.producer.submit(message(0), ordering_key="k"),
            on.producer.submit(message(1), queue=missing),
            on.producer.submit(message(2), selector=fails),
            on.producer.submit(message(3), ordering_key="k"),
        ]
        results = await asyncio.gather(*futures, return_exceptions=True)
        assert [type(each) for each in results] == [
            SendReceipt, QueueNotSelected, type(results[2]), SendReceipt,
        ]  # fmt: skip
        assert isinstance(results[2], Exception)
        assert len(on.producer.sending.window) == 0


async def test_a_key_follows_a_new_route_while_its_message_waits() -> None:
    async with stage({"broker-a": stores}, queues=2) as on:
        store = await storing(on)
        futures = [on.producer.submit(message(n), ordering_key="k1") for n in range(4)]
        await until(lambda: store.waiting, "the first request")
        (queue,) = store.queues
        publication = await on.producer.sending.publishing.find("orders", 5.0)
        publication.take((MessageQueue("orders", "broker-a", 1 - queue),))
        store.go_on()
        receipts = await asyncio.gather(*futures)
        assert [each.queue.queue_id for each in receipts] == [queue, *[1 - queue] * 3]
        assert [each.body for each in store.queues[1 - queue]] == bodies(1, 2, 3)


# Waiting for company, and for all


@leaping
async def test_a_lone_message_waits_for_company_as_long_as_asked() -> None:
    async with stage({"broker-a": stores}, linger=0.5) as on:
        store = Storing(on.brokers["broker-a"])
        first = on.producer.submit(message(0))
        await leap(0.3)
        second = on.producer.submit(message(1))
        await leap(0.15)
        await turns()
        assert not store.requests
        await leap(0.1)
        await asyncio.gather(first, second)
        assert store.requests == [bodies(0, 1)]


@leaping
async def test_a_full_batch_does_not_wait_for_more() -> None:
    async with stage({"broker-a": stores}, linger=0.9, batch_bytes=400) as on:
        store = Storing(on.brokers["broker-a"])
        futures = [on.producer.submit(message(n)) for n in range(6)]
        await leap(-100.0)  # so that the end of the wait is far, however busy the machine
        receipts = await asyncio.wait_for(asyncio.gather(*futures[:5]), 30.0)
        assert len(receipts) == 5
        assert store.requests == [bodies(*range(5))]


async def test_a_flush_sends_what_waits_and_waits_for_no_more() -> None:
    async with stage({"broker-a": stores}, linger=0.9, send_timeout=30.0) as on:
        store = Storing(on.brokers["broker-a"], held=True)
        futures = [on.producer.submit(message(n)) for n in range(3)]
        queue = MessageQueue("orders", "broker-a", 0)
        futures.append(on.producer.submit(message(3), queue=queue, delay_level=1))
        flushing = asyncio.create_task(on.producer.flush())
        await until(lambda: store.waiting == 2, "the requests")
        assert bodies(0, 1, 2) in store.requests
        store.answer()
        later = on.producer.submit(message(4))
        await flushing
        assert all(each.done() for each in futures)
        assert not later.done()
        await until(lambda: store.waiting == 1, "the later request")
        store.go_on()
        await later
        await on.producer.flush()


async def test_a_flush_waits_for_messages_sent_apart() -> None:
    async with stage({"broker-a": stores}) as on:
        store = await storing(on)
        store.bad = set(bodies(2))
        futures = [on.producer.submit(message(n)) for n in range(4)]
        flushing = asyncio.create_task(on.producer.flush())
        await until(lambda: store.waiting == 2, "both requests")
        store.answer()
        await until(lambda: store.waiting == 3, "three single ones")
        assert not flushing.done()
        store.go_on()
        await flushing
        assert [each.exception() is None for each in futures] == [True, True, False, True]


async def test_closing_sends_what_waits_and_refuses_more() -> None:
    async with stage({"broker-a": stores}, linger=0.9, send_timeout=30.0) as on:
        store = Storing(on.brokers["broker-a"], held=True)
        futures = [on.producer.submit(message(n)) for n in range(3)]
        futures += [on.producer.submit(message(n), ordering_key="k") for n in range(3, 5)]
        sends = [asyncio.create_task(on.producer.send(message(n))) for n in range(5, 7)]
        await turns()
        closing = asyncio.create_task(on.producer.close())
        await until(lambda: store.waiting >= 3, "all requests")
        with pytest.raises(ClientClosed):
            on.producer.submit(message(9))
        assert not closing.done()
        store.go_on()
        await closing
        for receipt in [*[each.result() for each in futures], *await asyncio.gather(*sends)]:
            assert receipt.ok


async def test_what_is_cancelled_while_it_waits_is_not_sent() -> None:
    async with stage({"broker-a": stores}) as on:
        store = await storing(on)
        futures = [on.producer.submit(message(n)) for n in range(6)]
        futures += [on.producer.submit(message(n), ordering_key="k") for n in range(6, 9)]
        await until(lambda: store.waiting == 2, "the first requests")
        for n in (0, 2, 4, 7, 8):
            futures[n].cancel()
        store.go_on()
        await asyncio.gather(*[futures[n] for n in (1, 3, 5, 6)])
        assert sorted(store.requests) == [bodies(0), bodies(1, 3, 5), bodies(6)]
        await until(lambda: len(on.producer.sending.window) == 0, "an empty window")
        await on.producer.flush()


async def test_a_batch_that_nobody_wants_is_not_tried_again() -> None:
    async with stage() as on:
        await on.begin_with(0)
        for n in range(4):
            await on.producer.send(message(n))
        await on.begin_with(0)
        broken = Storing(on.brokers["broker-a"], held=True)
        other = Storing(on.brokers["broker-b"])
        future = on.producer.submit(message(0))
        await until(lambda: broken.waiting, "the request")
        future.cancel()
        broken.cut()
        await on.producer.flush()
        assert not other.requests
        assert (await on.producer.submit(message(1))).ok


async def test_a_caller_that_asks_for_room_is_held_up() -> None:
    async with stage({"broker-a": stores}, window=8) as on:
        store = await storing(on)
        futures = []

        async def submit_many() -> None:
            for n in range(40):
                await on.producer.room()
                futures.append(on.producer.submit(message(n)))

        many = asyncio.create_task(submit_many())
        await until(lambda: store.waiting, "requests")
        await turns(20)
        assert not many.done()
        assert (
            len(futures) <= 8 + 4 + 1
        )  # in flight, in a batch that waits for room, in an open one
        store.go_on()
        await many
        receipts = await asyncio.gather(*futures)
        assert sorted(store.bodies) == bodies(*range(40))
        assert len({receipt.message_id for receipt in receipts}) == 40


# Sends that share


async def test_a_send_does_not_share_unless_asked() -> None:
    async with stage({"broker-a": stores}) as on:
        store = await storing(on)
        sends = [asyncio.create_task(on.producer.send(message(n))) for n in range(5)]
        await until(lambda: store.waiting == 5, "all requests")
        store.go_on()
        await asyncio.gather(*sends)
        assert store.codes == [SINGLE] * 5


@pytest.mark.parametrize("linger", [0, 0.01])
async def test_sends_of_many_tasks_share_when_asked(linger: float) -> None:
    async with stage({"broker-a": stores}, linger=linger) as on:
        store = Storing(on.brokers["broker-a"])
        receipts = await asyncio.gather(*[on.producer.send(message(n)) for n in range(64)])
        for n, receipt in enumerate(receipts):
            check(store, b"%03d" % n, receipt)
        assert len(store.requests) == (2 if linger == 0 else 1)
        chosen = [on.producer.send(message(n), ordering_key="k") for n in range(64, 80)]
        await asyncio.gather(*chosen)
        assert len(store.requests) == (4 if linger == 0 else 2)


async def test_shared_sends_keep_the_rules_of_sends() -> None:
    """A refusal that `send` retries is retried; one that is submitted is not, as in Java."""
    async with stage(linger=0.01) as on:
        await on.begin_with(0)
        refusing = Storing(on.brokers["broker-a"])
        other = Storing(on.brokers["broker-b"])
        refusing.bad, refusing.refusal = set(bodies(0, 1, 2, 3)), ResponseCode.SYSTEM_BUSY
        sends = [on.producer.send(message(n)) for n in range(4)]
        receipts = await asyncio.gather(*sends)
        assert {receipt.queue.broker_name for receipt in receipts} == {"broker-b"}
        assert other.requests == [bodies(0, 1, 2, 3)]
        await on.begin_with(0)
        futures = [on.producer.submit(message(n)) for n in range(4)]
        results = await asyncio.gather(*futures, return_exceptions=True)
        assert [type(each) for each in results] == [SendFailed] * 4


# Hooks


async def test_hooks_see_a_shared_batch_as_they_see_a_batch() -> None:
    seen: list[tuple[str, list[bytes], str]] = []

    class Watch:
        def before_send(self, context: SendContext) -> None:
            seen.append(("before", [each.body for each in context.messages], context.unique_id))

        def after_send(self, context: SendContext) -> None:
            seen.append(("after", [each.body for each in context.messages], context.unique_id))
            assert context.receipt is not None

    async with stage({"broker-a": stores}) as on:
        on.producer.add_send_hook(Watch())
        store = await storing(on)
        del seen[:]
        futures = [on.producer.submit(message(n)) for n in range(4)]
        await until(lambda: store.waiting, "the first request")
        store.go_on()
        receipts = await asyncio.gather(*futures)
        ids = ",".join(receipt.message_id for receipt in receipts[1:])
        assert seen[2:] == [("before", bodies(1, 2, 3), ids), ("after", bodies(1, 2, 3), ids)]
        for n, receipt in enumerate(receipts):
            check(store, b"%03d" % n, receipt)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda producer: producer.submit(Message("orders", b"")),
        lambda producer: producer.submit(message(0, properties={"x": "y" * 40_000})),
        lambda producer: producer.submit("orders"),
        lambda producer: producer.submit(message(0, flag=2**40)),
        lambda producer: producer.submit(message(0), timeout=0.0),
        lambda producer: producer.submit(message(0), timeout=-1.0, ordering_key="k"),
    ],
)
async def test_wrong_messages_are_refused_at_once(wrong: Callable[[Any], object]) -> None:
    async with stage({"broker-a": stores}) as on:
        await on.producer.send(message(0))
        with pytest.raises(InvalidInput):
            wrong(on.producer)
        assert (await on.producer.submit(message(1))).ok
        await on.producer.flush()
