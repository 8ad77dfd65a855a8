"""The trace of a consumer: messages about to be handled, and the outcome."""

import asyncio
import threading

import msgspec

from pocketmq.balance.consumer.handling import ConsumeReturnType
from pocketmq.client.clock import Clock
from pocketmq.client.consumer_options import PushConsumerOptions
from pocketmq.client.push.consume_hooks import ConsumeContext
from pocketmq.client.push.work import Work
from pocketmq.client.session import Session
from pocketmq.client.tasks import Tasks
from pocketmq.client.tracing import Tracer
from pocketmq.model import property_names
from pocketmq.model.message import DEFAULT_REGION
from pocketmq.model.names import unwrap_namespace
from pocketmq.protocol import ReceivedMessage
from pocketmq.protocol.message_ids import UniqueIds
from pocketmq.protocol.trace_text import HandledAs, Traced, TracedDelivery, TracedHandling

_NOTE = "trace"
_HANDLED_AS = {
    ConsumeReturnType.SUCCESS: HandledAs.SUCCESS,
    ConsumeReturnType.TIME_OUT: HandledAs.TIMED_OUT,
    ConsumeReturnType.EXCEPTION: HandledAs.RAISED,
    ConsumeReturnType.RETURNNULL: HandledAs.RETURNED_NOTHING,
    ConsumeReturnType.FAILED: HandledAs.FAILED,
}


def open_trace(
    session: Session, options: PushConsumerOptions, work: Work, tasks: Tasks
) -> Tracer | None:
    """Trace what a consumer's handlers do, if its options say so; the caller closes the tracer."""
    if not options.trace:
        return None
    # Parts of a producer: few consumers trace.
    from pocketmq.client.producer.preparing import unique_ids
    from pocketmq.client.producer.trace import open_tracer

    group = options.group
    tracer = open_tracer(session, group, kind="CONSUME", topic=options.trace_topic, tasks=tasks)
    work.add_hook(HandlingTrace(tracer, session.clock, unique_ids(session, group)))
    return tracer


class _TracedCall(msgspec.Struct, frozen=True):
    """What was traced when a call began: its id, and the id and keys of each message."""

    request_id: str
    messages: list[tuple[str, str | None]]


class HandlingTrace:
    """A hook that traces the calls of a consumer's handlers, on the loop or in threads.

    Messages of brokers that want no traces are left out. Those of 4.x carry no region: it is the
    default one then, where Java's 5.x client would trace nothing. Make it on the loop.
    """

    def __init__(self, tracer: Tracer, clock: Clock, ids: UniqueIds) -> None:
        self._tracer = tracer
        self._clock = clock
        self._ids = ids
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def before_consume(self, context: ConsumeContext) -> None:
        """Trace that a handler is about to be called."""
        group = unwrap_namespace(context.namespace, context.group)
        request_id = self._ids.next_id(context.began_ms)
        events = [
            TracedDelivery(
                time_ms=context.began_ms,
                region=message.get_property(property_names.MSG_REGION) or DEFAULT_REGION,
                group=group,
                request_id=request_id,
                message_id=message.message_id,
                retries=message.reconsume_times,
                keys=message.get_property(property_names.KEYS),
            )
            for message in context.messages
            if self._traces(message)
        ]
        if events:
            traced = [(event.message_id, event.keys) for event in events]
            context.notes[_NOTE] = _TracedCall(request_id, traced)
            self._add(events)

    def after_consume(self, context: ConsumeContext) -> None:
        """Trace the outcome of a call."""
        traced = context.notes.pop(_NOTE, None)
        if traced is None:
            return
        group = unwrap_namespace(context.namespace, context.group)
        outcome = context.outcome or ConsumeReturnType.FAILED
        cost_ms = round(context.elapsed * 1000) // len(context.messages)
        now_ms = self._clock.now_ms()
        self._add(
            [
                TracedHandling(
                    request_id=traced.request_id,
                    message_id=message_id,
                    cost_ms=cost_ms,
                    ok=context.success,
                    keys=keys,
                    handled_as=_HANDLED_AS[outcome],
                    time_ms=now_ms,
                    group=group,
                )
                for message_id, keys in traced.messages
            ]
        )

    def _traces(self, message: ReceivedMessage) -> bool:
        wanted = message.get_property(property_names.TRACE_ON) != "false"
        return wanted and self._tracer.traces(message.topic)

    def _add(self, events: "list[TracedDelivery] | list[TracedHandling]") -> None:
        known: list[Traced] = [*events]
        if threading.get_ident() == self._thread:
            self._tracer.add(*known)
        else:
            self._loop.call_soon_threadsafe(self._tracer.add, *known)
