"""The usual pulls of a concurrent consumer, one after another without a task in between.

An answer that brings plain messages is taken in inside of the read of the socket, and the next pull
leaves there too. All else is left to the queue loop: any other answer, and whatever speaks against
the next pull. What is done, and in which order, is the same in both (see `PushPullLoop.take`): few
messages get to their handlers before the next pull is prepared; of many, the next pull leaves
before coroutines begin. Belongs to one event loop.
"""

import asyncio
from collections.abc import Callable

from pocketmq.balance.consumer.pulling import has_capacity
from pocketmq.client.group.held_queue import HeldQueue
from pocketmq.client.group.pulling import read_plain
from pocketmq.client.push.work import FEW, PushParts
from pocketmq.client.questions.pulling import PullNumbers
from pocketmq.client.rows import RequestRow
from pocketmq.errors import ResponseCode
from pocketmq.protocol import Command
from pocketmq.protocol.requests.reading import PullResponse

_FOUND = int(ResponseCode.SUCCESS)


class StraightPulls:
    """Pulls of one queue from one broker process, for one subscription."""

    __slots__ = (
        "_addresses", "_changes", "_generation", "_held", "_now", "_numbers", "_parts", "_row",
        "_suggested", "_tags",
    )  # fmt: skip

    def __init__(
        self,
        parts: PushParts,
        held: HeldQueue,
        row: RequestRow[PullNumbers],
        numbers: Callable[[int], PullNumbers],
    ) -> None:
        """Take a queue that may be pulled now, and what a pull from an offset asks for."""
        assert held.subscribed is not None
        self._parts = parts
        self._held = held
        self._row = row
        self._numbers = numbers
        self._now = asyncio.get_running_loop().time
        self._tags = held.subscribed.tags
        self._addresses = parts.session.addresses
        # With another one of these, all is decided anew: whom to ask, and for what.
        self._changes = self._addresses.changes
        self._generation = parts.subscriptions.generation
        self._suggested = held.suggested

    async def ask(self) -> Command | None:
        """Pull from the queue's next offset on.

        Return the first answer that is not usual, or None if the next pull is to be decided on.
        Raises `MQError`.
        """
        return await self._row.ask(self._numbers(self._held.next_offset), self._take)

    def _take(self, answer: Command) -> bool:
        held = self._held
        if answer.code != _FOUND or not held.may_start or held.gate is not None:
            return False
        header, asked = answer.header(PullResponse), held.next_offset
        next_offset = header.next_begin_offset
        if next_offset < asked:
            return False
        messages = read_plain(asked, answer, header, held, self._tags)
        if messages is None:
            return False
        held.failing = False
        held.suggested = header.suggest_which_broker_id
        held.waiting = header.max_offset - next_offset
        held.next_offset = next_offset
        if not messages:  # none with the right tag
            self._go_on()
            return True
        process, work, count = held.process, self._parts.work, len(messages)
        took = self._now() - process.last_pull  # noted right before the request
        dispatch = process.put(messages, header.max_offset)
        if count > FEW:
            sent = self._send()
            work.arrived(held, messages, dispatch=dispatch, asked=sent)
            if not sent:
                self._row.end()
        else:
            work.arrived(held, messages, dispatch=dispatch)
            self._row.soon(self._go_on)
        work.pulled(held, count, took)
        return True

    def _go_on(self) -> None:
        if not self._send():
            self._row.end()

    def _send(self) -> bool:
        """Send the next pull, unless anything speaks against it: the queue loop sees what."""
        held, parts = self._held, self._parts
        process = held.process
        if (
            held.may_start
            and held.gate is None
            and not held.paused
            and not parts.suspended
            and parts.running
            and held.suggested == self._suggested
            and self._addresses.changes == self._changes
            and parts.subscriptions.generation == self._generation
            and has_capacity(parts.limits, process.count, process.size, process.span)
            and self._row.usable
        ):
            now = process.last_pull = self._now()
            self._row.send(self._numbers(held.next_offset), now)
            return True
        return False
