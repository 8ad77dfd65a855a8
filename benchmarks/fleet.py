"""What a whole estate costs: 100,000 groups of 64 queues and 16 members, by strategy.

STICKY is measured twice: where one group stands for all of its shape, and group by group.

python -m benchmarks.fleet
"""

from time import perf_counter, process_time

from pocketmq.balance.allocation import Average, AverageByCircle, ConsistentHash, Strategy
from pocketmq.balance.sticky import Sticky
from pocketmq.balance.what_if import MemberJoined, Situation, what_if
from pocketmq.model import MessageQueue
from pocketmq.pipelines.fleet import FleetEvent, Join, Leave, LoseBroker, fleet, uniform_estate

GROUPS, QUEUES, MEMBERS = 100_000, 64, 16
ALONE = 500
STRATEGIES: tuple[Strategy, ...] = (Average(), AverageByCircle(), ConsistentHash(), Sticky())

GROUP_BY_GROUP: dict[str, list[FleetEvent]] = {
    "join, then leave": [Join("new@1"), Leave(1)],
    "lost broker": [LoseBroker("broker-0")],
}


def alone(strategy: Strategy) -> float:
    """Return the processor seconds of one group when asked by itself, event included."""
    queues = [MessageQueue("t", f"broker-{n % 4}", n // 4) for n in range(QUEUES)]
    began = process_time()
    for number in range(ALONE):
        members = [f"10.0.{number}.{m}@{4000 + m}" for m in range(MEMBERS)]
        what_if(Situation.of({"t": queues}, members, strategy), [MemberJoined("new@1")])
    return (process_time() - began) / ALONE


def main() -> None:
    estate = uniform_estate(GROUPS, QUEUES, MEMBERS)
    print(f"{GROUPS:,} groups × {QUEUES} queues × {MEMBERS} members, before and after a join")
    print(f"{'strategy':<20}{'seconds':>9}{'CPU s':>9}{'M queues/CPU s':>16}{'against alone':>15}")
    for strategy in STRATEGIES:
        began, spent = perf_counter(), process_time()
        fleet(estate, [strategy], [Join("new@1")])
        wall, cpu = perf_counter() - began, process_time() - spent
        rate = 2 * GROUPS * QUEUES / cpu / 1e6
        print(
            f"{strategy.name:<20}{wall:>9.1f}{cpu:>9.1f}{rate:>16.1f}"
            f"{alone(strategy) * GROUPS / cpu:>14.0f}×"
        )
    few = uniform_estate(GROUPS // 10, QUEUES, MEMBERS)
    print("STICKY, group by group (a tenth of the groups, times ten)")
    for name, events in GROUP_BY_GROUP.items():
        began, spent = perf_counter(), process_time()
        fleet(few, [Sticky()], events)
        print(
            f"{name:<20}{10 * (perf_counter() - began):>9.1f}{10 * (process_time() - spent):>9.1f}"
        )


if __name__ == "__main__":
    main()
