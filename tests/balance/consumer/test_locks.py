"""Lock renewal of orderly consumers."""

from pocketmq.balance.consumer import locks
from pocketmq.balance.consumer.facts import OwnedQueue
from pocketmq.balance.consumer.instructions import LockBatch, MarkLocked, MarkUnlocked, UnlockBatch
from pocketmq.balance.profile import V4, V5
from pocketmq.model import MessageRequestMode
from tests.balance.consumer.shapes import q

A0, A1, B0 = q(0, "a"), q(1, "a"), q(0, "b")
OWNED = (
    OwnedQueue(A0, 0.0),
    OwnedQueue(B0, 0.0),
    OwnedQueue(A1, 0.0),
    OwnedQueue(q(2, "a"), 0.0, dropped=True),
    OwnedQueue(q(3, "c"), 0.0, mode=MessageRequestMode.POP),
)


def test_locks_are_renewed_with_one_request_for_each_broker() -> None:
    assert locks.lock_plan(OWNED) == (LockBatch("a", (A0, A1)), LockBatch("b", (B0,)))
    assert locks.lock_plan(()) == ()
    # Logical queues of a static topic are locked at the broker that leads them.
    assert locks.lock_plan(OWNED, lambda _: "leader") == (LockBatch("leader", (A0, B0, A1)),)


def test_what_a_broker_does_not_grant_is_not_locked() -> None:
    batch = LockBatch("a", (A0, A1))
    assert locks.after_lock_batch(batch, {A1, B0}) == (MarkUnlocked(A0), MarkLocked(A1))
    assert locks.after_lock_batch(batch, ()) == (MarkUnlocked(A0), MarkUnlocked(A1))


def test_a_silent_broker_changes_nothing() -> None:
    assert locks.after_lock_batch(LockBatch("a", (A0,)), None) == ()


def test_stopping_gives_all_locks_back() -> None:
    plan = locks.unlock_plan(OWNED)
    assert plan == (UnlockBatch("a", (A0, A1)), UnlockBatch("b", (B0,)))
    assert locks.after_unlock_batch(plan[0], answered=True) == (MarkUnlocked(A0), MarkUnlocked(A1))
    assert locks.after_unlock_batch(plan[0], answered=False) == ()


def test_renewal_comes_before_a_lock_grows_too_old() -> None:
    for profile in (V4, V5):
        assert (profile.lock_first_after, profile.lock_interval, profile.lock_max_age) == (
            1.0,
            20.0,
            30.0,
        )
