"""Subscriptions are built as Java's FilterAPI builds them."""

import json
from pathlib import Path

import pytest

from pocketmq.errors import FilterSyntaxError
from pocketmq.protocol.filter import is_tag_kind, subscribe

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
