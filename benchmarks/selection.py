"""What choosing a queue costs a producer: µs per pick, beside `next(itertools.cycle(queues))`.

Run with `python -m benchmarks.selection`.
"""

import itertools
import timeit
from collections.abc import Callable

from pocketmq.balance.producer.choice import choose_queue
from pocketmq.balance.producer.fault_table import FaultTable
from pocketmq.balance.producer.plan import Send, SendPlan
from pocketmq.balance.producer.retry import SendAttempts, TryEnded, first_step, next_step
from pocketmq.balance.producer.selectors import RoundRobin, by_hash
from pocketmq.balance.profile import V4, V5, Profile
from pocketmq.model import MessageQueue, SendReceipt, SendStatus

BROKERS, QUEUES_EACH = 8, 8
PICKS, ROUNDS = 20_000, 5


def queues() -> list[MessageQueue]:
    return [MessageQueue("T", f"b{b}", i) for b in range(BROKERS) for i in range(QUEUES_EACH)]


def table(profile: Profile, bad: int) -> FaultTable:
    made = FaultTable(profile)
    for b in range(BROKERS):
        made.update(f"b{b}", 0.002, isolate=b < bad, now=0.0)
    return made


def candidates() -> dict[str, Callable[[], object]]:
    all_queues = queues()
    cycle = itertools.cycle(all_queues)
    robin = RoundRobin(0)
    plan = SendPlan(profile=V5, topic="T")
    receipt = SendReceipt(
        status=SendStatus.SEND_OK,
        message_id="id",
        offset_message_id=None,
        queue=all_queues[0],
        queue_offset=0,
    )
    ended = TryEnded(all_queues[0], 0.002, receipt)

    def picking(faults: FaultTable | None, avoid: str | None = None) -> Callable[[], object]:
        return lambda: choose_queue(all_queues, robin, faults, now=1.0, avoid=avoid)

    def whole_send() -> object:
        assert isinstance(first_step(plan), Send)
        return next_step(plan, SendAttempts(), ended, 0.002)

    learning = table(V5, 0)
    return {
        "next(itertools.cycle(queues))": lambda: next(cycle),
        "round robin, bare": lambda: robin.next(all_queues),
        "pick, no fault table": picking(None),
        "pick, retry avoiding a broker": picking(None, "b0"),
        "pick, 4.x table, all well": picking(table(V4, 0)),
        "pick, 5.x table, all well": picking(table(V5, 0)),
        "pick, 4.x table, half are avoided": picking(table(V4, BROKERS // 2)),
        "pick, 5.x table, half are avoided": picking(table(V5, BROKERS // 2)),
        "pick, 4.x table, all are avoided": picking(table(V4, BROKERS)),
        "pick, 5.x table, all are avoided": picking(table(V5, BROKERS)),
        "pick by ordering key": lambda: by_hash(all_queues, "customer-7"),
        "fault table update": lambda: learning.update("b0", 0.002, isolate=False, now=1.0),
        "plan of a send that works": whole_send,
    }


def main() -> None:
    """Print a table of costs for a topic of 8 brokers with 8 queues each."""
    print(f"{BROKERS} brokers with {QUEUES_EACH} queues each, best of {ROUNDS} × {PICKS} picks\n")
    print("| what | µs | ratio |\n|---|---:|---:|")
    base = 0.0
    for name, run in candidates().items():
        micros = min(timeit.repeat(run, number=PICKS, repeat=ROUNDS)) / PICKS * 1e6
        base = base or micros
        print(f"| {name} | {micros:.3f} | {micros / base:.1f} |")


if __name__ == "__main__":
    main()
