"""Acks of one message, without a task for each: what nearly all calls of consumers are.

As with `plain_sends`, all that an ack needs is at hand; what is not so, or is refused, is left to
`settling`, which gets the same request.
"""

import msgspec
from google.protobuf.message import DecodeError

from pocketmq.client.pop.requests import PopRequests
from pocketmq.errors import BrokerNotFound, ConnectionLost, MQError, ResponseCode, server_error
from pocketmq.protocol import Command, RequestCode
from pocketmq.proxy.calls import settling
from pocketmq.proxy.calls.plain_sends import Respond
from pocketmq.proxy.methods import BegunCall
from pocketmq.proxy.state import ProxyState
from pocketmq.proxy.translation import checks
from pocketmq.proxy.translation.receipts import read_receipt_handle
from pocketmq.proxy.translation.refusals import OK, CallRefused
from pocketmq.proxy.wire import definition as d
from pocketmq.proxy.wire import service as s

_ACK = RequestCode.ACK_MESSAGE


class PlainAcks:
    """Acks of a proxy. Belongs to one event loop."""

    def __init__(self, state: ProxyState, _: Respond) -> None:
        self._state = state
        self._session = state.cluster.session

    def begin(self, raw: bytes, call: BegunCall) -> bool:
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
            broker = receipt.handle.broker_name
            address = session.brokers.address(broker, master_only=True)
            connection = session.calls.connected(address)
            if connection is None:
                return False
            requests = PopRequests(session, group, ordered=False, from_first=False)
            asked = next(requests.questions.ack_one(broker, topic, receipt.handle))
            command = session.calls.request(asked.code, asked.header, asked.body)
            sink = _Acknowledged(call, entry, address)
            opaque = connection.expect_into(sink, _ACK, session.options.request_timeout)
        except (CallRefused, DecodeError, BrokerNotFound, ConnectionLost):
            return False
        state.renewals.forget(client_id, group, given)
        connection.post(opaque, msgspec.structs.replace(command, opaque=opaque).encode())
        return True


class _Acknowledged:
    """Where a broker's response goes."""

    __slots__ = ("_address", "_call", "_entry")

    def __init__(self, call: BegunCall, entry: s.AckMessageEntry, address: str) -> None:
        self._call = call
        self._entry = entry
        self._address = address

    def done(self) -> bool:
        """Return whether the client has ended its call."""
        return self._call.is_over()

    def set_result(self, answer: Command) -> None:
        """Reply; a code other than success is an error."""
        if answer.code == ResponseCode.SUCCESS:
            self._reply(OK)
        else:
            named = {"request": _ACK.name, "address": self._address}
            self.set_exception(server_error(answer.code, answer.remark, **named))

    def set_exception(self, error: MQError) -> None:
        """Reply with an error."""
        self._reply(settling.ack_failure(error))

    def _reply(self, outcome: d.Status) -> None:
        response = settling.response_of([settling.result_of(self._entry, outcome)])
        self._call.reply(response.SerializeToString())
