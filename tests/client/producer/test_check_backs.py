"""Brokers that ask what became of a transaction."""

import asyncio
import logging

import pytest

from pocketmq.client.producer import check_backs
from pocketmq.model import TransactionState
from pocketmq.protocol import Command, ReceivedMessage, RequestCode
from pocketmq.protocol.property_text import encode_properties
from pocketmq.protocol.records import Record, encode_record
from pocketmq.protocol.requests.sending import CheckTransactionStateRequest, EndTransactionRequest
from tests.client.producer.stage import Stage, stage, stores
from tests.client.producer.test_transactions import ends
from tests.loops import until

COMMIT, UNKNOWN = TransactionState.COMMIT, TransactionState.UNKNOWN


async def ask(on: Stage, offset: int = 0x457, group: str = "shop", topic: str = "orders") -> None:
    """Make broker-a check back, as Java's does: one way, with the half message."""
    broker = on.brokers["broker-a"]
    await until(lambda: broker.open, "a connection")
    properties = {"PGROUP": group, "UNIQ_KEY": f"M{offset}", "TRAN_MSG": "true", "TAGS": "paid"}
    record = Record(
        topic=topic.encode(),
        body=b"42 EUR",
        property_bytes=encode_properties(properties),
        commit_log_offset=offset,
    )
    header = CheckTransactionStateRequest(
        topic=topic,
        tran_state_table_offset=7,
        commit_log_offset=offset,
        msg_id=f"M{offset}",
        transaction_id=f"T{offset}",
        bname="broker-a",
    )
    code = RequestCode.CHECK_TRANSACTION_STATE
    broker.open[0].send_oneway(Command.request(code, 0, header, encode_record(record)))


async def test_the_check_decides_and_the_asking_broker_is_told() -> None:
    asked: list[ReceivedMessage] = []

    def check(message: ReceivedMessage) -> TransactionState:
        asked.append(message)
        return COMMIT

    async with stage({"broker-a": stores}, check=check) as on:
        await ask(on)
        (told,) = await ends(on)
        assert (told.is_oneway, told.remark) == (True, None)
        assert told.header(EndTransactionRequest) == EndTransactionRequest(
            topic="orders",
            producer_group="shop",
            tran_state_table_offset=7,
            commit_log_offset=0x457,
            commit_or_rollback=8,
            from_transaction_check=True,
            msg_id="M1111",
            transaction_id="T1111",
            bname="broker-a",
        )
    (message,) = asked
    assert (message.topic, message.body, message.tag) == ("orders", b"42 EUR", "paid")
    assert message.transaction_id == "M1111"


async def test_a_check_that_fails_leaves_the_end_unknown() -> None:
    async def check(_: ReceivedMessage) -> TransactionState:
        raise LookupError("the database is away")

    async with stage({"broker-a": stores}, check=check) as on:
        await ask(on)
        (told,) = await ends(on)
        assert told.ext["commitOrRollback"] == "0"
        assert told.remark == (
            "checkLocalTransactionState Exception: LookupError: the database is away"
        )


async def test_a_producer_without_a_check_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with stage({"broker-a": stores}) as on:
        with caplog.at_level(logging.WARNING):
            await ask(on)
            await until(lambda: caplog.messages, "a warning")
        assert caplog.messages[0].startswith("cannot answer a check-back: broker=")
        assert " group=shop, the producer has no check function" in caplog.messages[0]
        await on.producer.close()
        assert on.brokers["broker-a"].asked_for(RequestCode.END_TRANSACTION) == []


async def test_a_check_sees_names_without_their_namespace() -> None:
    asked: list[str] = []

    async def check(message: ReceivedMessage) -> TransactionState:
        asked.append(message.topic)
        return COMMIT

    async with stage({"broker-a": stores}, check=check, namespace="ns") as on:
        await ask(on, group="ns%shop", topic="ns%orders")
        (told,) = await ends(on)
        assert (told.ext["topic"], told.ext["producerGroup"]) == ("ns%orders", "ns%shop")
    assert asked == ["orders"]


async def test_checks_wait_their_turn_and_the_same_question_is_taken_once() -> None:
    asked: list[str] = []
    go_on = asyncio.Event()

    async def check(message: ReceivedMessage) -> TransactionState:
        asked.append(message.message_id)
        await go_on.wait()
        return COMMIT

    async with stage({"broker-a": stores}, check=check) as on:
        for offset in (1, 1, 2, 2):
            await ask(on, offset)
        await until(lambda: asked, "a check")
        go_on.set()
        told = await ends(on, 2)
        assert asked == ["M1", "M2"]
        assert [each.ext["msgId"] for each in told] == ["M1", "M2"]
        await ask(on, 1)  # answered, and still asked: the answer got lost
        await ends(on, 3)
        assert asked == ["M1", "M2", "M1"]


async def test_more_questions_than_can_wait_are_dropped(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(check_backs, "MOST_WAITING", 3)
    asked: list[str] = []
    go_on = asyncio.Event()

    async def check(message: ReceivedMessage) -> TransactionState:
        asked.append(message.message_id)
        await go_on.wait()
        return UNKNOWN

    async with stage({"broker-a": stores}, check=check) as on:
        await ask(on, 1)
        await until(lambda: asked, "a check")
        with caplog.at_level(logging.WARNING):
            for offset in (2, 3, 4, 5):
                await ask(on, offset)
            await until(lambda: caplog.messages, "a warning")
        assert caplog.messages == [
            "check-back queue is full: group=shop; dropping one, the broker will check back again"
        ]
        go_on.set()
        await ends(on, 4)
        assert asked == ["M1", "M2", "M3", "M4"]


async def test_close_ends_a_check_that_does_not() -> None:
    asked: list[str] = []

    async def check(message: ReceivedMessage) -> TransactionState:
        asked.append(message.message_id)
        await asyncio.Event().wait()
        return COMMIT

    async with stage({"broker-a": stores}, check=check) as on:
        await ask(on)
        await until(lambda: asked, "a check")
        await asyncio.wait_for(on.producer.close(), 10.0)
