"""The retry loop: what each outcome leads to, as tables; that it always ends; what it ends with."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq import errors
from pocketmq.balance.producer import retry
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
from pocketmq.balance.profile import V4, V5, Profile
from pocketmq.model import MessageQueue, SendReceipt, SendStatus

QUEUE = MessageQueue("T", "a", 3)
SYNC, ASYNC, ONEWAY = SendMode.SYNC, SendMode.ASYNC, SendMode.ONEWAY

TIMED_OUT = errors.RequestTimedOut("a:10911", "SEND_MESSAGE_V2", 1.0)
LOST = errors.ConnectionLost("a:10911", "closed")
NO_CONNECT = errors.ConnectFailed("a:10911", "refused")
NO_ADDRESS = errors.BrokerNotFound("a")
GARBLED = errors.BodyMalformed("send reply", "no queue offset")
TOO_LARGE = errors.server_error(13)
NO_TOPIC = errors.server_error(17)
BUSY = errors.server_error(2)


def receipt(status: SendStatus = SendStatus.SEND_OK) -> SendReceipt:
    return SendReceipt(
        status=status, message_id="id", offset_message_id="0A", queue=QUEUE, queue_offset=1
    )


STORED = receipt()
UNSAFE = receipt(SendStatus.FLUSH_DISK_TIMEOUT)


def plan(profile: Profile = V5, mode: SendMode = SYNC, **options: object) -> SendPlan:
    return SendPlan(profile=profile, topic="T", mode=mode, **options)  # type: ignore[arg-type]


def after(
    plan: SendPlan, *outcomes: SendReceipt | errors.MQError | None, elapsed: float = 0.5
) -> tuple[tuple[Feedback, ...], Action]:
    """Return the decision after the last of some tries that all went to `QUEUE` and took 0.2 s."""
    attempts = retry.SendAttempts()
    for outcome in outcomes:
        decision = retry.next_step(plan, attempts, retry.TryEnded(QUEUE, 0.2, outcome), elapsed)
        attempts = decision.attempts
    return decision.feedback, decision.action


def gave_up(action: Action) -> errors.SendFailed:
    assert isinstance(action, GiveUp)
    assert isinstance(action.error, errors.SendFailed)
    return action.error


RETRY = Send(Aim.ANY_QUEUE, 2.5, avoid="a", restart=True)
RETRY_ASYNC = Send(Aim.SAME_QUEUE_ID, 2.5, avoid="a", queue_id=3)
END = None  # stands for giving up


@pytest.mark.parametrize(
    ("outcome", "blame_4x", "blame_5x", "blame_detector", "then"),
    [
        # the broker is isolated, and still counts as reachable
        (STORED, (False, True), (False, True), (False, True), Return(STORED)),
        (UNSAFE, (False, True), (False, True), (False, True), Return(UNSAFE)),
        (NO_ADDRESS, (True, True), (False, True), (False, True), RETRY),
        (TIMED_OUT, (True, True), (True, True), (True, False), RETRY),
        (LOST, (True, True), (True, True), (True, False), RETRY),
        (NO_CONNECT, (True, True), (True, True), (True, False), RETRY),
        (GARBLED, (True, True), (True, True), (True, False), RETRY),
        (NO_TOPIC, (True, True), (True, False), (True, False), RETRY),
        (TOO_LARGE, (True, True), (True, False), (True, False), END),
    ],
    ids=str,
)
def test_the_outcome_of_a_synchronous_try_decides(
    outcome: SendReceipt | errors.MQError,
    blame_4x: tuple[bool, bool],
    blame_5x: tuple[bool, bool],
    blame_detector: tuple[bool, bool],
    then: Action | None,
) -> None:
    refresh = isinstance(outcome, errors.MQError) and outcome.refresh_route
    for made, blame in (
        (plan(V4), blame_4x),
        (plan(V5), blame_5x),
        (plan(V4, detector=True), blame_4x),
        (plan(V5, detector=True), blame_detector),
    ):
        feedback, action = after(made, outcome)
        assert feedback[0] == UpdateFault("a", 0.2, *blame)
        assert feedback[1:] == ((RefreshRoute("T"),) if refresh else ())
        if then is None:
            assert gave_up(action).last_error is outcome
        else:
            assert action == then


@pytest.mark.parametrize(
    ("outcome", "blame", "then"),
    [
        (STORED, (False, True), Return(STORED)),
        (UNSAFE, (False, True), Return(UNSAFE)),
        (NO_ADDRESS, (False, True), END),
        (TIMED_OUT, (True, True), RETRY_ASYNC),
        (LOST, (True, True), RETRY_ASYNC),
        (NO_CONNECT, (True, True), RETRY_ASYNC),
        (NO_TOPIC, (True, True), END),
        (BUSY, (True, True), END),
        (TOO_LARGE, (True, True), END),
    ],
    ids=str,
)
@pytest.mark.parametrize("profile", [V4, V5], ids=["4.x", "5.x"])
def test_an_asynchronous_send_retries_only_what_got_no_answer(
    profile: Profile,
    outcome: SendReceipt | errors.MQError,
    blame: tuple[bool, bool],
    then: Action | None,
) -> None:
    feedback, action = after(plan(profile, ASYNC, retry_another_broker=True), outcome)
    assert feedback[0] == UpdateFault("a", 0.2, *blame)
    if then is None:
        assert gave_up(action).last_error is outcome
    else:
        assert action == then


@pytest.mark.parametrize(
    ("code", "retried_4x", "retried_5x"),
    [
        (1, True, True),
        (2, False, True),
        (3, False, False),
        (13, False, False),
        (14, True, True),
        (16, True, True),
        (17, True, True),
        (29, False, False),
        (204, True, True),
        (205, True, True),
        (215, False, False),
        (1500, False, True),
        (7777, False, False),
    ],
)
def test_these_refusals_are_worth_asking_another_broker(
    code: int, retried_4x: bool, retried_5x: bool
) -> None:
    for profile, retried in ((V4, retried_4x), (V5, retried_5x)):
        _, action = after(plan(profile), errors.server_error(code))
        assert isinstance(action, Send) is retried
        if not retried:
            assert gave_up(action).code == code


def test_further_codes_can_be_made_worth_it() -> None:
    _, action = after(plan(V4, extra_retry_codes=frozenset({215})), errors.server_error(215))
    assert action == RETRY


@pytest.mark.parametrize(
    ("mode", "pinned", "tries", "first", "again"),
    [
        (SYNC, False, 3, Aim.ANY_QUEUE, Aim.ANY_QUEUE),
        (SYNC, True, 1, Aim.CHOSEN_QUEUE, None),
        (ASYNC, False, 3, Aim.ANY_QUEUE, Aim.SAME_QUEUE_ID),
        (ASYNC, True, 3, Aim.CHOSEN_QUEUE, Aim.CHOSEN_QUEUE),
        (ONEWAY, False, 1, Aim.ANY_QUEUE, None),
        (ONEWAY, True, 1, Aim.CHOSEN_QUEUE, None),
    ],
)
def test_how_often_and_where_each_way_of_sending_tries(
    mode: SendMode, pinned: bool, tries: int, first: Aim, again: Aim | None
) -> None:
    made = plan(V5, mode, pinned=pinned)
    assert made.max_tries == tries
    action = retry.first_step(made)
    assert isinstance(action, Send)
    assert (action.aim, action.avoid, action.restart) == (first, None, False)
    for done in range(1, tries):
        _, action = after(made, *[TIMED_OUT] * done)
        assert isinstance(action, Send)
        assert action.aim is again
    _, action = after(made, *[TIMED_OUT] * tries)
    assert gave_up(action).attempts == tries


@pytest.mark.parametrize(
    ("mode", "pinned", "learns"),
    [
        (SYNC, False, True),
        (SYNC, True, False),
        (ASYNC, False, True),
        (ASYNC, True, True),
        (ONEWAY, False, True),
        (ONEWAY, True, False),
    ],
)
def test_nothing_is_learnt_from_a_queue_the_caller_chose_unless_asynchronously(
    mode: SendMode, pinned: bool, learns: bool
) -> None:
    made = plan(V5, mode, pinned=pinned)
    feedback, _ = after(made, TIMED_OUT)
    assert any(isinstance(told, UpdateFault) for told in feedback) is learns
    assert bool(retry.cancelled(made, QUEUE, 0.2)) is learns


def test_a_cancelled_try_is_not_the_brokers_fault() -> None:
    assert retry.cancelled(plan(), QUEUE, 9.0) == (
        UpdateFault("a", 9.0, isolate=False, reachable=True),
    )


def test_a_message_sent_one_way_has_no_receipt() -> None:
    feedback, action = after(plan(V5, ONEWAY), None)
    assert feedback == (UpdateFault("a", 0.2, isolate=False),)
    assert action == Return(None)


def test_an_unsafely_stored_message_is_sent_once_more_if_asked_for() -> None:
    made = plan(retry_another_broker=True)
    assert after(made, UNSAFE)[1] == RETRY
    assert after(made, UNSAFE, STORED)[1] == Return(STORED)
    assert after(plan(retry_another_broker=True, pinned=True), UNSAFE)[1] == Return(UNSAFE)


@pytest.mark.parametrize("later", [[TIMED_OUT, LOST], [TOO_LARGE], [TIMED_OUT, TOO_LARGE]])
def test_an_earlier_receipt_wins_over_later_errors(later: list[errors.MQError]) -> None:
    assert after(plan(retry_another_broker=True), UNSAFE, *later)[1] == Return(UNSAFE)


def test_the_last_of_several_unsafe_receipts_is_returned() -> None:
    last = receipt(SendStatus.SLAVE_NOT_AVAILABLE)
    assert after(plan(retry_another_broker=True), UNSAFE, UNSAFE, last)[1] == Return(last)


@pytest.mark.parametrize(
    ("mode", "tries", "elapsed", "per_try", "timeout"),
    [
        (SYNC, 0, 0.0, None, 3.0),
        (SYNC, 0, 1.0, None, 2.0),
        (SYNC, 1, 1.0, None, 2.0),
        (SYNC, 0, 0.0, 0.8, 0.8),
        (SYNC, 1, 2.5, 0.8, 0.5),
        (SYNC, 2, 1.0, 0.8, 2.0),  # the last try may use all that is left
        (ASYNC, 0, 0.0, 0.8, 3.0),
        (ASYNC, 1, 1.0, 0.8, 2.0),
        (ONEWAY, 0, 0.0, 0.8, 3.0),
    ],
)
def test_a_try_gets_what_is_left_of_the_time(
    mode: SendMode, tries: int, elapsed: float, per_try: float | None, timeout: float
) -> None:
    made = plan(V5, mode, timeout_per_try=per_try)
    if tries:
        _, action = after(made, *[TIMED_OUT] * tries, elapsed=elapsed)
    else:
        action = retry.first_step(made, elapsed)
    assert isinstance(action, Send)
    assert action.timeout == timeout


@pytest.mark.parametrize("elapsed", [3.0, 3.1])
def test_after_the_deadline_nothing_is_sent(elapsed: float) -> None:
    error = gave_up(retry.first_step(plan(), elapsed))
    assert (error.attempts, error.broker, error.last_error) == (0, None, None)
    error = gave_up(after(plan(), NO_CONNECT, elapsed=elapsed)[1])
    assert (error.attempts, error.broker, error.last_error) == (1, "a", NO_CONNECT)
    assert after(plan(retry_another_broker=True), UNSAFE, elapsed=elapsed)[1] == Return(UNSAFE)


@pytest.mark.parametrize(
    ("outcomes", "unknown"),
    [
        ([NO_CONNECT, NO_CONNECT, NO_CONNECT], False),
        ([NO_TOPIC, NO_CONNECT, NO_ADDRESS], False),
        ([TIMED_OUT, NO_CONNECT, NO_CONNECT], True),
        ([LOST, NO_TOPIC, NO_TOPIC], True),
        ([NO_TOPIC, NO_TOPIC, TIMED_OUT], True),
        ([TIMED_OUT, TOO_LARGE], True),
        ([TOO_LARGE], False),
        ([GARBLED, TOO_LARGE], True),
    ],
)
def test_a_failed_send_says_whether_any_try_may_have_stored_the_message(
    outcomes: list[errors.MQError], unknown: bool
) -> None:
    error = gave_up(after(plan(), *outcomes)[1])
    assert error.outcome_unknown is unknown
    assert error.last_error is outcomes[-1]
    assert error.__cause__ is outcomes[-1]
    assert error.retryable is outcomes[-1].retryable
    assert pickle.loads(pickle.dumps(error)).outcome_unknown is unknown
    assert errors.SendFailed.outcome_unknown is False  # the class itself makes no claim


def test_a_failed_send_tells_the_story_and_what_to_do() -> None:
    assert str(gave_up(after(plan(), NO_CONNECT, NO_CONNECT, NO_CONNECT)[1])) == (
        "message to topic 'T' not acknowledged after 3 tries in 0.500 s, last by broker 'a': "
        "a:10911: refused; the message was not stored and can be resent"
    )
    assert str(gave_up(after(plan(), TIMED_OUT, TOO_LARGE)[1])).endswith(
        "the message may be stored: resend it only if consumers are idempotent"
    )
    assert str(gave_up(after(plan(), TOO_LARGE)[1])) == (
        "message to topic 'T' not acknowledged after 1 try in 0.500 s, last by broker 'a': "
        "refused the request: MESSAGE_ILLEGAL (13); "
        "the message was not stored, and resending it unchanged will fail again"
    )
    assert str(gave_up(retry.first_step(plan(), 3.25))) == (
        "message to topic 'T' not sent within 3.250 s; the message was not stored and can be resent"
    )


def test_input_that_can_never_work_is_raised_as_it_is() -> None:
    wrong = errors.InvalidInput("too long a property")
    assert after(plan(), wrong) == ((), GiveUp(wrong))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"retries": -1}, "retries must be 0 or more, not -1"),
        ({"timeout": 0.0}, "timeout must be positive, not 0"),
        ({"timeout": float("nan")}, "timeout must be positive, not nan"),
        ({"timeout_per_try": -1.0}, "timeout_per_try must be positive, not -1"),
    ],
)
def test_limits_that_make_no_sense_are_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(errors.InvalidInput, match=said):
        plan(V5, SYNC, **options)


outcomes: st.SearchStrategy[SendReceipt | errors.MQError] = st.sampled_from(
    [UNSAFE, TIMED_OUT, LOST, NO_CONNECT, NO_ADDRESS, GARBLED, NO_TOPIC, BUSY, TOO_LARGE]
)
plans = st.builds(
    lambda profile, mode, pinned, another, retries, timeout, per_try: plan(
        profile,
        mode,
        pinned=pinned,
        retry_another_broker=another,
        retries=retries,
        timeout=timeout,
        timeout_per_try=per_try,
    ),
    st.sampled_from([V4, V5]),
    st.sampled_from(SendMode),
    st.booleans(),
    st.booleans(),
    st.integers(0, 6),
    st.floats(0.01, 10),
    st.none() | st.floats(0.01, 10),
)


@given(plans, st.data())
def test_every_send_ends_within_its_tries_and_its_time(made: SendPlan, data: st.DataObject) -> None:
    """No try begins after the deadline, and none is given more time than is left."""
    attempts, elapsed = retry.SendAttempts(), 0.0
    action = retry.first_step(made, elapsed)
    while isinstance(action, Send):
        assert elapsed < made.timeout
        assert 0 < action.timeout <= made.timeout - elapsed
        assert attempts.count < made.max_tries
        took = data.draw(st.floats(0, action.timeout))
        elapsed += took
        ended = retry.TryEnded(QUEUE, took, data.draw(outcomes))
        decision = retry.next_step(made, attempts, ended, elapsed)
        attempts, action = decision.attempts, decision.action
    assert attempts.count <= made.max_tries
    assert elapsed <= made.timeout + 1e-9
    if isinstance(action, GiveUp):
        error = gave_up(action)
        assert error.attempts == attempts.count
        assert error.outcome_unknown == attempts.outcome_unknown
    else:
        assert action == Return(UNSAFE)
