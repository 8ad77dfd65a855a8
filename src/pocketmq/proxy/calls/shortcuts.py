"""Plain sends and acks that the native core reads and answers: where their requests go.

The rules stay here. Queues are chosen as for all other sends, for some messages in advance; such a
choice is good for a number of messages and a short time. Whatever the core cannot tell takes the
usual way: the first call of its kind, unusual requests and responses, failures.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from pocketmq import native
from pocketmq.client.clock import SystemClock
from pocketmq.client.producer.requests import RequestWriter
from pocketmq.errors import BrokerNotFound
from pocketmq.model import MessageQueue, property_names
from pocketmq.protocol import RequestCode
from pocketmq.protocol.header_json import REQUEST_TAIL
from pocketmq.proxy.calls.at_hand import BrokerAtHand, broker_at_hand
from pocketmq.proxy.state import ProxyState
from pocketmq.proxy.translation.limits import ProxyLimits
from pocketmq.proxy.translation.receipts import read_receipt_handle
from pocketmq.proxy.translation.refusals import OK, CallRefused
from pocketmq.proxy.wire.schema import SERVICE

_FRESH_FOR = 1.0
"""Seconds for which a choice is used; routes and types of topics are cached for longer."""
_MOST_SENDS = 1024
"""Messages that queues are chosen for at most; one message of them takes the usual way."""
_MOST_TOPICS = 2_000
_ACK = RequestCode.ACK_MESSAGE
_json = msgspec.json.encode


class ShortPlace:
    """Where one request goes: a send to a queue, an ack for a group."""

    __slots__ = ("broker", "code", "group", "queue")

    def __init__(
        self, broker: BrokerAtHand, code: RequestCode, queue: MessageQueue | None, group: str
    ) -> None:
        self.broker = broker
        self.code = code
        self.queue = queue
        self.group = group


class PlainCall(Protocol):
    """The core's `GrpcCall`, where the response to its request goes."""

    place: ShortPlace
    receipt: tuple[str, str] | None
    """Of an ack: the id of the client, and the receipt handle."""
    owner: "PlainCalls"
    """What sends the response, and gets what is unusual."""

    def frame(self, opaque: int) -> bytes:
        """Return the request."""

    def event(self) -> tuple[Any, ...]:
        """Return what the core reports of a call that is not plain."""

    def done(self) -> bool:
        """Return whether the client has ended it."""

    def set_result(self, answer: Any, /) -> None:
        """Take a response that is unusual."""

    def set_exception(self, error: Any, /) -> None:
        """Take the reason why none comes."""


def core_shortcuts(core: Any, limits: ProxyLimits) -> Any:
    """Return the core's part: what plain calls are, and places for them."""
    sizes = limits.max_message_size, limits.user_property_max_num, limits.max_user_property_size
    # A message with the sharding key of another client is one of a message group. A trace context
    # that a message has itself replaces one among its properties.
    reserved = [*property_names.RESERVED, property_names.SHARDING_KEY, property_names.TRACE_CONTEXT]
    return core.GrpcShortcuts(f"/{SERVICE}", OK.SerializeToString(), REQUEST_TAIL, sizes, reserved)


def ack_head(group: str, topic: str, broker: str) -> bytes:
    """Return how the headers of a group's acks to a broker begin."""
    return b'{"code":%d,"extFields":{"consumerGroup":%b,"topic":%b,"bname":%b' % (
        _ACK, _json(group), _json(topic), _json(broker),
    )  # fmt: skip


class PlainCalls(Protocol):
    """Whose calls these are."""

    def take(self, event: tuple[Any, ...]) -> None:
        """Handle a call that takes the usual way."""

    def flush(self) -> None:
        """Send what the core has answered."""

    def unusual(self, event: tuple[Any, ...], place: ShortPlace, outcome: Any) -> None:
        """Take over a call whose outcome the core does not know how to tell."""


class Shortcuts:
    """The short ways of all clients of a proxy. Belongs to one event loop."""

    def __init__(self, core: Any, state: ProxyState) -> None:
        self.core = core_shortcuts(core, state.limits)
        self._state = state
        self._renewals = state.renewals
        self._renewed = state.renewals.by_client
        self._session = state.cluster.session
        self._timeout = self._session.options.request_timeout
        self._sizes: dict[str, int] = {}

    @classmethod
    def chosen(cls, state: ProxyState) -> "Shortcuts | None":
        """Return them where there is a core that reads the same clock, and requests are plain."""
        found = native.core
        usual = type(state.clock) is SystemClock and not state.cluster.session.calls.hooks
        return cls(found, state) if usual and hasattr(found, "GrpcShortcuts") else None

    def take_back(self, topic: str) -> None:
        """Undo the choices for a topic that are too old now, and choose fewer from now on.

        The next message takes the first of these turns: else some queues would never get one.
        """
        left = self.core.left(topic)
        if left:
            self._state.choice.take_back(topic, left)
            self._sizes[topic] = self._sizes.get(topic, 1) // 4
            self.core.offer_sends(topic, [], 0, 0.0)

    def offer_sends(self, queues: Sequence[MessageQueue], writer: RequestWriter) -> None:
        """Choose queues for the next plain messages of a topic: more of them if all were used."""
        choice, topic = self._state.choice, queues[0].topic
        if self.core.left(topic) is None or choice.avoids_any():
            return  # the core does not tell `choice` of brokers that can be reached again
        if len(self._sizes) >= _MOST_TOPICS:
            self._sizes.clear()
        size = min(max(2 * self._sizes.get(topic, 1), 1), _MOST_SENDS)
        self._sizes[topic] = size
        wanted = choice.choose_in_turn(queues, size)[:size]
        places = []
        for queue in wanted:
            place = self._place(queue.broker_name, RequestCode.SEND_MESSAGE_V2, queue)
            if place is None:  # the usual way connects
                break
            template = writer.plain_template(queue)
            places.append((place, template.head, template.middle))
        count = size if len(places) == len(wanted) else len(places)
        choice.take_back(topic, size - count)
        self.core.offer_sends(topic, places, count, _FRESH_FOR)

    def offer_acks(self, group: str, topic: str, broker: str) -> None:
        """Let plain acks of a group and topic go to a broker."""
        place = self._place(broker, _ACK, group=group)
        if place is not None:
            names_of = (group, topic, broker)
            self.core.offer_acks(names_of, place, ack_head(*names_of), _FRESH_FOR)

    def post(self, calls: list[PlainCall], owner: PlainCalls) -> None:
        """Send the requests of calls, which the core answers; some may take the usual way."""
        for call in calls:
            place = call.place
            connection = place.broker.connection
            renewed = place.queue is None and self._renewed
            if connection.closed or (renewed and not self._settles(call, place.group)):
                owner.take(call.event())
            else:
                call.owner = owner
                connection.requests.ask_into(call, place.code, self._timeout)

    def _settles(self, call: PlainCall, group: str) -> bool:
        """Stop renewing the message of an ack; False if its receipt is replaced, or in flight."""
        if call.receipt is None:
            return False
        client_id, handle = call.receipt
        try:
            given = read_receipt_handle(handle)
        except CallRefused:
            return False
        if self._renewals.newest(client_id, group, given) != given:
            return False
        self._renewals.forget(client_id, group, given)
        return True

    def _place(
        self, broker: str, code: RequestCode, queue: MessageQueue | None = None, group: str = ""
    ) -> ShortPlace | None:
        try:
            found = broker_at_hand(self._session, broker)
        except BrokerNotFound:
            return None
        if found is None:
            return None
        found.connection.requests.read_answers = self.core.read_answers
        return ShortPlace(found, code, queue, group)
