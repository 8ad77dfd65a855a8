"""Signed sends from templates: the same fields and signatures as those written field by field."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.client.calls import Fields, Signing
from pocketmq.client.options import Credentials
from pocketmq.client.producer.plain_frames import json_text, plain_frame
from pocketmq.client.producer.requests import Outgoing, RequestWriter
from pocketmq.client.producer_options import ProducerOptions
from pocketmq.model import Message, MessageQueue
from pocketmq.protocol import Command
from pocketmq.protocol import RequestCode as Code
from pocketmq.protocol.command import read_command
from pocketmq.protocol.frame import FrameReader
from pocketmq.protocol.header import Header
from pocketmq.protocol.signature import Signed, check_signature
from tests.client.producer.stage import stage

SECRET = "the secret"
OPTIONS = ProducerOptions(group="shop")
QUEUE = MessageQueue("orders", "broker-a", 3)
PLAIN = Outgoing("orders", b"42 EUR", "UNIQ_KEY\1A\2WAIT\1true\2", "A")
MESSAGES = {
    "plain": PLAIN,
    "a half message": msgspec.structs.replace(PLAIN, sys_flag=4, flag=7),
    "a retry": msgspec.structs.replace(PLAIN, reconsume_times=2),
    "a last retry": msgspec.structs.replace(PLAIN, reconsume_times=2, max_reconsume_times=16),
    "a batch": msgspec.structs.replace(PLAIN, code=int(Code.SEND_BATCH_MESSAGE), batch_id="B"),
    "a reply": msgspec.structs.replace(PLAIN, code=int(Code.SEND_REPLY_MESSAGE_V2)),
    "other letters": msgspec.structs.replace(PLAIN, properties='größe\1"\\\2', body=b"\0\xff"),
}


def signing(token: str | None = None) -> Signing:
    user = Credentials(access_key='us"er', secret_key=SECRET, security_token=token)
    return Signing(user)


def by_field(hook: Signing) -> Any:
    def as_command(code: int, fields: Fields, body: bytes) -> Command:
        assert isinstance(fields, Header)
        named = fields.to_ext()
        hook(code, named, body)
        return Command.request(code, 0, named, body)

    return as_command


def command(frame: bytes) -> Command:
    (found,) = FrameReader().feed(frame)
    return read_command(found)


def is_bound(sent: Command) -> bool:
    return check_signature(SECRET.encode(), sent.code, sent.ext, sent.body) is Signed.BOUND


@pytest.mark.parametrize("token", [None, "a token"])
@pytest.mark.parametrize("kind", MESSAGES)
def test_both_ways_write_the_same_request(kind: str, token: str | None) -> None:
    hook, message = signing(token), MESSAGES[kind]
    long = RequestWriter("shop", OPTIONS, by_field(hook))
    short = RequestWriter("shop", OPTIONS, by_field(hook), hook.user)
    for oneway in (False, True):
        sent = command(short.frame(message, QUEUE, 9, 1_700_000_000_000, oneway=oneway))
        assert sent == command(long.frame(message, QUEUE, 9, 1_700_000_000_000, oneway=oneway))
        assert is_bound(sent)
        assert (sent.opaque, sent.is_oneway) == (9, oneway)


@given(st.integers(0, 2**40), st.integers(0, 2**20), st.binary(min_size=1), st.text(max_size=9))
def test_a_plain_message_is_signed_as_any_other(
    born: int, number: int, body: bytes, tag: str
) -> None:
    hook = signing()
    writer = RequestWriter("shop", OPTIONS, by_field(hook), hook.user)
    template = writer.plain_template(QUEUE)
    text = "\2WAIT\1true\2TAGS\1" + tag.encode(errors="replace").decode() + "\2"
    assert template.signing is not None
    for _ in range(2):
        middle = template.signing.plain_middle(json_text(text), "ID", number, body, born)
        frame, name = plain_frame(
            template.plain, middle, json_text(text), "ID", number, body, born, 9
        )
        outgoing = Outgoing("orders", body, f"UNIQ_KEY\1{name}{text}", name)
        assert command(frame) == command(writer.frame(outgoing, QUEUE, 9, born))
        assert is_bound(command(frame))


def test_a_wrong_secret_and_a_changed_value_do_not_fit() -> None:
    hook = signing()
    sent = command(
        RequestWriter("shop", OPTIONS, by_field(hook), hook.user).frame(PLAIN, QUEUE, 1, 5)
    )
    assert check_signature(b"guessed", sent.code, sent.ext, sent.body) is Signed.NOT
    for key in ("b", "e", "f", "g", "i", "n", "!"):
        other = sent.ext | {key: sent.ext[key] + "1"}
        assert check_signature(SECRET.encode(), sent.code, other, sent.body) is Signed.NOT
    assert check_signature(SECRET.encode(), sent.code, sent.ext, b"other") is Signed.NOT


async def test_signed_sends_take_the_short_way_and_are_signed_one_by_one() -> None:
    credentials = Credentials(access_key="user", secret_key=SECRET)
    async with stage(credentials=credentials) as on:
        message = Message("orders", b"42 EUR", tag="paid")
        for _ in range(3):
            assert (await on.producer.send(message)).ok
        posted = on.producer.sending.plain.post(message)
        assert posted is not None
        await posted[0]
        on.producer.sending.plain.abandon(posted)
        assert (await on.producer.send_batch([message, message])).ok
        sends = [each for broker in on.brokers.values() for each in broker.sends]
        assert len(sends) == 5
        assert all(map(is_bound, sends))
