"""Hooks see every try and can harm none."""

import pytest

from pocketmq.balance.producer.plan import SendMode
from pocketmq.client.producer.hooks import SendContext
from pocketmq.errors import SendFailed, SystemFailure
from pocketmq.model import Message
from tests.client.producer.stage import refuses, stage, stores

MESSAGE = Message("orders", b"42 EUR", tag="paid")


class Watching:
    """Remembers what it is told, then fails."""

    def __init__(self, fails: bool = False) -> None:
        self.before: list[SendContext] = []
        self.after: list[SendContext] = []
        self.fails = fails

    def before_send(self, context: SendContext) -> None:
        assert (context.receipt, context.error) == (None, None)
        context.notes["seen"] = True
        self.before.append(context)
        if self.fails:
            raise RuntimeError("before")

    def after_send(self, context: SendContext) -> None:
        self.after.append(context)
        if self.fails:
            raise RuntimeError("after")


@pytest.mark.parametrize("fails", [False, True])
async def test_hooks_are_told_of_each_try_and_change_nothing(fails: bool) -> None:
    hook = Watching(fails)
    async with stage({"broker-a": refuses(1), "broker-b": stores}) as on:
        on.producer.add_send_hook(hook)
        await on.begin_with(0)
        receipt = await on.producer.send(MESSAGE)
        assert receipt.ok
        assert hook.before == hook.after
        first, second = hook.after
        assert isinstance(first.error, SystemFailure)
        assert second.receipt is receipt
        assert (first.queue.broker_name, second.queue.broker_name) == ("broker-a", "broker-b")
        assert second.notes == {"seen": True}
        assert (second.group, second.mode) == ("shop", SendMode.SYNC)
        assert second.address == on.producer.session.addresses.master("broker-b")
        assert list(second.messages) == [MESSAGE]
        assert second.unique_id == receipt.message_id
        assert f"UNIQ_KEY\1{receipt.message_id}\2" in second.properties
        assert second.latency >= 0


async def test_hooks_see_one_way_sends_submitted_ones_and_batches() -> None:
    hook = Watching()
    async with stage() as on:
        on.producer.add_send_hook(hook)
        await on.producer.send_oneway(MESSAGE)
        await on.producer.submit(MESSAGE)
        await on.producer.send_batch([MESSAGE, MESSAGE])
        modes = [context.mode for context in hook.after]
        assert modes == [SendMode.ONEWAY, SendMode.ASYNC, SendMode.SYNC]
        assert hook.after[0].receipt is None
        assert len(hook.after[2].messages) == 2


async def test_hooks_see_a_broker_without_an_address() -> None:
    hook = Watching()
    async with stage() as on:
        on.producer.add_send_hook(hook)
        await on.begin_with(0)
        on.directory.routes.clear()
        on.producer.session.addresses.keep_only([])
        with pytest.raises(SendFailed, match="no master address"):
            await on.producer.send(MESSAGE)
        assert [context.address for context in hook.after] == ["", "", ""]
