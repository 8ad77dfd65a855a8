"""Transactions of a running broker, over real sockets, in leaps of time."""

from pathlib import Path
from typing import Any

import pytest

from pocketmq.broker.broker import Broker
from pocketmq.broker.transactions.rules import custom_immunity_ms, is_check_due
from pocketmq.errors import StoreFull
from pocketmq.model.names import DISCARDED_HALF_TOPIC, HALF_TOPIC, OP_HALF_TOPIC
from pocketmq.protocol import Command, RecordView, RequestCode
from pocketmq.protocol.property_text import decode_properties
from pocketmq.protocol.requests.sending import CheckTransactionStateRequest
from tests.broker.running import (
    START,
    Client,
    LoopClock,
    appear,
    client,
    position,
    pull_fields,
    records,
    running,
    send_fields,
)
from tests.loops import leap, leaping, until

END = RequestCode.END_TRANSACTION
COMMIT, ROLLBACK, UNKNOWN = "8", "12", "0"
HALF = "UNIQ_KEY\1{key}\2TRAN_MSG\1true\2PGROUP\1shop\2TAGS\1paid\2"
BORN = str(int(START * 1000))


async def prepare(peer: Client, key: str = "K", more: str = "", **fields: str) -> Command:
    """Send a half message."""
    text = HALF.format(key=key) + more
    standard = {"f": "4", "g": BORN, "e": "2"}
    answer = await peer.ask(
        RequestCode.SEND_MESSAGE_V2, send_fields("T", text, **standard | fields), b"hello"
    )
    assert answer.code == 0, answer.remark
    return answer


def end_fields(half: Command, what: str, **changes: str) -> dict[str, str]:
    ext = half.ext or {}
    return {
        "producerGroup": "shop",
        "tranStateTableOffset": ext["queueOffset"],
        "commitLogOffset": str(position(half)),
        "commitOrRollback": what,
        "fromTransactionCheck": "false",
        "msgId": ext["transactionId"],
        "transactionId": ext["transactionId"],
    } | changes


def messages(broker: Broker, topic: str = "T", queue_id: int = 2) -> list[RecordView]:
    store = broker.state.store
    read = store.read(store.queue(topic, queue_id), 0, 100_000, 1 << 30)
    return [RecordView(bytes(piece), 0) for piece in read.pieces]


def keys(broker: Broker, topic: str = "T", queue_id: int = 2) -> list[str]:
    found = messages(broker, topic, queue_id)
    return [decode_properties(message.property_bytes)["UNIQ_KEY"] for message in found]


@leaping
async def test_a_committed_message_is_seen_a_half_message_is_not() -> None:
    async with running() as (broker, address), client(address) as peer:
        await peer.ask(RequestCode.SEND_MESSAGE_V2, send_fields("other"), b"first in the log")
        half = await prepare(peer, more="DELAY\0013\2TIMER_DELAY_SEC\0013\2REAL_TOPIC\1evil\2")
        assert (half.ext or {})["queueId"] == "2"
        assert "recallHandle" not in (half.ext or {})
        number = peer.post(RequestCode.PULL_MESSAGE, pull_fields("T", queue_id=2))
        (waiting,) = messages(broker, HALF_TOPIC, 0)
        assert waiting.sys_flag & 12 == 0
        assert waiting.commit_log_offset == position(half)
        ended = await peer.ask(END, end_fields(half, COMMIT))
        assert (ended.code, ended.remark) == (0, None)
        (seen,) = records(await peer.answer(number))
        assert (seen.topic_bytes, seen.queue_id, seen.stored_body) == (b"T", 2, b"hello")
        assert seen.sys_flag & 12 == 8
        assert seen.prepared_transaction_offset == position(half)
        assert seen.born_timestamp_ms == int(BORN)
        assert set(decode_properties(seen.property_bytes)) == {
            "UNIQ_KEY", "TRAN_MSG", "PGROUP", "TAGS", "CLUSTER", "MSG_REGION", "TRACE_ON",
            "__transactionId__",
        }  # fmt: skip
        (mark,) = messages(broker, OP_HALF_TOPIC, 0)
        assert (mark.stored_body, mark.tags_code()) == (b"0,", 100)


@leaping
async def test_a_transaction_ends_once_however_often_it_is_ended() -> None:
    async with running() as (broker, address), client(address) as peer:
        first, second = await prepare(peer, "a"), await prepare(peer, "b")
        numbers = [peer.post(END, end_fields(first, COMMIT)) for _ in range(3)]
        assert [(await peer.answer(number)).code for number in numbers] == [0, 0, 0]
        answer = await peer.ask(END, end_fields(first, ROLLBACK))
        assert answer.code == 1
        assert answer.remark == "the transaction already ended with another outcome"
        assert (await peer.ask(END, end_fields(second, ROLLBACK))).code == 0
        assert (await peer.ask(END, end_fields(second, COMMIT))).code == 1
        assert keys(broker) == ["a"]


@leaping
async def test_ends_that_do_not_fit_get_javas_words() -> None:
    async with running() as (broker, address), client(address) as peer:
        half = await prepare(peer)
        for changes, remark in (
            ({"producerGroup": "others"}, "The producer group wrong"),
            ({"tranStateTableOffset": "1"}, "The transaction state table offset wrong"),
            ({"commitLogOffset": "1"}, "Find prepared transaction message failed"),
            ({"commitLogOffset": "-1"}, "Find prepared transaction message failed"),
            ({"commitLogOffset": str(2**62)}, "Find prepared transaction message failed"),
        ):
            for what in (COMMIT, ROLLBACK):
                answer = await peer.ask(END, end_fields(half, what, **changes))
                assert (answer.code, answer.remark) == (1, remark)
        plain = await peer.ask(RequestCode.SEND_MESSAGE_V2, send_fields("T"), b"x")
        answer = await peer.ask(END, end_fields(plain, COMMIT))
        assert (answer.code, answer.remark) == (1, "Find prepared transaction message failed")
        assert messages(broker) == []


@leaping
async def test_who_does_not_know_yet_is_not_answered() -> None:
    async with running() as (broker, address), client(address) as peer:
        half = await prepare(peer)
        for what in (UNKNOWN, "4", "5"):
            peer.post(END, end_fields(half, what))
        assert (await peer.ask(END, end_fields(half, COMMIT))).code == 0
        assert peer.unasked == []
        assert keys(broker) == ["K"]


@leaping
async def test_a_broker_may_take_no_transactions() -> None:
    async with running(reject_transaction_message=True) as (_, address), client(address) as peer:
        text = HALF.format(key="K")
        answer = await peer.ask(RequestCode.SEND_MESSAGE_V2, send_fields("T", text, f="4"), b"x")
        assert answer.code == 16
        assert answer.remark == "the broker[127.0.0.1] sending transaction message is forbidden"


@leaping
async def test_a_consumed_message_sent_back_by_an_old_client_is_no_half_message() -> None:
    async with running() as (broker, address), client(address) as peer:
        text = HALF.format(key="K") + "DELAY\0011\2"
        fields = send_fields("T", text, j="1")
        assert (await peer.ask(RequestCode.SEND_MESSAGE_V2, fields, b"x")).code == 0
        assert broker.state.store.queue(HALF_TOPIC, 0) is None


@leaping
async def test_a_live_producer_of_the_group_is_asked() -> None:
    async with (
        running(transaction_check_interval=1000) as (broker, address),
        client(address) as peer,
        client(address) as other,
    ):
        half = await prepare(peer)
        await leap(5.5)  # younger than the time-out: nobody is asked
        await appear(peer, "shop", "one")
        await appear(other, "strangers", "two")
        assert peer.asked == []
        await leap(1.1)
        question = await peer.question()
        assert question.code == RequestCode.CHECK_TRANSACTION_STATE
        assert question.is_oneway
        header = question.header(CheckTransactionStateRequest)
        assert header == CheckTransactionStateRequest(
            topic=HALF_TOPIC,
            tran_state_table_offset=0,
            commit_log_offset=position(half),
            msg_id="K",
            transaction_id="K",
            offset_msg_id=(half.ext or {})["msgId"],
            bname="broker-a",
        )
        body = RecordView(question.body, 0)
        assert (body.topic_bytes, body.queue_id, body.stored_body) == (b"T", 2, b"hello")
        assert decode_properties(body.property_bytes)["TRANSACTION_CHECK_TIMES"] == "1"
        await leap(1.1)
        again = await peer.question()
        text = decode_properties(RecordView(again.body, 0).property_bytes)
        assert text["TRANSACTION_CHECK_TIMES"] == "2"
        fields = end_fields(half, COMMIT, fromTransactionCheck="true")
        peer.post_oneway(END, fields)
        await until(lambda: keys(broker) == ["K"], "the message")
        (seen,) = messages(broker)
        assert decode_properties(seen.property_bytes)["TRANSACTION_CHECK_TIMES"] == "2"
        await leap(1.1)
        await peer.ask(RequestCode.GET_MAX_OFFSET, {"topic": "T", "queueId": "2"})
        assert (peer.asked, other.asked) == ([], [])


@leaping
async def test_members_of_a_group_are_asked_in_turn() -> None:
    async with (
        running(transaction_check_interval=1000) as (_, address),
        client(address) as one,
        client(address) as two,
    ):
        for key in "abcd":
            await prepare(one, key)
        await appear(one, "shop", "one")
        await appear(two, "shop", "two")
        await leap(6.1)
        asked = [[(await peer.question()).opaque for _ in range(2)] for peer in (one, two)]
        assert asked == [[0, 0], [0, 0]]


@leaping
async def test_after_the_last_check_a_transaction_is_given_up_and_can_be_taken_up_again() -> None:
    settings: dict[str, Any] = {"transaction_check_interval": 1000, "transaction_check_max": 2}
    async with running(**settings) as (broker, address), client(address) as peer:
        await appear(peer, "shop")
        half = await prepare(peer)
        await leap(6.1)
        for _ in range(2):
            await peer.question()
            await leap(1.1)
        await until(lambda: keys(broker, DISCARDED_HALF_TOPIC, 0) == ["K"], "giving up")
        config = broker.state.topics.get(DISCARDED_HALF_TOPIC)
        assert config is not None
        assert (config.read_queue_nums, config.perm) == (1, 6)
        assert (await peer.ask(END, end_fields(half, COMMIT))).code == 1
        assert messages(broker) == []
        (lost,) = messages(broker, DISCARDED_HALF_TOPIC, 0)
        assert decode_properties(lost.property_bytes)["TRANSACTION_CHECK_TIMES"] == "2"
        identity = (half.ext or {})["msgId"][:-16] + f"{lost.commit_log_offset:016X}"
        resumed = await peer.ask(RequestCode.RESUME_CHECK_HALF_MESSAGE, {"msgId": identity})
        assert resumed.code == 0, resumed.remark
        await leap(1.1)
        question = (await peer.question()).header(CheckTransactionStateRequest)
        fields = end_fields(half, COMMIT, fromTransactionCheck="true") | {
            "tranStateTableOffset": str(question.tran_state_table_offset),
            "commitLogOffset": str(question.commit_log_offset),
        }
        assert (await peer.ask(END, fields)).code == 0
        assert keys(broker) == ["K"]


@leaping
async def test_a_producer_is_asked_fifteen_times_and_no_more() -> None:
    """With the settings as they come: after 6 s, every 30 s, 15 times; then it is put aside."""
    async with running() as (broker, address), client(address) as peer:
        await appear(peer, "shop")
        await prepare(peer)
        times = []
        for _ in range(15):
            await leap(30.0)
            await appear(peer, "shop")  # heartbeats go on meanwhile
            question = await peer.question()
            assert question.header(CheckTransactionStateRequest).transaction_id == "K"
            times.append(
                dict(broker.state.halves.states.open_from(0, 1)) if broker.state.halves else 0
            )
        assert times == [{0: checks} for checks in range(1, 16)]
        assert keys(broker, DISCARDED_HALF_TOPIC, 0) == []
        await leap(30.0)
        await until(lambda: keys(broker, DISCARDED_HALF_TOPIC, 0) == ["K"], "giving up")
        await leap(300.0)
        assert peer.asked == []
        assert messages(broker) == []


@leaping
async def test_a_round_counts_even_if_no_producer_is_online() -> None:
    settings: dict[str, Any] = {"transaction_check_interval": 1000, "transaction_check_max": 2}
    async with running(**settings) as (broker, address), client(address) as peer:
        await prepare(peer)
        await leap(6.1)
        for _ in range(2):
            await leap(1.1)
        await until(lambda: keys(broker, DISCARDED_HALF_TOPIC, 0) == ["K"], "giving up")


@leaping
async def test_a_round_that_fails_is_not_repeated_before_the_next_one_is_due() -> None:
    """Rounds count against transactions, so a failure must not bring more of them."""
    async with running(transaction_check_interval=30_000) as (broker, address):
        async with client(address) as peer:
            await prepare(peer)
        store, read = broker.state.store, broker.state.store.read
        reads = 0

        def refuse(*_: object, **__: object) -> None:
            nonlocal reads
            reads += 1
            raise StoreFull(1)

        store.read = refuse  # type: ignore[method-assign,assignment]
        await leap(30.1)
        await until(lambda: reads == 1, "the round that fails")
        for _ in range(2):
            await leap(2.0)
        await leap(25.0)
        assert reads == 1
        store.read = read  # type: ignore[method-assign]
        await leap(5.0)
        halves = broker.state.halves
        assert halves is not None
        await until(lambda: dict(halves.states.open_from(0, 1)) == {0: 1}, "the next round")


@leaping
async def test_a_producer_may_choose_when_it_is_asked_and_is_bound_to_it() -> None:
    async with running(transaction_check_interval=1000) as (_, address), client(address) as peer:
        await appear(peer, "shop")
        half = await prepare(peer, more="CHECK_IMMUNITY_TIME_IN_SECONDS\00120\2")
        await leap(19)
        await appear(peer, "shop")
        assert peer.asked == []
        await leap(2.1)
        await peer.question()
        late = await peer.ask(END, end_fields(half, COMMIT))
        assert (late.code, late.remark) == (604, None)
        answer = await peer.ask(END, end_fields(half, COMMIT, fromTransactionCheck="true"))
        assert answer.code == 0


@pytest.mark.parametrize(
    ("text", "immunity"),
    [(None, None), ("", None), ("-1", None), ("x", None), ("0", 0), ("20", 20_000), ("-2", -2000)],
)
def test_the_time_without_checks_is_a_java_long(text: str | None, immunity: int | None) -> None:
    assert custom_immunity_ms(text) == immunity


@leaping
async def test_open_transactions_and_their_checks_survive_a_restart(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"transaction_check_interval": 1000, "transaction_check_max": 3}
    clock = LoopClock()
    async with running(tmp_path, clock, **settings) as (_, address), client(address) as peer:
        half, done = await prepare(peer, "open"), await prepare(peer, "done")
        assert (await peer.ask(END, end_fields(done, COMMIT))).code == 0
        await appear(peer, "shop")
        await leap(6.1)
        await peer.question()
    async with running(tmp_path, clock, **settings) as (broker, address), client(address) as peer:
        await appear(peer, "shop")
        await leap(1.1)
        question = await peer.question()
        text = decode_properties(RecordView(question.body, 0).property_bytes)
        assert (text["UNIQ_KEY"], text["TRANSACTION_CHECK_TIMES"]) == ("open", "2")
        assert (await peer.ask(END, end_fields(done, COMMIT))).code == 0
        assert (await peer.ask(END, end_fields(half, COMMIT))).code == 0
        assert keys(broker) == ["done", "open"]


@leaping
async def test_after_the_clock_is_set_back_producers_that_chose_when_are_asked_too() -> None:
    clock = LoopClock()
    settings = {"transaction_check_interval": 1000, "transaction_time_out": 1000}
    async with running(None, clock, **settings) as (_, address), client(address) as peer:
        await appear(peer, "shop")
        clock.forward(86_400)
        born = str(clock.now_ms())
        await prepare(peer, more="CHECK_IMMUNITY_TIME_IN_SECONDS\00120\2", g=born)
        clock.forward(-86_400)
        await leap(30)
        question = await peer.question()
        assert question.code == RequestCode.CHECK_TRANSACTION_STATE


@pytest.mark.parametrize(
    ("tag", "now_ms", "due"),
    [
        (1000, 7000, False),
        (1000, 7001, True),
        (-5000, 5000, False),
        (-5000, 5001, True),
        (86_400_000, 1000, True),  # stored before the clock was set back
    ],
)
def test_a_producer_is_asked_after_the_timeout_or_if_the_clock_was_set_back(
    tag: int, now_ms: int, due: bool
) -> None:
    assert is_check_due(tag, 6000, now_ms) is due
