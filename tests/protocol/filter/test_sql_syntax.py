"""What the compiler refuses, where it points, and what it bounds."""

import pickle

import pytest

from pocketmq.errors import FilterSyntaxError
from pocketmq.protocol.filter import MAX_EXPRESSION_LENGTH, MAX_NESTING, compile_sql

REFUSALS = [
    ("", 1, "expected a property, a value or '(', found the end"),
    ("a =", 4, "expected a property, a value or '(', found the end"),
    ("a == 5", 4, "expected a property, a value or '(', found '='"),
    ("a != 5", 3, "write <> for unequal"),
    ('a = "x"', 5, "text stands in single quotes"),
    ("a = 'x", 5, "no closing quote"),
    ("a.b = 5", 2, "names hold only letters"),
    ("é = 5", 1, "'é' is not allowed here"),
    ("a /* x", 3, "comment is not closed"),
    ("a / 5", 3, "'/' starts a comment"),
    ("a IN (5)", 7, "found '5'"),
    ("a IN 'x'", 6, "'(' after IN"),
    ("a IN ('x' 'y')", 11, "',' or ')'"),
    ("5 IN ('x')", 1, "IN takes a property"),
    ("a NOT 5", 7, "after NOT"),
    ("a IS 5", 6, "NULL or NOT NULL"),
    ("a BETWEEN 1 OR 5", 13, "AND between the bounds"),
    ("a BETWEEN 7 AND 5", 11, "the range is empty: 7 is above 5"),
    ("a CONTAINS b", 12, "a text in single quotes after CONTAINS"),
    ("(a = 5", 7, "')' or an operator"),
    ("a = NULL", 5, "write IS NULL"),
    ("NULL <> a", 1, "write IS NULL"),
    ("TRUE = 5", 8, "not compared with numbers"),
    ("a > 'x'", 5, "only numbers have an order"),
    ("a > NULL", 5, "has no order"),
    ("NOT a > 5", 1, "NOT binds tighter"),
    ("a = 5 AND 7", 11, "a condition is needed here"),
    ("-a", 1, "a condition is needed here"),
    ("NOT 'x'", 5, "a condition is needed here"),
    ("a = 9223372036854775808", 5, "whole numbers end at 9223372036854775807"),
    ("a = 0.0", 5, "write 0 for zero"),
    ("a = 1e309", 5, "too large"),
]


@pytest.mark.parametrize(("expression", "column", "reason"), REFUSALS)
def test_a_refusal_points_at_its_column(expression: str, column: int, reason: str) -> None:
    with pytest.raises(FilterSyntaxError) as refused:
        compile_sql(expression)
    assert refused.value.column == column
    assert reason in refused.value.reason
    assert pickle.loads(pickle.dumps(refused.value)).args == refused.value.args


def test_the_rest_java_ignores_is_kept_visible() -> None:
    """RocketMQ accepts `a LIKE 'x'` and means `a`; the caller can see it, or refuse it."""
    sql = compile_sql("a = 5 LIKE 'x' @")
    assert sql.unread == "LIKE 'x' @"
    assert sql.matches({"a": "5"})
    with pytest.raises(FilterSyntaxError, match="would ignore") as refused:
        compile_sql("a = 5 LIKE 'x' @", strict=True)
    assert refused.value.column == 7
    assert compile_sql("a = 5 /* end */ ", strict=True).unread == ""


def test_the_longest_expression_is_taken_and_a_longer_one_is_refused() -> None:
    clause = "a = 5 OR "
    longest = clause * (MAX_EXPRESSION_LENGTH // len(clause) - 1) + "a = 7"
    longest += " " * (MAX_EXPRESSION_LENGTH - len(longest))
    assert compile_sql(longest).matches({"a": "7"})
    with pytest.raises(FilterSyntaxError, match="at most 16384 are allowed") as refused:
        compile_sql(longest + " ")
    assert len(str(refused.value)) < 300, "the error does not carry the whole text along"


def nested(levels: int) -> str:
    """Each level adds a pair of parentheses and one height of tree."""
    return "(" * levels + "a = 5" + ") = TRUE" * (levels - 1) + ")"


def test_nesting_is_taken_to_its_limit_even_deep_in_the_callers_stack() -> None:
    def deeper(levels: int) -> bool:
        if levels:
            return deeper(levels - 1)
        return compile_sql(nested(MAX_NESTING)).matches({"a": "5"})

    assert deeper(200)


@pytest.mark.parametrize(
    "expression",
    [
        nested(MAX_NESTING + 1),
        "(" * 5000,
        "a = 5" + " IS NULL" * 1000,
        "a" + " CONTAINS 'x'" * 1000,
        "NOT " * 2000 + "a",
        "a = " + "- " * 2000 + "5",
        "a BETWEEN (" * 1000,
        "(" * 60 + "a" + " AND b OR c)" * 60,
    ],
    ids=["parentheses", "unclosed", "is-null", "contains", "not", "minus", "between", "and-or"],
)
def test_deep_nesting_is_refused_before_it_costs_the_stack(expression: str) -> None:
    with pytest.raises(FilterSyntaxError, match="deeper than 100 levels"):
        compile_sql(expression)


@pytest.mark.parametrize(
    ("left", "joint"), [("(", " OR a = 7)"), ("(", " AND b = 7)")], ids=["or", "and"]
)
def test_chains_in_parentheses_stay_flat(left: str, joint: str) -> None:
    levels = MAX_NESTING - 1
    sql = compile_sql(left * levels + "a = 5" + joint * levels)
    assert sql.matches({"a": "5", "b": "7"})
    assert not sql.matches({"a": "6", "b": "7"})


@pytest.mark.parametrize(
    "part", ["'", "''", "-", "--", "/*", "/**", "0", "9", "(", "'a''", "\n--", "e."]
)
def test_hostile_repetition_ends_quickly(part: str) -> None:
    text = (part * MAX_EXPRESSION_LENGTH)[:MAX_EXPRESSION_LENGTH]
    for expression in (text, "a = 5 " + text[6:], "a = 5" + text[6:] + "\n"):
        blamed = expression
        try:
            compile_sql(expression).matches({"a": "5"})
        except FilterSyntaxError as refused:
            blamed = refused.expression
        assert blamed == expression
