"""The producer's decisions equal those of RocketMQ 4.9.7 and 5.5.0, row by row."""

import pytest

from pocketmq import errors
from pocketmq.balance.producer import plan
from pocketmq.balance.producer.choice import choose_queue, queue_for
from pocketmq.balance.producer.fault_table import FaultTable
from pocketmq.balance.producer.retry import SendAttempts, TryEnded, first_step, next_step
from pocketmq.balance.producer.selectors import RoundRobin, by_hash, key_hash, long_hash
from pocketmq.balance.profile import rules_of
from pocketmq.model import MessageQueue, SendReceipt
from pocketmq.model.message import send_status
from tests.balance.producer.vectors import PROFILES, TOPIC, Row, named, queues_of, rows

MASK = 0x7FFF_FFFF


def test_the_vectors_hold_every_kind_for_both_lines() -> None:
    counts = {
        (kind, line): sum(row["line"] == line for row in rows(kind))
        for kind in ("hash", "index", "turn", "pause", "update", "fault", "route", "send")
        for line in ("4.x", "5.x")
    }
    assert all(counts.values()), counts
    assert sum(counts.values()) > 1000


@pytest.mark.parametrize("line", ["4.x", "5.x"])
def test_an_ordering_key_has_javas_hash_and_goes_to_javas_queue(line: str) -> None:
    for row in rows("hash"):
        if row["line"] != line:
            continue
        key = row["key"]
        fits_int = isinstance(key, int) and -(2**31) <= key < 2**31
        if row["type"] == "Long" and fits_int:
            assert long_hash(key) == row["hash"]
            key = long_hash(key)
        assert key_hash(key) == row["hash"], row
        picks = [by_hash(queues_of([("b", size)]), key).queue_id for size in row["sizes"]]
        assert picks == row["picks"], row


def test_turns_are_counted_as_java_counts_them_past_the_overflow() -> None:
    for row in rows("index"):
        robin = RoundRobin(row["start"])
        assert [robin.advance() for _ in row["turns"]] == row["turns"], row


def test_without_a_fault_table_the_same_queues_are_picked() -> None:
    for row in rows("turn"):
        robin = RoundRobin(row["start"])
        queues = queues_of(row["brokers"])
        picks = [
            named(choose_queue(queues, robin, avoid=row["avoid"], restart=lambda _: 0))
            for _ in row["picks"]
        ]
        assert picks == row["picks"], row
        assert robin.index == row["after"] & MASK, row


def test_a_latency_earns_the_same_pause() -> None:
    for row in rows("pause"):
        rules = rules_of(PROFILES[row["line"]])
        for latency_ms, pause_ms in row["durations"]:
            assert rules.pause_for(latency_ms / 1000) == pause_ms / 1000, (row["line"], latency_ms)


def test_a_broker_is_avoided_until_the_same_moment() -> None:
    for row in rows("update"):
        table = FaultTable(PROFILES[row["line"]])
        now = 1_000_000.0
        for wait_ms, latency_ms, isolate, reachable, left_ms, is_reachable in row["steps"]:
            now += wait_ms / 1000
            latency = latency_ms / 1000
            table.update("b", latency, isolate=isolate, reachable=reachable, now=now)
            (health,) = table.snapshot(now)
            expected = max(0, left_ms or 0) / 1000
            assert health.available_in == pytest.approx(expected, abs=0.051), row
            assert table.is_available("b", now) == (expected == 0), row
            assert table.is_reachable("b") == is_reachable, row


def table_of(row: Row, now: float) -> FaultTable:
    """Build the table a row describes out of single updates."""
    table = FaultTable(PROFILES[row["line"]], worst_index=row["worst"])
    for broker, latency_ms, left_ms, reachable in row["known"]:
        latency = latency_ms / 1000
        table.update(broker, latency, isolate=False, reachable=reachable, now=now)
        table._items[broker].until = now + left_ms / 1000
    return table


def test_with_a_fault_table_the_same_queues_are_picked() -> None:
    for row in rows("fault"):
        now = 5000.0
        table = table_of(row, now)
        robin = RoundRobin(row["start"])
        restart = row["restart"]
        chance = None if restart is None else (lambda below, restart=restart: restart)
        queues = queues_of(row["brokers"])
        picks = [
            named(choose_queue(queues, robin, table, now=now, avoid=row["avoid"], restart=chance))
            for _ in row["picks"]
        ]
        assert picks == row["picks"], row
        assert robin.index == row["after"] & MASK, row
        assert [health.broker for health in table.snapshot(now)] == row["left"], row


class ScriptedSend:
    """A shell without a network: carries out a plan's instructions against a row's script."""

    def __init__(self, row: Row) -> None:
        how = row["how"]
        self.row = row
        self.profile = PROFILES[row["line"]]
        per_try = how.get("per_try", -1)
        self.plan = plan.SendPlan(
            profile=self.profile,
            topic=TOPIC,
            mode=plan.SendMode(how.get("mode", "sync")),
            pinned=how.get("pinned", False),
            retries=how.get("retries", 2),
            timeout=how.get("timeout", 3000) / 1000,
            timeout_per_try=per_try / 1000 if per_try >= 0 else None,
            retry_another_broker=how.get("another", False),
            detector=how.get("detector", False),
        )
        self.faults = FaultTable(self.profile) if how.get("faults") else None
        self.robin = RoundRobin(row["start"])
        self.restarts = iter(row["restarts"])
        self.queues = queues_of([("b0", 2), ("b1", 1), ("b2", 2)])
        self.trace: list[list[object]] = []
        self.now = 0.0

    def run(self) -> plan.Return | plan.GiveUp:
        chosen = MessageQueue(TOPIC, "b1", 0) if self.plan.pinned else None
        attempts = SendAttempts()
        action = first_step(self.plan)
        while isinstance(action, plan.Send):
            queue = queue_for(
                action,
                self.queues,
                self.robin,
                self.faults,
                now=self.now,
                chance=lambda _: next(self.restarts),
                chosen=chosen,
            )
            began = self.now
            outcome = self.send(queue, action.timeout)
            ended = TryEnded(queue, self.now - began, outcome)
            decision = next_step(self.plan, attempts, ended, self.now)
            for told in decision.feedback:
                self.learn(told)
            attempts, action = decision.attempts, decision.action
        return action

    def learn(self, told: plan.UpdateFault | plan.RefreshRoute) -> None:
        if isinstance(told, plan.UpdateFault) and self.faults is not None:
            self.faults.update(
                told.broker,
                told.latency,
                isolate=told.isolate,
                reachable=told.reachable,
                now=self.now,
            )

    def send(self, queue: MessageQueue, timeout: float) -> SendReceipt | errors.MQError | None:
        if queue.broker_name in self.row["how"].get("without_address", ()):
            return errors.BrokerNotFound(queue.broker_name)
        script = self.row["script"]
        outcome, _, slept = script[min(len(self.trace), len(script) - 1)].partition("/")
        self.trace.append([*named(queue), round(timeout * 10) * 100])
        self.now += int(slept or 0) / 1000
        address = f"{queue.broker_name}:10911"
        match outcome:
            case "timeout":
                return errors.RequestTimedOut(address, "SEND_MESSAGE_V2", timeout)
            case "connect":
                return errors.ConnectFailed(address, "refused")
            case "closed":
                return errors.ConnectionLost(address, "closed")
        if self.plan.mode is plan.SendMode.ONEWAY:
            return None
        status = send_status(int(outcome))
        if status is None:
            return errors.server_error(int(outcome), "scripted")
        return SendReceipt(
            status=status, message_id="id", offset_message_id="0A", queue=queue, queue_offset=5
        )


def ends_alike(end: plan.Return | plan.GiveUp, result: Row, tries: int) -> bool:
    """Compare our end of a send with Java's exception or status."""
    if isinstance(end, plan.Return):
        return result == ({"status": end.receipt.status.name} if end.receipt else {})
    error = end.error
    if not isinstance(error, errors.SendFailed) or "error" not in result:
        return False
    match result["error"], result.get("code", -1):
        case "MQBrokerException", code:
            return isinstance(error.last_error, errors.ServerError) and error.code == code
        case "MQClientException", 10001:
            return isinstance(error.last_error, errors.ConnectFailed)
        case "MQClientException", 10002:
            return isinstance(error.last_error, errors.RequestTimedOut)
        case "MQClientException", 10003:
            return isinstance(error.last_error, errors.BrokerNotFound)
        case "MQClientException", -1:  # asynchronous, or a request that could not be written
            return isinstance(
                error.last_error,
                errors.RequestTimedOut | errors.ConnectionLost | errors.ConnectFailed,
            )
        case "MQClientException", code:
            return isinstance(error.last_error, errors.ServerError) and error.code == code
        case "RemotingTooMuchRequestException", _:
            return error.elapsed >= 1.0
        case name, _:  # a chosen queue: Java's exception comes through unwrapped
            unwrapped = {
                "RemotingTimeoutException": errors.RequestTimedOut,
                "RemotingConnectException": errors.ConnectFailed,
                "RemotingSendRequestException": errors.ConnectionLost,
            }
            return type(error.last_error) is unwrapped[name] and error.attempts == tries


@pytest.mark.parametrize("line", ["4.x", "5.x"])
@pytest.mark.parametrize("mode", ["sync", "async", "oneway"])
def test_whole_sends_try_the_same_queues_and_end_the_same_way(line: str, mode: str) -> None:
    played = 0
    for row in rows("send"):
        if row["line"] != line or row["how"].get("mode", "sync") != mode:
            continue
        played += 1
        script = ScriptedSend(row)
        end = script.run()
        expected = [keep_id(script, step) for step in row["trace"]]
        assert script.trace == expected, row
        assert ends_alike(end, row["result"], len(row["trace"])), (row, end)
        if script.faults is not None:
            table = {
                health.broker: [round(health.available_in), health.reachable]
                for health in script.faults.snapshot(script.now)
            }
            assert table == row["table"], row
    assert played >= {"sync": 100, "async": 50, "oneway": 8}[mode]


def keep_id(script: ScriptedSend, step: list[object]) -> list[object]:
    """Correct Java's asynchronous retry, which asks brokers for queues they do not have."""
    broker, queue_id, timeout = step
    if MessageQueue(TOPIC, str(broker), int(str(queue_id))) in script.queues:
        return step
    assert script.plan.mode is plan.SendMode.ASYNC
    assert broker == "b1"  # the only broker with a single queue
    return [broker, 0, timeout]


def test_an_asynchronous_retry_keeps_the_queue_id_where_the_broker_has_it() -> None:
    queues = queues_of([("a", 3), ("b", 3), ("c", 1)])
    retry = plan.Send(plan.Aim.SAME_QUEUE_ID, 1.0, avoid="a", queue_id=2)

    def chosen(start: int) -> list[object]:
        robin = RoundRobin(start)
        queue = queue_for(retry, queues, robin, None, now=0, chance=lambda _: 0)
        return named(queue)

    assert chosen(2) == ["b", 2]
    assert chosen(5) == ["c", 0]
