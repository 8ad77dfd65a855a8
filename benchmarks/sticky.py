"""What the sticky assignment costs, and what it saves: time and moves against AVG.

python -m benchmarks.sticky
"""

import gc
from collections import Counter
from collections.abc import Callable
from time import process_time
from typing import NamedTuple

from pocketmq.balance.allocation import Average
from pocketmq.balance.sticky import assign, assign_mixed, minimum_moves
from pocketmq.model import MessageQueue, sort_queues
from pocketmq.model.java_strings import java_sorted

Owners = dict[MessageQueue, str]


class Shape(NamedTuple):
    topics: int
    queues: int
    members: int

    def __str__(self) -> str:
        return f"{self.topics:,} × {self.queues} × {self.members}"


SHAPES = (
    Shape(16, 4, 8),
    Shape(64, 16, 50),
    Shape(100, 100, 100),
    Shape(100, 99, 100),
    Shape(200, 50, 100),
    Shape(1_000, 10, 100),
    Shape(10_000, 1, 100),
    Shape(1, 10_000, 100),
)


def topics_of(shape: Shape) -> dict[str, list[MessageQueue]]:
    return {
        f"topic-{number}": [
            MessageQueue(f"topic-{number}", f"broker-{queue % 4}", queue // 4)
            for queue in range(shape.queues)
        ]
        for number in range(shape.topics)
    }


def average(topics: dict[str, list[MessageQueue]], members: list[str]) -> Owners:
    """Assign as AVG does, including the sorting that every member must do."""
    ordered = java_sorted(members)
    owners: Owners = {}
    for queues in topics.values():
        row = sort_queues(queues)
        dealt = zip(row, Average().allocate_all(row, ordered), strict=True)
        owners |= {queue: owner for queue, owner in dealt if owner is not None}
    return owners


def milliseconds(call: Callable[[], object], rounds: int = 3) -> float:
    """Time a call: the least CPU time of several rounds."""
    best = float("inf")
    for _ in range(rounds):
        gc.collect()
        start = process_time()
        call()
        best = min(best, process_time() - start)
    return best * 1e3


def moved(before: Owners, after: Owners) -> int:
    return sum(before[queue] != owner for queue, owner in after.items())


def spread(owners: Owners, members: list[str]) -> int:
    """Return how many queues the member with most has more than the one with fewest."""
    counts = Counter(owners.values())
    return max(counts.values()) - min(counts[member] for member in members)


def print_shape(shape: Shape) -> None:
    topics = topics_of(shape)
    members = [f"10.0.{n // 250}.{n % 250}@{n * 7919}@pm1" for n in range(shape.members)]
    joined, left = [*members, "10.9.9.9@1@pm1"], members[1:]
    now = assign(topics, members, {})
    costs = [
        milliseconds(lambda: assign(topics, members, {})),
        milliseconds(lambda: assign(topics, members, now)),
        milliseconds(lambda: assign(topics, joined, now)),
        milliseconds(lambda: assign(topics, left, now)),
        milliseconds(lambda: assign(topics, members[: shape.members // 2], now)),
        milliseconds(lambda: assign_mixed(topics, members[::2], members[1::2], now)),
    ]
    plain = milliseconds(lambda: average(topics, members))
    cells = "".join(f"{cost:>9.1f}" for cost in costs)
    print(f"{shape!s:<18}{cells}{plain:>9.1f}{costs[0] / plain:>8.0f}×{costs[2] / plain:>6.1f}×")


def print_moves(shape: Shape) -> None:
    topics = topics_of(shape)
    members = [f"10.0.{n // 250}.{n % 250}@{n * 7919}@pm1" for n in range(shape.members)]
    now, average_now = assign(topics, members, {}), average(topics, members)
    row = f"{shape!s:<18}"
    joined, left = [*members, "10.0.0.3@99@pm1"], [*members[:3], *members[4:]]
    for after in (joined, left, members[::2]):
        sticky = moved(now, assign(topics, after, now))
        fewest = minimum_moves(topics, after, now)
        plain = moved(average_now, average(topics, after))
        row += f"{sticky:>8,}{fewest:>8,}{plain:>8,}"
    print(f"{row}{spread(now, members):>8,}{spread(average_now, members):>8,}")


def main() -> None:
    print("CPU ms, topics × queues × members; AVG and the ratios to it from the same run")
    heads = ("nothing", "same", "join", "leave", "halved", "mixed", "AVG")
    print(f"{'previous:':<18}" + "".join(f"{head:>9}" for head in heads) + "  nothing  join")
    for shape in SHAPES:
        print_shape(shape)
    print("\nqueues moved (sticky, the minimum, AVG) and spread over all topics (sticky, AVG)")
    print(f"{'':<18}{'join':>24}{'leave':>24}{'half leave':>24}{'spread':>16}")
    for shape in SHAPES:
        print_moves(shape)


if __name__ == "__main__":
    main()
