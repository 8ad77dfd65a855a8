"""Pulling: the queue loop of consumers that read a queue by offset.

Asks the broker process that the last answer suggested, and reads what comes. What to ask for, and
what an answer leads to, is left to push and pull consumers. Belongs to one event loop.
"""

import logging
from collections.abc import Awaitable
from typing import NamedTuple, TypeVar

import msgspec

from pocketmq.balance.consumer.pulling import PullStatus
from pocketmq.client.addresses import BrokerProcess
from pocketmq.client.group.held_queue import HeldQueue, log_name
from pocketmq.client.group.queue_loop import QueueLoop
from pocketmq.client.group.subscriptions import SubscribedTopic, Subscriptions
from pocketmq.client.questions.pulling import STATUS, PullNumbers, PullTemplate
from pocketmq.errors import BrokerNotFound, MessagesCutShort
from pocketmq.model import MessageQueue, OnDamage, property_names
from pocketmq.protocol import Command, DeliveryContext, ReceivedMessage
from pocketmq.protocol.filter import TagFilter
from pocketmq.protocol.pulled import decode_pulled, from_offset, plain_messages
from pocketmq.protocol.requests.reading import PullResponse

logger = logging.getLogger("pocketmq.client")

Q = TypeVar("Q", bound=HeldQueue)


class PullResult(msgspec.Struct, frozen=True):
    """What a pull brought."""

    status: PullStatus
    asked: int
    """The offset that was asked for."""
    messages: list[ReceivedMessage]
    """Those the subscription wants, as the application sees them."""
    next_offset: int
    max_offset: int


class DecodedPull(NamedTuple):
    """The messages of an answer that the subscription wants, and the next offset to pull."""

    messages: list[ReceivedMessage]
    next_offset: int


class AskedPull(msgspec.Struct, frozen=True):
    """What a pull asked for."""

    offset: int
    subscribed: SubscribedTopic
    on_damage: OnDamage


class PullLoop(QueueLoop[Q, PullResult]):
    """The pulls of one member."""

    def template(self, queue: MessageQueue, subscribed: SubscribedTopic) -> PullTemplate:
        """Write the pull requests of a queue for a subscription."""
        raise NotImplementedError

    def numbers(
        self, held: Q, template: PullTemplate, place: BrokerProcess, offset: int
    ) -> PullNumbers:
        """Return what one pull asks for."""
        raise NotImplementedError

    def send(
        self, address: str, template: PullTemplate, numbers: PullNumbers
    ) -> Awaitable[Command]:
        """Send a pull; return one of `questions.pulling.ANSWERS`, or raise."""
        raise NotImplementedError

    async def pull(self, held: Q, asked: AskedPull, subscriptions: Subscriptions) -> PullResult:
        """Pull once. Raises `MQError`."""
        template = self.written(held, asked.subscribed)
        addresses, queue = self._session.addresses, held.queue
        try:
            place = addresses.for_reading(addresses.holder(queue), held.suggested)
        except BrokerNotFound:
            await self._session.fetch_routes([queue.topic])
            place = addresses.for_reading(addresses.holder(queue), held.suggested)
        numbers = self.numbers(held, template, place, asked.offset)
        answer = await self.send(place.address, template, numbers)
        return self.read(held, asked, answer, subscriptions)

    def written(self, held: Q, subscribed: SubscribedTopic) -> PullTemplate:
        """Return the pull requests of a queue, written once for each subscription."""
        template = held.template
        if template is None or held.subscribed is not subscribed:
            template = held.template = self.template(held.queue, subscribed)
            held.subscribed = subscribed
        return template

    def read(
        self, held: Q, asked: AskedPull, answer: Command, subscriptions: Subscriptions
    ) -> PullResult:
        """Read one of `questions.pulling.ANSWERS`. Raises what `read_answer` does."""
        header = answer.header(PullResponse)
        held.suggested = header.suggest_which_broker_id
        held.waiting = header.max_offset - header.next_begin_offset
        status = STATUS[answer.code]
        messages: list[ReceivedMessage] = []
        next_offset = header.next_begin_offset
        if status is PullStatus.FOUND:
            messages, next_offset = read_answer(asked, answer, header, held, subscriptions)
        return PullResult(status, asked.offset, messages, next_offset, header.max_offset)


def read_answer(
    asked: AskedPull,
    answer: Command,
    header: PullResponse,
    held: HeldQueue,
    subscriptions: Subscriptions,
) -> DecodedPull:
    """Read the messages of an answer.

    Tags are compared again, for brokers select by hash codes alone. At a damaged record the next
    pull tries again; see `damage`. Raises `MessagesCutShort` where the consumer shall not skip it,
    and `CodecMissing`.
    """
    subscribed = asked.subscribed
    delivery = _delivery(header, held)
    next_offset = header.next_begin_offset
    try:
        messages = decode_pulled(answer.body, delivery)
    except MessagesCutShort as error:
        messages = error.decoded
        if messages:
            held.suspicion.clear()
            next_offset = messages[-1].queue_offset + 1
        else:
            next_offset = held.suspicion.next_offset(
                held.queue, asked.offset, next_offset, error, asked.on_damage
            )
        logger.debug(
            "damaged response: %s: %s; pulling from %s", log_name(held.queue), error, next_offset
        )
    else:
        held.suspicion.clear()
    messages = from_offset(messages, asked.offset)
    if subscribed.tags.tags is not None:
        matches = subscribed.tags.matches_tag
        messages = [message for message in messages if matches(message.tag)]
    if held.retries:
        messages = [_under_its_topic(message, held, subscriptions) for message in messages]
    return DecodedPull(messages, next_offset)


def read_plain(
    asked: int, answer: Command, header: PullResponse, held: HeldQueue, tags: TagFilter
) -> list[ReceivedMessage] | None:
    """Do the same for an answer that has plain messages alone, from the offset asked for on.

    None for any other one, of which nothing is noted. Not for retry topics.
    """
    body = answer.body
    messages, end = plain_messages(body, _delivery(header, held))
    if end != len(body) or not messages or messages[0].queue_offset < asked:
        return None
    held.suspicion.clear()
    if tags.tags is not None:
        matches = tags.matches_tag
        messages = [message for message in messages if matches(message.tag)]
    return messages


def _delivery(header: PullResponse, held: HeldQueue) -> DeliveryContext:
    queue = held.queue
    return DeliveryContext(
        queue.broker_name,
        queue.queue_id,
        None if held.retries else held.topic,
        header.offset_delta or 0,
        {
            property_names.MIN_OFFSET: str(header.min_offset),
            property_names.MAX_OFFSET: str(header.max_offset),
        },
    )


def _under_its_topic(
    message: ReceivedMessage, held: HeldQueue, subscriptions: Subscriptions
) -> ReceivedMessage:
    """Show a retried message under the topic it was sent to (Java: resetRetryAndNamespace)."""
    topic = message.get_property(property_names.RETRY_TOPIC) or held.queue.topic
    return message.with_topic(subscriptions.shown(topic))
