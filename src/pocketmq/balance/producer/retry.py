"""The retry loop of a send as a decision: what a try's outcome means, and what to do next.

One deadline covers all tries, and there is no pause between them, as in Java. The shell chooses
queues, sends, measures time, and carries the instructions out in their order.

Where we differ from Java on purpose:

* the route is refreshed as soon as an error suggests it, not at the next poll;
* 4.x spends what is left of an asynchronous send's tries after its deadline, blaming brokers it
  never asked; we stop at the deadline;
* Java counts handing an asynchronous request to the network as a quick success of the broker, and
  retries with the name server when a broker's address is unknown; we do neither.
"""

import msgspec

from pocketmq import errors
from pocketmq.balance.producer.plan import (
    Action,
    Aim,
    Feedback,
    GiveUp,
    RefreshRoute,
    Return,
    Send,
    SendMode,
    SendPlan,
    UpdateFault,
)
from pocketmq.balance.profile import rules_of
from pocketmq.model import MessageQueue, SendReceipt


class SendAttempts(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a send after the tries so far."""

    count: int = 0
    queue: MessageQueue | None = None
    """The queue of the last try."""
    queue_id: int | None = None
    """The queue id of the first try, which asynchronous retries keep."""
    receipt: SendReceipt | None = None
    """The last receipt, kept while another broker is tried."""
    error: errors.MQError | None = None
    outcome_unknown: bool = False
    """Whether any try may have stored the message although no receipt came."""


class TryEnded(msgspec.Struct, frozen=True):
    """A try came back: a receipt, an error, or None for a one-way request."""

    queue: MessageQueue
    latency: float
    outcome: SendReceipt | errors.MQError | None


class SendDecision(msgspec.Struct, frozen=True):
    """First give the feedback, in order; then act. Hand `attempts` to the next decision."""

    attempts: SendAttempts
    feedback: tuple[Feedback, ...]
    action: Action


_LEAST = 0.0009
"""Seconds worth another try. Java counts whole milliseconds; and timers of event loops count them,
too, so that a try that had all the time there was may end a little before it is over."""


def first_step(plan: SendPlan, elapsed: float = 0.0) -> Action:
    """Decide about the first try. `elapsed` is the time spent on the route already."""
    return _next_action(plan, SendAttempts(), elapsed)


def next_step(
    plan: SendPlan, attempts: SendAttempts, ended: TryEnded, elapsed: float
) -> SendDecision:
    """Decide after a try. `elapsed` counts from the call of the send; `ended.latency` is the try's.

    Always ends after `plan.max_tries` tries or once the deadline has passed. An error that
    `GiveUp` carries is a `SendFailed`, unless the input itself was wrong.
    """
    outcome = ended.outcome
    error = outcome if isinstance(outcome, errors.MQError) else None
    receipt = outcome if isinstance(outcome, SendReceipt) else attempts.receipt
    after = SendAttempts(
        count=attempts.count + 1,
        queue=ended.queue,
        queue_id=ended.queue.queue_id if attempts.queue_id is None else attempts.queue_id,
        receipt=receipt,
        error=error if error is not None else attempts.error,
        outcome_unknown=attempts.outcome_unknown or (error is not None and _may_be_stored(error)),
    )
    feedback = _feedback(plan, ended)
    action: Action
    if isinstance(error, errors.InvalidInput):
        action = GiveUp(error)
    elif error is None and not _unsafe(plan, outcome):
        action = Return(receipt)
    elif error is not None and not _worth_retrying(plan, error):
        action = _end(plan, after, elapsed)
    else:
        action = _next_action(plan, after, elapsed)
    return SendDecision(after, feedback, action)


def cancelled(plan: SendPlan, queue: MessageQueue, latency: float) -> tuple[Feedback, ...]:
    """Return the feedback for a try the caller did not wait for: the broker did not fail."""
    if plan.pinned and plan.mode is not SendMode.ASYNC:
        return ()
    return (UpdateFault(queue.broker_name, latency, isolate=False),)


def _next_action(plan: SendPlan, attempts: SendAttempts, elapsed: float) -> Action:
    remaining = plan.timeout - elapsed
    if attempts.count >= plan.max_tries or remaining < _LEAST:
        return _end(plan, attempts, elapsed)
    last = attempts.count + 1 >= plan.max_tries
    if plan.mode is SendMode.SYNC and plan.timeout_per_try is not None and not last:
        remaining = min(remaining, plan.timeout_per_try)
    if plan.pinned:
        return Send(Aim.CHOSEN_QUEUE, remaining)
    if attempts.queue is None:
        return Send(Aim.ANY_QUEUE, remaining)
    avoid = attempts.queue.broker_name
    if plan.mode is SendMode.ASYNC:
        return Send(Aim.SAME_QUEUE_ID, remaining, avoid, queue_id=attempts.queue_id)
    return Send(Aim.ANY_QUEUE, remaining, avoid, restart=True)


def _end(plan: SendPlan, attempts: SendAttempts, elapsed: float) -> Action:
    """Finish: a message stored less safely than asked is still stored: an earlier receipt wins."""
    if attempts.receipt is not None:
        return Return(attempts.receipt)
    return GiveUp(
        errors.SendFailed(
            plan.topic,
            attempts.queue.broker_name if attempts.queue else None,
            attempts.count,
            elapsed,
            attempts.error,
            outcome_unknown=attempts.outcome_unknown,
        )
    )


def _unsafe(plan: SendPlan, outcome: SendReceipt | errors.MQError | None) -> bool:
    """Return whether a stored message is sent to another broker, too."""
    return (
        isinstance(outcome, SendReceipt)
        and not outcome.ok
        and plan.retry_another_broker
        and plan.mode is SendMode.SYNC
        and not plan.pinned
    )


def _worth_retrying(plan: SendPlan, error: errors.MQError) -> bool:
    """Return whether another try makes sense, tries and time permitting."""
    if isinstance(error, errors.TransportError | errors.ProtocolError):
        return True
    if plan.mode is SendMode.ASYNC and not plan.retry_refusals:
        return False
    if isinstance(error, errors.ServerError):
        codes = rules_of(plan.profile).retry_codes
        return error.code in codes or error.code in plan.extra_retry_codes
    return error.retryable


def _may_be_stored(error: errors.MQError) -> bool:
    return error.outcome_unknown or isinstance(error, errors.ProtocolError)  # an unreadable answer


def _feedback(plan: SendPlan, ended: TryEnded) -> tuple[Feedback, ...]:
    feedback: list[Feedback] = []
    error = ended.outcome if isinstance(ended.outcome, errors.MQError) else None
    if isinstance(error, errors.InvalidInput):
        return ()
    if plan.mode is SendMode.ASYNC or not plan.pinned:
        # Java learns nothing from tries to a queue the caller chose, except asynchronous ones.
        isolate, reachable = _blame(plan, error)
        feedback.append(UpdateFault(ended.queue.broker_name, ended.latency, isolate, reachable))
    if error is not None and error.refresh_route:
        feedback.append(RefreshRoute(plan.topic))
    return tuple(feedback)


def _blame(plan: SendPlan, error: errors.MQError | None) -> tuple[bool, bool]:
    """Return whether the broker is isolated, and whether it still counts as reachable."""
    rules = rules_of(plan.profile)
    if error is None:
        return False, True
    if plan.mode is SendMode.ASYNC:
        return isinstance(
            error, errors.ServerError | errors.TransportError | errors.ProtocolError
        ), True
    if isinstance(error, errors.ServerError):
        return True, not rules.tracks_reachability
    if isinstance(error, errors.TransportError | errors.ProtocolError):
        return True, not (rules.tracks_reachability and plan.detector)
    return rules.client_error_isolates, True
