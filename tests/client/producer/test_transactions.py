"""Transactions with brokers that say what a test wants them to."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable

import pytest

from pocketmq.client.producer.transactions import LocalTransaction
from pocketmq.errors import ClientClosed, SendFailed
from pocketmq.model import Message, SendStatus, SysFlag, TransactionState
from pocketmq.protocol import Command, RequestCode
from pocketmq.protocol.property_text import decode_properties
from pocketmq.protocol.requests.sending import EndTransactionRequest
from tests.client.producer.stage import Stage, refuses, stage, stores
from tests.loops import until

COMMIT, ROLLBACK = TransactionState.COMMIT, TransactionState.ROLLBACK
UNKNOWN = TransactionState.UNKNOWN
MESSAGE = Message("orders", b"42 EUR", tag="paid", keys=["A17"])
PLACE = "7F00000100002A9F0000000000000457"  # 127.0.0.1:10911, byte 0x457


def keeps(code: int = 0, place: str = PLACE) -> Callable[[Command], Command]:
    """Answer as a broker that stores half messages."""

    def say(request: Command) -> Command:
        fields = {"msgId": place, "queueId": request.ext["e"], "queueOffset": "7"}
        return request.reply(code, ext={**fields, "transactionId": "TX"})

    return say


async def ends(on: Stage, count: int = 1) -> list[Command]:
    """What the broker was told, once it has come."""
    broker = on.brokers["broker-a"]
    code = int(RequestCode.END_TRANSACTION)
    await until(lambda: len(broker.asked_for(code)) >= count, "the end of a transaction")
    return broker.asked_for(code)


async def test_a_half_message_names_its_group_and_its_end_its_place() -> None:
    called: list[tuple[Message, str]] = []

    async def local(message: Message, transaction_id: str) -> TransactionState:
        called.append((message, transaction_id))
        return COMMIT

    async with stage({"broker-a": keeps()}) as on:
        receipt = await on.producer.send_in_transaction(MESSAGE, local)
        assert called == [(MESSAGE, receipt.message_id)]
        assert (receipt.ok, receipt.state, receipt.error) == (True, COMMIT, None)
        assert (receipt.offset_message_id, receipt.transaction_id) == (PLACE, "TX")
        (half,) = on.brokers["broker-a"].sends
        assert int(half.ext["f"]) == SysFlag.PREPARED
        properties = decode_properties(half.ext["i"].encode())
        assert (properties["TRAN_MSG"], properties["PGROUP"]) == ("true", "shop")
        (told,) = await ends(on)
        assert told.is_oneway
        assert told.remark is None
        assert told.header(EndTransactionRequest) == EndTransactionRequest(
            topic="orders",
            producer_group="shop",
            tran_state_table_offset=7,
            commit_log_offset=0x457,
            commit_or_rollback=8,
            msg_id=receipt.message_id,
            transaction_id="TX",
            bname="broker-a",
        )


def rolls_back(_: Message, __: str) -> TransactionState:
    return ROLLBACK


def says_nothing(_: Message, __: str) -> None:
    return None


def raises(_: Message, __: str) -> TransactionState:
    raise LookupError("no money" * 1000)


def gives_up(_: Message, __: str) -> TransactionState:
    raise SystemExit(3)


def runs_out(_: Message, __: str) -> TransactionState:
    return next(iter(()))


async def commits(_: Message, __: str) -> TransactionState:
    return COMMIT


def gives_a_coroutine(message: Message, transaction_id: str) -> Awaitable[TransactionState]:
    return commits(message, transaction_id)


class Object:
    async def __call__(self, _: Message, __: str) -> TransactionState:
        return COMMIT


BRANCH = "executeLocalTransactionBranch exception: "


@pytest.mark.parametrize(
    ("local", "state", "remark"),
    [
        (rolls_back, ROLLBACK, None),
        (says_nothing, UNKNOWN, None),
        (raises, UNKNOWN, f"{BRANCH}LookupError: no money"),
        (gives_up, UNKNOWN, f"{BRANCH}RuntimeError: SystemExit was raised: 3"),
        (runs_out, UNKNOWN, f"{BRANCH}RuntimeError: StopIteration was raised: "),
        (commits, COMMIT, None),
        (Object(), COMMIT, None),
        (gives_a_coroutine, COMMIT, None),
    ],
)
async def test_what_a_local_function_comes_to(
    local: LocalTransaction, state: TransactionState, remark: str | None
) -> None:
    async with stage({"broker-a": keeps()}) as on:
        receipt = await on.producer.send_in_transaction(MESSAGE, local)
        assert receipt.state is state
        assert (receipt.error is None) == (remark is None)
        (told,) = await ends(on)
        assert told.ext["commitOrRollback"] == str(int(state))
        if remark is None:
            assert told.remark is None
        else:
            assert told.remark is not None
            assert told.remark.startswith(remark)
            assert len(told.remark) <= 1000


async def test_plain_functions_run_in_threads_and_coroutines_on_the_loop() -> None:
    seen: list[int] = []

    def plain(_: Message, __: str) -> None:
        seen.append(threading.get_ident())

    async def coroutine(_: Message, __: str) -> None:
        seen.append(threading.get_ident())

    async with stage({"broker-a": keeps()}) as on:
        await on.producer.send_in_transaction(MESSAGE, plain)
        await on.producer.send_in_transaction(MESSAGE, coroutine)
    assert [ident == threading.get_ident() for ident in seen] == [False, True]


async def test_what_is_not_stored_safely_is_rolled_back_unasked() -> None:
    async with stage({"broker-a": keeps(code=10)}) as on:
        receipt = await on.producer.send_in_transaction(MESSAGE, raises)
        assert (receipt.status, receipt.state) == (SendStatus.FLUSH_DISK_TIMEOUT, ROLLBACK)
        assert receipt.error is None
        (told,) = await ends(on)
        assert told.ext["commitOrRollback"] == "12"


async def test_nothing_runs_if_the_message_cannot_be_sent() -> None:
    async with stage({"broker-a": refuses(13)}) as on:
        with pytest.raises(SendFailed):
            await on.producer.send_in_transaction(MESSAGE, raises)
        await on.producer.close()
        assert on.brokers["broker-a"].asked_for(RequestCode.END_TRANSACTION) == []


async def test_an_end_that_cannot_be_told_is_left_to_the_broker(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with stage({"broker-a": stores}) as on:  # whose ids name no place
        with caplog.at_level(logging.WARNING):
            receipt = await on.producer.send_in_transaction(MESSAGE, commits)
        assert receipt.state is COMMIT
        (_, line) = caplog.messages  # the first is about a producer without check
        assert f"transaction={receipt.message_id} state=COMMIT broker=broker-a error=" in line
        assert "cannot send the end of a transaction" in line


async def test_close_lets_transactions_end_and_begins_no_more() -> None:
    decide = asyncio.Event()

    async def local(_: Message, __: str) -> TransactionState:
        await decide.wait()
        return COMMIT

    async with stage({"broker-a": keeps()}) as on:
        producer = on.producer
        running = asyncio.create_task(producer.send_in_transaction(MESSAGE, local))
        await until(lambda: on.brokers["broker-a"].sends, "a half message")
        closing = asyncio.create_task(producer.close())
        await asyncio.sleep(0)
        with pytest.raises(ClientClosed):
            await producer.send_in_transaction(MESSAGE, local)
        decide.set()
        assert (await running).state is COMMIT
        await closing
        (told,) = await ends(on)
        assert told.ext["commitOrRollback"] == "8"


async def test_close_waits_no_longer_for_a_local_function_than_for_a_send() -> None:
    async def local(_: Message, __: str) -> TransactionState:
        await asyncio.Event().wait()
        return COMMIT

    async with stage({"broker-a": keeps()}, send_timeout=0.2) as on:
        running = asyncio.create_task(on.producer.send_in_transaction(MESSAGE, local))
        await until(lambda: on.brokers["broker-a"].sends, "a half message")
        await asyncio.wait_for(on.producer.close(), 10.0)
        running.cancel()
        await asyncio.wait({running})


async def test_topics_in_a_namespace_are_told_by_their_names_on_the_wire() -> None:
    async with stage({"broker-a": keeps()}, namespace="ns") as on:
        await on.producer.send_in_transaction(MESSAGE, commits)
        (told,) = await ends(on)
        header = told.header(EndTransactionRequest)
        assert (header.topic, header.producer_group) == ("ns%orders", "ns%shop")
        (half,) = on.brokers["broker-a"].sends
        assert decode_properties(half.ext["i"].encode())["PGROUP"] == "ns%shop"
