"""The machine's requests: answered whatever happens."""

from pocketmq.balance.handover import events
from pocketmq.balance.handover import instructions as do
from pocketmq.client.group.handover.requests import HandoverRequests
from tests.client.group.handover.test_queues import QUEUE, shell
from tests.loops import until


async def test_a_request_that_fails_in_a_way_nobody_knows_is_answered() -> None:
    async def fail(*_: object) -> None:
        raise RuntimeError("nobody expected this")

    async with shell() as a:
        sticky = a.sticky
        reported: list[object] = []
        requests = HandoverRequests(
            a.parts, sticky._settings, sticky._bus, reported.append, orderly=False
        )
        commits = sticky._queues.commits
        requests._locks.lock = requests._locks.unlock = fail  # type: ignore[method-assign,assignment]
        commits.read = commits.store = fail  # type: ignore[method-assign,assignment]
        requests.add_locks(do.Lock(QUEUE, do.BOTH))
        requests.add_locks(do.Unlock(QUEUE, do.RUN, "x#1"))
        requests.send()
        requests.renew(do.Renew("broker-0", frozenset()))
        requests.read_offset(do.ReadStart(QUEUE))
        requests.store_offset(do.StoreOffset(QUEUE, 1))
        await until(lambda: len(reported) == 5, "all answers")
        locked, unlocked, renewed, read, stored = reported
        assert locked == events.Locked(QUEUE, None)
        assert unlocked == events.Unlocked(QUEUE, do.RUN, "x#1", done=False)
        assert isinstance(renewed, events.Renewed)
        assert renewed.granted is None
        assert read == events.StartRead(QUEUE, None, stored=False)
        assert stored == events.OffsetStored(QUEUE, done=False)
        for name in ("read", "store"):
            delattr(commits, name)
