"""The tries of one send: which queue, for how long, what an outcome means, when to give up.

Sans-IO: `SendRule.tries` is a generator that yields each try and receives its outcome; an
adaptive producer has an `AdaptiveRule`. A shell carries the tries out: a task of the event loop
(`sending`), the loop's callbacks (`submitting`), or the caller's own thread
(`pocketmq.blocking.sending`). What decides is `balance.producer.retry`.
"""

from collections.abc import Callable, Generator, Sequence
from typing import TypeAlias

import msgspec

from pocketmq.balance.producer.broker_record import BrokerRecord, TopicBrokers
from pocketmq.balance.producer.choice import queue_for
from pocketmq.balance.producer.plan import Feedback, RefreshRoute, Return, Send, SendMode, SendPlan
from pocketmq.balance.producer.retry import SendAttempts, TryEnded, cancelled, first_step, next_step
from pocketmq.balance.producer.selectors import Chance
from pocketmq.balance.profile import Profile
from pocketmq.client.producer.choices import Choice
from pocketmq.client.producer.faults import Faults
from pocketmq.client.producer.hooks import SendHooks
from pocketmq.client.producer.publishing import Publication
from pocketmq.client.producer.requests import Outgoing
from pocketmq.client.producer_options import ProducerOptions
from pocketmq.errors import MQError
from pocketmq.model import MessageQueue, SendReceipt, SendStatus

Try: TypeAlias = tuple[MessageQueue, float]
"""Send to this queue, and wait at most this number of seconds for the response."""
Outcome: TypeAlias = SendReceipt | MQError | None
"""What came of a try; None for a message that was sent one way."""
Tries: TypeAlias = Generator[Try, Outcome, SendReceipt | None]
"""Returns the receipt, None for a message sent one way; raises `SendFailed`, or what a choice does.

A shell closes it when it is done with it. A try that has no outcome by then (the send was
cancelled or interrupted) is not held against the broker.
"""

_SEND_OK = SendStatus.SEND_OK
_ONEWAY = SendMode.ONEWAY


class SendRule:
    """The rule for the tries of one producer.

    It waits for nothing. It may be used by whichever threads `now` and `refresh_route`, which asks
    for a topic's route soon, may be called from; `faults` has a lock of its own.
    """

    def __init__(
        self,
        options: ProducerOptions,
        profile: Profile,
        faults: Faults,
        hooks: SendHooks,
        *,
        now: Callable[[], float],
        chance: Chance,
        refresh_route: Callable[[str], None],
    ) -> None:
        self._options = options
        self._profile = profile
        self._faults = faults
        self._hooks = hooks
        self._now = now
        self._chance = chance
        self._refresh_route = refresh_route
        self._retry_unsafe = options.retry_when_not_stored_ok
        self._per_try = options.send_timeout_per_try
        self._planned = faults.table is not None or self._per_try is not None

    @property
    def may_be_plain(self) -> bool:
        """Whether first tries are plain as long as there are no hooks."""
        return not self._planned

    def is_done(self, receipt: SendReceipt) -> bool:
        """Return whether a message with this receipt is not sent once more."""
        return receipt.status is _SEND_OK or not self._retry_unsafe

    def is_plain(self, choice: Choice | None) -> bool:
        """Return whether the first try is no more than the next queue in turn."""
        return choice is None and not self._planned and not self._hooks.hooks

    def tries(  # noqa: PLR0917 - for each message: keywords would cost
        self,
        outgoing: Outgoing,
        publication: Publication,
        choice: Choice | None,
        mode: SendMode,
        timeout: float,
        started: float,
        ended: TryEnded | None = None,
    ) -> Tries:
        """Try to send until a broker has stored the message, or the rules say enough.

        One deadline, `timeout` seconds after `started`, covers all tries and what came before.
        `ended` is a first try that the shell made by itself, as a plain one (see `plain_sends`).
        """
        if ended is None and choice is None and not self._planned and not self._hooks.hooks:
            # What the rules decide for a first try, without the cost of asking them: queues take
            # turns, and a message that is stored is done. Nearly all sends end here.
            queue = publication.robin.next(publication.queues)
            began = self._now()
            outcome = yield queue, timeout - (began - started)
            if isinstance(outcome, SendReceipt) and self.is_done(outcome):
                return outcome
            ended = TryEnded(queue, self._now() - began, outcome)
            del outcome  # an error has a traceback, whose frames would have this one
        plan = self._plan(outgoing, mode, timeout, pinned=choice is not None)
        chosen = None if choice is None else choice(publication.queues)
        attempts = SendAttempts()
        action = first_step(plan, self._now() - started)
        while ended is not None or isinstance(action, Send):
            if ended is None:
                assert isinstance(action, Send)
                queue = queue_for(
                    action,
                    publication.queues,
                    publication.robin,
                    self._faults.table,
                    now=self._now(),
                    chance=self._chance,
                    chosen=chosen,
                )
                ended = yield from self._try(outgoing, plan, queue, action.timeout)
            decision = next_step(plan, attempts, ended, self._now() - started)
            self._take(outgoing, decision.feedback)
            attempts, action, ended = decision.attempts, decision.action, None
        if isinstance(action, Return):
            return action.receipt
        raise action.error

    def _try(
        self, outgoing: Outgoing, plan: SendPlan, queue: MessageQueue, timeout: float
    ) -> Generator[Try, Outcome, TryEnded]:
        began = self._now()
        context = self._hooks.before(outgoing, queue, plan.mode)
        try:
            outcome = yield queue, timeout
        except GeneratorExit:
            self._take(outgoing, cancelled(plan, queue, self._now() - began))
            raise
        latency = self._now() - began
        if context is not None:
            self._hooks.after(context, outcome, latency)
        return TryEnded(queue, latency, outcome)

    def _take(self, outgoing: Outgoing, feedback: Sequence[Feedback]) -> None:
        for each in feedback:
            if isinstance(each, RefreshRoute):
                self._refresh_route(outgoing.topic)
            else:
                self._faults.update(each)

    def _plan(
        self, outgoing: Outgoing, mode: SendMode, timeout: float, *, pinned: bool
    ) -> SendPlan:
        options = self._options
        return SendPlan(
            profile=self._profile,
            topic=outgoing.messages[0].topic,
            mode=mode,
            pinned=pinned,
            retries=options.retries,
            timeout=timeout,
            timeout_per_try=self._per_try,
            retry_another_broker=options.retry_when_not_stored_ok,
            detector=self._faults.detector,
        )


class AdaptiveRule(SendRule):
    """The rule of an adaptive producer. Sends whose caller chose the queue go Java's way.

    So do those to topics on one broker: there is nothing to choose, and no other broker for which
    a try should be given up. Otherwise brokers are chosen by `balance.producer.adaptive`, and a try
    is given up early if another broker waits to be tried. What an error means for the send, and
    when to give up, is decided by `balance.producer.retry`, as always.
    """

    def _adaptive_plan(self, outgoing: Outgoing, mode: SendMode, timeout: float) -> SendPlan:
        plan = self._plan(outgoing, mode, timeout, pinned=False)
        return msgspec.structs.replace(plan, retry_refusals=True)

    @property
    def may_be_plain(self) -> bool:
        """Whether first tries are plain: never, even a queue in turn is chosen by a rule."""
        return False

    def is_plain(self, choice: Choice | None) -> bool:
        """Return whether the first try needs no more than a queue."""
        return choice is None and not self._hooks.hooks

    def tries(  # noqa: PLR0917 - as the parent's
        self,
        outgoing: Outgoing,
        publication: Publication,
        choice: Choice | None,
        mode: SendMode,
        timeout: float,
        started: float,
        ended: TryEnded | None = None,
    ) -> Tries:
        """Try to send until a broker has stored the message, or the rules say enough."""
        topic = publication.by_broker
        if choice is not None or topic is None or len(topic.all) < 2:
            return super().tries(outgoing, publication, choice, mode, timeout, started, ended)
        return self._adaptive(outgoing, topic, mode, timeout, started)

    def _adaptive(
        self,
        outgoing: Outgoing,
        topic: TopicBrokers,
        mode: SendMode,
        timeout: float,
        started: float,
    ) -> Tries:
        fleet, now = self._faults.fleet, self._now
        assert fleet is not None
        attempts: SendAttempts | None = None
        tried: tuple[BrokerRecord, ...] = ()
        most = 1 if mode is _ONEWAY else 1 + self._options.retries
        while True:
            began = now()
            place = fleet.choose(topic, began, tried)
            record, queue = place.record, place.next()
            left = timeout - (began - started)
            tries = most - len(tried)
            if tries > 1:
                left = fleet.patience(topic, place, tried, left, tries, len(outgoing.body))
                if self._per_try is not None:
                    left = min(left, self._per_try)
            hooked = self._hooks.before(outgoing, queue, mode) if self._hooks.hooks else None
            key = object()
            record.in_flight[key] = began
            try:
                outcome = yield queue, left
            finally:
                record.in_flight.pop(key, None)
            ended = now()
            latency = ended - began
            if isinstance(outcome, MQError):
                fleet.failed(record, outcome, latency, ended)
            elif outcome is not None:
                fleet.answered(record, latency, ended)
            if hooked is not None:
                self._hooks.after(hooked, outcome, latency)
            if outcome is None or (
                isinstance(outcome, SendReceipt)
                and (outcome.status is _SEND_OK or not self._retry_unsafe)
            ):
                return outcome
            plan = self._adaptive_plan(outgoing, mode, timeout)
            ended_try = TryEnded(queue, latency, outcome)
            decision = next_step(plan, attempts or SendAttempts(), ended_try, ended - started)
            del outcome, ended_try  # an error has a traceback, whose frames would have this one
            self._take(outgoing, decision.feedback)
            action = decision.action
            if isinstance(action, Return):
                return action.receipt
            if not isinstance(action, Send):
                raise action.error
            attempts = decision.attempts
            tried = (*tried, record)
