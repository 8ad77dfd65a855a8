"""The flow against all choices there are, by dynamic programming over the columns' numbers."""

from itertools import combinations
from random import Random

from pocketmq.balance.sticky.extras import Row, choose_extras
from pocketmq.balance.sticky.scores import scores

KEPT = 1 << 100  # outweighs all scores, and is not the weight that the flow uses


def by_trying_all(rows: list[Row], keys: list[int]) -> list[set[int]]:
    floor = sum(row.extras for row in rows) // len(keys)
    best: dict[tuple[int, ...], tuple[int, list[set[int]]]] = {(0,) * len(keys): (0, [])}
    for row in rows:
        cells = [s - KEPT * (n in row.above) for n, s in enumerate(scores(row.key, keys))]
        reached: dict[tuple[int, ...], tuple[int, list[set[int]]]] = {}
        for choice in combinations(range(len(keys)), row.extras):
            for numbers, (cost, chosen) in best.items():
                after = tuple(number + (n in choice) for n, number in enumerate(numbers))
                total = cost + sum(cells[n] for n in choice)
                if after not in reached or total < reached[after][0]:
                    reached[after] = total, [*chosen, set(choice)]
        best = reached
    level = {n: found for n, found in best.items() if min(n) >= floor and max(n) <= floor + 1}
    return min(level.values(), key=lambda found: found[0])[1]


def test_the_choice_is_the_cheapest_of_all_level_ones() -> None:
    random = Random(4)
    for case in range(500):
        keys = [random.getrandbits(64) for _ in range(random.randint(2, 5))]
        columns = range(len(keys))
        rows = [
            Row(
                random.getrandbits(64) | 1,
                random.randint(1, len(keys) - 1),
                frozenset(random.sample(columns, random.choice([0, random.randint(0, len(keys))]))),
            )
            for _ in range(random.randint(1, 5))
        ]
        assert choose_extras(rows, keys) == by_trying_all(rows, keys), case


def test_few_distinct_states_make_long_chains_of_exchanges() -> None:
    """All rows prefer the same columns, so every unit must travel."""
    random = Random(5)
    for case in range(60):
        keys = [random.getrandbits(64) for _ in range(5)]
        rows = [Row(random.getrandbits(64) | 1, 2, frozenset({0, 1, 2})) for _ in range(5)]
        rows.append(Row(random.getrandbits(64) | 1, 1, frozenset({4})))
        assert choose_extras(rows, keys) == by_trying_all(rows, keys), case


def test_without_rows_there_is_nothing_to_choose() -> None:
    assert choose_extras([], [1, 2]) == []
