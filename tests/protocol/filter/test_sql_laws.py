"""Laws that hold for all expressions and messages."""

from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.errors import FilterSyntaxError, FilterUndecided
from pocketmq.protocol.filter import compile_sql
from pocketmq.protocol.filter.sql.parser import parse
from pocketmq.protocol.filter.sql.tree import render

names = st.sampled_from(["a", "b", "c", "_x", "$"])
quoted = st.text(max_size=3).map(lambda text: "'" + text.replace("'", "''") + "'")
whole = st.integers(0, 2**63 - 1) | st.integers(0, 9)
real = st.floats(min_value=5e-324, allow_infinity=False, allow_nan=False)
number = st.builds(str.__add__, st.sampled_from(["", "-", "- - "]), whole.map(str) | real.map(repr))
bound = names | number
negation = st.sampled_from(["", "NOT "])

tests = st.one_of(
    names,
    st.sampled_from(["TRUE", "FALSE", "NULL"]),
    st.builds("{} {} {}".format, names, st.sampled_from(["=", "<>"]), bound | quoted),
    st.builds("{} = {}".format, bound | quoted, names),
    st.builds("{} {} {}".format, bound, st.sampled_from(["<", "<=", ">", ">="]), bound),
    st.builds("{} {}BETWEEN {} AND {}".format, bound, negation, names, bound),
    st.builds("{} IS {}NULL".format, bound | quoted, negation),
    st.builds("{} {}IN ({}, {})".format, names, negation, quoted, quoted),
    st.builds(
        "{} {}{} {}".format,
        bound,
        negation,
        st.sampled_from(["CONTAINS", "STARTSWITH", "ENDSWITH"]),
        quoted,
    ),
)
conditions = st.recursive(
    tests,
    lambda inner: st.one_of(
        st.builds("({}) AND ({})".format, inner, inner),
        st.builds("({}) OR ({}) OR {}".format, inner, inner, tests),
        st.builds("NOT ({})".format, inner),
        st.builds("(NOT ({})) = (NOT ({}))".format, inner, inner),
        st.builds("({}) IS NULL".format, inner),
    ),
    max_leaves=5,
)
contents = st.one_of(
    st.sampled_from(["0", "5", "-0.0", "NaN", "1e3", "true", "x", "", " 7 "]),
    st.text(max_size=4),
    st.integers(-(2**65), 2**65).map(str),
    st.floats().map(repr),
)
messages = st.dictionaries(names, contents)


def answer(expression: str, message: dict[str, str]) -> bool | str | None:
    try:
        return compile_sql(expression).evaluate(message)
    except FilterUndecided:
        return "undecided"


@given(conditions, conditions, messages)
def test_de_morgan(one: str, other: str, message: dict[str, str]) -> None:
    assert answer(f"NOT (({one}) AND ({other}))", message) == answer(
        f"NOT ({one}) OR NOT ({other})", message
    )
    assert answer(f"NOT (({one}) OR ({other}))", message) == answer(
        f"NOT ({one}) AND NOT ({other})", message
    )


@given(conditions, messages)
def test_not_twice_changes_nothing(one: str, message: dict[str, str]) -> None:
    assert answer(f"NOT NOT ({one})", message) == answer(one, message)


@given(conditions, conditions, conditions, messages)
def test_how_a_chain_is_put_in_parentheses_does_not_matter(
    one: str, two: str, three: str, message: dict[str, str]
) -> None:
    for word in ("AND", "OR"):
        left = answer(f"(({one}) {word} ({two})) {word} ({three})", message)
        right = answer(f"({one}) {word} (({two}) {word} ({three}))", message)
        assert left == right


@given(bound, names, bound, messages)
def test_between_is_two_comparisons(
    value: str, low: str, high: str, message: dict[str, str]
) -> None:
    assert answer(f"{value} BETWEEN {low} AND {high}", message) == answer(
        f"{value} >= {low} AND {value} <= {high}", message
    )
    assert answer(f"{value} NOT BETWEEN {low} AND {high}", message) == answer(
        f"{value} < {low} OR {value} > {high}", message
    )


@given(names, st.integers(-9, 9), st.integers(0, 9) | st.just(2**40), messages)
def test_between_two_numbers_is_two_comparisons(
    name: str, low: int, more: int, message: dict[str, str]
) -> None:
    for bottom, top in ((f"{low}", f"{low + more}"), (f"{low}.5", f"{low + more}.5")):
        assert answer(f"{name} NOT BETWEEN {bottom} AND {top}", message) == answer(
            f"{name} < {bottom} OR {name} > {top}", message
        )
        assert answer(f"{name} BETWEEN {bottom} AND {top}", message) == answer(
            f"{name} >= {bottom} AND {name} <= {top}", message
        )


@given(names, st.lists(quoted, min_size=1, max_size=7), messages)
def test_in_is_a_chain_of_equals(name: str, choices: list[str], message: dict[str, str]) -> None:
    chain = " OR ".join(f"{name} = {choice}" for choice in choices)
    assert answer(f"{name} IN ({','.join(choices)})", message) == answer(chain, message)
    assert answer(f"{name} NOT IN ({','.join(choices)})", message) == answer(
        f"NOT ({chain})", message
    )


@given(bound, bound, messages)
def test_order_can_be_read_from_both_sides(one: str, other: str, message: dict[str, str]) -> None:
    for sign, mirrored in (("<", ">"), ("<=", ">=")):
        assert answer(f"{one} {sign} {other}", message) == answer(
            f"{other} {mirrored} {one}", message
        )


@given(conditions)
@settings(max_examples=300)
def test_a_printed_tree_reads_back_to_itself(expression: str) -> None:
    tree, unread = parse(expression)
    assert unread == ""
    again = parse(render(tree))
    assert again == (tree, "")
    assert render(again.tree) == render(tree)


@given(conditions, messages)
def test_a_batch_decides_as_single_messages_do(expression: str, message: dict[str, str]) -> None:
    sql = compile_sql(expression)
    assert sql.select([message, message]) == ([0, 1] if sql.matches(message) else [])
    assert sql.matches(message) == (answer(expression, message) is True)


WORDS = """a b 5 5.5 0 'x' '' ' ( ) , = <> < <= > >= + - -- /* */ . @ NOT AND OR BETWEEN IN TRUE
FALSE NULL IS CONTAINS STARTSWITH ENDSWITH 99999999999999999999 0.0 1e999"""
soup = st.lists(
    st.sampled_from([*WORDS.split(), "\n"]) | st.text(max_size=2),
    max_size=14,
)


@given(soup, st.sampled_from(["", " "]), messages)
@settings(max_examples=1000)
def test_only_a_syntax_error_escapes_compiling_and_nothing_escapes_deciding(
    words: list[str], glue: str, message: dict[str, str]
) -> None:
    column = 1
    try:
        matched = compile_sql(glue.join(words)).matches(message)
    except FilterSyntaxError as refused:
        column, matched = refused.column, False
    assert 1 <= column <= len(glue.join(words)) + 1
    assert matched in (True, False)
