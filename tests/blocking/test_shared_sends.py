"""Messages of threads that share batches: their futures, their order, and the broker that dies."""

import asyncio
import threading
import time
import weakref
from collections.abc import Iterable
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Future,
    ThreadPoolExecutor,
    as_completed,
    wait,
)
from typing import Any

import msgspec
import pytest

import pocketmq as mq
from pocketmq import Cluster, Message, SendReceipt, SendStatus
from pocketmq.blocking import shared_sends
from pocketmq.blocking.shared_futures import SharedSend, ThreadBatch
from pocketmq.blocking.submitting import SubmitWindow
from pocketmq.client import producer_options
from pocketmq.client.producer.hooks import SendContext
from pocketmq.client.producer.shared_batches import BatchReceipts
from pocketmq.client.producer.window import ByteBudget
from pocketmq.errors import ClientClosed, InvalidInput, SendFailed, SendTimedOut
from pocketmq.model import MessageQueue

WHOLE = SendReceipt(
    status=SendStatus.SEND_OK,
    message_id="AA,BB,CC",
    offset_message_id="11,22,33",
    queue=MessageQueue("t", "b", 0),
    queue_offset=40,
)


def batch_of(count: int) -> tuple[ThreadBatch, list[SharedSend], SubmitWindow]:
    window = SubmitWindow(10, ByteBudget(1000, 3.0))
    batch = ThreadBatch(window, "t", None, 0.0, 3.0)
    places = batch.open_places(100, 32)
    places.grant(count, 1000)
    futures = []
    for _ in range(count):
        assert window.try_enter(3, list[None]().append, None)
        future = places.add(Message("t", b"abc"), None)
        assert future is not None
        futures.append(future)
    places.reclaim()
    batch.size, batch.places = 3 * count, None
    return batch, futures, window


def test_futures_are_those_of_the_standard_library() -> None:
    batch, futures, _ = batch_of(3)
    first = futures[0]
    assert isinstance(first, Future)
    assert isinstance(first, SharedSend)
    assert weakref.ref(first)() is first
    assert "pending" in repr(first)
    assert not first.running()
    assert not first.cancelled()

    async def wait_for() -> SendReceipt:
        threading.Timer(0, lambda: batch.settle(BatchReceipts(WHOLE, "AA,BB,CC", 3))).start()
        return await asyncio.wait_for(asyncio.wrap_future(first), 30)

    assert asyncio.run(wait_for()).message_id == "AA"
    assert "finished" in repr(first)
    with pytest.raises(AttributeError, match="colour"):
        first.colour  # noqa: B018
    plain: list[Future[SendReceipt]] = [*futures]
    assert sorted(plain.index(each) for each in as_completed(plain, 30)) == [0, 1, 2]


def test_futures_make_their_receipts_of_the_batchs() -> None:
    batch, futures, window = batch_of(3)
    assert not any(future.done() for future in futures)
    batch.settle(BatchReceipts(WHOLE, WHOLE.message_id, 3))
    assert all(future.done() for future in futures)
    got = [future.result(0) for future in futures]
    assert [each.message_id for each in got] == ["AA", "BB", "CC"]
    assert [each.offset_message_id for each in got] == ["11", "22", "33"]
    assert [each.queue_offset for each in got] == [40, 41, 42]
    assert futures[1].result() is got[1]
    assert futures[1].exception(0) is None
    assert (window.count, window.bytes) == (0, 0)
    assert not batch.messages


def test_those_who_wait_and_those_who_ask_later_get_the_same() -> None:
    batch, futures, _ = batch_of(3)
    called: Future[str] = Future()
    futures[1].add_done_callback(lambda future: called.set_result(future.result().message_id))
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(futures[0].result, 30)
        first = threads.submit(wait, futures, 30, FIRST_COMPLETED)
        batch.settle(BatchReceipts(WHOLE, WHOLE.message_id, 3))
        assert waiting.result(30).message_id == "AA"
        assert called.result(30) == "BB"
        assert first.result(30).done
    plain: list[Future[SendReceipt]] = [*futures]
    assert {each.result().message_id for each in as_completed(plain, 30)} == {"AA", "BB", "CC"}


def test_an_error_is_each_futures_own() -> None:
    batch, futures, window = batch_of(2)
    batch.fail(SendFailed("t", "b", 1, 0.5, None))
    errors = [future.exception(0) for future in futures]
    assert [type(each) for each in errors] == [SendTimedOut] * 2
    assert errors[0] is not errors[1]
    assert errors[0] is futures[0].exception(0)
    with pytest.raises(SendFailed):
        futures[1].result(0)
    assert window.count == 0


def test_messages_that_end_one_by_one() -> None:
    batch, futures, window = batch_of(2)
    batch.settle_one(1, SendFailed("t", "b", 1, 0.5, None))
    assert [future.done() for future in futures] == [False, True]
    assert window.count == 2
    batch.settle_one(0, WHOLE)
    assert futures[0].result(0) is WHOLE
    assert isinstance(futures[1].exception(0), SendFailed)
    assert window.count == 0


def test_a_cancelled_future_takes_no_receipt() -> None:
    batch, futures, window = batch_of(3)
    assert futures[0].cancel()
    assert futures[0].done()
    assert wait(futures[:1], 30).done == {futures[0]}
    batch.settle(BatchReceipts(WHOLE, WHOLE.message_id, 3))
    with pytest.raises(CancelledError):
        futures[0].result(0)
    assert not futures[1].cancel()
    assert futures[1].result(0).message_id == "BB"
    assert window.count == 0


def test_no_wait_is_lost_however_threads_meet() -> None:
    made = [batch_of(3) for _ in range(1000)]

    def settle() -> None:
        for batch, _, _ in made:
            batch.settle(BatchReceipts(WHOLE, WHOLE.message_id, 3))

    settling = threading.Thread(target=settle)
    settling.start()
    for _, futures, _ in made:
        futures[0].exception(30)
        assert futures[1].result(30).message_id == "BB"
        assert futures[2].done()
    settling.join(30)


def test_threads_that_ask_at_once_get_receipts_of_their_own() -> None:
    count, rounds = 8, 200
    ids = ",".join(f"{at:04}" for at in range(count))
    whole = msgspec.structs.replace(WHOLE, message_id=ids, offset_message_id=ids)
    barrier = threading.Barrier(count, timeout=30)
    made = [batch_of(count) for _ in range(rounds)]
    for batch, _, _ in made:
        batch.settle(BatchReceipts(whole, ids, count))

    def ask(at: int) -> list[SendReceipt]:
        found = []
        for _, futures, _ in made:
            barrier.wait()
            found.append(futures[at].result(0))
        return found

    with ThreadPoolExecutor(count) as threads:
        for at, receipts in enumerate(threads.map(ask, range(count))):
            expected = (f"{at:04}", f"{at:04}", 40 + at)
            for each in receipts:
                assert (each.message_id, each.offset_message_id, each.queue_offset) == expected


# On a cluster


Place = tuple[str, int, int]


def places(
    cluster: Cluster, topic: str, count: int, wanted: frozenset[Place] = frozenset()
) -> dict[Place, bytes]:
    """Read a topic until there are that many and all wanted ones; return bodies by place."""
    found: dict[Place, bytes] = {}
    with mq.PullConsumer(
        cluster.address, request_timeout=30.0, group=f"read-{topic}", consume_from="first"
    ) as consumer:
        consumer.subscribe(topic)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (len(found) >= count and wanted <= found.keys()):
            for each in consumer.poll(1.0):
                found[each.broker_name or "", each.queue_id, each.queue_offset] = each.body
    return found


def place(receipt: SendReceipt) -> Place:
    return receipt.queue.broker_name, receipt.queue.queue_id, receipt.queue_offset


class Watch:
    """Notes the messages of each request."""

    def __init__(self) -> None:
        self.requests: list[list[bytes]] = []

    @property
    def sizes(self) -> list[int]:
        return [len(bodies) for bodies in self.requests]

    def before_send(self, context: SendContext) -> None:
        self.requests.append([each.body for each in context.messages])

    def after_send(self, context: SendContext) -> None:
        pass


def of_worker(worker: int, bodies: Iterable[bytes]) -> list[bytes]:
    return [body for body in bodies if body.startswith(b"%d-" % worker)]


@pytest.mark.parametrize("chosen", [False, True])
def test_what_threads_submit_is_stored_once_each_in_their_order(
    cluster: Cluster, topic: str, chosen: bool
) -> None:
    watch, futures = Watch(), {}
    with mq.Producer(cluster.address, group="g", window=256, send_timeout=30.0) as producer:
        producer.add_send_hook(watch)

        def work(worker: int) -> None:
            for n in range(500):
                key = f"k{worker}" if chosen else None
                body = b"%d-%05d" % (worker, n)
                message = Message(topic, body, tag="t") if n % 7 == 0 else Message(topic, body)
                futures[body] = producer.submit(message, ordering_key=key)

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(work, range(4)))
        producer.flush()
        assert all(future.done() for future in futures.values())
    found = places(cluster, topic, 2000)
    assert found == {place(future.result()): body for body, future in futures.items()}
    assert sorted(found.values()) == sorted(futures)
    assert sum(watch.sizes) == 2000
    assert len(watch.sizes) < 1000
    spots = {body: place(future.result()) for body, future in futures.items()}
    for bodies in watch.requests:
        broker, queue, first = spots[bodies[0]]
        stored = [spots[body] for body in bodies]
        assert stored == [(broker, queue, first + at) for at in range(len(bodies))]
        for worker in range(4):
            mine = of_worker(worker, bodies)
            assert mine == sorted(mine)
    # Without a choice, batches may overtake each other: docs/how-to/send-many-messages.md.
    for worker in range(4 if chosen else 0):
        mine = of_worker(worker, sorted(spots, key=spots.__getitem__))
        assert len({spots[body][:2] for body in mine}) == 1
        assert mine == sorted(mine)


def test_sends_of_many_threads_share_when_asked(cluster: Cluster, topic: str) -> None:
    watch = Watch()
    with mq.Producer(cluster.address, group="g", linger=0.2, send_timeout=30.0) as producer:
        producer.add_send_hook(watch)
        with ThreadPoolExecutor(32) as threads:
            sends = {
                b"%04d" % n: threads.submit(producer.send, Message(topic, b"%04d" % n))
                for n in range(320)
            }
            keyed = {
                b"k%03d" % n: threads.submit(
                    producer.send, Message(topic, b"k%03d" % n), ordering_key="k"
                )
                for n in range(32)
            }
        with pytest.raises(InvalidInput):
            producer.send(Message(topic, b""))
        assert producer.send(Message(topic, b"later"), delay_level=1).ok
    found = places(cluster, topic, 352)
    for body, send in {**sends, **keyed}.items():
        assert found[place(send.result())] == body
    assert sum(watch.sizes) == 353
    assert len(watch.sizes) < 200


def test_a_full_window_lets_open_batches_leave(
    cluster: Cluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that waits for capacity does not wait for company that cannot come.

    It would wait here for longer than it may: the batches linger beyond its deadline.
    """
    monkeypatch.setattr(producer_options, "_LONGEST_LINGER", 1000.0)
    topics = [cluster.create_topic(f"{topic}-{n}", queues=1) for n in range(4)]
    with mq.Producer(
        cluster.address, group="g", window=4, linger=600.0, send_timeout=900.0
    ) as producer:
        for each in topics:
            producer.send_oneway(Message(each, b"first"))
        messages = [Message(each, b"x") for each in topics] + [Message(topics[0], b"y")]
        futures = [producer.submit(each, timeout=30.0) for each in messages]
        producer.flush()
        assert all(future.result(0).ok for future in futures)


def test_an_open_batch_takes_no_more_than_the_window() -> None:
    with Cluster(brokers=1, faults=True) as cluster, ThreadPoolExecutor() as threads:
        topic = cluster.create_topic("orders", queues=1)
        # Half a window fills a batch: two are in flight, and the third has places left.
        with mq.Producer(
            cluster.address, group="g", window=9, linger=0.9, send_timeout=30.0
        ) as producer:
            producer.send_oneway(Message(topic, b"first"))
            (broker,) = cluster.brokers
            cluster.partition(broker)
            futures = [producer.submit(Message(topic, b"%d" % n), timeout=20) for n in range(9)]
            tenth = threads.submit(producer.submit, Message(topic, b"9"), timeout=20)
            assert not wait([tenth], 0.3).done
            cluster.heal(broker)
            futures.append(tenth.result(30))
            assert all(future.result(30).ok for future in futures)


def test_after_a_wait_for_capacity_a_batch_waits_for_company(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shared_sends, "_PRESSED_HOLD", 30.0)
    with Cluster(brokers=1, faults=True) as cluster, ThreadPoolExecutor() as threads:
        topic = cluster.create_topic("orders", queues=1)
        with mq.Producer(cluster.address, group="g", window=4, send_timeout=300.0) as producer:
            producer.send_oneway(Message(topic, b"first"))
            (broker,) = cluster.brokers
            cluster.partition(broker)
            futures = [producer.submit(Message(topic, b"%d" % n)) for n in range(4)]
            waiting = threads.submit(producer.submit, Message(topic, b"4"))
            assert not wait([waiting], 0.3).done
            cluster.heal(broker)
            fifth = waiting.result(30)
            assert all(future.result(30).ok for future in futures)
            assert not wait([fifth], 0.3).done
            sixth = producer.submit(Message(topic, b"5"))
            producer.flush()
            assert fifth.result(30).queue_offset + 1 == sixth.result(30).queue_offset


def test_closing_sends_what_waits_for_company(cluster: Cluster, topic: str) -> None:
    with mq.Producer(cluster.address, group="g", linger=0.9, send_timeout=30.0) as producer:
        futures = [producer.submit(Message(topic, b"%02d" % n)) for n in range(20)]
    assert all(future.result(0).ok for future in futures)
    with pytest.raises(ClientClosed):
        producer.submit(Message(topic, b"x"))
    with pytest.raises(ClientClosed):
        producer.flush()


def test_no_message_is_lost_in_silence_when_a_broker_dies() -> None:
    with Cluster(brokers=2, in_process=False) as cluster:
        topic = cluster.create_topic("orders", queues=4)
        with mq.Producer(cluster.address, group="g", window=64, send_timeout=30.0) as producer:
            producer.send(Message(topic, b"first"))
            futures: dict[bytes, Future[SendReceipt]] = {}
            for n in range(2000):
                futures[b"%04d" % n] = producer.submit(Message(topic, b"%04d" % n), timeout=20)
                if n == 700:
                    cluster.kill("broker-0")
            producer.flush()
        outcomes: dict[bytes, Any] = {
            body: future.exception(0) or future.result(0) for body, future in futures.items()
        }
        failed = [each for each in outcomes.values() if isinstance(each, SendFailed)]
        stored = {body: each for body, each in outcomes.items() if isinstance(each, SendReceipt)}
        assert len(failed) + len(stored) == 2000
        late = [b"%04d" % n for n in range(1500, 2000)]
        assert {stored[body].queue.broker_name for body in late} == {"broker-1"}
        there = {
            body: each for body, each in stored.items() if each.queue.broker_name == "broker-1"
        }
        told = {place(each): body for body, each in there.items()}
        # What was tried again may be stored twice, so there may be more than was acknowledged.
        found = places(cluster, topic, len(told), frozenset(told))
        assert told.items() <= found.items()
