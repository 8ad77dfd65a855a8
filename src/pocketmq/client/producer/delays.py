"""Delayed messages: how a send asks for a delay, and how a message is recalled before it is due."""

from collections.abc import Mapping

from pocketmq.client.checks import is_number
from pocketmq.client.producer.sending import Sending
from pocketmq.client.questions.asking import ask, ask_address
from pocketmq.errors import BrokerNotFound, HeaderMalformed, InvalidInput
from pocketmq.model import property_names
from pocketmq.model.names import is_dead_letter_topic, is_retry_topic
from pocketmq.protocol.handles import RecallHandle
from pocketmq.protocol.requests.sending import RECALL_MESSAGE, RecallRequest

_NOTHING: Mapping[str, str] = {}
_LATEST = 253_402_300_800.0  # the year 10000: a larger number is most likely milliseconds


def delay_properties(
    delay: float | None, delay_level: int | None, deliver_at: float | None
) -> Mapping[str, str]:
    """Return the properties that delay a message, as Java sets them.

    `delay` and `deliver_at` need a 5.x broker. Raises `InvalidInput` for more than one of the
    three, and for invalid values.
    """
    if delay is None and delay_level is None and deliver_at is None:
        return _NOTHING
    if (delay is not None) + (delay_level is not None) + (deliver_at is not None) > 1:
        raise InvalidInput("give one of delay, delay_level and deliver_at, not several")
    if delay_level is not None:
        if type(delay_level) is not int or not 0 <= delay_level < 2**31:
            raise InvalidInput(f"a delay level is 0 (none), 1, 2, …, not {delay_level!r}")
        return {property_names.DELAY_LEVEL: str(delay_level)} if delay_level else _NOTHING
    if delay is not None:
        return {property_names.TIMER_DELAY_MS: str(_milliseconds("delay", delay))}
    return {property_names.TIMER_DELIVER_MS: str(_milliseconds("deliver_at", deliver_at or 0.0))}


def _milliseconds(name: str, seconds: float) -> int:
    if not is_number(seconds) or not 0 <= seconds < _LATEST:  # also refuses NaN
        raise InvalidInput(f"{name} is in seconds, not {seconds!r}")
    return round(seconds * 1000)


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
