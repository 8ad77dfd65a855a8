"""Room for sends that threads hand over: bounded, and given back."""

import threading
import time
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor

import pytest

from pocketmq import Message, SendReceipt, SendStatus
from pocketmq.blocking.submitting import SubmittedSend, SubmitWindow
from pocketmq.client.producer.requests import Outgoing
from pocketmq.client.producer.window import ByteBudget
from pocketmq.errors import InvalidInput
from pocketmq.model.queue import MessageQueue

RECEIPT = SendReceipt(
    status=SendStatus.SEND_OK,
    message_id="1",
    offset_message_id=None,
    queue=MessageQueue("t", "b", 0),
    queue_offset=0,
)


def test_only_so_many_enter_and_whoever_leaves_makes_room() -> None:
    gate = SubmitWindow(2, ByteBudget(1000, 3.0))
    assert [gate.try_enter(1) for _ in range(3)] == [True, True, False]
    assert gate.enter(1, 0.0) is False
    gate.leave(1)
    assert gate.try_enter(1)


def test_bytes_are_bounded_but_one_alone_always_fits() -> None:
    gate = SubmitWindow(100, ByteBudget(1000, 3.0))
    assert gate.try_enter(5000)
    assert not gate.try_enter(1)
    gate.leave(5000)
    assert gate.try_enter(600)
    assert not gate.try_enter(600)
    assert gate.try_enter(400)


def test_one_who_waits_goes_on_when_half_is_free() -> None:
    gate = SubmitWindow(4, ByteBudget(1000, 3.0))
    for _ in range(4):
        gate.try_enter(1)
    with ThreadPoolExecutor() as threads:
        entered = threads.submit(gate.enter, 1, 30.0)
        room = threads.submit(gate.wait_for_room)
        for _ in range(4):
            gate.leave(1)
        assert entered.result(30) is True
        room.result(30)


def test_a_wait_for_room_ends_at_its_time() -> None:
    gate = SubmitWindow(1, ByteBudget(1000, 3.0))
    gate.try_enter(1)
    started = time.monotonic()
    assert gate.enter(1, 0.05) is False
    assert 0.04 < time.monotonic() - started < 5


def handed(gate: SubmitWindow) -> SubmittedSend:
    assert gate.try_enter(3)
    return SubmittedSend(
        gate, Outgoing("t", b"abc", "", "1", messages=(Message("t", b"abc"),)), None, 3.0
    )


def is_empty(gate: SubmitWindow) -> bool:
    """Whether a send larger than all room fits, which it does alone."""
    if not gate.try_enter(10**9):
        return False
    gate.leave(10**9)
    return True


def test_a_receipt_is_there_for_those_who_come_later_and_those_who_wait() -> None:
    gate = SubmitWindow(10, ByteBudget(1000, 3.0))
    early = handed(gate)
    assert not early.done()
    early.set_result(RECEIPT)
    assert early.done()
    assert early.result(0) is RECEIPT
    assert early.exception(0) is None
    assert is_empty(gate)
    late = handed(gate)
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(late.result, 30)
        called: Future[SendReceipt] = Future()
        late.add_done_callback(lambda future: called.set_result(future.result()))
        late.set_result(RECEIPT)
        assert waiting.result(30) is RECEIPT
        assert called.result(30) is RECEIPT
    assert is_empty(gate)


def test_an_error_is_raised_to_whoever_asks() -> None:
    gate = SubmitWindow(10, ByteBudget(1000, 3.0))
    future = handed(gate)
    future.set_exception(InvalidInput("no"))
    with pytest.raises(InvalidInput):
        future.result(0)
    assert is_empty(gate)


@pytest.mark.parametrize("outcome", [RECEIPT, InvalidInput("late")])
def test_a_cancelled_future_takes_no_receipt_and_leaves_the_gate_once(
    outcome: SendReceipt | InvalidInput,
) -> None:
    gate = SubmitWindow(2, ByteBudget(1000, 3.0))
    future, other = handed(gate), handed(gate)
    assert future.cancel()
    assert future.cancel()
    assert future.done()
    if isinstance(outcome, SendReceipt):
        future.set_result(outcome)
    else:
        future.set_exception(outcome)
    with pytest.raises(CancelledError):
        future.result(0)
    assert gate.try_enter(1)
    assert not gate.try_enter(1)
    other.set_result(RECEIPT)


def test_no_wait_is_lost_however_threads_meet() -> None:
    """A receipt that comes just when somebody begins to wait wakes them."""
    gate = SubmitWindow(10_000, ByteBudget(10**9, 3.0))
    futures = [handed(gate) for _ in range(3000)]

    def settle() -> None:
        for future in futures:
            future.set_result(RECEIPT)

    settling = threading.Thread(target=settle)
    settling.start()
    assert all(future.result(30) is RECEIPT for future in futures)
    settling.join(30)
    assert is_empty(gate)
