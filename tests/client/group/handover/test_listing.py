"""The members of a group: when a list of them is complete, so that the missing are gone."""

import asyncio

import pytest

from pocketmq.balance.handover.events import MembersListed
from pocketmq.client.group.handover import listing
from pocketmq.client.group.handover.bus import Bus
from pocketmq.client.options import ClientOptions
from pocketmq.client.sessions import lease_session
from pocketmq.client.tasks import Tasks
from pocketmq.protocol import RequestCode
from tests.client.group.groups import cluster
from tests.client.group.handover.test_queues import shell
from tests.loops import until


@pytest.mark.parametrize("broker", ["broker-0", "nowhere"])
async def test_a_broker_that_never_lists_the_group_hides_for_a_while_who_is_gone(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "UNLISTED", 0.3)
    async with cluster(1) as running:
        lease = await lease_session(ClientOptions(name_servers=running.address))
        tasks = Tasks("test")
        lists: list[MembersListed] = []
        try:
            await lease.session.fetch_routes(["orders"])
            bus = Bus(lease.session, "billing", tasks, lambda *_: None)
            members = listing.MemberListing(
                lease.session, "billing", tasks, lambda: {broker}, lists.append, bus=bus
            )

            def asked() -> bool:
                members.ask_soon()
                return len(lists) > 1 and lists[-1].complete

            await until(asked, "a complete list")
        finally:
            await tasks.stop()
            await lease.release()
    first, last = lists[0], lists[-1]
    assert (first.members, first.complete, first.shown_by) == ((), False, frozenset())
    assert (last.members, last.complete, last.shown_by) == ((), True, frozenset())


async def test_a_list_says_which_brokers_have_the_member_and_when_they_were_asked() -> None:
    async with shell() as a:
        session, lists = a.parts.session, list[MembersListed]()
        chosen, asked, now = list[float](), list[float](), asyncio.get_running_loop().time

        def brokers() -> set[str]:
            chosen.append(now())
            return {"broker-0", "nowhere"}

        def note(code: int, fields: dict[str, str], body: bytes) -> None:
            if code == RequestCode.GET_CONSUMER_LIST_BY_GROUP:
                asked.append(now())

        members = listing.MemberListing(
            session, a.parts.group, a.parts.tasks, brokers, lists.append, bus=a.sticky._bus
        )
        session.calls.hooks += (note,)
        members.ask_soon()
        await until(lambda: lists, "the list")
    assert lists[0].members == (session.client_id,)
    assert not lists[0].complete
    assert lists[0].shown_by == {"broker-0"}
    assert chosen[0] <= lists[0].asked_at <= asked[0], "before any broker was asked"
