"""Sends of one message, without a task for each: what nearly all calls of producers are.

All that a send needs is at hand: the topic's route and type, a connection to its broker. What is
not so, or is refused, is left to `sending`, which gets the same request, or the error of a try.
"""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeAlias

from google.protobuf.message import DecodeError

from pocketmq.client.producer.requests import Outgoing, RequestWriter
from pocketmq.client.producer_options import ProducerOptions
from pocketmq.errors import BrokerNotFound, ConnectionLost, InvalidInput, MQError
from pocketmq.model import MessageQueue, TopicKind
from pocketmq.protocol import Command, RequestCode
from pocketmq.proxy.calls import sending
from pocketmq.proxy.calls.at_hand import BrokerAnswer, BrokerAtHand, broker_at_hand
from pocketmq.proxy.calls.shortcuts import Shortcuts, ShortPlace
from pocketmq.proxy.methods import PendingCall
from pocketmq.proxy.state import ProxyState
from pocketmq.proxy.translation.outgoing import StoredForm, stored_forms
from pocketmq.proxy.translation.refusals import CallRefused
from pocketmq.proxy.wire import service as s

_SEND = RequestCode.SEND_MESSAGE_V2
_MOST_WRITERS = 20_000


Respond: TypeAlias = Callable[[Awaitable[Any]], Coroutine[Any, Any, bytes]]
"""Waits for a response, and returns its bytes; an error becomes a response, too."""


class PlainSendCalls:
    """Sends of a proxy. Belongs to one event loop."""

    def __init__(
        self, state: ProxyState, respond: Respond, shortcuts: Shortcuts | None = None
    ) -> None:
        self._state = state
        self._respond = respond
        self._shortcuts = shortcuts
        self._session = state.cluster.session
        self._writers: dict[str, RequestWriter] = {}

    def begin(self, raw: bytes, call: PendingCall) -> bool:
        """Send a message, and reply when it is stored; False if that takes more."""
        state, session = self._state, self._session
        try:
            request = s.SendMessageRequest.FromString(raw)
            messages = request.messages
            if len(messages) != 1:
                return False
            address = call.caller().address
            (form,) = stored_forms(messages, address, state.limits, state.clock.now_ms())
            known = session.routes.cached(form.topic)
            writer = self._writer(form.topic)
            if known is None or not self._accepts(form) or not writer.is_plain:
                return False
            if self._shortcuts is not None:
                self._shortcuts.take_back(form.topic)
            queue = state.choice.choose(known.publish_queues, form.message_group)
            broker = self._at_hand(queue)
            if broker is None:
                if not form.message_group:  # it is the turn of this queue, on the usual way
                    state.choice.take_back(form.topic, 1)
                return False
            opaque = _AwaitedSend(self, call, broker, form, queue).expect()
        except (CallRefused, DecodeError, ConnectionLost):
            return False
        message = Outgoing(
            form.topic, form.body, form.properties, form.message_id, sys_flag=form.sys_flag
        )
        try:
            frame = writer.frame(message, queue, opaque, form.born_ms)
        except InvalidInput:
            broker.connection.forget(opaque)
            return False
        broker.connection.post(opaque, frame)
        if self._shortcuts is not None and form.kind is TopicKind.NORMAL:
            self._shortcuts.offer_sends(known.publish_queues, writer)
        return True

    def resume(
        self, raw: bytes, call: PendingCall, place: ShortPlace, outcome: Command | MQError
    ) -> None:
        """Reply to a send of the core whose response is unusual or does not come."""
        state, queue = self._state, place.queue
        assert queue is not None
        messages = s.SendMessageRequest.FromString(raw).messages
        address = call.caller().address
        (form,) = stored_forms(messages, address, state.limits, state.clock.now_ms())
        _AwaitedSend(self, call, place.broker, form, queue).take_over(outcome)

    def _at_hand(self, queue: MessageQueue) -> BrokerAtHand | None:
        try:
            return broker_at_hand(self._session, queue.broker_name)
        except BrokerNotFound:
            return None

    def _accepts(self, form: StoredForm) -> bool:
        """Return whether it is known that the topic accepts the message."""
        if form.kind is TopicKind.TRANSACTION:
            return False
        if not self._state.limits.check_message_types:
            return True
        kind = self._state.cluster.known_kind(form.topic)
        return kind is TopicKind.MIXED or kind is form.kind

    def _writer(self, topic: str) -> RequestWriter:
        writer = self._writers.get(topic)
        if writer is None:
            if len(self._writers) >= _MOST_WRITERS:
                self._writers.clear()
            calls = self._session.calls
            hooked = calls.request if calls.hooks else None
            writer = RequestWriter(topic, ProducerOptions(group=topic), hooked, calls.signing_user)
            self._writers[topic] = writer
        return writer

    def stored(
        self, call: PendingCall, form: StoredForm, queue: MessageQueue, got: Command
    ) -> None:
        """Reply that a message is stored."""
        self._state.choice.succeeded(queue.broker_name)
        try:
            response = sending.response_of([sending.entry_of(form, queue, got)])
        except MQError as error:  # a response that cannot be read
            self.failed(call, form, queue, error)
        else:
            call.reply(response.SerializeToString())

    def failed(
        self, call: PendingCall, form: StoredForm, queue: MessageQueue, error: MQError
    ) -> None:
        """Try again as `sending` does, or reply with the error."""
        call.continue_with(
            lambda: self._respond(sending.send_again(self._state, form, queue, error))
        )


class _AwaitedSend(BrokerAnswer):
    """Where the response to a send goes."""

    __slots__ = ("_form", "_queue", "_sends")

    accept = sending.STORED

    def __init__(
        self,
        sends: PlainSendCalls,
        call: PendingCall,
        broker: BrokerAtHand,
        form: StoredForm,
        queue: MessageQueue,
    ) -> None:
        super().__init__(call, broker, _SEND)
        self._sends = sends
        self._form = form
        self._queue = queue

    def taken(self, answer: Command) -> None:
        """Reply that the message is stored."""
        self._sends.stored(self._call, self._form, self._queue, answer)

    def failed(self, error: MQError) -> None:
        """Try again, or reply with the error."""
        self._sends.failed(self._call, self._form, self._queue, error)
