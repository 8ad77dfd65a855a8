"""Resetting offsets as a broker asks, step by step of `balance.consumer.reset`."""

import asyncio
from collections.abc import Callable, Mapping

from pocketmq.balance.consumer.instructions import Instruction, ReleaseQueue
from pocketmq.balance.consumer.reset import (
    SETTLE_TIME,
    PauseConsumer,
    ResumeConsumer,
    begin_reset,
    finish_reset,
)
from pocketmq.client.group.holdings import Holdings
from pocketmq.client.group.parts import Parts
from pocketmq.model.queue import MessageQueue


class Resetting:
    """Resets one after another. Belongs to one event loop."""

    def __init__(
        self,
        parts: Parts,
        holdings: Holdings,
        suspend: Callable[[], None],
        resume: Callable[[], None],
    ) -> None:
        self._parts = parts
        self._holdings = holdings
        self._suspend = suspend
        self._resume = resume
        self._turn = asyncio.Lock()

    async def reset(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        """Go on from these offsets; takes `SETTLE_TIME`, in which nothing is pulled."""
        async with self._turn:
            try:
                await self._carry_out(begin_reset(topic, offsets, tuple(self._parts.held)))
                await asyncio.sleep(SETTLE_TIME)
                if not self._parts.running:
                    return
                await self._carry_out(finish_reset(topic, offsets, tuple(self._parts.held)))
            finally:
                if self._parts.suspended:
                    self._resume()

    async def _carry_out(self, steps: tuple[Instruction, ...]) -> None:
        for step in steps:
            if isinstance(step, PauseConsumer):
                self._suspend()
            elif isinstance(step, ResumeConsumer):
                self._resume()
            elif isinstance(step, ReleaseQueue):
                await self._holdings.release(step.queue)
            else:
                self._holdings.perform((step,))
