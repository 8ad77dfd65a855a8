"""Sending messages again: stored ones under their own topic, dead letters under their first."""

from pocketmq.admin.messages import Resent
from pocketmq.client.options import ClientOptions
from pocketmq.client.producer.producer import Producer
from pocketmq.errors import MQError
from pocketmq.model import properties
from pocketmq.model.message import Message
from pocketmq.model.names import is_dead_letter_topic, is_retry_topic
from pocketmq.protocol.received import ReceivedMessage

_GROUP = "ReSendMsgById"


async def resend(options: ClientOptions, messages: list[ReceivedMessage]) -> list[Resent]:
    """Send copies of messages; the originals stay. Each gets a new id."""
    results = []
    async with Producer(options=options, group=_GROUP) as producer:
        for message in messages:
            topic = original_topic(message)
            copy = Message(
                topic,
                message.body,
                tag=message.tag,
                keys=message.keys,
                properties=message.user_properties,
                flag=message.flag,
            )
            try:
                receipt = await producer.send(copy)
            except MQError as error:
                results.append(Resent(message.message_id, topic, None, error))
            else:
                results.append(Resent(message.message_id, topic, receipt))
    return results


def original_topic(message: ReceivedMessage) -> str:
    """Give the topic a message was first sent to; brokers keep it when they move one."""
    if is_dead_letter_topic(message.topic) or is_retry_topic(message.topic):
        return (
            message.get_property(properties.DLQ_ORIGIN_TOPIC)
            or message.get_property(properties.RETRY_TOPIC)
            or message.topic
        )
    return message.topic
