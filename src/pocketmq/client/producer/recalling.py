"""Taking back a delayed message before it is due (5.x)."""

from pocketmq.client.producer.sending import Sending
from pocketmq.errors import BrokerNotFound, HeaderMalformed, InvalidInput
from pocketmq.model.names import is_dead_letter_topic, is_retry_topic
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.handles import RecallHandle
from pocketmq.protocol.requests.sending import RecallRequest, RecallResponse


async def recall(sending: Sending, topic: str, handle: str, timeout: float) -> str:  # noqa: ASYNC109 - of each question
    """Take a message back by the `recall_handle` of its receipt, and give its id.

    Raises `InvalidInput` for a handle that is none, `ServerError` if the broker has the message no
    more or knows no recalling, and what a send does if the broker cannot be reached.
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
    answer = await session.calls.ask(  # as in Java, never by the second port
        address,
        RequestCode.RECALL_MESSAGE,
        RecallRequest(
            producer_group=sending.group,
            topic=wire,
            recall_handle=handle,
            bname=parsed.broker_name,
        ),
        timeout=timeout,
    )
    return answer.header(RecallResponse).msg_id
