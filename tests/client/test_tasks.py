"""Background work: errors are told, repetition goes on, nothing is left at the end."""

import asyncio
import logging

import pytest

from pocketmq.client.tasks import Tasks
from tests.loops import leap, leaping, until


@leaping
async def test_repeated_work_comes_at_a_fixed_rate_even_if_a_turn_fails(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tasks = Tasks("me")
    loop = asyncio.get_running_loop()
    start = loop.time()
    turns: list[float] = []

    async def work() -> None:
        turns.append(round(loop.time() - start))
        if len(turns) == 2:
            raise ValueError("not this time")

    tasks.every(30.0, work, "the work", first_after=1.0)
    await asyncio.sleep(0)
    for expected in (1, 31, 61):
        await leap(start + expected - loop.time())
        await until(lambda: turns and turns[-1] == expected, "the turn")  # noqa: B023 - awaited here
    assert turns == [1, 31, 61]
    [record] = [each for each in caplog.records if each.name == "pocketmq.client"]
    assert record.getMessage() == "me: the work failed; retrying in 30 s"
    await tasks.stop()
    assert len(tasks) == 0


async def test_a_task_that_fails_unawaited_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    tasks = Tasks("me")

    async def work() -> None:
        raise ValueError("oh")

    task = tasks.spawn(work(), "the work")
    await asyncio.wait({task})
    await until(lambda: not tasks, "the task to be forgotten")
    [record] = caplog.records
    assert record.levelno == logging.ERROR
    assert record.getMessage() == "me: the work failed"


async def test_stopping_cancels_all_but_the_caller_and_takes_no_new_work() -> None:
    tasks = Tasks("me")
    done = asyncio.Event()

    async def stopper() -> None:
        await tasks.stop()
        done.set()

    waiting = tasks.spawn(asyncio.Event().wait(), "waiting")
    tasks.spawn(stopper(), "stopper")
    await done.wait()
    assert waiting.cancelled()
    late = tasks.spawn(asyncio.Event().wait(), "late")
    await asyncio.wait({late})
    assert late.cancelled()
    assert not tasks
