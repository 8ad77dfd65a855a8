"""Work handed from a thread to a loop in another."""

import asyncio
import os
import signal
import threading
from collections.abc import Iterator

import pytest

from pocketmq.blocking.loop_thread import LoopThread
from pocketmq.errors import ClientClosed, ClientForked, WouldBlockLoop
from tests.loops import open_files


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    thread = LoopThread("test loop")
    yield thread
    thread.close()


async def name_of_thread() -> str:
    return threading.current_thread().name


def test_work_runs_on_the_loop_and_its_result_comes_back(thread: LoopThread) -> None:
    assert thread.call(name_of_thread()) == "test loop"


def test_what_the_work_raises_is_raised_to_the_caller(thread: LoopThread) -> None:
    async def fail() -> None:
        raise LookupError("nothing there")

    with pytest.raises(LookupError, match="nothing there"):
        thread.call(fail())


def test_many_threads_call_at_once(thread: LoopThread) -> None:
    async def double(number: int) -> int:
        await asyncio.sleep(0)
        return 2 * number

    results: dict[int, int] = {}

    def work(number: int) -> None:
        results[number] = thread.call(double(number))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(50)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert results == {number: 2 * number for number in range(50)}


def test_a_call_on_the_loops_own_thread_is_refused_instead_of_never_ending(
    thread: LoopThread,
) -> None:
    async def outer() -> None:
        thread.call(name_of_thread())

    with pytest.raises(WouldBlockLoop, match=r"pocketmq\.aio"):
        thread.call(outer())


def test_an_interrupted_caller_cancels_the_work_and_waits_for_its_end(thread: LoopThread) -> None:
    story: list[str] = []

    async def long() -> None:
        try:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            story.append("cleaned up")

    with pytest.raises(KeyboardInterrupt):
        thread.call(long())
    assert story == ["cleaned up"]
    assert thread.call(name_of_thread()) == "test loop"


class TooLong(RuntimeError):
    """What a handler of the application raises."""


def test_an_error_of_a_signals_handler_reaches_the_caller(thread: LoopThread) -> None:
    def too_long(*_: object) -> None:
        raise TooLong

    async def long() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)
        await asyncio.sleep(60)

    before = signal.signal(signal.SIGALRM, too_long)
    try:
        with pytest.raises(TooLong):
            thread.call(long())
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_closed_loop_refuses_work_and_keeps_no_file_or_thread() -> None:
    files = open_files()
    thread = LoopThread("short")
    thread.close()
    with pytest.raises(ClientClosed, match="short"):
        thread.call(name_of_thread())
    assert open_files() <= files  # those of tests before may be closed meanwhile
    assert "short" not in {each.name for each in threading.enumerate()}


def test_work_that_is_under_way_when_the_loop_ends_tells_its_caller() -> None:
    thread = LoopThread("ending")
    begun = threading.Event()
    errors: list[BaseException] = []

    async def forever() -> None:
        begun.set()
        await asyncio.get_running_loop().create_future()

    def caller() -> None:
        try:
            thread.call(forever())
        except ClientClosed as error:
            errors.append(error)

    other = threading.Thread(target=caller)
    other.start()
    assert begun.wait(10)
    thread.close(patience=0.01)
    other.join(10)
    assert [str(error) for error in errors] == [str(ClientClosed("ending"))]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_is_told_that_the_loop_is_its_parents(thread: LoopThread) -> None:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            thread.call(name_of_thread())
        except ClientForked:
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
