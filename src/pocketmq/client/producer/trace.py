"""What a producer's trace tells: its sends, and the ends of its transactions.

Batches are told message by message, so that each can be found by its id (Java tells one record
with all ids in one field, which nobody can look up).
"""

from collections.abc import Sequence

from pocketmq.client.clock import Clock
from pocketmq.client.producer.cluster_topics import send_to_cluster
from pocketmq.client.producer.hooks import SendContext
from pocketmq.client.producer.publishing import Publishing
from pocketmq.client.producer.sending import Sending
from pocketmq.client.producer.transactions import TransactionEnd
from pocketmq.client.producer_options import ProducerOptions
from pocketmq.client.session import Session
from pocketmq.client.tasks import Tasks
from pocketmq.client.tracing import Tracer
from pocketmq.errors import MQError
from pocketmq.model import properties as names
from pocketmq.model.message import Message
from pocketmq.model.names import unwrap_namespace
from pocketmq.protocol.property_text import find_property
from pocketmq.protocol.trace_text import TracedEnd, TracedKind, TracedSend

_HELD_BACK = (
    names.DELAY_LEVEL.encode(),
    names.TIMER_DELAY_MS.encode(),
    names.TIMER_DELAY_SEC.encode(),
    names.TIMER_DELIVER_MS.encode(),
)
_GROUP = "_INNER_TRACE_PRODUCER"
_GROUP_ROOM = 80  # a group's name has 120 characters
_TIMEOUT = 5.0
_HALF = names.TRANSACTION_PREPARED.encode()


class SendTracing:
    """A hook that traces sends. Brokers that want no traces, and one-way sends, tell nothing."""

    def __init__(self, tracer: Tracer, clock: Clock) -> None:
        self._tracer = tracer
        self._clock = clock

    def before_send(self, context: SendContext) -> None:
        """Do nothing: what is told is told afterwards."""

    def after_send(self, context: SendContext) -> None:
        """Tell about a message that a broker took."""
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
        """Tell how a transaction ended."""
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
    """Give the ids of a batch's messages one by one; all get the same if there are not so many."""
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
    """Give a tracer for a group, with an engine of sends and a window of its own.

    `kind` is PRODUCE or CONSUME, as Java names the groups of its traces. `publishing`, if given,
    is kept fresh by somebody; otherwise the topic's route is asked for anew after a failure.
    """
    name = f"{_GROUP}-{group[:_GROUP_ROOM]}-{kind}"
    options = ProducerOptions(group=name, send_timeout=_TIMEOUT)
    return Tracer(topic, _Sender(session, options, publishing), tasks)


class _Sender:
    """Sends traces."""

    def __init__(
        self, session: Session, options: ProducerOptions, publishing: Publishing | None
    ) -> None:
        self._session = session
        self._options = options
        self._publishing = publishing
        self._sending = self._engine()

    def _engine(self) -> Sending:
        sending = Sending(self._session, self._options)
        if self._publishing is not None:
            sending.publishing = self._publishing
        return sending

    async def __call__(self, message: Message) -> None:
        try:
            await send_to_cluster(self._sending, message)
        except MQError:
            self._sending = self._engine()
            raise
