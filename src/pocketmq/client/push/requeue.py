"""Requeueing: messages that a consumer could not handle go back to their broker.

First the broker that has the message is asked to deliver it again (36). If that fails, as when the
broker is gone, a copy is sent to the group's retry topic like any message, to whatever broker takes
it. After the last try the broker moves it to the dead-letter topic, either way.
"""

import logging

from pocketmq.balance.consumer import concurrent
from pocketmq.client.producer_options import ProducerOptions
from pocketmq.client.push.work import Consuming
from pocketmq.errors import MQError
from pocketmq.model import Message, property_names
from pocketmq.model.delay import retry_level
from pocketmq.model.names import INNER_PRODUCER_GROUP, dead_letter_topic, retry_topic
from pocketmq.model.topics import LOGICAL_BROKER
from pocketmq.protocol import ReceivedMessage, RequestCode
from pocketmq.protocol.requests.sending import SendBackRequest

logger = logging.getLogger("pocketmq.client")

_INNER = ProducerOptions(group=INNER_PRODUCER_GROUP)


class Requeue:
    """Requeues messages of one consumer. Belongs to one event loop."""

    def __init__(self, consuming: Consuming) -> None:
        self._consuming = consuming

    async def send_back(
        self, message: ReceivedMessage, delay_level: int, broker: str, limit: int | None = None
    ) -> bool:
        """Requeue a message of a concurrent consumer, which may have `limit` retries.

        False if neither way works: then it has to be tried again here.
        """
        consuming = self._consuming
        if limit is None:
            limit = concurrent.max_reconsume_times(consuming.options.max_reconsume_times)
        if not broker.startswith(LOGICAL_BROKER):
            header = SendBackRequest(
                offset=message.commit_log_offset,
                group=consuming.group,
                delay_level=delay_level,
                origin_msg_id=message.message_id,
                origin_topic=consuming.wire_topic(message.topic),
                max_reconsume_times=limit,
                bname=broker,
            )
            try:
                await consuming.session.brokers.call(
                    broker,
                    RequestCode.CONSUMER_SEND_MSG_BACK,
                    header,
                    timeout=concurrent.SEND_BACK_TIMEOUT,
                    master_only=True,
                )
            except MQError as error:
                logger.warning(
                    'broker refused to requeue: group=%s broker=%s message=%s error="%s"; '
                    "sending a copy to the retry topic",
                    consuming.group, broker, message.message_id, error,
                )  # fmt: skip
            else:
                self._look_for_retries(broker)
                if delay_level < 0 or message.stored_reconsume_times >= limit:
                    self._log_dead_letter(message)
                return True
        if message.reconsume_times >= limit:
            return await self.set_aside(message, message.reconsume_times + 1, limit)
        return await self.send_copy(message, message.reconsume_times + 1, limit)

    async def set_aside(self, message: ReceivedMessage, reconsume_times: int, limit: int) -> bool:
        """Send a copy that has failed too often: it becomes a dead letter. False if that fails."""
        if not await self.send_copy(message, reconsume_times, limit):
            return False
        self._log_dead_letter(message)
        return True

    def _log_dead_letter(self, message: ReceivedMessage) -> None:
        group = self._consuming.group
        logger.warning(
            "dead letter: group=%s topic=%s id=%s tries=%d; moved to topic %s",
            group, message.topic, message.message_id, message.reconsume_times + 1,
            dead_letter_topic(group),
        )  # fmt: skip

    def _look_for_retries(self, broker: str) -> None:
        """Refresh the retry topic's route, if the broker may have created the topic only now."""
        routes, topic = self._consuming.session.routes, retry_topic(self._consuming.group)
        known = routes.cached(topic)
        if known is None or all(data.broker_name != broker for data in known.route.broker_datas):
            routes.refresh_soon(topic)

    async def send_copy(self, message: ReceivedMessage, reconsume_times: int, limit: int) -> bool:
        """Send a copy with its number of tries to the retry topic; False if that fails."""
        from pocketmq.client.producer.sending import Sending  # seldom needed

        try:
            copy, extra = self.copy_of(message, reconsume_times, limit)
            # Created each time: this is rare, and a kept one would miss changes of the route.
            await Sending(self._consuming.session, _INNER).send(copy, extra)
        except MQError as error:
            logger.warning(
                'sending to the retry topic failed: group=%s message=%s error="%s"',
                self._consuming.group, message.message_id, error,
            )  # fmt: skip
            return False
        return True

    def copy_of(
        self, message: ReceivedMessage, reconsume_times: int, limit: int
    ) -> tuple[Message, dict[str, str]]:
        """Make the copy that goes to the retry topic, and the properties it travels with."""
        consuming = self._consuming
        extra = dict(message.properties)
        extra.pop(property_names.TRANSACTION_PREPARED, None)
        if not extra.get(property_names.ORIGIN_MESSAGE_ID, "").strip():
            extra[property_names.ORIGIN_MESSAGE_ID] = message.message_id
        extra[property_names.RETRY_TOPIC] = consuming.wire_topic(message.topic)
        extra[property_names.RECONSUME_TIME] = str(reconsume_times)
        extra[property_names.MAX_RECONSUME_TIMES] = str(limit)
        extra[property_names.DELAY_LEVEL] = str(retry_level(message.reconsume_times))
        return Message(retry_topic(consuming.group), message.body, flag=message.flag), extra
