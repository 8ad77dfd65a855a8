"""Orderly consuming, row by row."""

import pytest
from msgspec.structs import replace

from pocketmq.balance.consumer import orderly
from pocketmq.balance.consumer.instructions import Instruction, UpdateOffset
from pocketmq.balance.profile import V4, V5, Profile
from pocketmq.model import MessageModel
from tests.balance.consumer.shapes import Msg, filled, q

A = q(0)
SUCCESS, COMMIT, ROLLBACK, SUSPEND = (
    orderly.OrderlyStatus.SUCCESS,
    orderly.OrderlyStatus.COMMIT,
    orderly.OrderlyStatus.ROLLBACK,
    orderly.OrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT,
)
BROADCASTING = MessageModel.BROADCASTING
FIRST = orderly.TaskFacts(
    queue=A,
    model=MessageModel.CLUSTERING,
    dropped=False,
    locked=True,
    lock_expired=False,
    now=100.0,
)
INSIDE = replace(FIRST, began=40.0)

TASKS: list[tuple[str, orderly.TaskFacts, dict[str, object], Instruction]] = [
    ("a locked queue is consumed", FIRST, {}, orderly.TakeBatch()),
    ("a dropped queue ends", FIRST, {"dropped": True, "locked": False}, orderly.EndTask()),
    (
        "no lock at first: ask in 100 ms",
        FIRST,
        {"locked": False},
        orderly.RelockThenConsume(A, 0.1),
    ),
    (
        "an old lock at first: ask in 100 ms",
        FIRST,
        {"lock_expired": True},
        orderly.RelockThenConsume(A, 0.1),
    ),
    (
        "broadcasting needs no lock",
        FIRST,
        {"locked": False, "model": BROADCASTING},
        orderly.TakeBatch(),
    ),
    (
        "the lock is lost inside: ask in 10 ms",
        INSIDE,
        {"locked": False},
        orderly.RelockThenConsume(A, 0.01),
    ),
    (
        "the lock is old inside: ask in 10 ms",
        INSIDE,
        {"lock_expired": True},
        orderly.RelockThenConsume(A, 0.01),
    ),
    ("dropped inside", INSIDE, {"dropped": True}, orderly.EndTask()),
    ("60 s in one go are allowed", INSIDE, {}, orderly.TakeBatch()),
    ("more are not", INSIDE, {"now": 100.1}, orderly.ConsumeLater(A, 0.01)),
    (
        "not for broadcasting either",
        INSIDE,
        {"now": 100.1, "model": BROADCASTING},
        orderly.ConsumeLater(A, 0.01),
    ),
]


@pytest.mark.parametrize("profile", [V4, V5])
@pytest.mark.parametrize(("rule", "facts", "changes", "step"), TASKS, ids=[row[0] for row in TASKS])
def test_before_a_batch(
    rule: str,
    facts: orderly.TaskFacts,
    changes: dict[str, object],
    step: Instruction,
    profile: Profile,
) -> None:
    assert orderly.next_batch(profile, replace(facts, **changes)) == step


def test_after_asking_for_the_lock_consuming_goes_on_soon_or_in_3_s() -> None:
    assert orderly.after_relock(A, granted=True) == orderly.ConsumeLater(A, 0.01)
    assert orderly.after_relock(A, granted=False) == orderly.ConsumeLater(A, 3.0)


M = (Msg(4), Msg(5, reconsume_times=2))
AGAIN = (orderly.RaiseReconsume((4, 5)), orderly.ConsumeBatchAgain(A))
COMMITTED = orderly.OrderlyDecision((orderly.CommitBatch(A),), True)


def said(status: orderly.OrderlyStatus | None, **facts: object) -> orderly.OrderlyAnswer:
    return orderly.OrderlyAnswer(queue=A, status=status, **facts)  # type: ignore[arg-type]


def later(after: float) -> orderly.OrderlyDecision:
    return orderly.OrderlyDecision((*AGAIN, orderly.ConsumeLater(A, after)), False)


def by_hand(status: orderly.OrderlyStatus | None, **facts: object) -> orderly.OrderlyAnswer:
    return said(status, auto_commit=False, **facts)


ANSWERS: list[tuple[str, orderly.OrderlyAnswer, orderly.OrderlyDecision]] = [
    ("auto: success commits", said(SUCCESS), COMMITTED),
    (
        "auto: commit is a warned success",
        said(COMMIT),
        orderly.OrderlyDecision((orderly.WarnWrongStatus(COMMIT), orderly.CommitBatch(A)), True),
    ),
    (
        "auto: rollback is a warned success",
        said(ROLLBACK),
        orderly.OrderlyDecision((orderly.WarnWrongStatus(ROLLBACK), orderly.CommitBatch(A)), True),
    ),
    ("auto: suspend waits a second", said(SUSPEND), later(1.0)),
    ("auto: no answer is suspend", said(None), later(1.0)),
    ("the consumer's own wait", said(SUSPEND, suspend_default=2.5), later(2.5)),
    (
        "the handler's own wait goes first",
        said(SUSPEND, suspend=4.0, suspend_default=2.5),
        later(4.0),
    ),
    ("no wait is shorter than 10 ms", said(SUSPEND, suspend=0.0), later(0.01)),
    ("no wait is longer than 30 s", said(SUSPEND, suspend=31.0), later(30.0)),
    ("by hand: success waits for a commit", by_hand(SUCCESS), orderly.OrderlyDecision((), True)),
    ("by hand: commit", by_hand(COMMIT), COMMITTED),
    (
        "by hand: rollback",
        by_hand(ROLLBACK, suspend=0.5),
        orderly.OrderlyDecision((orderly.RollBackBatch(A), orderly.ConsumeLater(A, 0.5)), False),
    ),
    ("by hand: suspend", by_hand(SUSPEND), later(1.0)),
    ("by hand: no answer is suspend", by_hand(None), later(1.0)),
    ("below the limit all are tried again", said(SUSPEND, max_reconsume=3), later(1.0)),
]


@pytest.mark.parametrize(("rule", "answer", "decision"), ANSWERS, ids=[row[0] for row in ANSWERS])
def test_after_a_handler(
    rule: str, answer: orderly.OrderlyAnswer, decision: orderly.OrderlyDecision
) -> None:
    assert orderly.after_handler(answer, M) == decision
    assert orderly.exhausted(answer, M) == ()


def test_one_exhausted_message_goes_away_with_its_batch_tried_again() -> None:
    """Java puts the whole batch back; the one that was sent comes to the handler once more."""
    answer = said(SUSPEND, max_reconsume=2)
    assert orderly.exhausted(answer, M) == (M[1],)
    again = (
        orderly.RaiseReconsume((4,)),
        orderly.ConsumeBatchAgain(A),
        orderly.ConsumeLater(A, 1.0),
    )
    assert orderly.after_handler(answer, M) == orderly.OrderlyDecision(again, False)


def test_a_batch_of_exhausted_messages_is_committed_once_they_are_sent() -> None:
    answer = said(SUSPEND, max_reconsume=0)
    assert orderly.exhausted(answer, M) == M
    assert orderly.after_handler(answer, M) == COMMITTED
    assert orderly.after_handler(replace(answer, auto_commit=False), M) == orderly.OrderlyDecision(
        (), True
    )


def test_an_exhausted_message_that_cannot_be_sent_is_tried_again() -> None:
    answer = said(SUSPEND, max_reconsume=0)
    again = (
        orderly.RaiseReconsume((5,)),
        orderly.ConsumeBatchAgain(A),
        orderly.ConsumeLater(A, 1.0),
    )
    assert orderly.after_handler(answer, M, not_sent={5}) == orderly.OrderlyDecision(again, False)


def test_success_exhausts_nothing() -> None:
    assert orderly.exhausted(said(SUCCESS, max_reconsume=0), M) == ()


def test_without_a_limit_nothing_is_ever_exhausted() -> None:
    assert orderly.max_reconsume_times(-1) == 2**31 - 1
    assert orderly.max_reconsume_times(5) == 5


def test_an_orderly_commit_may_go_back_but_not_for_lost_queues() -> None:
    assert orderly.commit_step(A, 7, dropped=False) == UpdateOffset(A, 7, increase_only=False)
    assert orderly.commit_step(A, 7, dropped=True) is None
    assert orderly.commit_step(A, -1, dropped=False) is None


def test_a_suspended_batch_is_given_out_again_in_order_before_anything_else() -> None:
    cache = filled(1, 2, 3, 4)
    batch = cache.take(2, 0.0)
    decision = orderly.after_handler(said(SUSPEND), batch)
    assert orderly.ConsumeBatchAgain(A) in decision.instructions
    cache.consume_again(batch)
    assert [m.queue_offset for m in cache.take(3, 0.0)] == [1, 2, 3]
    assert cache.commit() == 4
