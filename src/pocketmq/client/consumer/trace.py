"""What a consumer's trace tells: messages about to be handled, and what came of it."""

from collections.abc import Callable, Sequence

import msgspec

from pocketmq.client.clock import Clock
from pocketmq.client.tracing import Tracer
from pocketmq.model import properties as names
from pocketmq.protocol.received import ReceivedMessage
from pocketmq.protocol.trace_text import HandledAs, TracedDelivery, TracedHandling


class TracedCall(msgspec.Struct, frozen=True):
    """One call of a handler that was told about when it began."""

    request_id: str
    began_ms: int
    size: int
    """How many messages the handler got, traced or not."""
    told: tuple[tuple[str, str | None], ...]
    """Id and keys of the messages told about."""


class HandlingTrace:
    """Traces the calls of one consumer's handlers. Belongs to one event loop.

    `group` is the name the application knows; `new_id` makes ids like those of messages.
    """

    def __init__(
        self, tracer: Tracer, group: str, clock: Clock, new_id: Callable[[int], str]
    ) -> None:
        self._tracer = tracer
        self._group = group
        self._clock = clock
        self._new_id = new_id

    def begins(self, messages: Sequence[ReceivedMessage]) -> TracedCall | None:
        """Tell that a handler is about to be called; give what `ended` needs.

        None if there is nothing to tell: brokers mark messages that shall not be traced, and
        those of brokers that know no traces have no region.
        """
        now_ms = self._clock.now_ms()
        request_id = self._new_id(now_ms)
        events = []
        for message in messages:
            region = message.get_property(names.MSG_REGION)
            if (
                region is None
                or message.get_property(names.TRACE_ON) == "false"
                or not self._tracer.traces(message.topic)
            ):
                continue
            events.append(
                TracedDelivery(
                    time_ms=now_ms,
                    region=region,
                    group=self._group,
                    request_id=request_id,
                    message_id=message.message_id,
                    retries=message.reconsume_times,
                    keys=message.get_property(names.KEYS),
                )
            )
        if not events:
            return None
        self._tracer.add(*events)
        told = tuple([(event.message_id, event.keys) for event in events])
        return TracedCall(request_id, now_ms, len(messages), told)

    def ended(self, call: TracedCall, handled_as: HandledAs) -> None:
        """Tell what came of a call."""
        now_ms = self._clock.now_ms()
        cost_ms = max(0, now_ms - call.began_ms) // call.size
        self._tracer.add(
            *[
                TracedHandling(
                    request_id=call.request_id,
                    message_id=message_id,
                    cost_ms=cost_ms,
                    ok=handled_as is HandledAs.SUCCESS,
                    keys=keys,
                    handled_as=handled_as,
                    time_ms=now_ms,
                    group=self._group,
                )
                for message_id, keys in call.told
            ]
        )
