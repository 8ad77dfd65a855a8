"""Locks: one holder at a time, leases of 60 s."""

from hypothesis import given
from hypothesis import strategies as st

from pocketmq.broker.balancing.queue_locks import LEASE, GroupQueueLocks
from pocketmq.model import MessageQueue

Q0, Q1, Q2 = (MessageQueue("T", "b", number) for number in range(3))


def test_a_free_queue_is_granted() -> None:
    assert GroupQueueLocks().lock("g", "a", [Q0, Q1], 0.0) == [Q0, Q1]


def test_a_queue_of_another_member_is_refused_and_the_rest_granted() -> None:
    locks = GroupQueueLocks()
    locks.lock("g", "a", [Q0, Q1], 0.0)

    assert locks.lock("g", "b", [Q1, Q2], 1.0) == [Q2]


def test_a_lock_of_ones_own_is_renewed() -> None:
    locks = GroupQueueLocks()
    locks.lock("g", "a", [Q0], 0.0)

    assert locks.lock("g", "a", [Q0], 50.0) == [Q0]
    assert locks.lock("g", "b", [Q0], 50.0 + LEASE) == []
    assert locks.lock("g", "b", [Q0], 50.0 + LEASE + 0.001) == [Q0]


def test_a_lock_that_is_over_is_granted_to_its_old_holder_too() -> None:
    locks = GroupQueueLocks()
    locks.lock("g", "a", [Q0], 0.0)

    assert locks.lock("g", "a", [Q0], 61.0) == [Q0]
    assert locks.lock("g", "b", [Q0], 62.0) == []


def test_a_refused_lock_does_not_renew_the_holders() -> None:
    locks = GroupQueueLocks()
    locks.lock("g", "a", [Q0], 0.0)
    locks.lock("g", "b", [Q0], 59.0)

    assert locks.lock("g", "b", [Q0], 60.5) == [Q0]


def test_groups_do_not_know_each_others_locks() -> None:
    locks = GroupQueueLocks()
    locks.lock("g", "a", [Q0], 0.0)

    assert locks.lock("h", "b", [Q0], 0.0) == [Q0]


def test_unlocking_frees_a_queue_at_once() -> None:
    locks = GroupQueueLocks()
    locks.lock("g", "a", [Q0, Q1], 0.0)
    locks.unlock("g", "a", [Q0])

    assert locks.lock("g", "b", [Q0, Q1], 0.0) == [Q0]


def test_a_member_cannot_release_the_locks_of_another() -> None:
    locks = GroupQueueLocks()
    locks.lock("g", "a", [Q0], 0.0)
    locks.unlock("g", "b", [Q0, Q1])
    locks.unlock("nobody", "b", [Q0])

    assert locks.lock("g", "b", [Q0], 0.0) == []


def test_a_group_is_free_when_all_its_locks_are_over() -> None:
    locks = GroupQueueLocks()
    assert locks.all_free("g", 0.0)
    locks.lock("g", "a", [Q0], 0.0)
    locks.lock("g", "a", [Q1], 30.0)

    assert not locks.all_free("g", 61.0)
    assert locks.all_free("g", 91.0)


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["lock", "unlock", "expire"]),
        st.sampled_from(["a", "b", "c"]),
        st.sets(st.sampled_from([Q0, Q1, Q2])),
        st.floats(0, 50),
    ),
    max_size=40,
)


@given(ACTIONS)
def test_no_two_members_hold_a_queue_at_the_same_time(
    actions: list[tuple[str, str, set[MessageQueue], float]],
) -> None:
    """A member that was granted a queue holds it for 60 s, unless it gives it back."""
    locks, now = GroupQueueLocks(), 0.0
    held: dict[MessageQueue, tuple[str, float]] = {}
    for action, member, queues, pause in actions:
        now += pause
        if action == "expire":
            locks.expire(now)
        elif action == "unlock":
            locks.unlock("g", member, queues)
            held = {q: h for q, h in held.items() if q not in queues or h[0] != member}
        else:
            granted = locks.lock("g", member, queues, now)
            free = {
                queue
                for queue in queues
                if queue not in held or held[queue][0] == member or now - held[queue][1] > LEASE
            }
            assert set(granted) == free
            held.update(dict.fromkeys(granted, (member, now)))
