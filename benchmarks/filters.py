"""What a filter costs per message, against the same predicate written by hand in Python.

python -m benchmarks.filters
"""

import timeit
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from pocketmq.model.java_strings import java_hash
from pocketmq.protocol.filter import compile_sql, subscribe, tag_filter

BATCH = 512
ROUNDS = 7
CALLS = 40

MESSAGES: list[Mapping[str, str]] = [
    {
        "TAGS": ("paid", "refunded", "open", "lost")[number % 4],
        "KEYS": f"A{number}",
        "region": ("eu", "us", "asia")[number % 3],
        "amount": str(number % 100),
        "price": f"{number % 50}.5",
    }
    for number in range(BATCH)
]

T = TypeVar("T")
By = Callable[[Mapping[str, str]], bool]

SQL: list[tuple[str, By]] = [
    ("region = 'eu'", lambda m: m.get("region") == "eu"),
    ("amount > 50", lambda m: "amount" in m and int(m["amount"]) > 50),
    ("price BETWEEN 10.5 AND 20.5", lambda m: "price" in m and 10.5 <= float(m["price"]) <= 20.5),
    ("region IN ('eu', 'us')", lambda m: m.get("region") in ("eu", "us")),
    ("KEYS STARTSWITH 'A1'", lambda m: m.get("KEYS", "").startswith("A1")),
    (
        "amount > 50 AND region = 'eu' OR TAGS = 'paid' AND KEYS IS NOT NULL",
        lambda m: (
            ("amount" in m and int(m["amount"]) > 50 and m.get("region") == "eu")
            or (m.get("TAGS") == "paid" and m.get("KEYS") is not None)
        ),
    ),
]


def microseconds(call: Callable[[], object]) -> float:
    """Time one message: the best of several rounds over a batch."""
    return min(timeit.repeat(call, number=CALLS, repeat=ROUNDS)) / CALLS / BATCH * 1e6


def line(name: str, ours: Callable[[], list[int]], hand: Callable[[], list[int]]) -> None:
    assert ours() == hand(), name
    cost, bare = microseconds(ours), microseconds(hand)
    print(f"{name:<70} {cost:7.3f} {bare:7.3f} {cost / bare:6.1f}x")


def by_lambda(wanted: By) -> Callable[[], list[int]]:
    return lambda: [place for place, message in enumerate(MESSAGES) if wanted(message)]


def by_hand(values: list[T], wanted: frozenset[T]) -> Callable[[], list[int]]:
    return passing(values, lambda value: value in wanted)


def passing(values: list[T], test: Callable[[T], bool]) -> Callable[[], list[int]]:
    return lambda: [place for place, value in enumerate(values) if test(value)]


def main() -> None:
    print(f"{'µs per message':<70} {'filter':>7} {'lambda':>7} {'ratio':>7}")
    tags = [message["TAGS"] for message in MESSAGES]
    codes = [java_hash(tag) for tag in tags]
    wanted = tag_filter(subscribe("orders", "paid || refunded"))
    names = frozenset(("paid", "refunded"))
    hashes = frozenset(map(java_hash, names))
    line("tag by code", passing(codes, wanted.matches_code), by_hand(codes, hashes))
    line("tag by name", passing(tags, wanted.matches_tag), by_hand(tags, names))
    for expression, predicate in SQL:
        sql = compile_sql(expression)
        line(expression, partial(sql.select, MESSAGES), by_lambda(predicate))
    undecided = compile_sql("KEYS > 5")
    line("KEYS > 5 (never a number)", lambda: undecided.select(MESSAGES), by_lambda(never_a_number))
    compiling = SQL[-1][0]
    cost = min(timeit.repeat(lambda: compile_sql(compiling), number=200, repeat=ROUNDS)) / 200 * 1e6
    print(f"\ncompiling the longest of these: {cost:.0f} µs")


def never_a_number(message: Mapping[str, str]) -> bool:
    try:
        return int(message["KEYS"]) > 5
    except ValueError:
        return False


if __name__ == "__main__":
    main()
