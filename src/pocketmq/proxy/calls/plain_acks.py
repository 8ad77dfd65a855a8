"""Acks of one message, without a task for each: what nearly all calls of consumers are.

As with `plain_sends`, all that an ack needs is at hand; what is not so, or is refused, is left to
`settling`, which gets the same request.
"""

import msgspec
from google.protobuf.message import DecodeError

from pocketmq.client.calls import SUCCESS
from pocketmq.client.pop.requests import PopRequests
from pocketmq.errors import BrokerNotFound, ConnectionLost, MQError
from pocketmq.protocol import Command, RequestCode
from pocketmq.proxy.calls import settling
from pocketmq.proxy.calls.at_hand import BrokerAnswer, BrokerAtHand, broker_at_hand
from pocketmq.proxy.calls.plain_sends import Respond
from pocketmq.proxy.calls.shortcuts import Shortcuts, ShortPlace
from pocketmq.proxy.methods import PendingCall
from pocketmq.proxy.state import ProxyState
from pocketmq.proxy.translation import checks
from pocketmq.proxy.translation.receipts import read_receipt_handle
from pocketmq.proxy.translation.refusals import OK, CallRefused
from pocketmq.proxy.wire import definition as d
from pocketmq.proxy.wire import service as s

_ACK = RequestCode.ACK_MESSAGE


class PlainAcks:
    """Acks of a proxy. Belongs to one event loop."""

    def __init__(self, state: ProxyState, _: Respond, shortcuts: Shortcuts | None = None) -> None:
        self._state = state
        self._shortcuts = shortcuts
        self._session = state.cluster.session

    def begin(self, raw: bytes, call: PendingCall) -> bool:
        """Acknowledge a message, and reply when the broker has; False if that takes more."""
        state, session = self._state, self._session
        try:
            request = s.AckMessageRequest.FromString(raw)
            if len(request.entries) != 1:
                return False
            (entry,) = request.entries
            client_id = call.caller().client_id
            topic, group = checks.topic_name(request.topic), checks.group_name(request.group)
            given = read_receipt_handle(entry.receipt_handle)
            receipt = state.renewals.newest(client_id, group, given)
            if receipt is None:
                return False
            receipt.check_valid(state.clock.now_ms())
            name = receipt.handle.broker_name
            broker = broker_at_hand(session, name)
            if broker is None:
                return False
            requests = PopRequests(session, group, ordered=False, from_first=False)
            asked = next(requests.questions.ack_one(name, topic, receipt.handle))
            command = session.calls.request(asked.code, asked.header, asked.body)
            opaque = _Acknowledged(call, broker, entry).expect()
        except (CallRefused, DecodeError, BrokerNotFound, ConnectionLost):
            return False
        state.renewals.forget(client_id, group, given)
        broker.connection.post(opaque, msgspec.structs.replace(command, opaque=opaque).encode())
        if self._shortcuts is not None:
            self._shortcuts.offer_acks(group, topic, name)
        return True

    def resume(
        self, raw: bytes, call: PendingCall, place: ShortPlace, outcome: Command | MQError
    ) -> None:
        """Reply to an ack of the core whose response is unusual or does not come."""
        (entry,) = s.AckMessageRequest.FromString(raw).entries
        _Acknowledged(call, place.broker, entry).take_over(outcome)


class _Acknowledged(BrokerAnswer):
    """Where the response to an ack goes."""

    __slots__ = ("_entry",)

    accept = SUCCESS

    def __init__(self, call: PendingCall, broker: BrokerAtHand, entry: s.AckMessageEntry) -> None:
        super().__init__(call, broker, _ACK)
        self._entry = entry

    def taken(self, answer: Command) -> None:  # noqa: ARG002 - it says nothing more
        """Reply that the message is acknowledged."""
        self._reply(OK)

    def failed(self, error: MQError) -> None:
        """Reply with the error."""
        self._reply(settling.ack_failure(error))

    def _reply(self, outcome: d.Status) -> None:
        response = settling.response_of([settling.result_of(self._entry, outcome)])
        self._call.reply(response.SerializeToString())
