"""The requests of pop consumption on the event loop, each sent to one broker and answered in time.

`PopRequests` are those of a group, `Asking` those of a POP consumer to its sources: pop, renew,
return; it keeps which source failed last. Which to ask, and when, is decided in `receiving`;
what is asked is in `questions`. Names are those of the wire.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable

import msgspec

from pocketmq.client.pop.popped import PopResult, handle_of, with_handle
from pocketmq.client.pop.questions import ANY_QUEUE, Acks, PopQuestions
from pocketmq.client.pop.sources import BrokerClocks, Kept, Source, SourceKey
from pocketmq.client.questions.asking import Ask, Question, run
from pocketmq.client.session import Session
from pocketmq.client.tasks import Tasks
from pocketmq.errors import MQError
from pocketmq.model import MessageQueue, Subscription
from pocketmq.protocol import Command, ReceivedMessage
from pocketmq.protocol.filter import tag_filter
from pocketmq.protocol.handles import PopHandle

logger = logging.getLogger("pocketmq.client")

_MOST_AT_ONCE = 32
_AT_ONCE = 0.001
"""The invisible time of a message that is returned."""


class PopRequests:
    """The pop requests of one group. Belongs to one event loop."""

    def __init__(self, session: Session, group: str, *, ordered: bool, from_first: bool) -> None:
        self._brokers = session.brokers
        self.questions = PopQuestions(
            group, ordered=ordered, from_first=from_first, grace=session.options.request_timeout
        )

    async def carry(self, asked: Ask) -> Command:
        """Ask the master of a queue's broker.

        Raises `BrokerNotFound`, `ServerError`, `TransportError`.
        """
        assert asked.queue is not None
        return await self._brokers.call(
            asked.queue.broker_name,
            asked.code,
            asked.header,
            asked.body,
            timeout=asked.timeout,
            master_only=True,
            accept=asked.accept,
        )

    async def pop(
        self,
        queue: MessageQueue,
        subscription: Subscription,
        name: str,
        *,
        most: int,
        invisible: float,
        wait: float,
        attempt: str | None = None,
    ) -> PopResult:
        """Take messages of a queue; return none if the broker has none for `wait` seconds.

        `name` is what the application calls the topic. Raises `BrokerNotFound`, `ServerError`,
        `TransportError`, `ProtocolError`.
        """
        question = self.questions.pop(
            queue,
            subscription,
            name,
            most=most,
            invisible=invisible,
            wait=wait,
            asked=asyncio.get_running_loop().time(),
            attempt=attempt,
        )
        return await run(question, self.carry)

    async def ack(self, broker: str, acks: Acks) -> None:
        """Acknowledge messages of one broker, each by its topic and handle."""
        acks = self.questions.settled(acks)
        if len(acks) == 1:  # a task for it would cost more than the request
            await run(self.questions.ack_one(broker, *acks[0]), self.carry)
            return
        if await run(self.questions.ack_together(broker, acks), self.carry):
            return
        for start in range(0, len(acks), _MOST_AT_ONCE):
            some = acks[start : start + _MOST_AT_ONCE]
            await asyncio.gather(
                *(run(self.questions.ack_one(broker, *each), self.carry) for each in some)
            )

    async def change_invisible(self, topic: str, handle: PopHandle, invisible: float) -> PopHandle:
        """Hide a message for `invisible` seconds from now on; return its new handle."""
        now = asyncio.get_running_loop().time()
        question = self.questions.change_invisible(topic, handle, invisible, now)
        return await run(question, self.carry)


class ReceiveSpec(msgspec.Struct, frozen=True):
    """What one receive asks for."""

    most: int
    invisible: float


class Asking:
    """The requests of one consumer. Belongs to one event loop."""

    def __init__(
        self, requests: PopRequests, tasks: Tasks, new_attempt: Callable[[], str] | None
    ) -> None:
        self._requests = requests
        self._tasks = tasks
        self._new_attempt = new_attempt  # set for ordered consumers
        self._attempts: dict[SourceKey, str] = {}  # of pops that failed
        self._clocks = BrokerClocks()
        self.ordered = new_attempt is not None
        """Whether each pop needs the id of its attempt."""
        self.failures: dict[SourceKey, MQError] = {}
        """The sources whose last pop failed, with the error."""

    async def pop(self, source: Source, wanted: ReceiveSpec, wait: float) -> Kept | MQError:
        """Return what came, or the error: one raised here would be logged though it is awaited."""
        clock = asyncio.get_running_loop().time
        question = self.popping(source, wanted, wait, clock, self.ack_others)
        return await run(question, self._requests.carry)

    def popping(
        self,
        source: Source,
        wanted: ReceiveSpec,
        wait: float,
        clock: Callable[[], float],
        ack_others: Callable[[str, Acks], object],
    ) -> Question[Kept | MQError]:
        """Pop once; return what came, or the error. Any thread may ask.

        `ack_others` is called with messages that the application did not ask for.
        """
        key = source.key
        attempt: str | None = None
        if self._new_attempt is not None:
            # With the same attempt id the broker repeats what it sent in a lost answer. Pops that
            # are in flight at the same time need different ones, or both get the same.
            attempt = self._attempts.pop(key, None) or self._new_attempt()
        asked = clock()
        try:
            popped = yield from self._requests.questions.pop(
                MessageQueue(source.subscription.topic, source.broker, ANY_QUEUE),
                source.subscription,
                source.name,
                most=wanted.most,
                invisible=wanted.invisible,
                wait=wait,
                asked=asked,
                attempt=attempt,
            )
        except MQError as error:
            logger.debug("pop failed: topic=%s broker=%s: %s", source.name, source.broker, error)
            self.failures[key] = error
            if attempt is not None:
                self._attempts[key] = attempt
            return error
        if self.failures:
            self.failures.pop(key, None)
        hidden_until = popped.hidden_until
        if popped.messages:
            at = self._clocks.popped_at(source.broker, popped, asked, clock())
            hidden_until = at + wanted.invisible
        messages, others = sorted_by_tag(source, popped.messages)
        if others:
            ack_others(source.broker, others)
        return Kept(source, messages, hidden_until, wanted.invisible)

    async def renew(self, kept: Kept, invisible: float) -> Kept:
        """Hide messages for `invisible` seconds from now on; those that fail are left out."""
        asked = asyncio.get_running_loop().time()
        outcomes = await self._change([kept], invisible)
        messages = [
            with_handle(message, outcome)
            for message, outcome in zip(kept.messages, outcomes, strict=True)
            if outcome is not None
        ]
        return Kept(kept.source, messages, asked + invisible, invisible)

    async def give_back(self, some: Iterable[Kept]) -> None:
        """Make messages visible to others now, as far as brokers answer."""
        await self._change(some, _AT_ONCE)

    async def _change(self, some: Iterable[Kept], invisible: float) -> list[PopHandle | None]:
        """Change invisible times; return the new handles, None for what could not be changed."""
        outcomes = await asyncio.gather(
            *(
                self._requests.change_invisible(
                    kept.source.subscription.topic, handle_of(message), invisible
                )
                for kept in some
                for message in kept.messages
            ),
            return_exceptions=True,
        )
        handles: list[PopHandle | None] = []
        for outcome in outcomes:
            if isinstance(outcome, MQError):
                logger.info(
                    'changing the invisible time failed: error="%s"; the message is redelivered '
                    "when the old time ends",
                    outcome,
                )
                handles.append(None)
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                handles.append(outcome)
        return handles

    def ack_others(self, broker: str, acks: Acks) -> None:
        """Acknowledge messages of other tags in the background."""
        self._tasks.spawn(self._ack_quietly(broker, acks), "ack other tags")

    async def _ack_quietly(self, broker: str, acks: Acks) -> None:
        try:
            await self._requests.ack(broker, acks)
        except MQError as error:
            logger.debug('ack of messages of other tags failed: error="%s"', error)


def sorted_by_tag(
    source: Source, messages: list[ReceivedMessage]
) -> tuple[list[ReceivedMessage], Acks]:
    """Return the messages with matching tags, and the others of the same hash as acks."""
    chosen = tag_filter(source.subscription)
    if chosen.tags is None:
        return messages, ()
    others = [each for each in messages if not chosen.matches_tag(each.tag)]
    if not others:
        return messages, ()
    acks = [(source.subscription.topic, handle_of(each)) for each in others]
    return [each for each in messages if chosen.matches_tag(each.tag)], acks
