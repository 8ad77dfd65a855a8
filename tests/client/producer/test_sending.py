"""One send: which queue it goes to, what is tried again, and what its failure says."""

import asyncio
from collections.abc import Callable
from random import Random

import msgspec
import pytest

from pocketmq import errors
from pocketmq.balance.producer.selectors import by_hash
from pocketmq.balance.profile import V4
from pocketmq.model import Message, MessageQueue, SendStatus, TopicRoute
from pocketmq.protocol import Command
from tests.client.producer.stage import Say, TestBroker, refuses, silent, stage, stores
from tests.client.servers import route
from tests.loops import until

MESSAGE = Message("orders", b"42 EUR", tag="paid")
QUEUES = [
    MessageQueue("orders", name, number) for name in ("broker-a", "broker-b") for number in (0, 1)
]


def drops(broker: "TestBroker") -> Say:
    """Cut the connection instead of answering."""

    def cut(_: Command) -> None:
        for connection in broker.open:
            connection.abort()

    return cut


async def test_queues_take_turns_in_their_published_order() -> None:
    async with stage() as on:
        receipts = [await on.producer.send(MESSAGE) for _ in range(9)]
        first = QUEUES.index(receipts[0].queue)
        expected = [QUEUES[(first + step) % 4] for step in range(9)]
        assert [receipt.queue for receipt in receipts] == expected
        assert await on.producer.queues("orders") == QUEUES
        assert {receipt.queue_offset for receipt in receipts} == {7}


async def test_the_short_way_chooses_as_the_rules_do() -> None:
    """A producer without hooks takes a short cut; with one it goes through all of the rules."""

    class Watching:
        def before_send(self, context: object) -> None: ...
        def after_send(self, context: object) -> None: ...

    chosen = []
    for hooked in (False, True):
        async with stage() as on:
            if hooked:
                on.producer.add_send_hook(Watching())
            await on.begin_with(2**31 - 2)
            chosen.append([(await on.producer.send(MESSAGE)).queue for _ in range(8)])
    assert chosen[0] == chosen[1]


@pytest.mark.parametrize("key", ["customer-7", "", "größe", 42, -7])
async def test_an_ordering_key_picks_javas_queue(key: str | int) -> None:
    async with stage() as on:
        for _ in range(3):
            receipt = await on.producer.send(MESSAGE, ordering_key=key)
            assert receipt.queue == by_hash(QUEUES, key)


async def test_a_queue_or_a_function_of_the_caller_decides() -> None:
    async with stage() as on:
        assert (await on.producer.send(MESSAGE, queue=QUEUES[2])).queue == QUEUES[2]

        def last(queues: object, message: Message) -> MessageQueue:
            assert queues == tuple(QUEUES) or queues == QUEUES
            assert message is MESSAGE
            return QUEUES[3]

        assert (await on.producer.send(MESSAGE, selector=last)).queue == QUEUES[3]


async def test_a_choice_that_is_none_is_refused_and_nothing_is_sent() -> None:
    async with stage() as on:
        gone = MessageQueue("orders", "broker-z", 0)
        other = MessageQueue("other", "broker-a", 0)
        with pytest.raises(errors.QueueNotSelected, match="is not a writable queue of the route"):
            await on.producer.send(MESSAGE, queue=gone)
        with pytest.raises(errors.InvalidInput, match="the queue belongs to 'other'"):
            await on.producer.send(MESSAGE, queue=other)
        with pytest.raises(errors.QueueNotSelected, match="not one of the queues"):
            await on.producer.send(MESSAGE, selector=lambda queues, _: gone)
        with pytest.raises(ZeroDivisionError):
            await on.producer.send(MESSAGE, selector=lambda queues, _: queues[1 // 0])
        with pytest.raises(errors.InvalidInput, match="not several"):
            await on.producer.send(MESSAGE, queue=QUEUES[0], ordering_key="k")
        with pytest.raises(errors.InvalidInput, match="timeout must be in seconds"):
            await on.producer.send(MESSAGE, timeout=0.0)
        with pytest.raises(errors.InvalidInput, match="timeout must be in seconds"):
            await on.producer.send(MESSAGE, timeout=float("inf"))
        with pytest.raises(errors.InvalidInput, match="queue must be a MessageQueue"):
            await on.producer.send(MESSAGE, queue=3)  # type: ignore[arg-type]
        assert on.asked == {"broker-a": 0, "broker-b": 0}
        assert len(on.producer.sending.window) == 0


@pytest.mark.parametrize("code", [1, 2, 14, 16, 17])
async def test_a_broker_that_cannot_now_is_passed_over(code: int) -> None:
    async with stage({"broker-a": refuses(code), "broker-b": stores}) as on:
        await on.begin_with(0)
        for _ in range(4):
            receipt = await on.producer.send(MESSAGE)
            assert receipt.queue.broker_name == "broker-b"
        assert on.asked == {"broker-a": 2, "broker-b": 4}


async def test_4x_does_not_retry_when_a_broker_is_busy() -> None:
    busy = {"broker-a": refuses(2), "broker-b": refuses(2)}
    async with stage(busy, profile=V4) as on:
        with pytest.raises(errors.SendFailed, match="after 1 try") as caught:
            await on.producer.send(MESSAGE)
        assert isinstance(caught.value.last_error, errors.SystemBusy)


async def test_a_refusal_for_good_is_not_tried_again() -> None:
    async with stage({"broker-a": refuses(13, "too large"), "broker-b": refuses(13)}) as on:
        with pytest.raises(errors.SendFailed) as caught:
            await on.producer.send(MESSAGE)
        error = caught.value
        assert (error.topic, error.attempts, error.code) == ("orders", 1, 13)
        assert isinstance(error.__cause__, errors.MessageIllegal)
        assert (error.retryable, error.outcome_unknown) == (False, False)
        assert "resending it unchanged will fail again" in str(error)
        assert sum(on.asked.values()) == 1


async def test_after_all_tries_the_failure_tells_the_whole_story() -> None:
    async with stage({"broker-a": refuses(16), "broker-b": refuses(16)}) as on:
        with pytest.raises(errors.SendFailed) as caught:
            await on.producer.send(MESSAGE)
        error = caught.value
        assert error.attempts == 3
        assert isinstance(error.last_error, errors.NoPermission)
        assert error.outcome_unknown is False
        assert "not acknowledged after 3 tries" in str(error)
        assert f"last by broker {error.broker!r}" in str(error)
        assert on.asked in ({"broker-a": 2, "broker-b": 1}, {"broker-a": 1, "broker-b": 2})
        assert len({request.opaque for each in on.brokers.values() for request in each.sends}) == 3


async def test_a_pinned_queue_is_tried_once() -> None:
    async with stage({"broker-a": refuses(1), "broker-b": stores}) as on:
        with pytest.raises(errors.SendFailed, match="after 1 try"):
            await on.producer.send(MESSAGE, queue=QUEUES[0])
        assert on.asked == {"broker-a": 1, "broker-b": 0}


async def test_a_silent_broker_costs_the_whole_deadline_and_leaves_the_outcome_open() -> None:
    async with stage({"broker-a": silent}, send_timeout=60.0) as on:
        loop = asyncio.get_running_loop()
        began = loop.time()
        with pytest.raises(errors.SendFailed) as caught:
            await on.producer.send(MESSAGE, timeout=0.15)
        assert 0.14 <= loop.time() - began < 30.0
        error = caught.value
        assert isinstance(error.last_error, errors.RequestTimedOut)
        assert (error.attempts, error.outcome_unknown) == (1, True)
        assert "resend it only if consumers are idempotent" in str(error)
        assert len(on.producer.sending.window) == 0


async def test_a_limit_for_one_try_leaves_time_for_another_broker() -> None:
    says = {"broker-a": silent, "broker-b": stores}
    async with stage(says, send_timeout_per_try=0.05, send_timeout=5.0) as on:
        await on.begin_with(0)
        for _ in range(4):
            assert (await on.producer.send(MESSAGE)).queue.broker_name == "broker-b"
        assert on.asked == {"broker-a": 2, "broker-b": 4}


async def test_a_connection_that_breaks_is_tried_elsewhere_and_remembered_as_doubt() -> None:
    async with stage() as on:
        for name, each in on.brokers.items():
            each.say = drops(each) if name == "broker-a" else refuses(13)
        await on.begin_with(0)
        with pytest.raises(errors.SendFailed) as caught:
            await on.producer.send(MESSAGE)
        assert caught.value.attempts == 2
        assert isinstance(caught.value.last_error, errors.MessageIllegal)
        assert caught.value.outcome_unknown  # the first broker may have stored it
        assert on.asked == {"broker-a": 1, "broker-b": 1}


async def test_all_connections_breaking_is_a_failure_with_unknown_outcome() -> None:
    async with stage() as on:
        for each in on.brokers.values():
            each.say = drops(each)
        with pytest.raises(errors.SendFailed) as caught:
            await on.producer.send(MESSAGE)
        assert isinstance(caught.value.last_error, errors.ConnectionLost)
        assert (caught.value.attempts, caught.value.outcome_unknown) == (3, True)


@pytest.mark.parametrize(("retry", "tries"), [(False, 1), (True, 3)])
async def test_what_is_stored_less_safely_is_stored(retry: bool, tries: int) -> None:
    def late(request: Command) -> Command:
        fields = {"msgId": "7F", "queueId": request.ext["e"], "queueOffset": "7"}
        return request.reply(10, ext=fields)

    says: dict[str, Say] = {"broker-a": late, "broker-b": late}
    async with stage(says, retry_when_not_stored_ok=retry) as on:
        receipt = await on.producer.send(MESSAGE)
        assert receipt.status is SendStatus.FLUSH_DISK_TIMEOUT
        assert sum(on.asked.values()) == tries


async def test_an_answer_nobody_understands_may_mean_stored() -> None:
    async with stage({"broker-a": lambda request: request.reply(0)}, retries=0) as on:
        with pytest.raises(errors.SendFailed, match="malformed header") as caught:
            await on.producer.send(MESSAGE)
        assert caught.value.outcome_unknown


# Topics


async def test_a_topic_that_is_not_there_is_sent_as_the_template_says() -> None:
    async with stage(queues=8, new_topic_queues=3) as on:
        receipt = await on.producer.send(Message("fresh", b"x"))
        assert receipt.queue.topic == "fresh"
        assert len(await on.producer.queues("fresh")) == 6
        (sent,) = [request for each in on.brokers.values() for request in each.sends]
        assert (sent.ext["b"], sent.ext["c"], sent.ext["d"]) == ("fresh", "TBW102", "3")


async def test_without_a_template_an_unknown_topic_is_named() -> None:
    async with stage() as on:
        del on.directory.routes["TBW102"]
        with pytest.raises(
            errors.RouteNotFound, match="no route for topic 'fresh'; create the topic"
        ):
            await on.producer.send(Message("fresh", b"x"))
        assert len(on.producer.sending.window) == 0


async def test_a_topic_nobody_may_write_says_so() -> None:
    async with stage(perm=4) as on:
        with pytest.raises(
            errors.QueueNotSelected,
            match="no broker with a master allows writes to it; check the topic's permissions",
        ):
            await on.producer.send(MESSAGE)


async def test_a_changed_route_is_used_at_once() -> None:
    async with stage() as on:
        await on.producer.send(MESSAGE)
        known = on.directory.routes["orders"]
        await on.reroute(route(known.broker_datas[1], queues=1))
        assert await on.producer.queues("orders") == [QUEUES[2]]
        before = on.asked["broker-a"]
        for _ in range(3):
            assert (await on.producer.send(MESSAGE)).queue == QUEUES[2]
        assert on.asked["broker-a"] == before


async def test_a_refused_topic_has_its_route_asked_for_again() -> None:
    async with stage({"broker-a": refuses(17)}, retries=0) as on:
        with pytest.raises(errors.SendFailed):
            await on.producer.send(MESSAGE)
        await until(
            lambda: on.directory.topics_asked().count("orders") >= 2, "the route to be asked for"
        )


async def test_a_name_server_that_stays_silent_is_not_taken_for_a_doubtful_send() -> None:
    async with stage() as on:
        on.directory.script.clear()
        on.directory.script[105] = lambda _: None
        with pytest.raises(errors.NameServersUnreachable) as caught:
            await on.producer.send(Message("fresh", b"x"), timeout=0.1)
        assert caught.value.outcome_unknown is False


async def test_a_route_without_sense_is_an_error_of_its_own() -> None:
    async with stage() as on:
        on.directory.routes["mad"] = TopicRoute(order_topic_conf="broker-a:x")
        with pytest.raises(errors.MQError, match="order configuration"):
            await on.producer.send(Message("mad", b"x"))


# Other ways


async def test_a_message_sent_one_way_is_told_and_not_waited_for() -> None:
    async with stage({"broker-a": silent}) as on:
        await on.producer.send_oneway(MESSAGE)
        await until(lambda: on.brokers["broker-a"].sends, "the message")
        (sent,) = on.brokers["broker-a"].sends
        assert sent.is_oneway
        assert sent.body == MESSAGE.body
        await on.producer.send_oneway(MESSAGE, queue=QUEUES[1])
        await until(lambda: len(on.brokers["broker-a"].sends) == 2, "the message")
        assert on.brokers["broker-a"].sends[1].ext["e"] == "1"


async def test_one_way_to_nobody_fails() -> None:
    async with stage() as on:
        await on.producer.sending.publishing.find("orders", 1.0)
        for name in ("orders", "TBW102"):
            on.directory.routes.pop(name)
        on.producer.session.addresses.keep_only([])
        with pytest.raises(errors.SendFailed, match="no master address for broker"):
            await on.producer.send_oneway(MESSAGE)


async def test_the_second_port_is_used_if_asked_for() -> None:
    async with stage(vip_channel=True) as on:
        await on.producer.sending.publishing.find("orders", 1.0)
        address = on.producer.session.addresses.master("broker-a")
        host, _, port = address.rpartition(":")
        queue = MessageQueue("orders", "broker-a", 0)
        assert on.producer.session.brokers.send_address(queue) == f"{host}:{int(port) - 2}"


async def test_namespaces_are_for_the_wire_alone() -> None:
    async with stage(namespace="prod") as on:
        seen: list[object] = []

        def watch(queues: object, message: Message) -> MessageQueue:
            seen.append(queues)
            return MessageQueue("fresh", "broker-b", 1)

        receipt = await on.producer.send(Message("fresh", b"x"), selector=watch)
        assert receipt.queue == MessageQueue("fresh", "broker-b", 1)
        assert seen == [[MessageQueue("fresh", q.broker_name, q.queue_id) for q in QUEUES]]
        assert (await on.producer.queues("fresh"))[0].topic == "fresh"
        pinned = MessageQueue("fresh", "broker-a", 0)
        assert (await on.producer.send(Message("fresh", b"x"), queue=pinned)).queue == pinned
        sent = on.brokers["broker-b"].sends[0]
        assert (sent.ext["a"], sent.ext["b"]) == ("prod%shop", "prod%fresh")


def of_version(version: int) -> Say:
    return lambda request: msgspec.structs.replace(request.reply(0), version=version)


@pytest.mark.parametrize("old", [False, True])
async def test_a_4x_broker_is_not_asked_for_what_it_cannot(old: bool) -> None:
    async with stage({"broker-a": stores}) as on:
        on.brokers["broker-a"].script[34] = of_version(407 if old else 413)
        await on.producer.send(MESSAGE)
        assert await on.producer.session.heartbeats.beat()
        if old:
            with pytest.raises(errors.InvalidInput, match=r"is on a 4\.x broker.*use delay_level"):
                await on.producer.send(MESSAGE, delay=1.0)
            with pytest.raises(errors.InvalidInput, match=r"is on a 4\.x broker"):
                await on.producer.submit(MESSAGE, deliver_at=1.0)
        else:
            assert (await on.producer.send(MESSAGE, delay=1.0)).ok
            assert (await on.producer.submit(MESSAGE, deliver_at=1.0)).ok
        await on.producer.send_batch([MESSAGE, MESSAGE])
        sent = on.brokers["broker-a"].sends[-1].ext["i"]
        assert ("UNIQ_KEY" in sent, "WAIT\1true" in sent) == (not old, True)


async def test_a_4x_client_does_as_one() -> None:
    async with stage({"broker-a": stores}, profile=V4) as on:
        with pytest.raises(errors.InvalidInput, match=r"is on a 4\.x broker"):
            await on.producer.send(MESSAGE, delay=1.0)
        await on.producer.send_batch([MESSAGE, MESSAGE])
        assert "UNIQ_KEY" not in on.brokers["broker-a"].sends[-1].ext["i"]


async def test_many_at_once_each_get_their_own_receipt() -> None:
    async with stage() as on:
        shuffled = Random(1)

        def later(broker: TestBroker) -> Callable[[Command], None]:
            held: list[Command] = []

            def say(request: Command) -> None:
                held.append(request)
                if len(held) == 8:
                    shuffled.shuffle(held)
                    (connection,) = broker.open
                    connection.write(*[stores(each).encode() for each in held])
                    held.clear()

            return say

        for each in on.brokers.values():
            each.say = later(each)
        sends = [on.producer.send(MESSAGE) for _ in range(64)]
        receipts = await asyncio.gather(*sends)
        assert len({receipt.message_id for receipt in receipts}) == 64
