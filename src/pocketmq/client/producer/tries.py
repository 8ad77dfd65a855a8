"""The tries of one send, as `balance.producer.retry` decides them, one after another.

Carries the decisions out and gives feedback to fault table, routes and hooks.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pocketmq.balance.producer.choice import queue_for
from pocketmq.balance.producer.plan import Feedback, RefreshRoute, Return, Send, SendMode, SendPlan
from pocketmq.balance.producer.retry import SendAttempts, TryEnded, cancelled, first_step, next_step
from pocketmq.client.producer.choices import Choice
from pocketmq.client.producer.hooks import SendContext, call_after, call_before
from pocketmq.client.producer.publishing import Publication
from pocketmq.client.producer.requests import Outgoing
from pocketmq.errors import BrokerNotFound, MQError
from pocketmq.model.message import Message, SendReceipt
from pocketmq.model.queue import MessageQueue

if TYPE_CHECKING:
    from pocketmq.client.producer.sending import Sending


class Tries:
    """One send until the rules say enough."""

    def __init__(
        self,
        sending: "Sending",
        outgoing: Outgoing,
        messages: Sequence[Message],
        plan: SendPlan,
        started: float,
    ) -> None:
        self._sending = sending
        self._outgoing = outgoing
        self._messages = messages
        self._plan = plan
        self._started = started

    async def run(
        self, publication: Publication, choice: Choice | None, ended: TryEnded | None = None
    ) -> SendReceipt | None:
        """Give the receipt, or None of a message that left one way; `ended` is a try made before.

        Raises `SendFailed`, or what the choice does.
        """
        chosen = None if choice is None else choice(publication.queues)
        plan, sending = self._plan, self._sending
        attempts = SendAttempts()
        action = first_step(plan, self._elapsed())
        while ended is not None or isinstance(action, Send):
            if ended is None:
                assert isinstance(action, Send)
                queue = queue_for(
                    action,
                    publication.queues,
                    publication.robin,
                    sending.faults.table,
                    now=sending.now(),
                    chance=sending.session.random.randrange,
                    chosen=chosen,
                )
                ended = await self._try(queue, action.timeout)
            decision = next_step(plan, attempts, ended, self._elapsed())
            self._take(decision.feedback)
            attempts, action, ended = decision.attempts, decision.action, None
        if isinstance(action, Return):
            return action.receipt
        raise action.error

    @staticmethod
    def receipt(outcome: SendReceipt | None) -> SendReceipt:
        """Give what a send that waits for its answer has come to."""
        assert outcome is not None  # only messages that leave one way have none
        return outcome

    async def _try(self, queue: MessageQueue, timeout: float) -> TryEnded:  # noqa: ASYNC109 - a try's
        sending = self._sending
        began = sending.now()
        context = self._context(queue) if sending.hooks else None
        if context is not None:
            call_before(sending.hooks, context)
        outcome: SendReceipt | MQError | None
        try:
            if self._plan.mode is SendMode.ONEWAY:
                outcome = None
                await sending.tell(self._outgoing, queue, timeout)
            else:
                outcome = await sending.ask(self._outgoing, queue, timeout)
        except MQError as error:
            outcome = error
        except asyncio.CancelledError:
            self._take(cancelled(self._plan, queue, sending.now() - began))
            raise
        latency = sending.now() - began
        if context is not None:
            context.ended(outcome, latency)
            call_after(sending.hooks, context)
        return TryEnded(queue, latency, outcome)

    def _take(self, feedback: Sequence[Feedback]) -> None:
        for each in feedback:
            if isinstance(each, RefreshRoute):
                self._sending.refresh_soon(self._outgoing.topic)
            else:
                self._sending.faults.update(each)

    def _elapsed(self) -> float:
        return self._sending.now() - self._started

    def _context(self, queue: MessageQueue) -> SendContext:
        sending = self._sending
        try:
            address = sending.address(queue.broker_name)
        except BrokerNotFound:
            address = ""
        return SendContext(
            group=sending.group,
            client_id=sending.session.client_id,
            namespace=sending.namespace,
            messages=self._messages,
            unique_id=self._outgoing.unique_id,
            properties=self._outgoing.properties,
            queue=queue,
            address=address,
            mode=self._plan.mode,
            born_ms=sending.session.clock.now_ms(),
        )
