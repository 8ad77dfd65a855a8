"""A compiled filter as its users hold it."""

import pickle

import pytest

from pocketmq.errors import FilterUndecided
from pocketmq.protocol.filter import compile_sql
from pocketmq.protocol.filter.sql import values


def test_a_filter_knows_which_properties_it_reads() -> None:
    sql = compile_sql("a = 5 AND (b IN ('x') OR NOT c) AND 'e' = d AND -f IS NULL ignored = 1")
    assert sql.reads == {"a", "b", "c", "d", "f"}
    assert compile_sql("TRUE").reads == frozenset()


def test_only_the_named_properties_are_looked_up() -> None:
    class Watched(dict[str, str]):
        def get(self, name: str, _: object = None) -> str | None:  # type: ignore[override]
            asked.add(name)
            return super().get(name)

    asked: set[str] = set()
    sql = compile_sql("a > 5 AND b = 'x' AND c BETWEEN 1 AND 2.5 AND d CONTAINS 'y'")
    sql.matches(Watched(a="7", b="x", c="2", d="xy"))
    assert asked == sql.reads


def test_a_batch_gives_the_positions_that_match() -> None:
    batch = [{"a": "5"}, {}, {"a": "x"}, {"a": "7"}, {"a": "6"}]
    assert compile_sql("a > 5").select(batch) == [3, 4]
    assert compile_sql("a > 5").select([]) == []


def test_what_cannot_be_compared_is_told_by_evaluate_and_dropped_by_matches() -> None:
    sql = compile_sql("a > 5")
    with pytest.raises(FilterUndecided, match="'x' as a 32-bit integer") as undecided:
        sql.evaluate({"a": "x"})
    assert undecided.value.value == "x"
    assert not sql.matches({"a": "x"})


def test_a_filter_shows_how_rocketmq_understands_it() -> None:
    sql = compile_sql("not a = 1 and b in('x','it''s') or c between -5 and 1e3 like 'x'")
    assert str(sql) == ("(((NOT a) = 1) AND (b IN ('x', 'it''s'))) OR (c BETWEEN - 5 AND 1000.0)")


def test_a_filter_travels_by_its_text() -> None:
    sql = compile_sql("a > 5")
    again = pickle.loads(pickle.dumps(sql))
    assert again == sql
    assert again.matches({"a": "6"})
    assert {sql, again, compile_sql("a > 6")} == {sql, compile_sql("a > 6")}


def test_leading_zeros_of_any_length_and_script_are_read() -> None:
    assert values.read_int("0" * 5000 + "7") == 7
    assert values.read_int("-" + "٠" * 5000 + "٧") == -7
    assert values.read_long("0" * 5000 + str(2**63 - 1)) == 2**63 - 1
    assert values.read_double("0" * 5000 + "7") == 7.0
    for text in ("1" + "0" * 5000, "9" * 20):
        with pytest.raises(FilterUndecided):
            values.read_long(text)


def test_whole_numbers_end_where_javas_do() -> None:
    assert (values.read_int("2147483647"), values.read_int("-2147483648")) == (2**31 - 1, -(2**31))
    assert (values.read_long(str(2**63 - 1)), values.read_long(str(-(2**63)))) == (
        2**63 - 1,
        -(2**63),
    )
    for read, text in (
        (values.read_int, "2147483648"),
        (values.read_long, str(2**63)),
        (values.read_int, "𝟓"),
    ):
        with pytest.raises(FilterUndecided):
            read(text)


def test_kinds_that_never_meet_count_as_smaller() -> None:
    assert [values.order(5, True), values.order(True, 5), values.order(5.5, False)] == [-1, -1, -1]
    assert [values.order(True, False), values.order("yes", False), values.order("TRUE", True)] == [
        1,
        0,
        0,
    ]
    assert values.order("a", "b") == -1


def test_numbers_have_javas_total_order() -> None:
    nan, zero = float("nan"), 0.0
    assert [
        values.order_numbers(nan, nan),
        values.order_numbers(nan, 1e300),
        values.order_numbers(5, nan),
    ] == [0, 1, -1]
    assert [
        values.order_numbers(-zero, zero),
        values.order_numbers(zero, -zero),
        values.order_numbers(0, zero),
    ] == [
        -1,
        1,
        0,
    ]
    assert values.order_numbers(2**53 + 1, float(2**53)) == 0, "as doubles they are the same"
    assert values.order_numbers(2**53 + 1, 2**53) == 1
