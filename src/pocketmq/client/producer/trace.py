"""A producer's trace: records of its sends, and of the ends of its transactions.

A batch has one record for each message, so that each can be found by its id (Java writes one record
with all ids in one field, which cannot be looked up).
"""

from collections.abc import Sequence

from pocketmq.client.clock import Clock
from pocketmq.client.producer.hooks import SendContext
from pocketmq.client.producer.publishing import Publishing
from pocketmq.client.producer.sending import Sending
from pocketmq.client.producer.transactions import TransactionEnd
from pocketmq.client.producer_options import ProducerOptions
from pocketmq.client.session import Session
from pocketmq.client.tasks import Tasks
from pocketmq.client.tracing import Tracer
from pocketmq.errors import MQError
from pocketmq.model import Message, property_names
from pocketmq.model.names import unwrap_namespace
from pocketmq.protocol.property_text import find_property
from pocketmq.protocol.trace_text import TracedEnd, TracedKind, TracedSend

_HELD_BACK = (
    property_names.DELAY_LEVEL.encode(),
    property_names.TIMER_DELAY_MS.encode(),
    property_names.TIMER_DELAY_SEC.encode(),
    property_names.TIMER_DELIVER_MS.encode(),
)
_GROUP = "_INNER_TRACE_PRODUCER"
_GROUP_ROOM = 80  # a group's name has 120 characters
_TIMEOUT = 5.0
_HALF = property_names.TRANSACTION_PREPARED.encode()


class TraceHook:
    """A hook that traces sends; not one-way sends, nor brokers that have tracing turned off."""

    def __init__(self, tracer: Tracer, clock: Clock) -> None:
        self._tracer = tracer
        self._clock = clock

    def before_send(self, context: SendContext) -> None:
        """Do nothing: the record is written afterwards."""

    def after_send(self, context: SendContext) -> None:
        """Write records of messages that a broker stored."""
        receipt = context.receipt
        topic = unwrap_namespace(context.namespace, context.queue.topic)
        if receipt is None or not receipt.trace_on or not self._tracer.traces(topic):
            return
        cost_ms = round(context.latency * 1000)
        kind = _kind(context.properties.encode())
        group = unwrap_namespace(context.namespace, context.group)
        ids = _each(context.unique_id, len(context.messages))
        places = _each(receipt.offset_message_id, len(context.messages))
        self._tracer.add(
            *[
                TracedSend(
                    time_ms=context.born_ms,
                    region=receipt.region_id,
                    group=group,
                    topic=topic,
                    message_id=message_id or "",
                    tag=message.tag,
                    keys=" ".join(message.keys) or None,
                    store_host=context.address,
                    body_size=len(message.body),
                    cost_ms=cost_ms,
                    kind=kind,
                    offset_message_id=place,
                    ok=receipt.ok,
                )
                for message_id, place, message in zip(ids, places, context.messages, strict=True)
            ]
        )

    def transaction_ended(self, end: TransactionEnd) -> None:
        """Write a record of the end of a transaction."""
        if not self._tracer.traces(end.topic):
            return
        self._tracer.add(
            TracedEnd(
                time_ms=self._clock.now_ms(),
                region=end.region,
                group=end.group,
                topic=end.topic,
                message_id=end.message_id,
                tag=end.tag,
                keys=end.keys,
                store_host=end.address,
                transaction_id=end.transaction_id,
                state=end.state,
                from_check=end.from_check,
            )
        )


def _kind(properties: bytes) -> TracedKind:
    if any(find_property(properties, name) for name in _HELD_BACK):
        return TracedKind.DELAYED
    return TracedKind.HALF if find_property(properties, _HALF) else TracedKind.NORMAL


def _each(joined: str | None, count: int) -> Sequence[str | None]:
    """Split the ids of a batch's messages; if their number is wrong, each gets the whole text."""
    ids = [joined] if joined is None or count == 1 else joined.split(",")
    return ids if len(ids) == count else [joined] * count


def open_tracer(
    session: Session,
    group: str,
    *,
    kind: str,
    topic: str,
    tasks: Tasks,
    publishing: Publishing | None = None,
) -> Tracer:
    """Return a tracer for a group, with sends and a window of its own.

    `kind` is PRODUCE or CONSUME, as Java names the groups of its traces. The owner of `publishing`,
    if given, keeps its routes fresh; otherwise the topic's route is fetched again after a failure.
    """
    name = f"{_GROUP}-{group[:_GROUP_ROOM]}-{kind}"
    options = ProducerOptions(group=name, send_timeout=_TIMEOUT)
    return Tracer(topic, _TraceSender(session, options, publishing), tasks)


class _TraceSender:
    """Sends trace messages; with fresh routes after a failure."""

    def __init__(
        self, session: Session, options: ProducerOptions, publishing: Publishing | None
    ) -> None:
        self._session = session
        self._options = options
        self._publishing = publishing
        self._sending = self._engine()

    def _engine(self) -> Sending:
        return Sending(self._session, self._options, publishing=self._publishing)

    async def __call__(self, message: Message) -> None:
        try:
            await self._sending.send_to_cluster(message)
        except MQError:
            self._sending = self._engine()
            raise
