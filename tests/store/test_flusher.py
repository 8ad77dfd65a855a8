"""Jobs off the owner's thread, outcomes on it."""

import queue
import threading

from pocketmq.store import Flusher
from pocketmq.store.flusher import Outcome


def test_without_a_call_back_jobs_run_at_once() -> None:
    heard: list[object] = []
    flusher = Flusher()
    flusher.submit(lambda: heard.append("job"), heard.append)
    assert heard == ["job", None]
    flusher.close()


def test_a_failed_job_is_told_to_its_owner() -> None:
    heard: list[Exception | None] = []
    flusher = Flusher()

    def fail() -> None:
        raise OSError("no")

    flusher.submit(fail, heard.append)
    assert [type(error) for error in heard] == [OSError]


def test_jobs_run_on_one_thread_and_outcomes_on_the_owners() -> None:
    calls: queue.Queue[object] = queue.Queue()
    flusher = Flusher(calls.put)
    threads: list[str] = []
    told: list[int] = []

    def outcome(number: int) -> Outcome:
        return lambda error: told.append(number)

    for number in range(3):
        flusher.submit(lambda: threads.append(threading.current_thread().name), outcome(number))
    for _ in range(3):
        call = calls.get(timeout=10)
        assert callable(call)
        call()
    assert threads == ["pocketmq-flusher"] * 3
    assert told == [0, 1, 2]
    flusher.close()


def flushers() -> set[threading.Thread]:
    """Return the flushers' threads there are; stores of other tests may have some."""
    return {each for each in threading.enumerate() if each.name == "pocketmq-flusher"}


def test_closing_finishes_every_job_and_tells_every_outcome_once() -> None:
    """Even when the owner's loop no longer takes calls."""
    before = flushers()
    calls: list[object] = []

    def refuse(call: object) -> None:
        calls.append(call)
        raise RuntimeError("Event loop is closed")

    flusher = Flusher(refuse)
    gate = threading.Event()
    told: list[Exception | None] = []
    flusher.submit(lambda: gate.wait(10) and None, told.append)  # type: ignore[arg-type]
    flusher.submit(lambda: None, told.append)
    assert told == []
    gate.set()
    flusher.close()
    assert told == [None, None]
    for call in calls:
        assert callable(call)
        call()
    assert told == [None, None]
    assert flushers() <= before


def test_after_closing_jobs_run_at_once() -> None:
    flusher = Flusher(lambda call: None)
    flusher.close()
    told: list[Exception | None] = []
    flusher.submit(lambda: None, told.append)
    assert told == [None]


def test_a_flusher_without_work_has_no_thread() -> None:
    before = flushers()
    Flusher(lambda call: None)
    assert flushers() <= before
