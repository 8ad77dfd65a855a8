"""When a push consumer pops, and when a popped message that failed comes again."""

import pytest

from pocketmq.balance.consumer import popping
from pocketmq.balance.consumer.pulling import PullLater, PullNow, StopPulling, WaitReason


@pytest.mark.parametrize(
    ("facts", "step"),
    [
        (popping.PopFacts(), PullNow()),
        (popping.PopFacts(dropped=True, paused=True), StopPulling()),
        (popping.PopFacts(running=False), PullLater(1.0, WaitReason.NOT_RUNNING)),
        (popping.PopFacts(paused=True), PullLater(1.0, WaitReason.PAUSED)),
        (popping.PopFacts(waiting=96), PullNow()),
        (popping.PopFacts(waiting=97), PullLater(0.05, WaitReason.TOO_MANY_MESSAGES)),
        (popping.PopFacts(waiting=3, limit=2), PullLater(0.05, WaitReason.TOO_MANY_MESSAGES)),
        (popping.PopFacts(subscribed=False), PullLater(1.0, WaitReason.NOT_SUBSCRIBED)),
    ],
)
def test_a_queue_is_popped_unless_something_stands_against_it(
    facts: popping.PopFacts, step: object
) -> None:
    assert popping.before_pop(facts) == step


def test_a_message_that_failed_is_hidden_longer_with_each_try() -> None:
    delays = [popping.hide_again(tries) for tries in range(18)]
    assert delays[:4] == [10, 30, 60, 120]
    assert delays[-3:] == [7200, 7200, 7200]
    assert delays == sorted(delays)


def test_an_application_can_choose_the_level() -> None:
    assert (popping.hide_again(9, 1), popping.hide_again(0, 2), popping.hide_again(0, 99)) == (
        30,
        60,
        7200,
    )


def test_after_its_last_try_a_message_is_given_up_once_it_is_old() -> None:
    assert popping.after_last_try(14_401, 16) is None
    assert popping.after_last_try(14_400, 16) == 7200
    assert popping.after_last_try(65, 16) == 120
    assert popping.after_last_try(10, 16) == 30
    assert popping.after_last_try(9, 2) == 60  # younger than any delay: its tries decide
