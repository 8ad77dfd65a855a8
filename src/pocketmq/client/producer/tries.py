"""The tries of one send: which queue, for how long, what an outcome means, when to give up.

Sans-IO: `SendRule.tries` is a generator that yields each try and receives its outcome. A shell
carries the tries out: a task of the event loop (`sending`), the loop's callbacks (`submitting`), or
the caller's own thread (`pocketmq.blocking.sending`). So there is one rule for all of them, and
what decides is `balance.producer.retry`.
"""

from collections.abc import Callable, Generator, Sequence
from typing import TypeAlias

import msgspec

from pocketmq.balance.producer.choice import queue_for
from pocketmq.balance.producer.instructions import Feedback, RefreshRoute, Return, Send
from pocketmq.balance.producer.retry import (
    Attempts,
    SendMode,
    SendPlan,
    TryEnded,
    cancelled,
    first_step,
    next_step,
)
from pocketmq.balance.producer.round_robin import Chance
from pocketmq.balance.profile import Profile
from pocketmq.client.producer.choices import Choice
from pocketmq.client.producer.faults import Faults
from pocketmq.client.producer.hooks import SendHooks
from pocketmq.client.producer.publishing import Publication
from pocketmq.client.producer.requests import Outgoing
from pocketmq.client.producer_options import ProducerOptions
from pocketmq.errors import MQError
from pocketmq.model.message import Message
from pocketmq.model.queue import MessageQueue
from pocketmq.model.receipt import SendReceipt


class SendCall(msgspec.Struct, frozen=True, gc=False):
    """One send, as its caller asked for it. One deadline covers everything from `started` on."""

    outgoing: Outgoing
    messages: Sequence[Message]
    """What `outgoing` was made of."""
    choice: Choice | None
    mode: SendMode
    timeout: float
    started: float


class Try(msgspec.Struct, frozen=True, gc=False):
    """Send to this queue and wait at most `timeout` seconds for the response."""

    queue: MessageQueue
    timeout: float


Outcome: TypeAlias = SendReceipt | MQError | None
"""What came of a try; None for a message that was sent one way."""
Tries: TypeAlias = Generator[Try, Outcome, SendReceipt | None]
"""Returns the receipt, None for a message sent one way; raises `SendFailed`, or what a choice does.

A shell that is cancelled during a try throws that into the generator, which does not blame the
broker then, and raises it again.
"""


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
        self._always_planned = faults.table is not None or options.send_timeout_per_try is not None

    def is_plain(self, choice: Choice | None) -> bool:
        """Return whether the first try is no more than the next queue in turn."""
        return choice is None and not self._always_planned and not self._hooks.hooks

    def tries(self, call: SendCall, publication: Publication) -> Tries:
        """Try a send until a broker has stored it, or the rules say enough."""
        ended: TryEnded | None = None
        if self.is_plain(call.choice):
            # What the rules decide for a first try, without the cost of asking them: queues take
            # turns, and a message that is stored is done. Nearly all sends end here.
            queue = publication.robin.next(publication.queues)
            began = self._now()
            outcome = yield Try(queue, call.timeout - (began - call.started))
            if isinstance(outcome, SendReceipt) and (
                outcome.ok or not self._options.retry_when_not_stored_ok
            ):
                return outcome
            ended = TryEnded(queue, self._now() - began, outcome)
            del outcome  # an error has a traceback, whose frames would have this one
        return (yield from self._planned(call, publication, ended))

    def _planned(self, call: SendCall, publication: Publication, ended: TryEnded | None) -> Tries:
        """Go by the rules, from the first try on or after `ended`."""
        plan, started, now = self._plan(call), call.started, self._now
        chosen = None if call.choice is None else call.choice(publication.queues)
        attempts = Attempts()
        action = first_step(plan, now() - started)
        while ended is not None or isinstance(action, Send):
            if ended is None:
                assert isinstance(action, Send)
                queue = queue_for(
                    action,
                    publication.queues,
                    publication.robin,
                    self._faults.table,
                    now=now(),
                    chance=self._chance,
                    chosen=chosen,
                )
                ended = yield from self._try(call, plan, queue, action.timeout)
            decision = next_step(plan, attempts, ended, now() - started)
            self._take(call, decision.feedback)
            attempts, action, ended = decision.attempts, decision.action, None
        if isinstance(action, Return):
            return action.receipt
        raise action.error

    def _try(
        self, call: SendCall, plan: SendPlan, queue: MessageQueue, timeout: float
    ) -> Generator[Try, Outcome, TryEnded]:
        began = self._now()
        context = self._hooks.before(call.outgoing, call.messages, queue, call.mode)
        try:
            outcome = yield Try(queue, timeout)
        except GeneratorExit:
            raise
        except BaseException:
            self._take(call, cancelled(plan, queue, self._now() - began))
            raise
        latency = self._now() - began
        if context is not None:
            self._hooks.after(context, outcome, latency)
        return TryEnded(queue, latency, outcome)

    def _take(self, call: SendCall, feedback: Sequence[Feedback]) -> None:
        for each in feedback:
            if isinstance(each, RefreshRoute):
                self._refresh_route(call.outgoing.topic)
            else:
                self._faults.update(each)

    def _plan(self, call: SendCall) -> SendPlan:
        options = self._options
        return SendPlan(
            profile=self._profile,
            topic=call.messages[0].topic,
            mode=call.mode,
            pinned=call.choice is not None,
            retries=options.retries,
            timeout=call.timeout,
            timeout_per_try=options.send_timeout_per_try,
            retry_another_broker=options.retry_when_not_stored_ok,
            detector=self._faults.detector,
        )
