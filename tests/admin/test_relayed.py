"""Brokers are asked for one client at a time, and never again while one does not answer."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from pocketmq.admin.relayed import MOST_OPEN, RelayedCall, RelayedCalls
from pocketmq.errors import Absent, RequestTimedOut, TransportError


def info(client: str, group: str = "g") -> RelayedCall:
    return RelayedCall(client, "307", (group, False))


class Broker:
    """Counts the calls that wait in it, and answers when it is let."""

    def __init__(self) -> None:
        self.waiting = 0
        self.most = 0
        self.asked: list[str] = []
        self.called = asyncio.Event()
        self.answers: dict[str, asyncio.Future[str]] = {}

    def ask(self, client: str) -> Callable[[], Awaitable[str]]:
        async def call() -> str:
            self.asked.append(client)
            self.called.set()
            self.waiting += 1
            self.most = max(self.most, self.waiting)
            try:
                return await self.answers.setdefault(client, asyncio.Future())
            finally:
                self.waiting -= 1

        return call

    def answer(self, client: str, text: str) -> None:
        self.answers.setdefault(client, asyncio.Future()).set_result(text)


async def test_calls_through_one_broker_wait_for_each_other_those_of_two_do_not() -> None:
    calls, one, other = RelayedCalls(), Broker(), Broker()
    names = [f"c{number}" for number in range(20)]
    tasks = [asyncio.create_task(calls.call("a", info(each), one.ask(each))) for each in names]
    aside = asyncio.create_task(calls.call("b", info("c0"), other.ask("c0")))
    await other.called.wait()
    assert one.asked == ["c0"]
    for each in names:
        one.answer(each, each)
    other.answer("c0", "beside")
    assert await asyncio.gather(*tasks) == names
    assert await aside == "beside"
    assert one.most == 1


async def test_a_silent_client_has_one_call_open_whose_answer_is_not_lost() -> None:
    calls, broker = RelayedCalls(), Broker()
    for _ in range(3):
        with pytest.raises(RequestTimedOut, match=r"c1: no response to 307 within 0\.01 s"):
            await calls.call("a", info("c1"), broker.ask("c1"), 0.01)
    assert broker.asked == ["c1"]
    broker.answer("c2", "fine")
    assert await calls.call("a", info("c2"), broker.ask("c2"), 5.0) == "fine"
    late = asyncio.create_task(calls.call("a", info("c1"), broker.ask("c1"), 5.0))
    await asyncio.sleep(0)
    broker.answer("c1", "awake")
    assert await late == "awake"
    assert broker.asked == ["c1", "c2"]
    assert await calls.call("a", info("c1"), broker.ask("c1"), 5.0) == "awake"
    assert broker.asked == ["c1", "c2", "c1"]


async def test_a_broker_that_waits_for_many_is_asked_nothing_until_one_call_has_ended() -> None:
    calls, broker = RelayedCalls(), Broker()
    for number in range(MOST_OPEN):
        with pytest.raises(RequestTimedOut):
            await calls.call("a", info(f"c{number}"), broker.ask(f"c{number}"), 0.001)
    broker.answer("well", "fine")
    with pytest.raises(TransportError, match="well: not asked: the broker waits for 8 members"):
        await calls.call("a", info("well"), broker.ask("well"), 5.0)
    assert broker.waiting == MOST_OPEN
    broker.answers["c3"].set_exception(Absent("member", "c3", "in group 'g'"))
    with pytest.raises(Absent):
        await calls.call("a", info("c3"), broker.ask("c3"), 5.0)
    assert await calls.call("a", info("well"), broker.ask("well"), 5.0) == "fine"
    for number in range(MOST_OPEN):
        if number != 3:
            broker.answer(f"c{number}", "late")
            assert await calls.call("a", info(f"c{number}"), broker.ask("none"), 5.0) == "late"


async def test_an_error_is_raised_and_the_client_may_be_asked_again() -> None:
    calls, broker = RelayedCalls(), Broker()
    broker.answers["c1"] = asyncio.Future()
    broker.answers["c1"].set_exception(Absent("member", "c1", "in group 'g'"))
    with pytest.raises(Absent):
        await calls.call("a", info("c1"), broker.ask("c1"))
    del broker.answers["c1"]
    broker.answer("c1", "back")
    assert await calls.call("a", info("c1"), broker.ask("c1")) == "back"


async def test_another_group_of_the_same_client_is_another_call() -> None:
    calls, broker = RelayedCalls(), Broker()
    with pytest.raises(RequestTimedOut):
        await calls.call("a", info("c1", "first"), broker.ask("first"), 0.001)
    broker.answer("second", "of the second")
    assert await calls.call("a", info("c1", "second"), broker.ask("second"), 5) == "of the second"
    broker.answer("first", "of the first")
    assert await calls.call("a", info("c1", "first"), broker.ask("none"), 5) == "of the first"
