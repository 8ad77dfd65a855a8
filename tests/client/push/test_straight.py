"""Pulls that follow one another without the queue loop, and all that is left to it."""

import asyncio

import pytest

from pocketmq.balance.consumer.limits import PullLimits
from pocketmq.balance.consumer.pulling import PullStatus
from pocketmq.client.group.held_queue import HoldState
from pocketmq.client.group.start_gate import StartGate
from pocketmq.client.push.handlers import TopicHandler
from pocketmq.client.push.work import FEW
from pocketmq.protocol import Command, ReceivedMessage, RequestCode
from tests.client.push.pullers import FOUND, MANY, RETRIES, Answer, empty, found, header, pulling
from tests.client.push.stands import QUEUE, Taker, messages
from tests.client.servers import broker, serving
from tests.loops import leap, leaping, until


async def test_usual_answers_are_taken_in_without_the_loop() -> None:
    async with pulling(found(20), found(MANY), found(3), found(1)) as puller:
        total = 24 + MANY
        await until(lambda: len(puller.got) == total, "all messages")
        await until(lambda: puller.held.process.count == 0, "an empty cache")
        await puller.suspended()
        assert puller.loop.left == []
        assert puller.asked == [0, 20, 20 + MANY, 23 + MANY, total]
        assert puller.got == list(range(total))
        assert puller.one.noted[-1] == total
        assert puller.held.waiting == 1000 - total
        stats = puller.one.work.stats.of("orders")
        assert (stats.pulled.value, stats.pull_rt.times, stats.ok.value) == (total, 4, total)


async def test_few_messages_are_handled_before_the_next_pull_and_many_after_it() -> None:
    async with pulling(found(FEW), found(MANY)) as puller:
        await until(lambda: len(puller.got) == FEW + MANY, "all messages")
        assert puller.open_pulls == [0] * FEW + [1] * MANY
        assert puller.loop.left == []


async def test_a_pull_carries_the_noted_offset_of_its_time() -> None:
    async with pulling() as puller:
        await puller.suspended()
        puller.parts.offsets.table.update(QUEUE, 7, increase_only=True)
        puller.release(found(MANY))
        await puller.suspended()
        first, second = puller.taker.asked_for(RequestCode.PULL_MESSAGE)
        assert (first.ext["sysFlag"], second.ext["sysFlag"]) == ("2", "3")
        assert second.ext["commitOffset"] == "7"


def back(request: Command) -> Command:
    """Answer with a message, and a next offset before the one asked for."""
    first = int(request.ext["queueOffset"])
    return request.reply(0, ext=header(first - 6), body=messages(1, first)[0].record())


@pytest.mark.parametrize(
    ("answer", "left", "following"),
    [
        (empty(19), [PullStatus.NO_NEW_MSG], 10),
        (empty(20, 5), [PullStatus.NO_MATCHED_MSG], 15),
        (found(MANY, cut=1), [FOUND], 9 + MANY),
        (found(MANY, begin=-5), [FOUND], 5 + MANY),
        (back, [FOUND], 4),
        (lambda request: request.reply(0, ext={}), [], 10),
        (lambda request: request.reply(1, "not now"), [], 10),
        (lambda request: request.reply(215, "too many"), [], 10),
    ],
    ids=["none", "no match", "damaged", "too early", "back", "no header", "refused", "busy"],
)
async def test_other_answers_are_left_to_the_loop_and_usual_ones_after_them_are_not(
    answer: Answer, left: list[PullStatus], following: int
) -> None:
    async with pulling(found(10), answer, found(11), found(12)) as puller:
        await puller.suspended()
        assert puller.asked == [0, 10, following, following + 11, following + 23]
        assert puller.loop.left == left
        await until(lambda: puller.held.process.count == 0, "an empty cache")
        assert set(range(following, following + 23)) <= set(puller.got)


async def test_an_offset_out_of_range_is_corrected_by_the_loop() -> None:
    async with pulling(found(10), empty(21, 90)) as puller:
        await until(lambda: puller.loop.corrected, "the correction")
        assert puller.loop.corrected == [100]
        assert puller.loop.left == [PullStatus.OFFSET_ILLEGAL]
        assert puller.held.task is not None
        await until(puller.held.task.done, "the end of the loop")


async def test_the_answer_for_a_queue_that_was_dropped_meanwhile_is_ignored() -> None:
    async with pulling(found(10)) as puller:
        await puller.suspended()
        await until(lambda: puller.held.process.count == 0, "an empty cache")
        puller.loop.end(puller.held)
        puller.one.drop(puller.held)
        puller.release(found(MANY))
        await puller.read()
        assert puller.held.process.count == 0
        assert puller.held.next_offset == 10
        assert puller.asked == [0, 10]
        assert len(puller.got) == 10


@pytest.mark.parametrize("where", ["held", "parts", "member"])
async def test_no_further_pull_leaves_while_one_is_paused(where: str) -> None:
    async with pulling() as puller:
        await puller.suspended()
        held, parts = puller.held, puller.parts
        held.paused, parts.suspended = where == "held", where == "parts"
        parts.running = where != "member"
        puller.release(found(MANY))
        await until(lambda: len(puller.got) == MANY, "what was in flight")
        await puller.read()
        assert puller.asked == [0]
        held.paused, parts.suspended, parts.running = False, False, True
        held.wake()
        await puller.suspended()
        assert puller.asked == [0, MANY]


@pytest.mark.parametrize("count", [FEW, MANY])
async def test_a_queue_that_is_fenced_caches_what_was_in_flight_and_is_pulled_no_more(
    count: int,
) -> None:
    async with pulling(found(5)) as puller:
        await puller.suspended()
        await until(lambda: puller.held.process.count == 0, "an empty cache")
        puller.held.enter(HoldState.FENCED)
        puller.release(found(count))
        assert puller.held.task is not None
        await until(puller.held.task.done, "the end of the loop")
        assert puller.loop.left == [FOUND]
        assert puller.held.process.count == count
        assert len(puller.got) == 5


async def test_a_queue_that_is_fenced_when_its_few_messages_begin_is_pulled_no_more() -> None:
    async with pulling() as puller:

        async def fence(message: ReceivedMessage) -> None:
            puller.held.enter(HoldState.FENCED)
            puller.got.append(message.queue_offset)

        await puller.suspended()
        puller.one.handlers["orders"] = TopicHandler("orders", fence, batch=False)
        puller.release(found(1))
        assert puller.held.task is not None
        await until(puller.held.task.done, "the end of the loop")
        assert puller.got == [0]
        await puller.read()
        assert puller.asked == [0]


async def test_a_queue_that_gets_a_gate_is_left_to_the_loop() -> None:
    async with pulling() as puller:
        await puller.suspended()
        puller.held.gate = StartGate(0)
        puller.parts.offsets.table.update(QUEUE, 7, increase_only=True)
        puller.release(found(MANY))
        await puller.suspended()
        puller.release(found(MANY))
        await puller.suspended()
        assert puller.loop.left == [FOUND, FOUND]
        pulls = puller.taker.asked_for(RequestCode.PULL_MESSAGE)
        assert [request.ext["sysFlag"] for request in pulls] == ["2", "2", "2"]


@leaping
@pytest.mark.parametrize("count", [FEW, MANY])
async def test_a_queue_is_known_to_be_pulled_since_its_last_pull(count: int) -> None:
    """A rebalance gives up queues that were not pulled for long."""
    async with pulling() as puller:
        await puller.suspended()
        first = puller.held.process.last_pull
        await leap(20.0)
        puller.release(found(count))
        await puller.suspended()
        second = puller.held.process.last_pull
        assert second - first >= 20.0
        await leap(7.0)
        puller.release(found(count))
        await puller.suspended()
        assert puller.loop.left == []
        pull_rt = puller.one.work.stats.of("orders").pull_rt
        assert pull_rt.times == 2
        assert 27_000 <= pull_rt.value < 40_000  # milliseconds: each pull from its own request on


async def test_a_full_cache_is_not_filled_further_until_there_is_space() -> None:
    gate = asyncio.Event()
    limits = PullLimits(count=2 * MANY - 1)
    async with pulling(found(MANY), found(MANY), gate=gate, limits=limits) as puller:
        await until(lambda: puller.held.woken is not None, "the loop to wait")
        assert puller.asked == [0, MANY]
        assert puller.held.process.count == 2 * MANY
        gate.set()
        await puller.suspended()
        assert puller.asked == [0, MANY, 2 * MANY]
        assert puller.loop.left == []


async def test_a_slow_message_stops_pulls_by_the_distance_to_it() -> None:
    gate = asyncio.Event()
    limits = PullLimits(span=MANY)
    async with pulling(found(MANY), found(MANY), gate=gate, limits=limits) as puller:
        await until(lambda: puller.held.woken is not None, "the loop to wait")
        assert puller.asked == [0, MANY]
        gate.set()
        await puller.suspended()


async def test_the_process_that_an_answer_suggests_is_asked_next() -> None:
    slave = Taker()
    async with serving(slave) as (_, at), pulling() as puller:
        slave.script[RequestCode.PULL_MESSAGE] = found(4, suggested=0)
        await puller.suspended()
        addresses = puller.parts.session.addresses
        addresses.take([broker("broker-a", addresses.master("broker-a"), at)])
        puller.answers += [found(MANY), found(MANY, suggested=1)]
        puller.release(found(MANY))
        await puller.suspended()
        assert puller.asked == [0, MANY, 2 * MANY, 3 * MANY + 4]
        (asked,) = slave.asked_for(RequestCode.PULL_MESSAGE)
        assert asked.ext["queueOffset"] == str(3 * MANY)


async def test_a_broker_that_moved_is_asked_at_its_new_address() -> None:
    other = Taker()
    async with serving(other) as (_, at), pulling() as puller:
        other.script[RequestCode.PULL_MESSAGE] = lambda _: None
        await puller.suspended()
        puller.parts.session.addresses.take([broker("broker-a", at)])
        puller.release(found(MANY))
        await until(lambda: other.asked_for(RequestCode.PULL_MESSAGE), "the next pull")
        assert puller.asked == [0]


async def test_a_subscription_that_changed_is_in_the_next_pull() -> None:
    async with pulling() as puller:
        await puller.suspended()
        puller.parts.subscriptions.want("orders", "*", version_ms=99)
        puller.release(found(MANY))
        await puller.suspended()
        pulls = puller.taker.asked_for(RequestCode.PULL_MESSAGE)
        assert [request.ext["subVersion"] for request in pulls] == ["77", "99"]


async def test_messages_with_other_tags_are_passed_over() -> None:
    async with pulling() as puller:
        await puller.suspended()
        puller.parts.subscriptions.want("orders", "red", version_ms=99)
        puller.release(found(1))
        await puller.suspended()
        puller.release(found(MANY, TAGS="blue"))
        await puller.suspended()
        puller.release(found(MANY, TAGS="red"))
        await until(lambda: len(puller.got) == 1 + MANY, "those that are wanted")
        assert puller.got[1] == 1 + MANY
        assert puller.loop.left == []


async def test_a_failure_is_reported_again_when_pulls_had_gone_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuse(request: Command) -> Command:
        return request.reply(1, "not now")

    more = [refuse, refuse, found(MANY), refuse, found(MANY)]
    async with pulling(found(MANY), *more) as puller:
        await until(lambda: len(puller.got) == 3 * MANY, "all messages")
        failures = [one for one in caplog.messages if one.startswith("pull failed")]
        assert len(failures) == 2
        assert all("not now" in failure for failure in failures)


async def test_pulls_go_on_over_a_new_connection_when_theirs_is_lost() -> None:
    def close(_: Command) -> None:
        puller.taker.opened[-1].close()

    async with pulling() as puller:
        await puller.suspended()
        puller.answers += [found(MANY), close, found(MANY), found(MANY)]
        puller.release(found(MANY))
        await until(lambda: len(puller.got) == 4 * MANY, "all messages")
        assert puller.loop.left == [FOUND]  # the first one over the new connection


async def test_a_client_that_is_closed_takes_in_what_comes_and_asks_no_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with pulling() as puller:
        await puller.suspended()
        puller.one.session._open = False
        puller.release(found(MANY))
        await until(lambda: len(puller.got) == MANY, "what was in flight")
        await until(lambda: caplog.messages, "the failure")
        puller.one.session._open = True
        assert "closed" in caplog.messages[0]
        await puller.suspended()
        assert puller.asked == [0, MANY]


async def test_a_damaged_message_is_pulled_alone_until_it_is_read() -> None:
    async with pulling(found(1, cut=1), found(1), found(MANY)) as puller:
        await puller.suspended()
        pulls = puller.taker.asked_for(RequestCode.PULL_MESSAGE)
        assert [request.ext["maxMsgNums"] for request in pulls[:3]] == ["32", "1", "512"]
        assert puller.asked == [0, 0, 1, 1 + MANY]
        assert puller.loop.left == [FOUND]


async def test_an_orderly_consumer_leaves_all_to_the_loop() -> None:
    async with pulling(found(MANY), found(3), orderly=True) as puller:
        await until(lambda: len(puller.got) == MANY + 3, "all messages")
        assert puller.loop.left == [FOUND, FOUND]


async def test_messages_that_are_retried_are_left_to_the_loop_which_knows_their_topic() -> None:
    async with pulling(found(MANY, RETRY_TOPIC="orders"), queue=RETRIES) as puller:
        await until(lambda: len(puller.got) == MANY, "all messages")
        assert puller.loop.left == [FOUND]


async def test_a_consumer_that_pauses_between_pulls_leaves_them_to_the_loop() -> None:
    async with pulling(found(MANY), found(3), pull_interval=0.01) as puller:
        await puller.suspended()
        assert puller.loop.left == [FOUND, FOUND]


async def test_a_client_that_adds_to_its_requests_leaves_them_to_the_loop() -> None:
    async with pulling() as puller:
        await puller.suspended()
        calls = puller.one.session.calls
        calls.hooks = (lambda code, fields, body: fields.update(signed="yes"),)
        puller.parts.subscriptions.want("orders", "*", version_ms=99)  # all is decided anew
        puller.release(found(MANY))
        await puller.suspended()
        puller.release(found(MANY))
        await puller.suspended()
        assert puller.loop.left == [FOUND]
        pulls = puller.taker.asked_for(RequestCode.PULL_MESSAGE)
        assert [request.ext.get("signed") for request in pulls] == [None, "yes", "yes"]
