"""Receives and acks that their caller's own thread carries out, on a connection of its own.

The questions are those of `client.pop`; only where the loop's path awaits a response, this one
blocks. It takes the case that nearly all calls are: the broker next in turn is asked once. Anything
else goes by way of the loop: messages that were kept, several brokers to wait for, unknown routes,
pops in order.
"""

import time
from collections.abc import Callable
from functools import partial

import msgspec

from pocketmq import errors
from pocketmq.blocking.connection import ReadUsual
from pocketmq.blocking.loop_thread import LoopThread
from pocketmq.blocking.pop_connections import AllInUse, PopConnections, PopInFlight, accepted
from pocketmq.client.calls import SUCCESS, request_name
from pocketmq.client.pop.member import PopMember
from pocketmq.client.pop.questions import Acks
from pocketmq.client.pop.receiving import HOLD
from pocketmq.client.pop.requests import ReceiveSpec, sorted_by_tag
from pocketmq.client.pop.sources import Kept, Source, sources_of
from pocketmq.client.pop.usual import is_done, read_usual_pop
from pocketmq.client.pop.usual_acks import MakeFrame, UsualAcks
from pocketmq.client.questions.asking import Ask, run_blocking
from pocketmq.client.routes import KnownRoute
from pocketmq.errors import MQError, server_error
from pocketmq.model import property_names
from pocketmq.protocol import Command, ReceivedMessage, RequestCode
from pocketmq.protocol.filter import tag_filter
from pocketmq.protocol.received import WholeMessage
from pocketmq.protocol.repeated import RepeatedRequest

_ACK = int(RequestCode.ACK_MESSAGE)
_SEVERAL = int(RequestCode.BATCH_ACK_MESSAGE)
_POP_CK = property_names.POP_CHECKPOINT
_MOST_PLANS = 64


class _Start(msgspec.Struct, frozen=True):
    """The first pop of receives with the same arguments at one source."""

    source: Source
    everything: bool
    """Whether all messages match, whatever their tag."""
    frame: Callable[[int], bytes]
    read: ReadUsual[list[ReceivedMessage]]
    in_flight: PopInFlight


class _ReceivePlan(msgspec.Struct, frozen=True):
    """How receives with the same arguments start, while subscriptions and routes stay the same."""

    generation: int  # of the subscriptions
    routes: tuple[tuple[str, KnownRoute], ...]
    patience: float
    starts: list[_Start]
    """By source."""


class BlockingPops:
    """The receives and acks of one blocking consumer. Any thread may call; made on the loop."""

    def __init__(self, member: PopMember, owner: str, thread: LoopThread) -> None:
        session = member.session
        self.connections = PopConnections(member, owner, thread)
        self._owner = owner
        self._thread = thread
        self._member = member
        self._subscriptions = member.subscriptions
        self._asking = member.receiving.asking
        self._holds = member.receiving.holds
        self._kept = member.receiving.kept
        self._check = session.check
        self._route = session.routes.cached
        self._address = session.addresses.master
        self._request = session.calls.request
        self._plans: dict[tuple[object, ...], _ReceivePlan] = {}
        self._turn = 0
        self._acks = (
            None if session.calls.hooks else UsualAcks(member.group, member.subscriptions.wire)
        )

    # Receiving

    def receive(
        self,
        max_messages: int | None,
        topic: str | None,
        invisible: float | None,
        timeout: float | None,
        now: float,
    ) -> list[ReceivedMessage] | None:
        """Pop once from the source in turn; None if that is not all there is to do.

        Raises what the loop's path does. `now` is by the monotonic clock.
        """
        self._check()
        holds, connections = self._holds, self.connections
        if (
            self._kept.waiting
            or holds.held
            or holds.closed
            or connections.handed_over
            or self._asking.ordered
        ):
            return None  # there is more to do than a pop
        plan = self._plan(max_messages, topic, invisible, timeout)
        if plan is None:
            return None
        starts = plan.starts
        alone = len(starts) == 1
        if not alone:
            self._turn += 1
        outcome = self._pop(starts[self._turn % len(starts)], now)
        if outcome is None:
            return None
        if isinstance(outcome, MQError):
            if connections.closing:
                raise errors.ClientClosed(self._owner) from None
            if not alone or isinstance(outcome, errors.ConnectionLost):
                return None  # another one is asked, or the same one on a connection that works
            raise outcome
        if outcome or (alone and time.monotonic() >= now + plan.patience):
            return outcome
        if connections.closing:
            raise errors.ClientClosed(self._owner)
        return None

    def _pop(self, start: _Start, now: float) -> list[ReceivedMessage] | MQError | None:
        """Pop once; None if no connection is free."""
        source = start.source
        came: Command | list[ReceivedMessage] | MQError
        address = ""
        try:
            address = self._address(source.broker)
            came = self.connections.pop(start.in_flight, address, start.frame, start.read, now)
        except AllInUse:
            return None
        except MQError as error:
            came = error
        if isinstance(came, list):
            if self._asking.failures:
                self._asking.failures.pop(source.key, None)
            if start.everything:
                return came
            messages, others = sorted_by_tag(source, came)
            if others:
                self._ack_others(source.broker, others)
            return messages
        return self._read(start, came, address)

    def _read(
        self, start: _Start, came: Command | MQError, address: str
    ) -> list[ReceivedMessage] | MQError:
        """Let the question read what is not usual."""
        first: Command | MQError | None = came

        def carry(asked: Ask) -> Command:
            nonlocal first
            answer, first = first, None
            if answer is None:  # an ack of damaged messages
                return self.connections.ask(asked)
            if isinstance(answer, MQError):
                raise answer
            return accepted(answer, asked, address)

        try:
            outcome = run_blocking(start.in_flight.make_question(), carry)
        except AllInUse:
            return []
        return outcome.messages if isinstance(outcome, Kept) else outcome

    def _ack_others(self, broker: str, acks: Acks) -> None:
        ack = partial(self._asking.ack_others, broker, acks)
        self._thread.loop.call_soon_threadsafe(ack)

    # Plans

    def _plan(self, *given: object) -> _ReceivePlan | None:
        """Return how receives with these arguments start; None if a route is not known yet."""
        try:
            plan = self._plans.get(given)
        except TypeError:
            return None  # the other path has the words
        if plan is not None and plan.generation == self._subscriptions.generation:
            for topic, known in plan.routes:
                if self._route(topic) is not known:
                    break
            else:
                return plan
        plan = self._new_plan(*given)  # type: ignore[arg-type] # those of `receive`
        if plan is not None:
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            self._plans[given] = plan
        return plan

    def _new_plan(
        self,
        max_messages: int | None,
        topic: str | None,
        invisible: float | None,
        timeout: float | None,
    ) -> _ReceivePlan | None:
        member, generation = self._member, self._subscriptions.generation
        wanted, patience = member.checked(max_messages, invisible, timeout)
        routes: list[tuple[str, KnownRoute]] = []
        sources: list[Source] = []
        for name, subscription in member.to_receive(topic):
            known = self._route(subscription.topic)
            some = () if known is None else sources_of(name, subscription, known)
            if known is None or not some:
                return None
            routes.append((subscription.topic, known))
            sources += some
        wait = min(HOLD, patience) if len(sources) == 1 else 0.0
        starts = [self._start(source, wanted, wait) for source in sources]
        return _ReceivePlan(generation, tuple(routes), patience, starts)

    def _start(self, source: Source, wanted: ReceiveSpec, wait: float) -> _Start:
        make = partial(self._asking.popping, source, wanted, wait, time.monotonic, self._ack_others)
        asked = next(make())
        assert asked.timeout is not None
        request = RepeatedRequest(self._request(asked.code, asked.header))
        read = partial(read_usual_pop, source.broker, source.name)
        in_flight = PopInFlight(source, asked.code, asked.timeout, make)
        everything = tag_filter(source.subscription).tags is None
        return _Start(source, everything, request.frame, read, in_flight)

    # Acknowledging

    def ack(self, message: ReceivedMessage) -> bool:
        """Acknowledge a message the short way; False if it takes the other one.

        Raises what the loop's path does.
        """
        acks = self._acks
        if acks is None or type(message) is not WholeMessage:
            return False
        handle = message.delivery.added.get(_POP_CK)
        made = None if handle is None else acks.request(handle, message.topic)
        if made is None:
            return False
        return self._settle(*made, _ACK)

    def ack_together(self, messages: list[ReceivedMessage]) -> bool:
        """Acknowledge messages that came together the same way."""
        acks = self._acks
        if acks is None:
            return False
        deliveries = [each.delivery for each in messages if type(each) is WholeMessage]
        name = deliveries[0].topic if len(deliveries) == len(messages) > 1 else None
        if name is None or any(each.topic is not name for each in deliveries):
            return False
        handles = [each.added.get(_POP_CK, "") for each in deliveries]
        made = acks.request_together(handles, name)
        if made is None or not self._member.requests.questions.takes_batches(made[0]):
            return False
        return self._settle(*made, _SEVERAL)

    def _settle(self, broker: str, frame: MakeFrame, code: int) -> bool:
        self._check()
        try:
            address = self._address(broker)
            done = self.connections.ask_at(address, frame, code, is_done)
        except (AllInUse, errors.BrokerNotFound, errors.ConnectionLost):
            return False
        if isinstance(done, Command) and done.code not in SUCCESS:
            if code == _SEVERAL and done.code == errors.ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                return False  # the other path remembers it, and sends them one by one
            raise server_error(done.code, done.remark, request=request_name(code), address=address)
        return True

    def ack_all(self, broker: str, acks: Acks) -> None:
        """Acknowledge messages of one broker; raises what the loop's path does."""
        self._check()
        questions, ask = self._member.requests.questions, self.connections.ask
        acks = questions.settled(acks)
        if not acks:
            return
        try:
            if len(acks) == 1:
                run_blocking(questions.ack_one(broker, *acks[0]), ask)
                return
            if run_blocking(questions.ack_together(broker, acks), ask):
                return
        except (AllInUse, errors.ConnectionLost):  # such as a broker that was restarted
            pass
        self._thread.call(self._member.requests.ack(broker, acks))
