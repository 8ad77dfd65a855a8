"""Delayed messages taken back."""

import pytest

from pocketmq.errors import InvalidInput, RequestNotSupported
from pocketmq.protocol import RequestCode
from pocketmq.protocol.handles import RecallHandle
from tests.client.producer.stage import stage

RECALL = int(RequestCode.RECALL_MESSAGE)


def handle(broker: str) -> str:
    return str(RecallHandle(topic="orders", broker_name=broker, deliver_at_ms=1, message_id="AB"))


@pytest.mark.parametrize("broker", ["broker-b", "proxy-z"])
async def test_the_broker_in_the_handle_is_asked_or_else_any(broker: str) -> None:
    async with stage() as on:
        for each in on.brokers.values():
            each.script[RECALL] = lambda request: request.reply(0, ext={"msgId": "AB"})
        assert await on.producer.recall("orders", handle(broker)) == "AB"
        asked = {name: each.asked_for(RECALL) for name, each in on.brokers.items()}
        (request,) = [*asked["broker-a"], *asked["broker-b"]]
        assert request.ext == {
            "bname": broker,
            "producerGroup": "shop",
            "topic": "orders",
            "recallHandle": handle(broker),
        }
        if broker == "broker-b":
            assert asked["broker-a"] == []


async def test_a_broker_that_cannot_says_so() -> None:
    async with stage() as on:
        with pytest.raises(RequestNotSupported):
            await on.producer.recall("orders", handle("broker-a"))


@pytest.mark.parametrize(
    ("topic", "text", "reason"),
    [
        ("orders", "no handle", "is not a recall handle"),
        ("orders", "", "is not a recall handle"),
        ("%RETRY%billing", handle("broker-a"), "cannot be recalled"),
        ("%DLQ%billing", handle("broker-a"), "cannot be recalled"),
    ],
)
async def test_what_cannot_be_recalled_is_not_asked_for(topic: str, text: str, reason: str) -> None:
    async with stage() as on:
        with pytest.raises(InvalidInput, match=reason):
            await on.producer.recall(topic, text)
