"""Delayed messages: how one is recalled before it is due."""

from pocketmq.client.producer.sending import Sending
from pocketmq.client.questions.asking import ask, ask_address
from pocketmq.errors import BrokerNotFound, HeaderMalformed, InvalidInput
from pocketmq.model.names import is_dead_letter_topic, is_retry_topic
from pocketmq.protocol.handles import RecallHandle
from pocketmq.protocol.requests.sending import RECALL_MESSAGE, RecallRequest


async def recall(sending: Sending, topic: str, handle: str, timeout: float) -> str:  # noqa: ASYNC109 - of each question
    """Take a message back by the `recall_handle` of its receipt, and return its id (5.x).

    Raises `InvalidInput` for an invalid handle, `ServerError` if the broker does not have the
    message any more or does not support recalling, and what a send does if the broker cannot be
    reached.
    """
    wire = sending.preparing.wire_topic(topic)
    if is_retry_topic(wire) or is_dead_letter_topic(wire):
        raise InvalidInput(f"messages of topic {topic!r} cannot be recalled")
    try:
        parsed = RecallHandle.parse(handle)
    except HeaderMalformed as error:
        raise InvalidInput(str(error)) from error
    if sending.publishing.ready(wire) is None:
        await sending.publishing.find(wire, timeout)
    session = sending.session
    try:
        address = session.addresses.master(parsed.broker_name)
    except BrokerNotFound:  # as in Java: a proxy in front of the brokers knows the way
        address = await session.any_broker_of(wire)
    header = RecallRequest(
        producer_group=sending.group, topic=wire, recall_handle=handle, bname=parsed.broker_name
    )
    question = ask(None, RECALL_MESSAGE, header)
    # As in Java never by the second port, so not by way of `session.brokers`.
    answer = await ask_address(session.calls.ask, address, question, timeout=timeout)
    return answer.header().msg_id
