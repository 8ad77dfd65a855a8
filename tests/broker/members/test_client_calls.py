"""What the broker asks clients on behalf of tools: running info, consume directly, their offsets."""

import asyncio
import json
from typing import Any

from pocketmq.broker.members import client_calls
from pocketmq.model import MessageQueue
from pocketmq.protocol import Command, decode_body, encode_body
from pocketmq.protocol.requests.offsets import ConsumerStatus
from tests.broker.running import Client, client, running, send_fields
from tests.loops import leap, leaping

SEND, HEARTBEAT, STATUS, RUNNING, CONSUME = 310, 34, 223, 307, 309
ASK_STATUS = 221


async def join(peer: Client, group: str = "G", client_id: str = "c1", version: int = 479) -> None:
    subscription = {"topic": "T", "subString": "*", "subVersion": 1, "expressionType": "TAG"}
    data: dict[str, Any] = {"groupName": group, "subscriptionDataSet": [subscription]}
    data |= {"consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING"}
    data |= {"consumeFromWhere": "CONSUME_FROM_LAST_OFFSET", "unitMode": False}
    beat = {"clientID": client_id, "consumerDataSet": [data], "producerDataSet": []}
    answer = await peer.ask(HEARTBEAT, {}, json.dumps(beat).encode(), version)
    assert answer.code == 0, answer.remark


async def questioned(peer: Client, code: int) -> Command:
    """Return the next question of a code; clients are also told of changes in their group."""
    while True:
        question = await peer.question()
        if question.code == code:
            return question


RUNNING_FIELDS = {"consumerGroup": "G", "clientId": "c1", "jstackEnable": "true"}


async def test_a_question_goes_to_the_client_and_its_answer_comes_back_as_it_is() -> None:
    async with running() as (_, address), client(address) as member, client(address) as tool:
        await join(member)
        number = tool.post(RUNNING, RUNNING_FIELDS)
        question = await questioned(member, RUNNING)
        assert question.ext == RUNNING_FIELDS
        member.send(question.reply(1, "as it is", {"a": "b"}, b"body"))
        answer = await tool.answer(number)
        assert (answer.code, answer.remark, answer.ext, answer.body) == (
            1,
            "as it is",
            {"a": "b"},
            b"body",
        )


async def test_a_message_is_handed_to_a_consumer() -> None:
    async with running() as (broker, address), client(address) as member, client(address) as tool:
        sent = await tool.ask(SEND, send_fields("T"), b"hello")
        await join(member)
        fields = {"consumerGroup": "G", "clientId": "c1", "msgId": sent.ext["msgId"], "topic": "T"}
        number = tool.post(CONSUME, fields)
        question = await questioned(member, CONSUME)
        added = {"brokerName": "broker-a", "topicSysFlag": "0", "groupSysFlag": "0"}
        assert question.ext == fields | added
        assert question.body == broker.state.store.record_at(0)
        member.reply(question)
        assert (await tool.answer(number)).code == 0
        for msg_id in ("nonsense", sent.ext["msgId"][:-16] + "00000000000000FF"):
            assert (await tool.ask(CONSUME, fields | {"msgId": msg_id})).code == 1


async def test_clients_that_are_not_there_or_too_old_are_not_asked() -> None:
    async with running() as (_, address), client(address) as member, client(address) as tool:
        refused = await tool.ask(RUNNING, RUNNING_FIELDS)
        assert (refused.code, refused.remark) == (1, "The Consumer <G> <c1> not online")
        await join(member, version=61)
        refused = await tool.ask(RUNNING, RUNNING_FIELDS)
        assert refused.code == 1
        assert "Version <V3> too low to finish" in (refused.remark or "")


@leaping
async def test_a_client_that_never_answers_costs_the_caller_ten_seconds() -> None:
    async with running() as (_, address), client(address) as member, client(address) as tool:
        await join(member)
        number = tool.post(RUNNING, RUNNING_FIELDS)
        await questioned(member, RUNNING)
        await leap(client_calls.CALL_TIMEOUT + 1)
        answer = await tool.answer(number)
        assert answer.code == 207
        assert (answer.remark or "").startswith("consumer <G> <c1> Timeout: ")


async def test_a_client_that_leaves_instead_of_answering_is_reported() -> None:
    async with running() as (_, address), client(address) as tool:
        async with client(address) as member:
            await join(member)
            number = tool.post(RUNNING, RUNNING_FIELDS)
            await questioned(member, RUNNING)
        answer = await tool.answer(number)
        assert answer.code == 1
        assert (answer.remark or "").startswith("invoke consumer <G> <c1> Exception: ")


async def test_the_offsets_of_all_clients_are_gathered() -> None:
    """One that answers nonsense is left out."""
    queue = MessageQueue("T", "broker-a", 0)
    status = encode_body(ConsumerStatus(message_queue_table={queue: 7}))
    async with (
        running() as (_, address),
        client(address) as one,
        client(address) as two,
        client(address) as tool,
    ):
        await join(one, client_id="c1")
        await join(two, client_id="c2")
        number = tool.post(STATUS, {"topic": "T", "group": "G"})
        for member, body in ((one, status), (two, b"nonsense")):
            question = await questioned(member, ASK_STATUS)
            assert (question.ext["topic"], question.ext["group"]) == ("T", "G")
            member.send(question.reply(0, None, None, body))
        told = decode_body((await tool.answer(number)).body, ConsumerStatus)
        assert told.consumer_table == {"c1": {queue: 7}}

        number = tool.post(STATUS, {"topic": "T", "group": "G", "clientAddr": "c2"})
        question = await questioned(two, ASK_STATUS)
        two.send(question.reply(0, None, None, status))
        told = decode_body((await tool.answer(number)).body, ConsumerStatus)
        assert told.consumer_table == {"c2": {queue: 7}}

        nobody = await tool.ask(STATUS, {"topic": "T", "group": "G", "clientAddr": "c3"})
        assert decode_body(nobody.body, ConsumerStatus).consumer_table == {}
        refused = await tool.ask(STATUS, {"topic": "T", "group": "H"})
        assert refused.remark == "No Any Consumer online in the consumer group: [H]"
        assert not one.asked


async def test_a_broker_that_stops_leaves_no_question_open() -> None:
    async with running() as (broker, address), client(address) as member, client(address) as tool:
        await join(member)
        tool.post(RUNNING, RUNNING_FIELDS)
        await questioned(member, RUNNING)
        async with asyncio.timeout(5):
            await broker.stop(0)
