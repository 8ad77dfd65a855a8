"""Every expression is accepted, refused and valued as RocketMQ's own classes do."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pocketmq.errors import FilterSyntaxError, FilterUndecided
from pocketmq.protocol.filter import SqlFilter, compile_sql

VECTORS = Path(__file__).parents[2] / "vectors"
LETTERS = {True: "T", False: "F", None: "N"}


def value(sql: SqlFilter, properties: dict[str, str]) -> str:
    try:
        return LETTERS[sql.evaluate(properties)]
    except FilterUndecided:
        return "!"


def ours(expression: str, maps: list[dict[str, str]]) -> tuple[str | None, str | None]:
    try:
        sql = compile_sql(expression)
    except FilterSyntaxError:
        return None, None
    chosen = set(sql.select(maps))
    delivered = "".join("1" if sql.matches(each) else "0" for each in maps)
    assert delivered == "".join("1" if place in chosen else "0" for place in range(len(maps)))
    return "".join(value(sql, each) for each in maps), delivered


def lines(name: str) -> tuple[list[dict[str, str]], Iterator[Any]]:
    first, *rest = (VECTORS / name).read_text("utf-8").splitlines()
    return json.loads(first)["maps"], map(json.loads, rest)


def test_the_table_of_constructs_has_javas_answers() -> None:
    maps, answers = lines("java-sql92.jsonl")
    checked = 0
    for java in answers:
        expected = java.get("values"), java.get("delivered")
        assert ours(java["expression"], maps) == expected, java["expression"]
        checked += 1
    assert (len(maps), checked) == (18, 2589)


def test_drawn_expressions_have_javas_answers() -> None:
    maps, answers = lines("java-sql92-random.jsonl")
    checked = 0
    for expression, values in answers:
        assert ours(expression, maps)[0] == values, expression
        checked += 1
    assert checked == 4000


@pytest.mark.parametrize(
    ("expression", "properties", "expected"),
    [
        ("a = 5", {}, "N"),
        ("5 = a", {}, "F"),
        ("a = b", {}, "T"),
        ("a = 5", {"a": "5.0"}, "!"),
        ("a = 5.5", {"a": " 5.5d "}, "T"),
        ("a > 1.5", {"a": "NaN"}, "T"),
        ("a > b", {"a": "0.0", "b": "-0.0"}, "T"),
        ("NOT a = 1", {"a": "1"}, "F"),
        ("NOT (a = 1)", {"a": "1"}, "F"),
        ("NOT (a > 5)", {"a": "x"}, "!"),
        ("TRUE OR a > 5", {"a": "x"}, "T"),
        ("a > 5 OR TRUE", {"a": "x"}, "!"),
        ("a NOT CONTAINS 'x'", {}, "F"),
        ("a", {"a": "true"}, "F"),
        ("a = TRUE", {"a": "true"}, "T"),
        ("TRUE = a", {"a": "true"}, "!"),
        ("a = 007", {"a": "0"}, "T"),
        ("a LIKE '5%'", {"a": "5"}, "F"),
    ],
)
def test_javas_odd_corners_are_kept(
    expression: str, properties: dict[str, str], expected: str
) -> None:
    assert value(compile_sql(expression), properties) == expected
