"""What a caller chooses for one send beside the message: its queue, and its delay. Sans-IO.

A queue is chosen by naming it, by a key that orders, or by a function. The choice is a function
from a topic's queues to one of them, made before the queues are known; names inside are those
on the wire, callers use names without their namespace. A delay becomes the properties that Java
sets.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from pocketmq.balance.producer.selectors import OrderingKey, by_function, by_hash, pinned
from pocketmq.client.checks import check_callable, is_number
from pocketmq.errors import InvalidInput
from pocketmq.model import Message, MessageQueue, property_names
from pocketmq.model.names import unwrap_namespace, wrap_namespace

Choice: TypeAlias = Callable[[Sequence[MessageQueue]], MessageQueue]
QueueSelector: TypeAlias = Callable[[Sequence[MessageQueue], Message], MessageQueue]
"""A caller's function of the topic's queues, in their published order, and the message."""


def choice_of(
    message: Message,
    queue: MessageQueue | None,
    ordering_key: OrderingKey | None,
    selector: QueueSelector | None,
    namespace: str = "",
) -> Choice | None:
    """Return the caller's choice, or None if queues take turns.

    Raises `InvalidInput` for more than one choice. The choice itself raises what the rules in
    `balance.producer.selectors` do, and what the caller's function does.
    """
    if queue is None and ordering_key is None and selector is None:
        return None
    if (queue is not None) + (ordering_key is not None) + (selector is not None) > 1:
        raise InvalidInput("give one of queue, ordering_key and selector, not several")
    if ordering_key is not None:
        return partial(by_hash, key=ordering_key)
    topic = wrap_namespace(namespace, message.topic)
    if selector is not None:
        check_callable("selector", selector, "queues and a message")
        return partial(_ask, message=message, selector=selector, namespace=namespace)
    given: object = queue
    if not isinstance(given, MessageQueue):
        raise InvalidInput(f"queue must be a MessageQueue, such as queues() returns, not {given!r}")
    return partial(_one_of, wanted=with_namespace(given, namespace), topic=topic)


def with_namespace(queue: MessageQueue, namespace: str) -> MessageQueue:
    """Return a queue by its name on the wire."""
    if not namespace:
        return queue
    topic = wrap_namespace(namespace, queue.topic)
    return MessageQueue(topic, queue.broker_name, queue.queue_id)


def without_namespace(queue: MessageQueue, namespace: str) -> MessageQueue:
    """Return a queue by its name outside of the namespace."""
    if not namespace:
        return queue
    topic = unwrap_namespace(namespace, queue.topic)
    return MessageQueue(topic, queue.broker_name, queue.queue_id)


def _one_of(queues: Sequence[MessageQueue], wanted: MessageQueue, topic: str) -> MessageQueue:
    return pinned(queues, wanted, topic)


def _ask(
    queues: Sequence[MessageQueue], message: Message, selector: QueueSelector, namespace: str
) -> MessageQueue:
    shown = [without_namespace(queue, namespace) for queue in queues]
    chosen = by_function(shown, message, None, lambda given, what, _: selector(given, what))
    return with_namespace(chosen, namespace)


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
            raise InvalidInput(f"a delay level must be 0 (none), 1, 2, …, not {delay_level!r}")
        return {property_names.DELAY_LEVEL: str(delay_level)} if delay_level else _NOTHING
    if delay is not None:
        return {property_names.TIMER_DELAY_MS: str(_milliseconds("delay", delay))}
    return {property_names.TIMER_DELIVER_MS: str(_milliseconds("deliver_at", deliver_at or 0.0))}


def _milliseconds(name: str, seconds: float) -> int:
    if not is_number(seconds) or not 0 <= seconds < _LATEST:  # also refuses NaN
        raise InvalidInput(f"{name} must be in seconds, not {seconds!r}")
    return round(seconds * 1000)
