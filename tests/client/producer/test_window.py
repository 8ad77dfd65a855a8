"""A bound on what is under way."""

import asyncio
import time

import pytest

from pocketmq.client.producer.window import START, ByteBudget, SendWindow

MB = 1024 * 1024


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_there_is_room_for_so_many_and_no_more() -> None:
    window = SendWindow(2, ByteBudget(1000, 3.0))
    assert window.try_enter(10)
    assert window.try_enter(10)
    assert not window.try_enter(10)
    window.leave(10)
    assert window.try_enter(10)


async def test_bytes_are_bounded_and_what_is_larger_goes_alone() -> None:
    window = SendWindow(10, ByteBudget(100, 3.0))
    assert window.try_enter(60)
    assert not window.try_enter(41)
    assert window.try_enter(40)
    window.leave(60)
    window.leave(40)
    assert window.try_enter(1000)
    assert not window.try_enter(1)


async def test_who_finds_no_room_is_let_in_in_the_order_of_coming() -> None:
    window = SendWindow(1, ByteBudget(1000, 3.0))
    assert await window.enter(1, 1.0)
    let_in: list[int] = []

    async def come(number: int) -> None:
        assert await window.enter(1, 10.0)
        let_in.append(number)

    comers = [asyncio.create_task(come(number)) for number in range(3)]
    await settle()
    assert not window.try_enter(1)  # not before those in line
    for expected in ([0], [0, 1], [0, 1, 2]):
        window.leave(1)
        await settle()
        assert let_in == expected
    await asyncio.gather(*comers)
    assert len(window) == 1


async def test_a_large_one_in_front_holds_up_those_behind_it_until_it_gives_up() -> None:
    window = SendWindow(10, ByteBudget(100, 3.0))
    assert window.try_enter(50)
    large = asyncio.create_task(window.enter(60, 0.02))
    small = asyncio.create_task(window.enter(10, 10.0))
    await settle()
    assert not small.done()
    assert not await large
    assert await small
    assert len(window) == 2


async def test_no_room_in_time_is_no() -> None:
    window = SendWindow(1, ByteBudget(1000, 3.0))
    assert window.try_enter(1)
    assert not await window.enter(1, 0.01)
    window.leave(1)
    assert window.try_enter(1)


@pytest.mark.parametrize("let_in_first", [False, True])
async def test_who_is_cancelled_in_line_takes_no_room(let_in_first: bool) -> None:
    window = SendWindow(1, ByteBudget(1000, 3.0))
    assert window.try_enter(1)
    waiter = asyncio.create_task(window.enter(1, 10.0))
    await settle()
    if let_in_first:
        window.leave(1)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    if not let_in_first:
        window.leave(1)
    assert len(window) == 0
    assert window.try_enter(1)


async def test_waiting_for_room_takes_none_and_waiting_for_the_end_waits_for_those_in_line() -> (
    None
):
    window = SendWindow(1, ByteBudget(1000, 3.0))
    await window.room()
    assert window.try_enter(1)
    room = asyncio.create_task(window.room())
    line = asyncio.create_task(window.enter(1, 10.0))
    end = asyncio.create_task(window.drained())
    await settle()
    window.leave(1)
    await settle()
    assert (line.done(), room.done(), end.done()) == (True, False, False)
    window.leave(1)
    await asyncio.gather(room, end)
    assert len(window) == 0


async def test_room_comes_too_when_the_last_in_line_gives_up() -> None:
    window = SendWindow(2, ByteBudget(100, 3.0))
    assert window.try_enter(50)
    line = asyncio.create_task(window.enter(100, 0.01))
    await settle()
    room = asyncio.create_task(window.room())
    assert not await line
    await room


async def test_messages_that_travel_together_count_each() -> None:
    window = SendWindow(4, ByteBudget(1000, 3.0))
    assert window.try_enter(10, 3)
    assert not window.try_enter(10, 2)
    assert window.try_enter(10)
    assert len(window) == 4
    waiting = asyncio.create_task(window.enter(10, 5.0, 3))
    await settle()
    window.leave(10)
    await settle()
    assert not waiting.done()
    window.leave(10, 3)
    assert await waiting
    assert len(window) == 3
    window.leave(10, 3)
    assert window.try_enter(10, 9)  # more than all capacity: alone
    window.leave(10, 9)
    assert (len(window), window.bytes) == (0, 0)


async def test_an_answer_frees_its_place_and_adapts_the_limit_in_one_step() -> None:
    def window() -> SendWindow:
        return SendWindow(1000, ByteBudget(64 * MB, 8.0))

    for took, size in ((0.1, 10), (0.1, 3 * MB), (1.5, 3 * MB), (2.0, 10), (4.0, 3 * MB)):
        both, one = window(), window()
        for each in (both, one):
            assert each.try_enter(size)
        both.budget.answered(size, 1.0, 1.0 + took, both.bytes)
        both.leave(size)
        one.answered(size, 1.0, 1.0 + took)
        assert (len(one), one.bytes, one.budget.limit) == (0, 0, both.budget.limit)
        assert (one.budget.limit == START) is ((took, size) in ((0.1, 10), (1.5, 3 * MB)))


async def test_the_cost_of_those_in_line_does_not_grow_with_their_number() -> None:
    async def cost(number: int) -> float:
        """CPU seconds of each, if all but one wait."""
        window = SendWindow(1, ByteBudget(1000, 3.0))

        async def send() -> None:
            assert await window.enter(1, 300.0)
            window.leave(1)

        assert window.try_enter(1)
        tasks = [asyncio.create_task(send()) for _ in range(number)]
        await settle()
        assert window.waiting == number
        started = time.thread_time()
        window.leave(1)
        await asyncio.gather(*tasks)
        return (time.thread_time() - started) / number

    few = min([await cost(1000) for _ in range(3)])
    assert min([await cost(16_000) for _ in range(3)]) < 4 * few
