"""Queues that are pulled, from a broker that answers one pull after another as a test says."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from pocketmq.balance.consumer.offsets import StartRule
from pocketmq.balance.consumer.pulling import PullStatus
from pocketmq.balance.profile import V5
from pocketmq.client.group.held_queue import HeldQueue
from pocketmq.client.group.offsets import RemoteOffsets
from pocketmq.client.group.parts import QueueTable
from pocketmq.client.group.pulling import PullResult
from pocketmq.client.group.subscriptions import Subscriptions
from pocketmq.client.push.pulling import PushPullLoop
from pocketmq.client.push.work import FEW, PushParts
from pocketmq.model import MessageQueue
from pocketmq.protocol import Command, ReceivedMessage, RequestCode
from pocketmq.protocol.requests.reading import PullResponse
from tests.client.push.stands import GROUP, QUEUE, Stand, Taker, messages, stand
from tests.loops import until

FOUND = PullStatus.FOUND
MANY = FEW + 12
RETRIES = MessageQueue(f"%RETRY%{GROUP}", "broker-a", 0)
Answer = Callable[[Command], Command | None]


def found(
    count: int, suggested: int = 0, begin: int = 0, cut: int = 0, **properties: Any
) -> Answer:
    """Answer with messages from the offset asked for (and `begin`) on, the last one cut off."""

    def answer(request: Command) -> Command:
        first = int(request.ext["queueOffset"]) + begin
        body = b"".join(each.record() for each in messages(count, first, **properties))
        return request.reply(0, ext=header(first + count, suggested), body=body[: len(body) - cut])

    return answer


def header(following: int, suggested: int = 0) -> PullResponse:
    return PullResponse(
        suggest_which_broker_id=suggested,
        next_begin_offset=following,
        min_offset=0,
        max_offset=1000,
    )


def empty(code: int, ahead: int = 0) -> Answer:
    """Answer without messages, and with a later offset to go on from."""
    return lambda request: request.reply(code, ext=header(int(request.ext["queueOffset"]) + ahead))


class Watched(PushPullLoop):
    """A loop that notes what is left to it."""

    def __init__(self, parts: PushParts) -> None:
        super().__init__(parts)
        self.left: list[PullStatus] = []
        self.corrected: list[int] = []
        self.correct = lambda _, offset, __: self.corrected.append(offset)

    def take(self, held: HeldQueue, answer: PullResult) -> float | None:
        self.left.append(answer.status)
        return super().take(held, answer)


class Puller:
    """A queue that is pulled, and a broker that answers one pull after another as it is told."""

    def __init__(
        self, one: Stand, taker: Taker, answers: list[Answer], queue: MessageQueue
    ) -> None:
        self.one = one
        self.taker = taker
        self.answers = answers
        self.got: list[int] = []
        self.open_pulls: list[int] = []
        """Pulls in flight when handlers began with the first message of a pull."""
        subscriptions = Subscriptions("")
        subscriptions.want("orders", "*", version_ms=77)
        subscriptions.add_own(RETRIES.topic, version_ms=77)
        options = one.options
        self.parts = PushParts(
            session=one.session,
            options=options,
            profile=V5,
            group=GROUP,
            subscriptions=subscriptions,
            offsets=RemoteOffsets(one.session, GROUP, V5),
            tasks=one.tasks,
            start=StartRule(),
            queues=QueueTable(),
            limits=options.limits.in_force(),
            running=True,
        )
        self.parts.work = one.work
        self.loop = Watched(self.parts)
        self.held = one.hold(queue)
        self.held.start_checked = True
        self.unanswered: list[Command] = []
        taker.script[RequestCode.PULL_MESSAGE] = self.answer

    def answer(self, request: Command) -> Command | None:
        if self.answers:
            return self.answers.pop(0)(request)
        self.unanswered.append(request)
        return None

    def release(self, answer: Answer) -> None:
        """Answer the pull that waits."""
        reply = answer(self.unanswered.pop())
        assert reply is not None
        self.taker.opened[0].write(reply.encode())

    async def suspended(self) -> None:
        """Wait for a pull that gets no answer."""
        await until(lambda: self.unanswered, "a suspended pull")

    async def read(self) -> None:
        """Wait until the client has read all that the broker wrote so far."""
        at = self.parts.session.addresses.master("broker-a")
        await self.one.session.calls.ask(at, RequestCode.HEART_BEAT, timeout=30.0)

    @property
    def asked(self) -> list[int]:
        pulls = self.taker.asked_for(RequestCode.PULL_MESSAGE)
        return [int(request.ext["queueOffset"]) for request in pulls]


@asynccontextmanager
async def pulling(
    *answers: Answer,
    queue: MessageQueue = QUEUE,
    gate: asyncio.Event | None = None,
    **options: Any,
) -> AsyncIterator[Puller]:
    """Pull a queue with these answers; without more of them the broker suspends pulls."""
    options = {"pull_retry": 0.01, **options}

    async def handle(message: ReceivedMessage) -> None:
        at = puller.parts.session.addresses.master("broker-a")
        connection = puller.one.session.calls.connected(at)
        puller.open_pulls.append(0 if connection is None else len(connection.requests))
        if gate is not None:
            await gate.wait()
        assert message.topic == "orders"
        puller.got.append(message.queue_offset)

    async with stand(handle, **options) as (one, taker):
        await one.session.calls.dialer.connect(one.session.addresses.master("broker-a"))
        puller = Puller(one, taker, list(answers), queue)
        puller.loop.begin(puller.held)
        try:
            yield puller
        finally:
            puller.loop.end(puller.held)
