"""Receives without a task for each: what nearly all calls of consumers are, besides acks.

As with `plain_sends`, all that a receive needs is at hand; what is not so, or is refused, is left
to `receiving`, which gets the same request. Usual messages become responses in the core, all at
once; for others `receiving` goes on with the broker's response.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any, NamedTuple, TypeAlias

from google.protobuf.message import DecodeError

from pocketmq.client.pop.questions import POPPED
from pocketmq.client.questions.asking import Ask, run
from pocketmq.errors import BrokerNotFound, ConnectionLost, MQError, ResponseCode
from pocketmq.protocol import Command, RequestCode
from pocketmq.protocol.repeated import RepeatedRequest
from pocketmq.proxy.calls import receiving
from pocketmq.proxy.calls.at_hand import BrokerAnswer, BrokerAtHand, broker_at_hand
from pocketmq.proxy.calls.receive_requests import Receive, checked, consumer_of, pop_of
from pocketmq.proxy.methods import BegunStream
from pocketmq.proxy.state import ProxyState
from pocketmq.proxy.translation.caller import Caller
from pocketmq.proxy.translation.incoming import PopFor, popped_stream
from pocketmq.proxy.translation.refusals import CallRefused
from pocketmq.proxy.translation.settings import max_attempts
from pocketmq.proxy.wire import service as s

_FRESH_FOR = 1.0
"""Seconds for which a request that is repeated is not checked again."""
_LONGEST = 1024
_MOST = 2_000
_ATTEMPT = re.compile(rb"B\$([0-9A-Za-z-]{36})\Z").match
"""The field `attempt_id`, number 8, with a UUID: in JSON it is written as it is here."""
_ATTEMPT_SIZE = 38

RespondMany: TypeAlias = Callable[[AsyncIterator[Any]], AsyncGenerator[bytes, None]]
"""Yields the bytes of responses; an error becomes a response, too."""


class _Lately(NamedTuple):
    """A request that was checked a short time ago: clients repeat theirs, byte by byte.

    Only the id of the attempt is new in each, if they have one: `attempt` is the one in `frames`.
    """

    wanted: Receive
    broker: BrokerAtHand
    frames: RepeatedRequest
    until: float
    attempt: bytes

    def holds(self, now: float, remaining: float | None) -> bool:
        """Return whether the same is asked for again."""
        in_time = remaining is None or self.wanted.wait <= remaining
        return self.until > now and in_time and not self.broker.connection.closed

    def frame(self, opaque: int, attempt: bytes) -> bytes:
        """Return the request to the broker, for an attempt."""
        frame = self.frames.frame(opaque)
        return frame if attempt == self.attempt else frame.replace(self.attempt, attempt)


def split_attempt(raw: bytes) -> tuple[bytes, bytes]:
    """Return a request without what may be the id of its attempt at the end, and that id.

    It is one if what is before it is a whole request: the fields of a message follow each other.
    """
    found = _ATTEMPT(raw, max(len(raw) - _ATTEMPT_SIZE, 0))
    return (raw, b"") if found is None else (raw[:-_ATTEMPT_SIZE], found[1])


class PlainReceives:
    """Receives of a proxy. Belongs to one event loop."""

    def __init__(self, state: ProxyState, respond: RespondMany) -> None:
        self.state = state
        self.respond = respond
        self._session = state.cluster.session
        self._loop = asyncio.get_running_loop()
        self._lately: dict[tuple[str, bytes, bool], _Lately] = {}

    def begin(self, raw: bytes, call: BegunStream) -> bool:
        """Pop messages, and send them when they come; False if that takes more."""
        try:
            caller = call.caller()
            asked, attempt = split_attempt(raw)
            found = self._lately.get((caller.client_id, asked, attempt != b""))
            if found is None or not found.holds(self._loop.time(), call.time_left()):
                found = self._checked(raw, call, caller)
            if found is None:
                return False
            pop = _AwaitedPop(self, call, found.broker, caller, found.wanted)
            opaque = pop.expect()
        except (CallRefused, DecodeError, BrokerNotFound, ConnectionLost):
            return False
        found.broker.connection.post(opaque, found.frame(opaque, attempt))
        return True

    def _checked(self, raw: bytes, call: BegunStream, caller: Caller) -> "_Lately | None":
        """Return what a request asks for, if all is at hand, and keep it for a short time."""
        state, session = self.state, self._session
        request = s.ReceiveMessageRequest.FromString(raw)
        named = consumer_of(state, request)
        config = state.cluster.known_group(named.group)
        route = session.routes.cached(named.topic)
        if config is None or route is None:
            return None
        known = named, config, route
        wanted = checked(state, caller, request, remaining=call.time_left(), known=known)
        broker = broker_at_hand(session, wanted.broker)
        if broker is None:
            return None
        _, question = pop_of(state, wanted)
        asked = next(question)
        frames = RepeatedRequest(session.calls.request(asked.code, asked.header))
        before, attempt = split_attempt(raw)
        found = _Lately(wanted, broker, frames, self._loop.time() + _FRESH_FOR, attempt)
        usual = wanted.broker == request.message_queue.broker.name  # else the next is for another
        if (
            usual
            and request.HasField("long_polling_timeout")
            and len(raw) <= _LONGEST
            and (not attempt or self._is_replaceable(before, found))
        ):
            if len(self._lately) >= _MOST:
                self._lately.clear()
            self._lately[caller.client_id, before, attempt != b""] = found
        return found

    def _is_replaceable(self, before: bytes, found: _Lately) -> bool:
        """Return whether another attempt is the same request with another id, also for brokers."""
        if self._session.calls.hooks or found.frames.frame(0).count(found.attempt) != 1:
            return False  # a signature covers the id; or the id is also a part of a name
        try:
            return not s.ReceiveMessageRequest.FromString(before).attempt_id
        except DecodeError:  # its end is in another field, which looks like an id
            return False

    def stream_of(self, wanted: Receive, answer: Command) -> bytes | None:
        """Return all responses with the messages of a pop; None if that takes more."""
        if wanted.renew or answer.code != ResponseCode.SUCCESS:
            return None
        wanted_by = PopFor(
            wanted.broker,
            wanted.topic,
            round(wanted.hidden * 1000),
            max_attempts(wanted.config),
            wanted.subscription.tags_set,
        )
        return popped_stream(answer, wanted_by, self.state.clock.now_ms())


class _AwaitedPop(BrokerAnswer):
    """Where the response to a pop goes."""

    __slots__ = ("_caller", "_receives", "_wanted")

    _call: BegunStream
    accept = POPPED
    outlives_call = True  # messages that were popped for a client that is gone are released

    def __init__(
        self,
        receives: PlainReceives,
        call: BegunStream,
        broker: BrokerAtHand,
        caller: Caller,
        wanted: Receive,
    ) -> None:
        self._receives = receives
        self._caller = caller
        self._wanted = wanted
        timeout = wanted.wait + broker.session.options.request_timeout
        super().__init__(call, broker, RequestCode.POP_MESSAGE, timeout)

    def taken(self, answer: Command) -> None:
        """Send the messages, if all are usual and the client takes them now."""
        stream = self._receives.stream_of(self._wanted, answer)
        if stream is None or not self._call.reply_all(stream):
            self._continue(answer)

    def failed(self, error: MQError) -> None:
        """Reply with the error, if the client is still there."""
        if not self._call.is_over():
            self._continue(error)

    def _continue(self, outcome: Command | MQError) -> None:
        """Let `receiving` go on, as if it had asked."""
        state, wanted = self._receives.state, self._wanted
        requests, question = pop_of(state, wanted)
        first = next(question)

        async def carry(asked: Ask) -> Command:
            if asked is not first:
                return await requests.carry(asked)
            if isinstance(outcome, MQError):
                raise outcome
            return outcome

        pop = receiving.ClientPop(state, wanted, run(question, carry, first))
        if not self._call.is_over():
            responses = receiving.delivered(state, self._caller, pop)
            self._call.continue_stream(self._receives.respond(responses))
