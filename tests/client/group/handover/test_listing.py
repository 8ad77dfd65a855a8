"""The members of a group: when a list of them is complete, so that the missing are gone."""

import pytest

from pocketmq.balance.handover.events import Listed
from pocketmq.client.group.handover import listing
from pocketmq.client.options import ClientOptions
from pocketmq.client.sessions import lease_session
from pocketmq.client.tasks import Tasks
from tests.client.group.groups import cluster
from tests.loops import until


@pytest.mark.parametrize("broker", ["broker-0", "nowhere"])
async def test_a_broker_that_never_lists_the_group_hides_for_a_while_who_is_gone(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "UNLISTED", 0.3)
    async with cluster(1) as running:
        lease = await lease_session(ClientOptions(name_servers=running.address))
        tasks = Tasks("test")
        lists: list[Listed] = []
        try:
            await lease.session.fetch_routes(["orders"])
            members = listing.MemberListing(
                lease.session, "billing", tasks, lambda: {broker}, lists.append
            )

            def asked() -> bool:
                members.ask_soon()
                return len(lists) > 1 and lists[-1].complete

            await until(asked, "a complete list")
        finally:
            await tasks.stop()
            await lease.release()
    assert lists[0] == Listed((), complete=False)
    assert lists[-1] == Listed((), complete=True)
