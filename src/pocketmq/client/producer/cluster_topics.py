"""Sending to topics that belong to the cluster, whatever namespace the client is in."""

from collections.abc import Mapping

import msgspec

from pocketmq.client.producer.sending import Sending
from pocketmq.model.message import Message, SendReceipt
from pocketmq.protocol.codes import RequestCode

_SEND = int(RequestCode.SEND_MESSAGE_V2)
_NOTHING: Mapping[str, str] = {}


async def send_to_cluster(
    sending: Sending,
    message: Message,
    extra: Mapping[str, str] = _NOTHING,
    code: int = _SEND,
    timeout: float | None = None,  # noqa: ASYNC109 - for all tries together
) -> SendReceipt:
    """Send a message to its topic as it is called here; else as `Sending.send` does."""
    outgoing = sending.preparing.prepare(message, extra, code)
    outgoing = msgspec.structs.replace(outgoing, topic=message.topic)
    return await sending.deliver(outgoing, (message,), timeout=timeout)
