"""What allocating costs: per queue and strategy, at growing sizes, and for a million at once.

python -m benchmarks.allocation
"""

import gc
from collections.abc import Callable
from time import perf_counter

from pocketmq.balance import allocation
from pocketmq.balance.what_if import MemberJoined, Situation, what_if
from pocketmq.model import MessageQueue

SIZES = (1_000, 10_000, 100_000, 1_000_000)
MEMBERS = [f"room{number % 4}@c{number:03}" for number in range(100)]
STRATEGIES: list[allocation.Strategy] = [
    allocation.Average(),
    allocation.AverageByCircle(),
    allocation.ConsistentHash(),
    allocation.MachineRoom(frozenset({"room0", "room1"})),
    allocation.MachineRoomNearby(allocation.Average(), allocation.RoomInName()),
]
NAIVE_QUEUES = 10_000
GROUPS = 1_000


def queues(count: int) -> list[MessageQueue]:
    """Make queues of one topic on ten brokers, in Java's order."""
    return [
        MessageQueue("orders", f"room{broker % 5}@broker-{broker:02}", number)
        for broker in (0, 5, 1, 6, 2, 7, 3, 8, 4, 9)
        for number in range(count // 10)
    ]


def seconds(call: Callable[[], object], rounds: int = 3) -> float:
    """Time a call: the best of several rounds."""
    best = float("inf")
    for _ in range(rounds):
        gc.collect()
        start = perf_counter()
        call()
        best = min(best, perf_counter() - start)
    return best


def print_sizes() -> None:
    print(f"{'strategy':<26}" + "".join(f"{size:>12,}" for size in SIZES) + f"{'growth':>10}")


def print_costs(name: str, costs: list[float]) -> None:
    """Print a row; `growth` compares the largest size with 10,000 queues, linear cost gives 1."""
    cells = "".join(f"{cost:>12.3f}" for cost in costs)
    print(f"{name:<26}{cells}{costs[-1] / costs[1]:>9.1f}×")


def per_queue() -> None:
    print(f"owners of all queues, {len(MEMBERS)} members: µs per queue")
    print_sizes()
    for strategy in STRATEGIES:
        costs = []
        for size in SIZES:
            some = queues(size)
            spent = seconds(lambda s=strategy, q=some: s.allocate_all(q, MEMBERS))  # type: ignore[misc]
            costs.append(spent / size * 1e6)
        print_costs(strategy.name, costs)


def what_if_per_queue() -> None:
    print("\nwhat if a member joins, with all shares and moves: µs per queue")
    print_sizes()
    for strategy in STRATEGIES[:3]:
        costs = []
        for size in SIZES:
            situation = Situation.of({"orders": queues(size)}, MEMBERS, strategy)
            spent = seconds(lambda s=situation: what_if(s, [MemberJoined("room1@new")]), 1)  # type: ignore[misc]
            costs.append(spent / size * 1e6)
        print_costs(strategy.name, costs)


def million_over_groups() -> None:
    print(f"\n1,000,000 (queue, group) allocations as {GROUPS:,} groups of 1,000 queues: seconds")
    some = queues(1_000_000 // GROUPS)
    groups = [[f"room{n % 4}@g{group}-{n:02}" for n in range(20)] for group in range(GROUPS)]
    for strategy in STRATEGIES[:3]:
        spent = seconds(
            lambda s=strategy: [s.allocate_all(some, members) for members in groups],  # type: ignore[misc]
            rounds=1,
        )
        print(f"{strategy.name:<26}{spent:>12.3f}")


def against_naive() -> None:
    print(
        f"\nall owners in one pass against asking {len(MEMBERS)} members, {NAIVE_QUEUES:,} queues"
    )
    some = queues(NAIVE_QUEUES)
    for strategy in STRATEGIES:
        at_once = seconds(lambda s=strategy: s.allocate_all(some, MEMBERS))  # type: ignore[misc]
        one_by_one = seconds(
            lambda s=strategy: [s.allocate("g", member, some, MEMBERS) for member in MEMBERS],  # type: ignore[misc]
            rounds=1,
        )
        print(f"{strategy.name:<26}{one_by_one / at_once:>11.0f}×")


def main() -> None:
    per_queue()
    what_if_per_queue()
    million_over_groups()
    against_naive()


if __name__ == "__main__":
    main()
