"""Subscriptions are built as Java's FilterAPI builds them."""

import json
from pathlib import Path

import pytest

from pocketmq.errors import FilterSyntaxError
from pocketmq.model import Subscription
from pocketmq.model.java_strings import java_hash
from pocketmq.protocol.filter import TagFilter, is_tag_kind, subscribe, tag_filter

VECTORS = Path(__file__).parents[2] / "vectors" / "java-subscriptions.jsonl"
JAVA = [json.loads(line) for line in VECTORS.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("java", JAVA, ids=lambda java: f"{java['expression']!r}-{java['kind']}")
def test_every_expression_of_every_kind_builds_what_java_builds(java: dict[str, object]) -> None:
    text, kind = java["expression"], java["kind"]
    assert text is None or isinstance(text, str)
    assert kind is None or isinstance(kind, str)
    if "refused" in java:
        with pytest.raises(FilterSyntaxError):
            subscribe("T", text, kind)
        return
    built = subscribe("T", text, kind, version_ms=7)
    assert {
        "expression": text,
        "kind": kind,
        "subString": built.sub_string,
        "expressionType": built.expression_type,
        "tagsSet": sorted(built.tags_set),
        "codeSet": sorted(built.code_set),
    } == java
    assert (built.topic, built.sub_version, built.class_filter_mode) == ("T", 7, False)


def test_tags_are_trimmed_and_the_text_is_kept_as_written() -> None:
    built = subscribe("T", " TagA || TagB ||  || TagA ")
    assert built.sub_string == " TagA || TagB ||  || TagA "
    assert built.tags_set == {"TagA", "TagB"}
    assert built.code_set == {2598919, 2598920}


def test_a_refusal_says_what_to_write_instead() -> None:
    with pytest.raises(FilterSyntaxError, match=r"write '\*' to receive everything") as tags:
        subscribe("T", "||")
    assert (tags.value.expression, tags.value.column) == ("||", 1)
    with pytest.raises(FilterSyntaxError, match="SQL92 subscription needs an expression"):
        subscribe("T", "", "SQL92")


def test_no_kind_and_an_empty_kind_mean_tags() -> None:
    assert [is_tag_kind(kind) for kind in (None, "", "TAG", "tag", "SQL92")] == [
        True,
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("text", [None, "", "*"])
def test_a_star_passes_every_code_and_every_tag(text: str | None) -> None:
    everything = tag_filter(subscribe("T", text))
    assert everything == TagFilter(None, None)
    assert all(everything.matches_code(code) for code in (0, None, 5))
    assert all(everything.matches_tag(tag) for tag in ("a", None))


def test_the_broker_decides_by_code_and_the_client_by_name() -> None:
    """Aa and BB share a hash code: the broker cannot tell them apart, the client does."""
    wanted = tag_filter(subscribe("T", "Aa || x"))
    tags = ["Aa", "BB", "x", "y"]
    assert [wanted.matches_code(java_hash(tag)) for tag in tags] == [True, True, True, False]
    assert [wanted.matches_tag(tag) for tag in tags] == [True, False, True, False]


def test_only_the_lower_32_bits_of_a_code_count() -> None:
    wanted = tag_filter(subscribe("T", "polygenelubricants"))
    codes = [-(2**31), 2**31, 2**31 + 2**40, 0, 2**32]
    assert [wanted.matches_code(code) for code in codes] == [True, True, True, False, False]


def test_a_message_without_a_tag_has_code_zero_and_no_name() -> None:
    wanted = tag_filter(subscribe("T", "a"))
    assert not wanted.matches_code(0)
    assert not wanted.matches_tag(None)
    assert wanted.matches_code(None), "a queue without codes leaves the decision to the client"
    assert wanted.matches_code(97)
    assert not wanted.matches_tag("")
    assert wanted.matches_tag("a")


def test_blanks_between_separators_let_nothing_through_the_broker() -> None:
    nothing = tag_filter(subscribe("T", " || "))
    assert not any(nothing.matches_code(code) for code in (0, 97))
    assert all(nothing.matches_tag(tag) for tag in ("a", None))


@pytest.mark.parametrize("kind", ["SQL92", "OTHER"])
def test_another_kind_of_expression_is_not_decided_by_tags(kind: str) -> None:
    assert tag_filter(subscribe("T", "a", kind)) == TagFilter(None, None)


def test_an_empty_kind_from_the_wire_is_decided_by_tags() -> None:
    wire = Subscription(
        topic="T",
        sub_string="a",
        expression_type="",
        tags_set=frozenset({"a"}),
        code_set=frozenset({97}),
    )
    assert tag_filter(wire) == TagFilter(frozenset({97}), frozenset({"a"}))


def test_a_class_filter_subscription_passes_whole() -> None:
    wire = Subscription(
        topic="T", sub_string="a", tags_set=frozenset({"a"}), class_filter_mode=True
    )
    assert tag_filter(wire) == TagFilter(None, None)
