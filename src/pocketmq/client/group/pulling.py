"""The request of one pull, and what its answer holds.

A queue's requests differ in three numbers, so the rest is written once. Sends nothing.
"""

import logging

import msgspec

from pocketmq.balance.consumer.pulling import (
    BROKER_SUSPEND,
    CATCH_UP_BYTES,
    PULL_BATCH,
    PULL_BYTES,
    CommitWithPull,
)
from pocketmq.balance.profile import Profile
from pocketmq.client.consumer_options import PushConsumerOptions
from pocketmq.client.group.held_queue import HeldQueue
from pocketmq.client.group.subscriptions import Subscribed, Subscriptions
from pocketmq.errors import MessagesCutShort
from pocketmq.model import properties
from pocketmq.model.flags import PullFlag
from pocketmq.model.kinds import OnDamage
from pocketmq.protocol.command import Command
from pocketmq.protocol.pulled import decode_pulled
from pocketmq.protocol.received import Delivery, ReceivedMessage
from pocketmq.protocol.requests.pulling import PullRequest, PullResponse

logger = logging.getLogger("pocketmq.client")

_SUSPEND = int(PullFlag.SUSPEND)
_COMMIT = int(PullFlag.COMMIT_OFFSET)
_SUBSCRIPTION = int(PullFlag.SUBSCRIPTION)
_CLASS_FILTER = int(PullFlag.CLASS_FILTER)


class PullTemplate:
    """The fields of one queue's pull requests, while its subscription stays the same."""

    __slots__ = ("_batch", "_fields", "_flags", "_many", "subscribed")

    def __init__(
        self,
        group: str,
        held: HeldQueue,
        subscribed: Subscribed,
        options: PushConsumerOptions,
        profile: Profile,
    ) -> None:
        self.subscribed = subscribed
        subscription = subscribed.subscription
        by_class = subscription.class_filter_mode
        posted = options.subscription_in_pull and not by_class
        modern = profile.line != "4.x"
        self._batch = options.pull_batch
        self._flags = _SUSPEND | posted * _SUBSCRIPTION | by_class * _CLASS_FILTER
        self._fields = PullRequest(
            consumer_group=group,
            topic=held.queue.topic,
            queue_id=held.queue.queue_id,
            queue_offset=0,
            max_msg_nums=PULL_BATCH,
            sys_flag=0,
            commit_offset=0,
            suspend_timeout_millis=int(BROKER_SUSPEND * 1000),
            subscription=subscription.sub_string if posted else None,
            sub_version=subscribed.wanted_since,
            expression_type=subscription.expression_type,
            max_msg_bytes=(options.pull_batch_bytes or PULL_BYTES) if modern else None,
            bname=held.queue.broker_name if modern else None,
        ).to_ext()

        self._many = self._fields
        if modern and options.pull_batch_bytes is None:
            # A broker of ours gives more messages than usual to who asks for more bytes than usual.
            self._many = self._fields | {"maxMsgBytes": str(CATCH_UP_BYTES)}

    def fields(self, offset: int, count: int, commit: CommitWithPull) -> dict[str, str]:
        """Give the fields of a pull of so many messages from an offset."""
        flags = self._flags | _COMMIT if commit.enabled else self._flags
        catching_up = self._batch is None and count > PULL_BATCH
        return {
            **(self._many if catching_up else self._fields),
            "queueOffset": str(offset),
            "maxMsgNums": str(count),
            "sysFlag": str(flags),
            "commitOffset": str(commit.offset),
        }


class Pulled(msgspec.Struct, frozen=True):
    """What an answer holds."""

    messages: list[ReceivedMessage]
    """Those the subscription wants, as the application sees them."""
    next_offset: int


class Asked(msgspec.Struct, frozen=True):
    """What a pull asked for."""

    offset: int
    subscribed: Subscribed
    on_damage: OnDamage


def read_answer(
    asked: Asked,
    answer: Command,
    header: PullResponse,
    held: HeldQueue,
    subscriptions: Subscriptions,
) -> Pulled:
    """Read the messages of an answer, and say where the next pull begins.

    Tags are looked at again: brokers select by hash codes alone. At a damaged record the next pull
    tries again; see `damage`. Raises `MessagesCutShort` where the consumer shall not pass over it,
    and `CodecMissing`.
    """
    subscribed = asked.subscribed
    delivery = Delivery(
        broker_name=held.queue.broker_name,
        queue_id=held.queue.queue_id,
        topic=None if held.retries else held.topic,
        offset_delta=header.offset_delta or 0,
        added={
            properties.MIN_OFFSET: str(header.min_offset),
            properties.MAX_OFFSET: str(header.max_offset),
        },
    )
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
        logger.debug("%s: %s; pulled again from %s", held.queue, error, next_offset)
    else:
        held.suspicion.clear()
    if subscribed.tags.tags is not None:
        matches = subscribed.tags.matches_tag
        messages = [message for message in messages if matches(message.tag)]
    if held.retries:
        messages = [_under_its_topic(message, held, subscriptions) for message in messages]
    return Pulled(messages, next_offset)


def _under_its_topic(
    message: ReceivedMessage, held: HeldQueue, subscriptions: Subscriptions
) -> ReceivedMessage:
    """Show a message that failed under the topic it was sent to (Java: resetRetryAndNamespace)."""
    topic = message.get_property(properties.RETRY_TOPIC) or held.queue.topic
    return message.with_topic(subscriptions.shown(topic))
