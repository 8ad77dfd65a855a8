"""Requests in a row: sent while the answer before is read, and what ends them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar

import pytest

from pocketmq.client.rows import RequestRow
from pocketmq.errors import ClientClosed, ConnectionLost, RequestTimedOut
from pocketmq.net import Connection, Limits
from pocketmq.protocol import Command
from tests.loops import leap, leaping, stopped_clock, until
from tests.net.peers import Recorder, dialling, echo, is_open, serving

Take = Callable[[Command], bool]


class Numbered:
    """Requests whose bodies are their numbers."""

    def fields(self, number: int) -> dict[str, str]:
        return {}

    def frame(self, code: int, number: int, opaque: int) -> bytes:
        return Command.request(code, opaque, body=b"%d" % number).encode()


class Rowing:
    """A row to a server, and what came of it."""

    def __init__(self, row: RequestRow[int], connection: Connection, server: Recorder) -> None:
        self.row = row
        self.connection = connection
        self.server = server
        self.open = True

    def check(self) -> None:
        if not self.open:
            raise ClientClosed("client")

    def send(self, number: int) -> bool:
        self.row.send(number, self.connection.clock())
        return True

    @property
    def in_flight(self) -> int:
        return len(self.connection.requests)


@asynccontextmanager
async def rowing(
    server: Recorder | None = None, seconds: float = 10.0, limits: Limits | None = None
) -> AsyncIterator[Rowing]:
    server = server or Recorder(echo)
    async with serving(server) as (_, address), dialling(Recorder(), limits) as dialer:
        connection = await dialer.connect(address)

        def check() -> None:
            made.check()

        row = RequestRow(dialer, connection, check, 310, Numbered(), timeout=seconds)
        made = Rowing(row, connection, server)
        yield made


async def test_answers_are_taken_inside_of_reads_until_one_is_left() -> None:
    async with rowing() as one:
        seen: list[tuple[bytes, asyncio.Task[object] | None]] = []

        def take(answer: Command) -> bool:
            seen.append((answer.body, asyncio.current_task()))
            number = int(answer.body)
            return number < 5 and one.send(number + 1)

        answer = await one.row.ask(1, take)
        assert answer is not None
        assert answer.body == b"5"
        assert seen == [(b"%d" % number, None) for number in range(1, 6)]
        assert one.in_flight == 0
        again = await one.row.ask(5, take)
        assert again is not None


async def test_answers_are_taken_in_the_context_of_who_asks_and_not_of_who_connected() -> None:
    caller: ContextVar[str] = ContextVar("caller", default="the server's")
    seen: list[str] = []
    async with serving(Recorder(echo)) as (_, address), dialling(Recorder()) as dialer:
        caller.set("who connected")
        connection = await asyncio.create_task(dialer.connect(address))
        caller.set("who asks")
        row = RequestRow(dialer, connection, lambda: None, 310, Numbered(), timeout=10.0)

        def step() -> None:
            seen.append(caller.get())
            row.end()

        def take(_: Command) -> bool:
            seen.append(caller.get())
            row.soon(step)
            return True

        await row.ask(1, take)
    assert seen == ["who asks", "who asks"]


async def test_a_row_can_end_without_an_answer_for_its_caller() -> None:
    async with rowing() as one:

        def take(_: Command) -> bool:
            one.row.end()
            return True

        assert await one.row.ask(1, take) is None


async def test_what_is_done_soon_comes_after_what_the_loop_has_to_do() -> None:
    async with rowing() as one:
        log: list[str] = []

        def step() -> None:
            log.append("step")
            one.send(2)

        def take(answer: Command) -> bool:
            if answer.body == b"2":
                return False
            asyncio.get_running_loop().call_soon(log.append, "before")
            one.row.soon(step)
            log.append("taken")
            return True

        answer = await one.row.ask(1, take)
        assert answer is not None
        assert log == ["taken", "before", "step"]


async def test_a_fault_in_taking_is_raised_and_what_is_in_flight_forgotten() -> None:
    async with rowing() as one:

        def take(_: Command) -> bool:
            one.send(2)
            raise RuntimeError("nobody expected this")

        with pytest.raises(RuntimeError, match="nobody expected this"):
            await one.row.ask(1, take)
        assert one.in_flight == 0
        assert await one.row.ask(3, lambda _: False) is not None  # behind the late answer


async def test_a_fault_in_what_is_done_soon_is_raised() -> None:
    async with rowing() as one:

        def fail() -> None:
            raise RuntimeError("nobody expected this")

        def take(_: Command) -> bool:
            one.row.soon(fail)
            return True

        with pytest.raises(RuntimeError, match="nobody expected this"):
            await one.row.ask(1, take)


async def test_a_caller_that_is_cancelled_gets_nothing_more() -> None:
    async with rowing(Recorder()) as one:
        taken: list[bytes] = []

        def take(answer: Command) -> bool:
            taken.append(answer.body)
            return False

        task = asyncio.create_task(one.row.ask(1, take))
        await until(lambda: one.server.asked(1), "the request")
        task.cancel()
        one.server.opened[0].write(one.server.requests[0].reply(0, body=b"late").encode())
        with pytest.raises(asyncio.CancelledError):
            await task
        assert one.in_flight == 0
        one.server.answer = echo
        assert await one.row.ask(2, lambda _: False) is not None  # behind the late answer
        assert taken == []


async def test_nothing_is_done_soon_for_a_caller_that_was_cancelled_meanwhile() -> None:
    async with rowing() as one:
        stepped: list[bool] = []

        def take(_: Command) -> bool:
            one.row.soon(lambda: stepped.append(True))
            task.cancel()
            return True

        task = asyncio.create_task(one.row.ask(1, take))
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await one.row.ask(2, lambda _: False) is not None
        assert stepped == []


async def test_a_connection_lost_in_the_middle_of_a_row_is_raised() -> None:
    def once(connection: Connection, requests: list[Command]) -> None:
        if requests[0].body == b"1":
            echo(connection, requests)
        else:
            connection.close()

    async with rowing(Recorder(once)) as one:
        with pytest.raises(ConnectionLost):
            await one.row.ask(1, lambda _: one.send(2))
        assert not one.row.usable


@leaping
async def test_each_request_of_a_row_has_its_own_time() -> None:
    silent = Recorder()
    async with rowing(silent, seconds=5.0, limits=Limits(silence=3600)) as one:

        def reply() -> None:
            silent.opened[0].write(silent.requests[-1].reply(0).encode())

        task = asyncio.create_task(one.row.ask(1, lambda _: one.send(2)))
        await until(lambda: silent.asked(1), "the first request")
        await leap(4.0)
        reply()
        await until(lambda: silent.asked(2), "the second request")
        await leap(4.0)
        assert not task.done()
        await leap(2.0)
        with pytest.raises(RequestTimedOut, match="within 5 s"):
            await task
        assert one.in_flight == 0
        assert is_open(one.connection)


@leaping
async def test_a_connection_silent_since_the_last_request_of_a_row_is_given_up() -> None:
    silent = Recorder()
    async with rowing(silent, seconds=5.0) as one:
        task = asyncio.create_task(one.row.ask(1, lambda _: one.send(2)))
        await until(lambda: silent.asked(1), "the first request")
        silent.opened[0].write(silent.requests[-1].reply(0).encode())
        await until(lambda: silent.asked(2), "the second request")
        await leap(5.1)
        with pytest.raises(RequestTimedOut):
            await task
        assert not is_open(one.connection)


@leaping
async def test_a_connection_is_given_up_though_the_last_request_left_with_its_last_answer() -> None:
    """Loops whose clocks go in steps give a read, and the request sent inside of it, one time."""
    silent = Recorder()
    async with rowing(silent, seconds=5.0) as one:
        task = asyncio.create_task(one.row.ask(1, lambda _: one.send(2)))
        await until(lambda: silent.asked(1), "the first request")
        with stopped_clock():
            silent.opened[0].write(silent.requests[-1].reply(0).encode())
            await until(lambda: silent.asked(2), "the second request")
            await leap(5.1)
        with pytest.raises(RequestTimedOut):
            await task
        assert not is_open(one.connection)


async def test_a_client_that_is_closed_sends_nothing_more() -> None:
    async with rowing() as one:
        before, one.open = one.row.usable, False
        assert (before, one.row.usable) == (True, False)
        with pytest.raises(ClientClosed):
            await one.row.ask(1, lambda _: False)
        assert one.server.requests == []
