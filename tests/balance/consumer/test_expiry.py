"""The sweep for messages whose handler does not come back."""

from pocketmq.balance.consumer.expiry import SWEEP_DELAY_LEVEL, ExpirySweep
from tests.balance.consumer.shapes import Msg, filled

TIMEOUT = 900.0


def test_overdue_first_messages_are_sent_back_and_removed() -> None:
    queue = filled(1, 2, 3)
    queue.mark_started([Msg(1), Msg(2)], 0.0)
    sweep = ExpirySweep(queue, TIMEOUT)
    assert SWEEP_DELAY_LEVEL == 3
    for offset in (1, 2):
        message = sweep.next(901.0)
        assert message == Msg(offset)
        sweep.sent(message, 901.0)
    assert sweep.next(901.0) is None
    assert queue.first_offset() == 3


def test_a_message_is_overdue_only_after_the_timeout_and_if_it_was_begun() -> None:
    queue = filled(1, 2)
    assert ExpirySweep(queue, TIMEOUT).next(9999.0) is None
    queue.mark_started([Msg(1)], 0.0)
    assert ExpirySweep(queue, TIMEOUT).next(900.0) is None
    assert ExpirySweep(queue, TIMEOUT).next(900.1) == Msg(1)


def test_only_the_first_message_counts() -> None:
    queue = filled(1, 2)
    queue.mark_started([Msg(2)], 0.0)
    assert ExpirySweep(queue, TIMEOUT).next(9999.0) is None


def test_a_sweep_tries_at_most_sixteen_times() -> None:
    queue = filled(*range(40))
    queue.mark_started([Msg(n) for n in range(40)], 0.0)
    sweep = ExpirySweep(queue, TIMEOUT)
    tries = 0
    while (message := sweep.next(1000.0)) is not None:
        sweep.sent(message, 1000.0)
        tries += 1
    assert (tries, queue.first_offset(), len(queue)) == (16, 16, 24)


def test_a_message_that_could_not_be_sent_comes_again() -> None:
    queue = filled(1, 2)
    queue.mark_started([Msg(1)], 0.0)
    sweep = ExpirySweep(queue, TIMEOUT)
    assert [sweep.next(1000.0), sweep.next(1000.0), sweep.next(1000.0)] == [Msg(1), Msg(1), None]
    assert len(queue) == 2


def test_a_message_its_handler_finished_meanwhile_is_not_removed_twice() -> None:
    queue = filled(1, 2)
    queue.mark_started([Msg(1)], 0.0)
    sweep = ExpirySweep(queue, TIMEOUT)
    message = sweep.next(1000.0)
    assert message is not None
    queue.remove([message], 1000.0)
    sweep.sent(message, 1000.0)
    assert (len(queue), queue.first_offset()) == (1, 2)


def test_a_message_pulled_again_starts_anew() -> None:
    queue = filled(1)
    queue.mark_started([Msg(1)], 0.0)
    queue.put([Msg(1)])
    assert ExpirySweep(queue, TIMEOUT).next(9999.0) is None


def test_a_removed_message_leaves_no_start_time_behind() -> None:
    queue = filled(1)
    queue.mark_started([Msg(1)], 0.0)
    queue.remove([Msg(1)], 1.0)
    queue.put([Msg(1)])
    assert ExpirySweep(queue, TIMEOUT).next(9999.0) is None
