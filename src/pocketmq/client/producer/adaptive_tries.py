"""The tries of one send of an adaptive producer (`queue_choice="adaptive"`).

The counterpart of `SendRule.tries`, and as it without IO: the brokers are chosen by
`balance.producer.adaptive`, and a try is given up early if another broker waits to be tried. What
an error means for the send, and when to give up, is decided by `balance.producer.retry`, as always.
"""

import msgspec

from pocketmq.balance.producer.broker_record import BrokerRecord, TopicBrokers
from pocketmq.balance.producer.plan import Return, Send, SendMode, SendPlan
from pocketmq.balance.producer.retry import SendAttempts, TryEnded, next_step
from pocketmq.client.producer.choices import Choice
from pocketmq.client.producer.publishing import Publication
from pocketmq.client.producer.requests import Outgoing
from pocketmq.client.producer.tries import SendRule, Tries
from pocketmq.errors import MQError
from pocketmq.model import SendReceipt, SendStatus

_SEND_OK = SendStatus.SEND_OK
_ONEWAY = SendMode.ONEWAY


class AdaptiveRule(SendRule):
    """The rule of an adaptive producer. Sends whose caller chose the queue go Java's way.

    So do those to topics on one broker: there is nothing to choose, and no other broker for which
    a try should be given up.
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
