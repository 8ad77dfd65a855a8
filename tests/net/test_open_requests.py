"""Open requests of one connection: deadlines by one timer."""

import asyncio

import pytest

from pocketmq.errors import ConnectionLost, RequestTimedOut
from pocketmq.net import Limits
from pocketmq.net.open_requests import OpenRequests
from pocketmq.net.outbox import Outbox
from pocketmq.protocol import Command
from pocketmq.protocol.command import OpaqueCounter
from tests.loops import leap, leaping


def waiters() -> OpenRequests:
    loop = asyncio.get_running_loop()
    return OpenRequests(loop, Outbox(loop, Limits()), OpaqueCounter(), "peer:1")


def expected(table: OpenRequests, code: int, timeout: float) -> asyncio.Future[Command]:
    return table.expect(code, timeout)[1]


@leaping
async def test_each_waiter_ends_at_its_own_deadline() -> None:
    table = waiters()
    futures = [expected(table, 10, 10.0 * number) for number in (3, 1, 2)]
    ended = []
    for _ in range(3):
        await leap(10.01)
        ended.append([future.done() for future in futures])
    assert ended == [[False, True, False], [False, True, True], [True, True, True]]
    assert len(table) == 0
    for future in futures:
        with pytest.raises(RequestTimedOut, match="no response to SEND_MESSAGE within"):
            future.result()


@leaping
async def test_of_many_deadlines_close_together_none_is_missed() -> None:
    table = waiters()
    futures = [expected(table, 4711, 1 + number / 1000) for number in range(500)]
    await leap(0.5)
    assert not any(future.done() for future in futures)
    await leap(1.1)
    assert all(future.done() for future in futures)
    for future in futures:
        with pytest.raises(RequestTimedOut, match="no response to request 4711 within"):
            future.result()


@leaping
async def test_an_answer_reaches_its_waiter_once() -> None:
    table = waiters()
    opaque, future = table.expect(10, 1)
    answer = Command(0, opaque, flag=1)
    assert len(table) == 1
    assert table.answer(answer)
    assert not table.answer(answer)
    assert await future is answer
    await leap(2)
    assert len(table) == 0


@leaping
async def test_an_answer_to_a_forgotten_or_cancelled_waiter_is_nobodys() -> None:
    table = waiters()
    first, _ = table.expect(10, 1)
    table.forget(first)
    table.forget(first)
    assert not table.answer(Command(0, first, flag=1))
    second, answer = table.expect(10, 1)
    answer.cancel()
    assert not table.answer(Command(0, second, flag=1))


@leaping
async def test_failing_gives_everyone_an_error_of_its_own() -> None:
    table = waiters()
    futures = [expected(table, 10, 1) for number in range(3)]
    futures[0].cancel()
    table.fail(ConnectionLost("peer:1", "gone"))
    errors = [future.exception() for future in futures[1:]]
    assert [str(error) for error in errors] == ["peer:1: gone"] * 2
    assert errors[0] is not errors[1]
    assert len(table) == 0


@leaping
async def test_an_earlier_deadline_moves_the_timer_forward() -> None:
    table = waiters()
    late = expected(table, 10, 100)
    soon = expected(table, 10, 1)
    await leap(1.1)
    assert (late.done(), soon.done()) == (False, True)
    assert isinstance(soon.exception(), RequestTimedOut)
    await leap(99)
    assert isinstance(late.exception(), RequestTimedOut)


class Ending:
    """A sink that ends the connection when it is told of its deadline."""

    def __init__(self, table: OpenRequests) -> None:
        self.table = table
        self.told: list[object] = []

    def done(self) -> bool:
        return False

    def set_result(self, result: Command, /) -> None:
        self.told.append(result)

    def set_exception(self, exception: Exception, /) -> None:
        self.told.append(type(exception))
        self.table.fail(ConnectionLost("peer:1", "silent"))


async def test_a_sink_is_told_in_the_same_turn() -> None:
    table = waiters()
    sink = Ending(table)
    answer = Command(0, table.expect_into(sink, 10, 5.0), flag=1)
    assert table.answer(answer)
    assert sink.told == [answer]
    table.fail(ConnectionLost("peer:1", "over"))


@leaping
async def test_a_sink_may_end_the_connection_while_others_are_late_too() -> None:
    table = waiters()
    sink = Ending(table)
    table.expect_into(sink, 10, 1.0)
    future = expected(table, 10, 1.0)
    await leap(1.1)
    assert sink.told == [RequestTimedOut]
    with pytest.raises(ConnectionLost, match="silent"):
        future.result()
    assert len(table) == 0
