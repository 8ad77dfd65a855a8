"""Many locks travel in few requests, and each queue's own keep their order."""

from pocketmq.balance.handover.events import LockPart
from pocketmq.balance.handover.instructions import BOTH, RUN, TAIL, Lock, Unlock
from pocketmq.client.group.handover.requests import HandoverLocks, lock_requests
from pocketmq.client.options import ClientOptions
from pocketmq.client.sessions import lease_session
from pocketmq.model import MessageQueue
from tests.client.group.groups import cluster

ONE, TWO = MessageQueue("orders", "broker-0", 0), MessageQueue("orders", "broker-0", 1)
FAR = MessageQueue("orders", "broker-1", 0)


def test_the_same_for_several_queues_of_a_broker_is_one_request() -> None:
    steps = [
        step
        for queue in (ONE, TWO, FAR)
        for step in (Unlock(queue, BOTH, "dead"), Unlock(queue, BOTH, "gone"), Lock(queue, BOTH))
    ]
    requests = lock_requests(steps)
    assert [(each.broker, each.owner, len(each.steps)) for each in requests] == [
        ("broker-0", "dead", 2),
        ("broker-0", "gone", 2),
        ("broker-0", None, 2),
        ("broker-1", "dead", 1),
        ("broker-1", "gone", 1),
        ("broker-1", None, 1),
    ]


def test_a_queue_is_unlocked_before_it_is_locked_again() -> None:
    steps: list[Lock | Unlock] = [
        Lock(ONE, RUN),
        Unlock(TWO, BOTH, "me"),
        Unlock(ONE, RUN, "me"),
        Lock(ONE, TAIL),
    ]
    requests = lock_requests(steps)
    mine = [(each.owner, step) for each in requests for step in each.steps if step.queue == ONE]
    assert mine == [(None, Lock(ONE, RUN)), ("me", Unlock(ONE, RUN, "me")), (None, Lock(ONE, TAIL))]
    assert lock_requests([]) == []


async def test_run_and_tail_are_two_locks_and_anyone_can_give_them_back() -> None:
    async with cluster(1) as running:
        lease = await lease_session(ClientOptions(name_servers=running.address))
        try:
            await lease.session.fetch_routes(["orders"])
            a = HandoverLocks(lease.session, "billing", "a#1", orderly=False)
            b = HandoverLocks(lease.session, "billing", "b#2", orderly=False)
            orderly = HandoverLocks(lease.session, "billing", "c#3", orderly=True)
            both = frozenset({(ONE, LockPart.RUN), (ONE, LockPart.TAIL)})
            assert await a.lock("broker-0", both) == both
            assert await b.lock("broker-0", both) == frozenset()
            assert await orderly.lock("broker-0", both) == both, "another name, another lock"
            assert await a.unlock("broker-0", "a#1", {(ONE, LockPart.RUN)})
            assert await b.lock("broker-0", both) == frozenset({(ONE, LockPart.RUN)})
            assert await b.unlock("broker-0", "a#1", both)
            assert await b.lock("broker-0", both) == both
            assert await a.lock("nowhere", both) is None
        finally:
            await lease.release()
