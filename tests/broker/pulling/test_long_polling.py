"""Pulls that wait: the bookkeeping with time as the test says, then real pulls on a real socket."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.broker.pulling.suspended_pulls import NEVER, SuspendedPull, SuspendedPulls
from pocketmq.net import Connection
from pocketmq.protocol import Command
from pocketmq.protocol.requests.reading import PullRequest
from pocketmq.store import MessageStore, QueueIndex
from tests.broker.running import Client, client, pull_fields, records, running, send_fields
from tests.broker.wire import Wire
from tests.loops import leap, leaping, until

PULL, SEND, DELETE_TOPIC = 11, 310, 215


def held(
    queue: QueueIndex,
    *,
    connection: object = None,
    offset: int = 0,
    codes: frozenset[int] | None = None,
    sql: bool = False,
    subscription: str | None = None,
) -> SuspendedPull:
    request = Command.request(PULL, 1)
    header = PullRequest(
        consumer_group="G",
        topic=queue.topic,
        queue_id=queue.queue_id,
        queue_offset=offset,
        max_msg_nums=32,
        sys_flag=2,
        commit_offset=0,
        suspend_timeout_millis=15_000,
        subscription=subscription,
        sub_version=0,
    )
    peer = cast("Connection", connection or Wire())
    return SuspendedPull(peer, request, header, queue, codes, sql=sql)


@pytest.fixture
def queue() -> QueueIndex:
    return MessageStore.open(None).make_queue("T", 0)


def found(_: SuspendedPull) -> bool:
    return True


def not_found(_: SuspendedPull) -> bool:
    return False


def grow(queue: QueueIndex, count: int = 1) -> None:
    for _ in range(count):
        queue.append(0, 100, 0)


# The bookkeeping


def test_an_arrival_wakes_pulls_for_everything_and_for_its_tag(queue: QueueIndex) -> None:
    waiting = SuspendedPulls()
    everything, same, other = (
        held(queue),
        held(queue, codes=frozenset({7})),
        held(queue, codes=frozenset({8})),
    )
    for pull in (everything, same, other):
        assert waiting.hold(pull, 15.0, 0.0)
    grow(queue)
    assert waiting.take_arrived(queue, [7], not_found, 1.0) == [everything, same]
    assert (len(waiting), queue.waiting) == (1, 1)


def test_messages_themselves_decide_where_tags_cannot(queue: QueueIndex) -> None:
    waiting = SuspendedPulls()
    pull = held(queue, sql=True)
    waiting.hold(pull, 15.0, 0.0)
    grow(queue, 3)
    assert waiting.take_arrived(queue, [7], not_found, 1.0) == []
    assert pull.checked == 3  # the next look begins behind what did not match
    grow(queue)
    assert waiting.take_arrived(queue, [7], found, 1.0) == [pull]


def test_a_pull_that_waits_further_back_is_not_woken(queue: QueueIndex) -> None:
    waiting = SuspendedPulls()
    waiting.hold(held(queue, offset=5), 15.0, 0.0)
    grow(queue)
    assert waiting.take_arrived(queue, [0], found, 1.0) == []


def test_pulls_are_due_when_their_time_is_over(queue: QueueIndex) -> None:
    waiting = SuspendedPulls()
    short, long = held(queue), held(queue)
    waiting.hold(long, 20.0, 0.0)
    waiting.hold(short, 15.0, 1.0)
    assert waiting.wake_at == 16.0
    assert waiting.take_due(15.9) == []
    assert waiting.take_due(16.0) == [short]
    assert waiting.wake_at == 20.0
    assert waiting.take_due(20.0) == [long]
    assert (len(waiting), waiting.wake_at, queue.waiting) == (0, NEVER, 0)


def test_a_pull_whose_queue_grew_without_a_match_is_tried_after_five_seconds(
    queue: QueueIndex,
) -> None:
    waiting = SuspendedPulls()
    pull, untouched = held(queue, codes=frozenset({8})), held(queue, offset=1)
    waiting.hold(pull, 15.0, 0.0)
    waiting.hold(untouched, 15.0, 0.0)
    grow(queue)
    assert waiting.take_arrived(queue, [7], not_found, 3.0) == []
    assert waiting.wake_at == 8.0
    assert waiting.take_due(7.9) == []
    assert waiting.take_due(8.0) == [pull]
    assert waiting.take_due(14.9) == []
    assert waiting.wake_at == 15.0


def test_a_pull_whose_client_is_slow_is_looked_at_again_soon(queue: QueueIndex) -> None:
    waiting = SuspendedPulls()
    pull = held(queue)
    waiting.hold(pull, 15.0, 0.0)
    grow(queue)
    assert waiting.take_arrived(queue, [7], found, 1.0) == [pull]
    waiting.put_back(pull, 1.0)
    assert pull.deadline == 15.0
    assert waiting.take_due(1.04) == []
    assert waiting.take_due(1.05) == [pull]


def test_a_lost_connection_takes_its_pulls_along(queue: QueueIndex) -> None:
    waiting = SuspendedPulls()
    gone, here = Wire(), Wire()
    waiting.hold(held(queue, connection=gone), 15.0, 0.0)
    waiting.hold(held(queue, connection=gone), 15.0, 0.0)
    waiting.hold(held(queue, connection=here), 15.0, 0.0)
    waiting.drop(cast("Connection", gone))
    waiting.drop(cast("Connection", gone))
    assert (len(waiting), queue.waiting) == (1, 1)


@pytest.mark.parametrize(
    ("limits", "fitting"),
    [
        ({"limit": 3}, 3),
        ({"connection_limit": 2}, 2),
        ({"size_limit": 5000}, 2),
        ({"connection_size_limit": 3000}, 1),
        ({}, 10),
    ],
)
def test_what_may_wait_is_bounded(queue: QueueIndex, limits: dict[str, Any], fitting: int) -> None:
    waiting = SuspendedPulls(**limits)
    peer = Wire()
    pulls = [held(queue, connection=peer, subscription="x" * 1000) for _ in range(10)]
    assert sum(waiting.hold(pull, 15.0, 0.0) for pull in pulls) == fitting
    waiting.drop(cast("Connection", peer))
    assert sum(waiting.hold(pull, 15.0, 0.0) for pull in pulls) == fitting


def test_nothing_waits_after_the_end(queue: QueueIndex) -> None:
    waiting = SuspendedPulls()
    pull = held(queue)
    waiting.hold(pull, 15.0, 0.0)
    assert waiting.close() == [pull]
    assert not waiting.hold(pull, 15.0, 0.0)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["hold", "arrive", "due", "drop", "put back"]),
            st.integers(0, 3),
            st.floats(0.0, 12.0),
        ),
        max_size=40,
    )
)
def test_no_pull_is_lost_and_none_is_given_twice(steps: list[tuple[str, int, float]]) -> None:
    """A pull waits, was given out or was dropped; and `wake_at` is never too late."""
    store = MessageStore.open(None)
    queues = [store.make_queue("T", number) for number in range(4)]
    peers = [Wire() for _ in range(4)]
    waiting = SuspendedPulls()
    inside: set[SuspendedPull] = set()
    now = 0.0
    for step, which, amount in steps:
        queue = queues[which]
        now += amount / 4
        taken: list[SuspendedPull] = []
        if step == "hold":
            codes = None if which % 2 else frozenset({1})
            pull = held(queue, connection=peers[which], offset=queue.next_offset, codes=codes)
            assert waiting.hold(pull, amount, now)
            inside.add(pull)
        elif step == "arrive":
            grow(queue)
            taken = waiting.take_arrived(queue, [int(amount) % 2], not_found, now)
        elif step == "drop":
            waiting.drop(cast("Connection", peers[which]))
            inside = {pull for pull in inside if pull.queue is not queue}  # a peer for each
        else:
            early = waiting.wake_at > now
            taken = waiting.take_due(now)
            assert not (early and taken)
            assert all(pull.deadline > now for pull in inside - set(taken))
            if step == "put back":
                for pull in taken:
                    waiting.put_back(pull, now)
                taken = []
        assert set(taken) <= inside
        assert len(set(taken)) == len(taken)
        inside -= set(taken)
        assert len(waiting) == len(inside)
        assert all(waiting.wake_at <= pull.deadline for pull in inside)
        for each in queues:
            assert each.waiting == len([pull for pull in inside if pull.queue is each])


# On a real socket


async def quiet(connected: Client, number: int) -> None:
    """Make sure that a request was not answered: another one is, and nothing came before."""
    await connected.ask(30, {"topic": "T", "queueId": "0"})
    assert number not in connected._answers


@leaping
async def test_a_message_wakes_the_pull_that_waits_for_it() -> None:
    async with running() as (_, address), client(address) as consumer, client(address) as producer:
        await producer.ask(SEND, send_fields("T"), b"zero")
        number = consumer.post(PULL, pull_fields("T", 1))
        await quiet(consumer, number)
        await producer.ask(SEND, send_fields("T"), b"one")
        answer = await consumer.answer(number)
        assert (answer.code, answer.remark, answer.ext["nextBeginOffset"]) == (0, "FOUND", "2")
        assert [record.stored_body for record in records(answer)] == [b"one"]


@leaping
async def test_a_pull_of_an_empty_queue_waits_for_its_first_message() -> None:
    async with running() as (_, address), client(address) as consumer, client(address) as producer:
        await producer.ask(SEND, send_fields("T", e="1"), b"elsewhere")
        number = consumer.post(PULL, pull_fields("T"))
        await quiet(consumer, number)
        await producer.ask(SEND, send_fields("T"), b"first")
        assert (await consumer.answer(number)).code == 0


@leaping
async def test_a_message_of_another_tag_does_not_wake_until_five_seconds_later() -> None:
    """Then the consumer is told that it may skip what does not match, as by Java."""
    async with running() as (_, address), client(address) as consumer, client(address) as producer:
        await producer.ask(SEND, send_fields("T", "TAGS\1b\2"), b"zero")
        number = consumer.post(PULL, pull_fields("T", 1, subscription="a"))
        await quiet(consumer, number)
        for _ in range(3):
            await producer.ask(SEND, send_fields("T", "TAGS\1b\2"), b"no")
        await quiet(consumer, number)
        await leap(5.1)
        answer = await consumer.answer(number)
        assert (answer.code, answer.remark) == (20, "NO_MATCHED_MESSAGE")
        assert answer.ext["nextBeginOffset"] == "4"


@leaping
async def test_sql_decides_about_waking() -> None:
    async with running() as (_, address), client(address) as consumer, client(address) as producer:
        await producer.ask(SEND, send_fields("T"), b"zero")
        fields = pull_fields("T", 1, subscription="n > 5", expressionType="SQL92")
        number = consumer.post(PULL, fields)
        await quiet(consumer, number)
        await producer.ask(SEND, send_fields("T", "n\0013\2"), b"three")
        await quiet(consumer, number)
        await producer.ask(SEND, send_fields("T", "n\0017\2"), b"seven")
        answer = await consumer.answer(number)
        assert [record.stored_body for record in records(answer)] == [b"seven"]
        assert answer.ext["nextBeginOffset"] == "3"


@leaping
async def test_a_pull_that_waited_in_vain_is_answered() -> None:
    async with running() as (_, address), client(address) as consumer:
        await consumer.ask(SEND, send_fields("T"), b"zero")
        number = consumer.post(PULL, pull_fields("T", 1, suspendTimeoutMillis="15000"))
        await quiet(consumer, number)
        await leap(10)
        await quiet(consumer, number)
        await leap(5)
        answer = await consumer.answer(number)
        assert (answer.code, answer.remark) == (19, "OFFSET_OVERFLOW_ONE")


@leaping
async def test_without_long_polling_pulls_wait_for_a_second() -> None:
    async with running(long_polling_enable=False) as (_, address), client(address) as consumer:
        await consumer.ask(SEND, send_fields("T"), b"zero")
        number = consumer.post(PULL, pull_fields("T", 1, suspendTimeoutMillis="15000"))
        await quiet(consumer, number)
        await leap(1.1)
        assert (await consumer.answer(number)).code == 19


@pytest.mark.parametrize(
    "changes", [{"sysFlag": "4"}, {"suspendTimeoutMillis": "0"}, {"suspendTimeoutMillis": "-5"}]
)
async def test_who_does_not_want_to_wait_does_not(changes: dict[str, str]) -> None:
    async with running() as (_, address), client(address) as consumer:
        await consumer.ask(SEND, send_fields("T"), b"zero")
        assert (await consumer.ask(PULL, pull_fields("T", 1) | changes)).code == 19


@leaping
async def test_a_commit_comes_with_the_first_try_only() -> None:
    offset_of = {"consumerGroup": "CG", "topic": "T", "queueId": "0"}
    async with running() as (_, address), client(address) as consumer:
        await consumer.ask(SEND, send_fields("T"), b"zero")
        number = consumer.post(PULL, pull_fields("T", 1, sysFlag="7", commitOffset="1"))
        await quiet(consumer, number)
        assert (await consumer.ask(14, offset_of)).ext["offset"] == "1"
        await consumer.ask(15, offset_of | {"commitOffset": "0"})
        await consumer.ask(SEND, send_fields("T"), b"one")
        assert (await consumer.answer(number)).code == 0
        assert (await consumer.ask(14, offset_of)).ext["offset"] == "0"


async def test_a_lost_connection_is_forgotten() -> None:
    async with running() as (broker, address), client(address) as producer:
        await producer.ask(SEND, send_fields("T"), b"zero")
        async with client(address) as consumer:
            number = consumer.post(PULL, pull_fields("T", 1))
            await quiet(consumer, number)
            assert len(broker.state.waiting) == 1
        await until(lambda: len(broker.state.waiting) == 0, "the pull to be forgotten")
        await producer.ask(SEND, send_fields("T"), b"one")


async def test_a_suspended_pull_for_a_deleted_topic_is_refused() -> None:
    async with running() as (_, address), client(address) as consumer:
        await consumer.ask(SEND, send_fields("T"), b"zero")
        number = consumer.post(PULL, pull_fields("T", 1))
        await quiet(consumer, number)
        await consumer.ask(DELETE_TOPIC, {"topic": "T"})
        assert (await consumer.answer(number)).code == 17


async def test_stopping_lets_waiting_pulls_go() -> None:
    async with running() as (broker, address):
        reader, writer = await asyncio.open_connection(*address)
        consumer = Client(reader, writer)
        await consumer.ask(SEND, send_fields("T"), b"zero")
        number = consumer.post(PULL, pull_fields("T", 1))
        await quiet(consumer, number)
        stopping = asyncio.create_task(broker.stop())
        assert (await consumer.answer(number)).code == 19
        writer.close()
        await stopping


async def test_no_more_wait_than_the_settings_allow() -> None:
    limited = running(max_suspended_pulls_of_connection=2)
    async with limited as (_, address), client(address) as consumer:
        await consumer.ask(SEND, send_fields("T"), b"zero")
        numbers = [consumer.post(PULL, pull_fields("T", 1)) for _ in range(3)]
        assert (await consumer.answer(numbers[2])).code == 19
        await quiet(consumer, numbers[0])
        await consumer.ask(SEND, send_fields("T"), b"one")
        for number in numbers[:2]:
            assert (await consumer.answer(number)).code == 0


async def test_one_message_answers_every_pull_that_waits(tmp_path: Path) -> None:
    async with running(tmp_path) as (_, address), client(address) as producer:
        await producer.ask(SEND, send_fields("T"), b"zero")
        async with client(address) as one, client(address) as other:
            waiting = [(each, each.post(PULL, pull_fields("T", 1))) for each in (one, other) * 50]
            for each in (one, other):
                await quiet(each, waiting[0][1])
            await producer.ask(SEND, send_fields("T"), b"one")
            for each, number in waiting:
                answer = await each.answer(number)
                assert [record.stored_body for record in records(answer)] == [b"one"]


async def test_a_slow_reader_does_not_make_the_broker_hold_what_it_cannot_send() -> None:
    """Pulls that were woken wait until the client has taken earlier answers; none is lost."""
    async with running() as (broker, address), client(address) as producer:
        body = b"x" * 1_000_000
        await producer.ask(SEND, send_fields("T"), b"zero")
        reader, writer = await asyncio.open_connection(*address, limit=1 << 16)
        consumer = Client(reader, writer)
        numbers = [consumer.post(PULL, pull_fields("T", 1)) for _ in range(60)]
        await writer.drain()
        await until(lambda: len(broker.state.waiting) == 60, "all pulls to wait")
        await producer.ask(SEND, send_fields("T"), body)
        (peer,) = [each for each in broker._server.connections if each.unsent > 0]
        assert peer.unsent < 8_000_000
        for number in numbers:
            answer = await consumer.answer(number)
            assert (answer.code, len(answer.body) > len(body)) == (0, True)
        await consumer.close()


async def test_unknown_fields_count_as_memory_of_suspended_pulls() -> None:
    """Of 40 MiB on one connection no more than 32 MiB wait."""
    async with running() as (broker, address), client(address) as peer:
        await peer.ask(SEND, send_fields("T"), b"x")
        fields = pull_fields("T", 1)
        numbers = [peer.post(PULL, fields | {"other": "x" * (8 << 20)}) for _ in range(5)]
        for number in numbers[3:]:
            await peer.answer(number)
        assert len(broker.state.waiting) == 3
