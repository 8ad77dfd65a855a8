"""Requests and replies through a running broker."""

import asyncio

from pocketmq.broker.broker import Broker
from pocketmq.broker.sending import reply_delivery
from pocketmq.protocol import Command, RequestCode
from pocketmq.protocol.property_text import decode_properties
from pocketmq.protocol.requests import client_calls, sending
from tests.broker.running import Client, appear, client, running, send_fields
from tests.loops import leap, leaping

REPLY = RequestCode.SEND_REPLY_MESSAGE_V2
TOPIC = "DefaultCluster_REPLY_TOPIC"
TEXT = "UNIQ_KEY\1K\2MSG_TYPE\1reply\2CORRELATION_ID\1C\2REPLY_TO_CLIENT\1asker\2TTL\0013000\2"


def post(peer: Client, text: str = TEXT, **fields: str) -> int:
    return peer.post(REPLY, send_fields(TOPIC, text, **fields), b"an answer")


def stored(broker: Broker) -> int:
    queue = broker.state.store.queue(TOPIC, 0)
    return 0 if queue is None else queue.next_offset


async def test_a_reply_is_pushed_to_who_asked_and_stored() -> None:
    async with running() as (broker, address), client(address) as asker, client(address) as peer:
        await appear(asker, "asking", "asker")
        number = post(peer, f="0", h="7")
        push = await asker.question()
        assert (push.code, push.is_oneway, push.body) == (
            RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT,
            False,
            b"an answer",
        )
        header = push.header(client_calls.PushReplyRequest)
        assert (header.topic, header.queue_id, header.flag) == (TOPIC, 0, 7)
        assert header.store_host == str(address)
        assert header.born_host.startswith("127.0.0.1:")
        assert set(decode_properties((header.properties or "").encode())) == {
            "UNIQ_KEY", "MSG_TYPE", "CORRELATION_ID", "REPLY_TO_CLIENT", "TTL", "PUSH_REPLY_TIME",
            "MSG_REGION", "TRACE_ON",
        }  # fmt: skip
        await peer.ask(RequestCode.GET_MAX_OFFSET, {"topic": TOPIC, "queueId": "0"})
        assert peer.unasked == []  # no answer before the asker has taken it
        asker.reply(push)
        answer = await peer.answer(number)
        assert (answer.code, answer.remark) == (0, None)
        found = answer.header(sending.SendResponse)
        assert (found.queue_id, found.queue_offset, len(found.msg_id)) == (0, 0, 32)
        assert stored(broker) == 1


async def test_a_reply_need_not_be_stored() -> None:
    async with (
        running(store_reply_message_enable=False) as (broker, address),
        client(address) as asker,
        client(address) as peer,
    ):
        await appear(asker, "asking", "asker")
        number = post(peer)
        asker.reply(await asker.question())
        found = (await peer.answer(number)).header(sending.SendResponse)
        assert (found.msg_id, found.queue_id, found.queue_offset) == ("0", 0, 0)
        assert stored(broker) == 0


async def refused(peer: Client, number: int) -> tuple[int, str | None]:
    answer = await peer.answer(number)
    return answer.code, answer.remark


async def test_a_reply_to_a_client_that_is_gone_is_refused_in_javas_words() -> None:
    async with running() as (broker, address), client(address) as peer:
        unknown = "push reply message fail, channel of <asker> not found."
        assert await refused(peer, post(peer)) == (1, unknown)
        nobody = "reply message properties[REPLY_TO_CLIENT] is null"
        assert await refused(peer, post(peer, "UNIQ_KEY\1K\2")) == (1, nobody)
        assert stored(broker) == 2  # as in Java
        async with client(address) as asker:
            await appear(asker, "asking", "asker")
            number = post(peer)
            asker.reply(await asker.question(), 1)
            assert await refused(peer, number) == (1, "push reply message to askerfail.")
            number = post(peer)
            await asker.question()
        assert await refused(peer, number) == (1, "push reply message to askerfail.")


@leaping
async def test_a_client_that_says_nothing_is_waited_for_only_so_long() -> None:
    async with running() as (_, address), client(address) as asker, client(address) as peer:
        await appear(asker, "asking", "asker")
        number = post(peer)
        await asker.question()
        await leap(reply_delivery.TIMEOUT + 1)
        assert await refused(peer, number) == (1, "push reply message to askerfail.")


async def test_a_broker_stops_while_a_reply_is_on_its_way() -> None:
    async with (
        asyncio.timeout(20),
        running() as (_, address),
        client(address) as asker,
        client(address) as peer,
    ):
        await appear(asker, "asking", "asker")
        post(peer)
        await asker.question()


async def test_a_topic_that_does_not_exist_gets_no_replies() -> None:
    async with running(auto_create_topic_enable=False) as (_, address), client(address) as peer:
        answer: Command = await peer.ask(REPLY, send_fields("missing", TEXT), b"x")
        assert answer.code == 17
