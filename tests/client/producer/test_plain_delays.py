"""Delayed messages on the short way of plain sends."""

import pytest

from pocketmq import errors
from pocketmq.client.options import Credentials
from pocketmq.protocol.property_text import decode_properties
from tests.client.producer.stage import refuses, stage, stores
from tests.client.producer.test_plain_sends import MESSAGE, ready


@pytest.mark.parametrize("credentials", [None, Credentials(access_key="user", secret_key="secret")])
async def test_a_delayed_message_takes_the_short_way_and_keeps_its_delay_when_tried_again(
    credentials: Credentials | None,
) -> None:
    says = {"broker-a": refuses(2, "busy"), "broker-b": stores}
    async with stage(says, queues=1, credentials=credentials) as on:
        await ready(on)
        for position in (0, 1):
            await on.begin_with(position)
            assert (await on.producer.send(MESSAGE, delay_level=3)).ok
        posted = on.producer.sending.plain.post(MESSAGE, 3)
        assert posted is not None
        on.producer.sending.plain.abandon(posted)
        sends = [each for broker in on.brokers.values() for each in broker.sends]
        delayed = [decode_properties(each.ext["i"].encode()) for each in sends]
        levels = [each["DELAY"] for each in delayed if "DELAY" in each]
        assert levels == ["3"] * len(levels)
        assert len(levels) >= 3
        assert {each["TAGS"] for each in delayed} == {"paid"}


async def test_a_wrong_delay_level_is_told_as_ever() -> None:
    async with stage() as on:
        await ready(on)
        for wrong in (-1, 2**31, "3", 1.0, True):
            with pytest.raises(errors.InvalidInput, match="a delay level must be"):
                await on.producer.send(MESSAGE, delay_level=wrong)  # type: ignore[arg-type]
        assert (await on.producer.send(MESSAGE, delay_level=0)).ok
