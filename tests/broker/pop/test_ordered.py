"""Ordered pops: a queue is locked until all is acknowledged, then goes on where it was."""

from typing import Any

from pocketmq.broker.pop.in_flight import OrderedAckRefusal, ordered_pop
from pocketmq.protocol import RequestCode as Code
from pocketmq.protocol.handles import PopPlace, PopQueue, TopicMark, read_order_counts
from tests.broker.pop import counter
from tests.broker.running import client, running
from tests.loops import leap, leaping, until

T = "ordered"
NORMAL = TopicMark.NORMAL


def test_a_queue_is_free_when_all_is_acknowledged_or_hidden_no_more() -> None:
    taken = ordered_pop("A", 1000, 500, [4, 5, 7])
    assert taken.free_at_ms(1100) == 1500
    assert taken.is_blocked(None, 1499)
    assert taken.is_blocked("B", 1499)
    assert not taken.is_blocked("A", 1100)
    assert not taken.is_blocked(None, 1500)
    assert taken.ack(5, 1000) is None
    assert taken.next_offset == 4
    assert taken.ack(4, 999) is OrderedAckRefusal.STALE
    assert taken.ack(6, 1000) is OrderedAckRefusal.UNKNOWN
    assert taken.change(7, 1000, 9000)
    assert not taken.change(6, 1000, 9000)
    assert taken.ack(4, 1000) is None
    assert (taken.next_offset, taken.free_at_ms(1200)) == (7, 9000)
    assert taken.ack(7, 1000) is None
    assert (taken.next_offset, taken.free_at_ms(1200), taken.is_done) == (8, 1200, True)


def test_tries_are_counted_for_each_message_and_for_the_queue() -> None:
    first = ordered_pop("A", 1, 5, [0, 1])
    same = ordered_pop("A", 2, 5, [0, 1])
    first.followed_by(same)
    assert (same.counts, same.count_of_queue()) == ({}, 0)
    second = ordered_pop("B", 3, 5, [0, 1])
    same.followed_by(second)
    assert (second.counts, second.count_of_queue()) == ({0: 1, 1: 1}, 1)
    third = ordered_pop(None, 4, 5, [1, 2])
    second.followed_by(third)
    assert (third.counts, third.count_of_queue()) == ({1: 2}, 0)


@leaping
async def test_a_locked_queue_gives_nothing_until_all_is_acknowledged() -> None:
    async with running() as (_, address), client(address) as peer:
        await counter.create(peer, T, 2)
        await counter.send(peer, T, *"abcdef")
        first = await counter.pop(peer, T, order="true", maxMsgNums=3)
        assert counter.bodies(first) == ["a", "b", "c"]
        assert first[0].handle.is_ordered
        assert await counter.pop(peer, T, order="true") == []
        await counter.send(peer, T, "other", queue=1)
        assert counter.bodies(await counter.pop(peer, T, order="true")) == ["other"]
        await counter.ack(peer, T, first[1])
        assert await counter.committed(peer, T) == 0
        await counter.ack(peer, T, first[0])
        assert await counter.committed(peer, T) == 2
        body = counter.batch_body(T, first[2])
        assert (await peer.ask(Code.BATCH_ACK_MESSAGE, {}, body)).code == 0
        assert await counter.committed(peer, T) == 3
        assert counter.bodies(await counter.pop(peer, T, order="true")) == ["d", "e", "f"]


@leaping
async def test_the_same_messages_come_again_with_their_count() -> None:
    async with running() as (_, address), client(address) as peer:
        await counter.create(peer, T)
        await counter.send(peer, T, *"abc")
        fields = counter.pop_fields(T, order="true", maxMsgNums=2, invisibleTime=3000)
        first = counter.got(await peer.ask(Code.POP_MESSAGE, fields), T)
        await counter.ack(peer, T, first[0])
        await leap(4)
        answer = await peer.ask(Code.POP_MESSAGE, fields)
        assert counter.bodies(counter.got(answer, T)) == ["b", "c"]
        counts = read_order_counts(answer.ext["orderCountInfo"])
        assert counts == {PopPlace(NORMAL, 0, 1): 1, PopQueue(NORMAL, 0): 0}
        await counter.ack(peer, T, first[1])  # of the earlier pop: no harm, no use
        assert await counter.committed(peer, T) == 1
        bad = {"consumerGroup": "G", "topic": T, "queueId": "0", "offset": "3"}
        handle = str(counter.got(answer, T)[0].handle)
        assert (await peer.ask(Code.ACK_MESSAGE, bad | {"extraInfo": handle})).code == 13


@leaping
async def test_an_attempt_that_got_no_answer_gets_the_same_again() -> None:
    async with running() as (_, address), client(address) as peer:
        await counter.create(peer, T)
        await counter.send(peer, T, *"abc")
        same: dict[str, Any] = {"order": "true", "maxMsgNums": 2, "attemptId": "first"}
        assert counter.bodies(await counter.pop(peer, T, **same)) == ["a", "b"]
        again = await counter.pop(peer, T, **same)
        assert counter.bodies(again) == ["a", "b"]
        assert await counter.pop(peer, T, **same | {"attemptId": "second"}) == []
        await counter.ack(peer, T, *again)
        assert await counter.committed(peer, T) == 2


@leaping
async def test_whoever_waits_is_served_when_the_lock_is_released_or_over() -> None:
    async with running() as (broker, address), client(address) as peer, client(address) as other:
        await counter.create(peer, T)
        await counter.send(peer, T, *"abc")
        first = await counter.pop(peer, T, order="true", maxMsgNums=1, invisibleTime=60_000)
        pops = counter.serving(broker)
        fields = counter.pop_fields(
            T, order="true", maxMsgNums=1, pollTime=30_000, invisibleTime=3000
        )
        waiting = other.post(Code.POP_MESSAGE, fields)
        await until(lambda: len(pops.waiting), "the pop to wait")
        await counter.ack(peer, T, *first)
        assert counter.bodies(counter.got(await other.answer(waiting), T)) == ["b"]
        waiting = other.post(Code.POP_MESSAGE, fields)
        await until(lambda: len(pops.waiting), "the pop to wait")
        await leap(4)
        assert counter.bodies(counter.got(await other.answer(waiting), T)) == ["b"]


@leaping
async def test_an_ordered_message_can_be_hidden_for_longer() -> None:
    async with running() as (_, address), client(address) as peer:
        await counter.create(peer, T)
        await counter.send(peer, T, *"ab")
        (first,) = await counter.pop(peer, T, order="true", maxMsgNums=1, invisibleTime=3000)
        await leap(1)
        longer = await counter.hide(peer, T, first, 60_000)
        assert longer.handle.pop_time_ms == first.handle.pop_time_ms
        assert 61_000 <= longer.handle.invisible_time_ms < 70_000
        await leap(10)
        assert await counter.pop(peer, T, order="true") == []
        await counter.ack(peer, T, longer)
        assert counter.bodies(await counter.pop(peer, T, order="true")) == ["b"]
