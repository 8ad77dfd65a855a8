"""The window for sends that threads submit: bounded, and freed when they end."""

import threading
import time
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, as_completed, wait

import pytest

from pocketmq import Message, SendReceipt, SendStatus
from pocketmq.blocking.submitting import SubmittedSend, SubmitWindow
from pocketmq.client.producer.requests import Outgoing
from pocketmq.client.producer.window import ByteBudget
from pocketmq.errors import InvalidInput
from pocketmq.model import MessageQueue
from tests.own_time import own_time
from tests.server_process import wait_for

pytestmark = pytest.mark.usefixtures("no_check_hides_a_lost_wake_up")

RECEIPT = SendReceipt(
    status=SendStatus.SEND_OK,
    message_id="1",
    offset_message_id=None,
    queue=MessageQueue("t", "b", 0),
    queue_offset=0,
)


def try_enter(window: SubmitWindow, size: int) -> bool:
    put: list[None] = []
    entered = window.try_enter(size, put.append, None)
    assert len(put) == entered
    return entered


def test_only_so_many_enter_and_whoever_leaves_makes_room() -> None:
    window = SubmitWindow(2, ByteBudget(1000, 3.0))
    assert [try_enter(window, 1) for _ in range(3)] == [True, True, False]
    assert window.wait(1, 0.0) is False
    window.leave(1)
    assert try_enter(window, 1)


def test_bytes_are_bounded_but_one_alone_always_fits() -> None:
    window = SubmitWindow(100, ByteBudget(1000, 3.0))
    assert try_enter(window, 5000)
    assert not try_enter(window, 1)
    window.leave(5000)
    assert try_enter(window, 600)
    assert not try_enter(window, 600)
    assert try_enter(window, 400)


def test_one_who_waits_goes_on_when_half_is_free() -> None:
    window = SubmitWindow(4, ByteBudget(1000, 3.0))
    for _ in range(4):
        try_enter(window, 1)
    with ThreadPoolExecutor() as threads:
        entered = threads.submit(window.wait, 1, 30.0)
        room = threads.submit(window.wait_for_room)
        wait_for(lambda: len(window._in_flight.sleepers) == 2, "both to sleep")
        for _ in range(4):
            window.leave(1)
        assert entered.result(30) is True
        room.result(30)


def test_capacity_granted_in_advance_counts_until_it_is_given_back() -> None:
    window = SubmitWindow(10, ByteBudget(1000, 3.0))
    assert try_enter(window, 100)
    assert window.grant(300, 6, share=1) == (6, 300)
    assert window.grant(800, 6, share=2) == (1, 300)
    assert (window.count, window.bytes) == (8, 700)
    assert window.grant(300, 0, share=1) == (0, 0)
    assert [try_enter(window, 1) for _ in range(3)] == [True, True, False]
    assert window.grant(1, 1, share=1) == (0, 0)
    window.give_back(600, 7)
    assert (window.count, window.bytes) == (3, 102)


def test_what_is_granted_can_be_asked_for_before_a_thread_waits() -> None:
    window = SubmitWindow(4, ByteBudget(1000, 3.0))
    try_enter(window, 1)
    granted = window.grant(100, 3, share=1)
    window.on_full = lambda: window.leave(granted[1], granted[0])
    assert not try_enter(window, 1)
    assert window.wait(1, 0.0)
    assert try_enter(window, 1)
    assert (window.count, window.bytes) == (2, 2)
    granted = window.grant(100, 2, share=1)
    window.wait_for_room()
    assert window.count == 2


def test_threads_press_from_the_first_wait_until_nothing_is_in_flight() -> None:
    window = SubmitWindow(1, ByteBudget(1000, 3.0))
    found = [try_enter(window, 1), window.pressed]
    found += [window.wait(1, 0.0), window.pressed]
    window.leave(1)
    found += [window.pressed, try_enter(window, 1), window.pressed]
    assert found == [True, False, False, True, True, True, False]


def test_a_wait_for_room_ends_at_its_time() -> None:
    window = SubmitWindow(1, ByteBudget(1000, 3.0))
    try_enter(window, 1)
    started, own = time.monotonic(), own_time()
    assert window.wait(1, 0.05) is False
    assert time.monotonic() - started > 0.04
    assert own_time() - own < 5


def handed(window: SubmitWindow) -> SubmittedSend:
    assert try_enter(window, 3)
    return SubmittedSend(
        window, Outgoing("t", b"abc", "", "1", messages=(Message("t", b"abc"),)), None, 3.0
    )


def is_empty(window: SubmitWindow) -> bool:
    """Whether a send larger than all room fits, which it does alone."""
    if not try_enter(window, 10**9):
        return False
    window.leave(10**9)
    return True


def test_a_receipt_is_there_for_those_who_come_later_and_those_who_wait() -> None:
    window = SubmitWindow(10, ByteBudget(1000, 3.0))
    early = handed(window)
    assert not early.done()
    early.set_result(RECEIPT)
    assert early.done()
    assert early.result(0) is RECEIPT
    assert early.exception(0) is None
    assert is_empty(window)
    late = handed(window)
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(late.result, 30)
        called: Future[SendReceipt] = Future()
        late.add_done_callback(lambda future: called.set_result(future.result()))
        late.set_result(RECEIPT)
        assert waiting.result(30) is RECEIPT
        assert called.result(30) is RECEIPT
    assert is_empty(window)


def test_an_error_is_raised_to_whoever_asks() -> None:
    window = SubmitWindow(10, ByteBudget(1000, 3.0))
    future = handed(window)
    future.set_exception(InvalidInput("no"))
    with pytest.raises(InvalidInput):
        future.result(0)
    assert is_empty(window)


@pytest.mark.parametrize("outcome", [RECEIPT, InvalidInput("late")])
def test_a_cancelled_future_takes_no_receipt_and_leaves_the_window_once(
    outcome: SendReceipt | InvalidInput,
) -> None:
    window = SubmitWindow(2, ByteBudget(1000, 3.0))
    future, other = handed(window), handed(window)
    assert future.cancel()
    assert future.cancel()
    assert future.done()
    if isinstance(outcome, SendReceipt):
        future.set_result(outcome)
    else:
        future.set_exception(outcome)
    with pytest.raises(CancelledError):
        future.result(0)
    assert try_enter(window, 1)
    assert not try_enter(window, 1)
    other.set_result(RECEIPT)


def test_a_wait_for_several_futures_ends_for_those_that_are_cancelled() -> None:
    window = SubmitWindow(4, ByteBudget(1000, 3.0))
    futures: list[Future[SendReceipt]] = [handed(window) for _ in range(4)]
    assert futures[0].cancel()
    with ThreadPoolExecutor() as threads:
        first = threads.submit(wait, futures[:1], 30)
        all_of_them = threads.submit(wait, futures[:2], 30)
        in_turn = threads.submit(lambda: set(as_completed(futures[:3], 30)))
        assert first.result(30).done == {futures[0]}
        assert futures[1].cancel()
        futures[2].set_result(RECEIPT)
        assert all_of_them.result(30).done == {*futures[:2]}
        assert in_turn.result(30) == {*futures[:3]}
    futures[3].set_result(RECEIPT)
    assert is_empty(window)


def test_no_wait_is_lost_however_threads_meet() -> None:
    """A receipt that comes just when somebody begins to wait wakes them."""
    window = SubmitWindow(10_000, ByteBudget(10**9, 3.0))
    futures = [handed(window) for _ in range(3000)]

    def settle() -> None:
        for future in futures:
            future.set_result(RECEIPT)

    settling = threading.Thread(target=settle)
    settling.start()
    assert all(future.result(30) is RECEIPT for future in futures)
    settling.join(30)
    assert is_empty(window)
