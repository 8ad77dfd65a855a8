"""The adaptive choice: costs, tests of slow brokers, avoiding and returning, patience."""

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest

from pocketmq.balance.producer import adaptive
from pocketmq.balance.producer.broker_record import (
    BrokerRecord,
    LatencyBound,
    TopicBrokers,
)
from pocketmq.errors import (
    BrokerNotFound,
    ConnectFailed,
    ConnectionLost,
    MQError,
    RequestNotSent,
    RequestTimedOut,
    server_error,
)
from pocketmq.model import MessageQueue

TIMED_OUT = RequestTimedOut("a:1", "SEND", 1.0)
LOST = ConnectionLost("a:1", "gone")
BUSY = server_error(2, "busy", request="SEND", address="a:1")
REFUSED = ConnectFailed("a:1", "connection refused")


def queues(*brokers: str, each: int = 2) -> tuple[MessageQueue, ...]:
    return tuple(MessageQueue("orders", name, number) for name in brokers for number in range(each))


class Case:
    """A fleet of brokers that answer in 2 ms, and a topic on all of them."""

    def __init__(self, *brokers: str) -> None:
        self.now = 100.0
        self.fleet = adaptive.Fleet(Random(1).random)
        self.topic: TopicBrokers = self.fleet.topic(queues(*brokers), self.now)
        for _ in range(500):
            for place in self.topic.all:
                self.fleet.answered(place.record, 0.002, self.now)

    def __getitem__(self, broker: str) -> BrokerRecord:
        return next(each.record for each in self.topic.all if each.record.name == broker)

    def chosen(self, count: int = 400, tried: Sequence[BrokerRecord] = ()) -> Counter[str]:
        choices = [self.fleet.choose(self.topic, self.now, tried) for _ in range(count)]
        return Counter(each.record.name for each in choices)

    def slow(self, broker: str, latency: float) -> None:
        for _ in range(8):
            self.fleet.answered(self[broker], latency, self.now)

    def fail(self, broker: str, *errors: MQError, latency: float = 1.0) -> None:
        for error in errors:
            self.fleet.failed(self[broker], error, latency, self.now)

    def patience(self, broker: str, left: float = 3.0, tries: int = 3, size: int = 100) -> float:
        place = next(each for each in self.topic.all if each.record.name == broker)
        return self.fleet.patience(self.topic, place, (), left, tries, size)

    @property
    def avoided(self) -> set[str]:
        return {each.broker for each in self.fleet.snapshot(self.now) if not each.available}


# The choice


def test_equal_brokers_get_equal_parts_and_their_queues_take_turns() -> None:
    case = Case("a", "b", "c")
    assert all(100 < count < 170 for count in case.chosen().values())
    place = case.topic.all[0]
    assert [place.next().queue_id for _ in range(4)] in ([0, 1, 0, 1], [1, 0, 1, 0])


@pytest.mark.parametrize("latency", [0.0028, 0.0034])
def test_a_broker_that_is_a_little_slower_is_used_like_the_others(latency: float) -> None:
    case = Case("a", "b")
    case.slow("a", latency)
    assert 150 < case.chosen()["a"] < 250


def test_a_broker_that_is_much_slower_is_left_out_of_many() -> None:
    case = Case("a", "b", "c")
    case.slow("a", 0.010)
    assert case.chosen()["a"] == 0


def test_tries_in_flight_count_even_before_any_of_them_is_late() -> None:
    case = Case("a", "b")
    case["a"].in_flight[1] = case.now
    assert case.chosen()["a"] == 0
    case["b"].in_flight[2] = case.now
    assert 150 < case.chosen()["a"] < 250


def test_a_try_that_waits_longer_than_any_did_makes_its_broker_slow_now() -> None:
    case = Case("a", "b")
    for record in (case["a"], case["b"]):
        record.in_flight.update(dict.fromkeys(range(4), case.now))
    case["b"].in_flight = dict.fromkeys(range(8), case.now + 0.019)
    case.now += 0.020
    assert case.chosen()["a"] == 0  # half as many are in flight, but the oldest for 20 ms


def test_what_was_slow_is_as_good_as_the_best_when_nothing_was_heard_for_long() -> None:
    case = Case("a", "b")
    case.slow("a", 0.1)
    case.now += 2.0
    assert case.chosen(adaptive.TEST_EVERY - 1)["a"] == 0
    case.now += 4.0
    assert case.chosen()["a"] > 100


def test_a_slow_broker_is_tested_by_one_message_and_is_back_at_once_if_that_was_quick() -> None:
    case = Case("a", "b")
    case.slow("a", 0.1)
    assert case.chosen(2 * adaptive.TEST_EVERY)["a"] == 0  # it was heard of a moment ago
    case.now += adaptive.PROBE_AFTER
    choices = [case.fleet.choose(case.topic, case.now).record for _ in range(adaptive.TEST_EVERY)]
    assert choices.count(case["a"]) == 1
    case.fleet.answered(case["a"], 0.1, case.now)
    case.now += adaptive.PROBE_AFTER
    assert case.chosen(adaptive.TEST_EVERY)["a"] == 1
    case.fleet.answered(case["a"], 0.002, case.now)
    assert 60 < case.chosen(200)["a"] < 140


def test_while_a_test_is_in_flight_there_is_no_other() -> None:
    case = Case("a", "b")
    case.slow("a", 0.1)
    case.now += adaptive.PROBE_AFTER
    case["a"].in_flight[1] = case.now
    assert case.chosen(3 * adaptive.TEST_EVERY)["a"] == 0


def test_a_retry_goes_to_a_broker_that_was_not_tried_and_is_in_use() -> None:
    case = Case("a", "b", "c")
    case.fail("c", TIMED_OUT)
    assert case.chosen(tried=[case["a"]]) == {"b": 400}
    # Both in use were tried: one that answered may take the message now, "c" will not.
    assert case.chosen(tried=[case["a"], case["b"]]).keys() == {"a", "b"}


def test_with_all_avoided_the_one_that_answers_is_used_and_then_the_one_that_did_last() -> None:
    case = Case("a", "b", "c")
    case.fail("a", TIMED_OUT)
    case.now += 1.0
    case.fail("b", BUSY, BUSY, BUSY)
    case.now += 1.0
    case.fail("c", REFUSED)
    assert case.avoided == {"a", "b", "c"}
    assert [each.reachable for each in case.fleet.snapshot(case.now)] == [False, True, False]
    assert case.chosen() == {"b": 400}
    assert case.chosen(tried=[case["b"]]) == {"c": 400}
    assert case.chosen(tried=[case["b"], case["c"]]) == {"a": 400}
    assert case.chosen(tried=[case["b"], case["c"], case["a"]]) == {"b": 400}


# Avoiding


@pytest.mark.parametrize(
    "error",
    [TIMED_OUT, REFUSED, BrokerNotFound("a"), RequestNotSent("a:1", "SEND", 1.0)],
    ids=lambda error: type(error).__name__,
)
def test_a_broker_that_cannot_be_reached_is_avoided_at_once(error: MQError) -> None:
    case = Case("a", "b")
    case.fail("a", error)
    assert case.avoided == {"a"}
    assert case.chosen() == {"b": 400}


@pytest.mark.parametrize("error", [BUSY, LOST], ids=["refusal", "lost connection"])
def test_three_failures_in_a_row_are_enough(error: MQError) -> None:
    case = Case("a", "b")
    case.fail("a", error, error)
    case.fleet.answered(case["a"], 0.002, case.now)
    case.fail("a", error, error)
    assert case.avoided == set()
    case.fail("a", error)
    assert case.avoided == {"a"}


def test_refusals_for_what_the_message_is_are_answers_like_others() -> None:
    case = Case("a", "b")
    for code in (13, 16, 17):  # illegal message, no permission, no such topic
        refusal = server_error(code, "no", request="SEND", address="a:1")
        case.fail("a", refusal, refusal, refusal, refusal, latency=0.002)
    assert case.avoided == set()


def test_a_timeout_that_the_caller_made_too_short_proves_nothing() -> None:
    case = Case("a", "b")
    case.fail("a", TIMED_OUT, TIMED_OUT, TIMED_OUT, TIMED_OUT, latency=0.005)
    assert case.avoided == set()
    assert [each.unanswered for each in case.fleet.snapshot(case.now)] == [4, 0]


def test_what_was_never_sent_is_not_counted_as_possibly_stored() -> None:
    case = Case("a", "b")
    case.fail("a", RequestNotSent("a:1", "SEND", 1.0))
    assert case.fleet.snapshot(case.now)[0].unanswered == 0


def test_a_broker_is_back_with_its_first_answer_as_quick_as_the_best() -> None:
    case = Case("a", "b")
    case.slow("a", 0.9)
    case.fail("a", TIMED_OUT)
    case.fleet.use_again(case["a"], case.now)
    assert case.avoided == set()
    assert 150 < case.chosen()["a"] < 250
    case.fail("a", TIMED_OUT)
    case.fleet.answered(case["a"], 0.002, case.now)  # a message that was sent there all the same
    assert case.avoided == set()


def test_after_its_return_one_failure_is_enough_for_a_while() -> None:
    case = Case("a", "b")
    case.fail("a", BUSY, BUSY, BUSY)
    case.now += 1.0
    case.fleet.use_again(case["a"], case.now)
    case.fail("a", BUSY)
    assert case.avoided == {"a"}
    case.fleet.use_again(case["a"], case.now)
    case.now += adaptive.TRIAL
    case.fail("a", BUSY)
    assert case.avoided == set()


def test_probes_are_fewer_while_a_broker_fails_after_each_return() -> None:
    case = Case("a", "b")
    pauses = []
    for _ in range(5):
        case.fail("a", TIMED_OUT)
        pauses.append(case.fleet.next_probe(case["a"], case.now))
        case.now += 1.0
        case.fleet.use_again(case["a"], case.now)
    assert pauses == [
        adaptive.PROBE_AFTER,
        1.0,
        adaptive.PROBE_MOST,
        adaptive.PROBE_MOST,
        adaptive.PROBE_MOST,
    ]
    case.now += adaptive.TRIAL
    case.fail("a", TIMED_OUT)
    assert case.fleet.next_probe(case["a"], case.now) == adaptive.PROBE_AFTER


def test_a_broker_is_not_probed_when_it_is_back_or_gone_from_all_routes() -> None:
    case = Case("a", "b")
    record = case["a"]
    assert case.fleet.next_probe(record, case.now) is None
    case.fail("a", TIMED_OUT)
    assert case.fleet.next_probe(record, case.now) is not None
    case.fleet.keep_only({"b"})
    assert case.fleet.next_probe(record, case.now) is None
    assert [each.broker for each in case.fleet.snapshot(case.now)] == ["b"]


# Patience


def test_a_try_waits_for_ten_times_what_is_usual_within_bounds() -> None:
    case = Case("a", "b")
    case.fleet.bound.seconds = 0.05
    assert case.patience("a") == pytest.approx(0.5, abs=0.001)
    case.fleet.bound.seconds = 0.001
    assert case.patience("a") == pytest.approx(adaptive.SHORTEST_TRY, abs=0.001)
    case.fleet.bound.seconds = 2.0
    assert case.patience("a", left=30.0) == pytest.approx(adaptive.LONGEST_TRY, abs=0.001)


def test_before_anything_is_known_a_try_waits_for_long() -> None:
    fleet = adaptive.Fleet(Random(1).random)
    topic = fleet.topic(queues("a", "b"), 0.0)
    assert fleet.patience(topic, topic.all[0], (), 3.0, 3, 100) == pytest.approx(1.0, abs=0.01)


def test_tries_are_fitted_into_the_time_but_not_below_what_answers_need() -> None:
    case = Case("a", "b")
    case.fleet.bound.seconds = 0.05
    assert case.patience("a", left=0.9) == pytest.approx(0.3)
    assert case.patience("a", left=0.3) == pytest.approx(0.15)
    assert case.patience("a", left=0.1) == pytest.approx(0.1)


def test_large_messages_get_the_time_they_need() -> None:
    case = Case("a", "b")
    case.fleet.bound.seconds = 0.002
    assert case.patience("a", size=1 << 19) == pytest.approx(0.75)
    assert case.patience("a", size=1 << 22) == pytest.approx(1.0)  # so that retries still fit


def test_nothing_is_given_up_early_without_a_healthy_broker_to_go_to() -> None:
    case = Case("a", "b")
    assert case.patience("a", tries=1) == 3.0
    assert case.patience("a") < 3.0
    place = case.topic.all[0]
    assert case.fleet.patience(case.topic, place, (case["b"],), 3.0, 2, 100) == 3.0
    case.fail("b", TIMED_OUT)
    assert case.patience("a") == 3.0
    assert case.patience("b") < 3.0
    case.fail("a", TIMED_OUT)
    assert case.patience("a") == 3.0


def test_nothing_is_given_up_early_while_all_brokers_take_long() -> None:
    case = Case("a", "b")
    case.slow("a", 0.6)
    assert case.patience("a") < 3.0
    case.slow("b", 0.6)
    case.now += 1.0
    case.chosen(1)
    assert case.patience("a") == 3.0


def test_the_bound_is_above_nearly_all_answers() -> None:
    bound, random = LatencyBound(), Random(1)
    latencies = [random.lognormvariate(-6.2, 0.5) for _ in range(40_000)]
    for latency in latencies:
        bound.sample(latency)
    above = sum(latency > bound.seconds for latency in latencies) / len(latencies)
    assert 0.003 < above < 0.03


# The route


def test_a_new_broker_starts_in_the_middle_and_turns_go_on() -> None:
    case = Case("a", "b", "c")
    case.slow("b", 0.004)
    case.slow("c", 0.100)
    before = case["a"]
    case.topic.all[0].turn = 1
    after = case.fleet.topic(queues("a", "b", "c", "d", each=4), case.now, case.topic)
    assert [each.record.name for each in after.all] == ["a", "b", "c", "d"]
    assert after.all[0].record is before
    assert after.all[0].next().queue_id == 2
    assert after.all[3].record.latency == pytest.approx(case["b"].latency)
