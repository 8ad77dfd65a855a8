"""Ages of notices: right whatever a broker's clock shows, and never too high."""

import asyncio

import pytest

from pocketmq.balance.handover.messages import Hello, Notice
from pocketmq.client.group.handover.ages import NoticeAges
from pocketmq.client.group.handover.bus import Bus, pull
from pocketmq.client.options import ClientOptions
from pocketmq.client.sessions import lease_session
from pocketmq.client.tasks import Tasks
from tests.client.group.groups import cluster
from tests.loops import leap, leaping, until


class Hours:
    """Ages on one bus, by a clock that the test sets."""

    def __init__(self) -> None:
        self.now = 100.0
        self.ages = NoticeAges(lambda: self.now)

    def own(self, sent: float, heard: float, stored: float) -> None:
        self.now = sent
        self.ages.sent("a", b"%f" % stored)
        self.now = heard
        self.ages.heard("a", b"%f" % stored, stored)

    def age(self, now: float, stored: float) -> float:
        self.now = now
        return round(self.ages.heard("a", b"other", stored), 3)


@pytest.mark.parametrize("ahead", [0.0, 3600.0, -86400.0, 1.8e9])
def test_the_clocks_need_not_agree(ahead: float) -> None:
    bus = Hours()
    assert bus.age(100.0, ahead) == 0.0, "nothing is known yet"
    bus.own(sent=200.0, heard=200.01, stored=ahead + 200.005)
    assert bus.age(210.0, ahead + 180.0) == pytest.approx(30.0, abs=0.01)
    assert bus.age(210.0, ahead + 210.0) == 0.0


def test_a_notice_that_is_heard_late_makes_none_look_fresh() -> None:
    """As after the process was stopped for a minute."""
    bus = Hours()
    bus.own(sent=200.0, heard=200.01, stored=1200.005)
    bus.own(sent=220.0, heard=280.0, stored=1220.005)
    assert bus.age(280.0, 1221.0) == pytest.approx(59.0, abs=0.01)


def test_a_notice_never_looks_older_than_it_is() -> None:
    bus = Hours()
    bus.own(sent=200.0, heard=205.0, stored=1201.0)  # stored at 201, as nobody here can tell
    assert bus.age(210.0, 1206.0) <= 4.0
    bus.own(sent=220.0, heard=220.5, stored=1220.1)
    assert 3.0 < bus.age(230.0, 1226.0) <= 4.0


@pytest.mark.parametrize("step", [3600.0, -3600.0])
def test_a_clock_that_was_set_counts_from_the_next_own_notice_on(step: float) -> None:
    bus = Hours()
    bus.own(sent=200.0, heard=200.01, stored=1200.005)
    bus.own(sent=220.0, heard=220.01, stored=1220.005 + step)
    assert bus.age(230.0, 1230.0 + step) == 0.0
    assert bus.age(230.0, 1225.0 + step) == pytest.approx(5.0, abs=0.01)


def test_a_copy_of_an_own_notice_is_not_measured_by() -> None:
    bus = Hours()
    bus.own(sent=200.0, heard=200.01, stored=1200.0)
    bus.now = 300.0
    bus.ages.heard("a", b"%f" % 1200.0, 5000.0)
    assert bus.age(310.0, 1300.0) == pytest.approx(10.0, abs=0.02)


def test_little_is_kept() -> None:
    bus = Hours()
    for number in range(1000):
        bus.ages.sent("a", b"%d" % number)
    bus.ages.heard("a", b"999", 7.0)
    assert len(bus.ages._sent["a"]) < 20
    bus.ages.forget("a")
    assert not bus.ages._sent
    assert bus.age(500.0, 1.0) == 0.0


@leaping
async def test_the_bus_tells_how_old_a_notice_is() -> None:
    async with cluster(1) as running:
        lease = await lease_session(ClientOptions(name_servers=running.address))
        session, tasks = lease.session, Tasks("test")
        heard: list[tuple[str, Notice, float]] = []
        try:
            await session.fetch_routes(["orders"])
            bus = Bus(session, "billing", tasks, lambda *what: heard.append(what))
            bus.listen(frozenset({"broker-0"}))
            await bus.until_listening(10.0)
            await leap(3600.0)  # from here on the broker's clock is an hour behind
            now = asyncio.get_running_loop().time
            began = now()
            bus.tell("broker-0", Notice("me", "boot", (Hello(),)))
            await until(lambda: len(heard) == 1, "the notice")
            assert heard[0][2] <= now() - began
            pulled = await pull(session, "billing", "broker-0", 0, 0.0)
            await leap(60.0)
            bus._take("broker-0", pulled.records, 0)
            assert 60.0 <= heard[1][2] <= now() - began + 0.001  # brokers count milliseconds
        finally:
            await tasks.stop()
            await lease.release()
