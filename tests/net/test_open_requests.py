"""Open requests of one connection: deadlines by one timer."""

import asyncio
from typing import Any

import pytest

from pocketmq.errors import ConnectionLost, RequestNotSent, RequestTimedOut
from pocketmq.net import Limits
from pocketmq.net.open_requests import OpenRequests, ReadAnswers
from pocketmq.net.outbox import Outbox
from pocketmq.protocol import Command
from pocketmq.protocol.command import OpaqueCounter
from tests.loops import leap, leaping
from tests.net.test_outbox import opened


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


def draft(table: OpenRequests, timeout: float = 1.0) -> tuple[Any, ...]:
    loop = asyncio.get_running_loop()
    return loop.create_future(), loop.time() + timeout, 310, timeout, table.number()


def no_frames(drafts: list[tuple[Any, ...]]) -> bytes:
    return b"." * len(drafts)


@leaping
async def test_the_answers_of_a_read_reach_their_drafts_once() -> None:
    table = waiters()
    first, second = (draft(table) for _ in range(2))
    for each in (first, second):
        table.ask(each, 1, no_frames)
    numbers = [each[4] for each in (second, first)]
    seen: list[set[int]] = []

    def read(data: bytes, start: int, limit: int, waiting: dict[int, Any]) -> tuple[int, int]:
        seen.append(set(waiting))
        for number in numbers:
            waiting.pop(number)[0].set_result(f"{data!r} {start} {limit}")
        return 2, start + 2

    assert table.answer_drafts(b"read", 1, 9) == 1, "it has no reader yet"
    table.read_answers = read
    assert table.answer_drafts(b"read", 1, 9) == 3
    assert await first[0] == await second[0] == "b'read' 1 9"
    assert (seen, len(table)) == ([set(numbers)], 0)
    assert table.answer_drafts(b"read", 1, 9) == 1, "no request waits"


def reader(numbers: list[int]) -> ReadAnswers:
    """Return what hands answers over to these requests."""

    def read(_: bytes, start: int, __: int, waiting: dict[int, Any]) -> tuple[int, int]:
        for number in numbers:
            waiting.pop(number)[0].set_result("stored")
        return len(numbers), start + 2

    return read


@pytest.mark.parametrize(
    ("open_ones", "answered", "size", "asked", "bursts"),
    [
        (64, 64, 1, 64, [32, 32]),  # half is here while the other half is with the peer
        (64, 64, 1024, 64, [32, 32]),
        (64, 64, 1025, 64, [16, 16, 16, 16]),  # large ones leave in small portions
        (64, 2, 1, 2, [2]),
        (20, 20, 1, 20, [16, 4]),
        (600, 600, 1, 300, [128, 128, 44]),
        (2, 2, 1, 1, [1]),
    ],
)
async def test_a_burst_leaves_in_halves_of_what_was_open(
    open_ones: int, answered: int, size: int, asked: int, bursts: list[int]
) -> None:
    outbox, wire = opened()
    table = OpenRequests(asyncio.get_running_loop(), outbox, OpaqueCounter(), "peer:1")
    numbers = begin(table, open_ones)[:answered]
    await asyncio.sleep(0)
    wire.writes.clear()
    table.read_answers = reader(numbers)
    table.answer_drafts(b"read", 0, 9)
    begin(table, asked, size)
    await asyncio.sleep(0)
    assert list(map(len, wire.writes)) == bursts
    end(table)


async def test_a_request_after_a_single_answer_leaves_at_once() -> None:
    outbox, wire = opened()
    table = OpenRequests(asyncio.get_running_loop(), outbox, OpaqueCounter(), "peer:1")
    for answered in (2, 1):
        numbers = begin(table, answered)
        await asyncio.sleep(0)
        table.read_answers = reader(numbers)
        table.answer_drafts(b"read", 0, 9)
    wire.writes.clear()
    begin(table, 1)
    assert wire.writes == [b"."]
    end(table)


def begin(table: OpenRequests, count: int, size: int = 1) -> list[int]:
    """Ask a number of drafts; return their numbers."""
    drafts = [draft(table) for _ in range(count)]
    for each in drafts:
        table.ask(each, size, no_frames)
    return [each[4] for each in drafts]


def end(table: OpenRequests) -> None:
    for sink, *_ in table.open.values():
        sink.cancel()
    table.fail(ConnectionLost("peer:1", "gone"))


@leaping
async def test_drafts_time_out_and_fail_as_other_requests_do() -> None:
    table = waiters()
    late, lost = draft(table, 1.0), draft(table, 9.0)
    table.ask(late, 1, no_frames)
    table.ask(lost, 1, no_frames)
    await leap(2)
    with pytest.raises(RequestTimedOut, match="no response to SEND_MESSAGE_V2 within 1"):
        late[0].result()
    table.fail(ConnectionLost("peer:1", "gone"))
    with pytest.raises(ConnectionLost, match="gone"):
        lost[0].result()


class Framed(Ending):
    """A sink that has its request."""

    def frame(self, opaque: int) -> bytes:
        return b"<%d>" % opaque


@leaping
async def test_a_sink_with_its_request_is_asked_as_others_are() -> None:
    """Alone it leaves at once, else together; numbers in use are left out; none is sent too late."""
    loop = asyncio.get_running_loop()
    outbox, wire = opened()
    table = OpenRequests(loop, outbox, OpaqueCounter(), "peer:1")
    first, second, third = (Framed(table) for _ in range(3))
    table.ask_into(first, 10, 5.0)
    assert wire.writes == [b"<0>"]
    table.open[1] = (Framed(table), loop.time() + 9.0, 10, 9.0)
    table.ask_into(second, 10, 2.0)
    assert wire.writes == [b"<0>"]
    await asyncio.sleep(0)
    assert wire.writes == [b"<0>", b"<2>"]
    outbox.paused = True
    table.ask_into(third, 10, 1.0)
    await leap(1.1)
    assert third.told == [RequestNotSent]
    assert first.told == second.told == [ConnectionLost]  # by what the third one did
    assert wire.writes == [b"<0>", b"<2>"]


@leaping
async def test_an_answer_to_a_draft_that_is_held_back_drops_its_frame() -> None:
    """A peer may answer what it was not asked."""
    loop = asyncio.get_running_loop()
    outbox = Outbox(loop, Limits(), requesting=True)
    table = OpenRequests(loop, outbox, OpaqueCounter(), "peer:1")
    table.read_answers = lambda *_: pytest.fail("a draft is held")
    outbox.paused = True
    held = draft(table)
    table.ask(held, 1, no_frames)
    assert table.answer_drafts(b"read", 0, 9) == 0
    assert table.answer(Command(0, held[4], flag=1))
    assert len(table) == 0
