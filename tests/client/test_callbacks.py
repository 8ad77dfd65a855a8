"""Calls of an application's own functions."""

import asyncio
import threading
from contextvars import ContextVar

import pytest

from pocketmq.client.callbacks import LocalCalls
from pocketmq.errors import ClientClosed

WHO = ContextVar("WHO", default="nobody")


async def test_functions_in_threads_see_the_callers_context() -> None:
    calls = LocalCalls("test", 1)
    WHO.set("me")
    assert await calls.call(WHO.get) == "me"
    calls.close()


async def test_no_more_run_at_once_than_there_are_threads() -> None:
    calls = LocalCalls("test", 2)
    at_work = 0
    most = 0
    lock = threading.Lock()
    both = threading.Barrier(2, timeout=10.0)

    def work() -> None:
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        both.wait()  # only two at once come past it
        with lock:
            at_work -= 1

    await asyncio.gather(*(calls.call(work) for _ in range(6)))
    assert most == 2
    calls.close()


async def test_coroutines_need_no_thread() -> None:
    calls = LocalCalls("coroutines-alone", 1)

    async def work(number: int) -> int:
        return number + 1

    assert await calls.call(work, 1) == 2
    assert not [each for each in threading.enumerate() if calls._name in each.name]
    calls.close()


async def test_nothing_begins_after_the_end() -> None:
    calls = LocalCalls("test", 1)
    calls.close()
    with pytest.raises(ClientClosed):
        await calls.call(print)
