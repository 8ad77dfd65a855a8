"""The rules of 5.x as pure decisions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.broker.access.rules import (
    DENIED,
    NO_RULE,
    Action,
    Pattern,
    Resource,
    ResourceKind,
    Rule,
    SubjectRules,
    decide,
    parse_resource,
)

TEXTS = {
    "*": Resource(ResourceKind.ANY, None, Pattern.ANY),
    "Topic:*": Resource(ResourceKind.TOPIC, None, Pattern.ANY),
    "Topic:orders": Resource(ResourceKind.TOPIC, "orders"),
    "Group:audit*": Resource(ResourceKind.GROUP, "audit", Pattern.PREFIXED),
    "Cluster:DefaultCluster": Resource(ResourceKind.CLUSTER, "DefaultCluster"),
    "Topic:a:b": Resource(ResourceKind.TOPIC, "a:b"),
}


def rule(text: str, *actions: Action, allow: bool = True, source: str = "") -> Rule:
    resource = parse_resource(text)
    assert resource is not None
    sources = (source,) if source else ()
    return Rule(resource=resource, actions=frozenset(actions), sources=sources, allow=allow)


def verdict(
    rules: SubjectRules, text: str, *actions: Action, source: str = "10.0.0.1"
) -> str | None:
    resource = parse_resource(text)
    assert resource is not None
    return decide(rules, resource, actions, source)


@pytest.mark.parametrize("text", TEXTS)
def test_resources_are_read_and_written(text: str) -> None:
    assert parse_resource(text) == TEXTS[text]
    assert str(TEXTS[text]) == text


@pytest.mark.parametrize("text", [None, "", " ", "Thing:x", "orders", ":x"])
def test_other_texts_are_no_resources(text: str | None) -> None:
    assert parse_resource(text) is None


def test_case_does_not_matter_for_kinds_as_in_java() -> None:
    assert parse_resource("topic:Orders") == Resource(ResourceKind.TOPIC, "Orders")


def test_without_a_rule_nothing_is_allowed() -> None:
    assert verdict(SubjectRules(), "Topic:t", Action.PUB) == NO_RULE


def test_one_of_the_actions_is_enough() -> None:
    rules = SubjectRules(custom=(rule("Topic:t", Action.GET),))
    assert verdict(rules, "Topic:t", Action.SUB, Action.GET) is None
    assert verdict(rules, "Topic:t", Action.SUB) == NO_RULE


def test_all_is_every_action() -> None:
    assert (
        verdict(SubjectRules(custom=(rule("*", Action.ALL),)), "Cluster:c", Action.UPDATE) is None
    )


def test_custom_rules_count_before_default_ones() -> None:
    rules = SubjectRules(
        custom=(rule("Topic:*", Action.PUB, allow=False),),
        default=(rule("Topic:t", Action.PUB), rule("Topic:t", Action.SUB)),
    )
    assert verdict(rules, "Topic:t", Action.PUB) == DENIED
    assert verdict(rules, "Topic:t", Action.SUB) is None


@pytest.mark.parametrize("allow", [True, False])
def test_the_most_precise_rule_decides(allow: bool) -> None:
    """Literal before prefix, long prefix before short, kind before anything."""
    ladder = ["*", "Topic:*", "Topic:o*", "Topic:ord*", "Topic:orders"]
    for number in range(1, len(ladder)):
        weaker = [rule(text, Action.PUB, allow=not allow) for text in ladder[:number]]
        stronger = rule(ladder[number], Action.PUB, allow=allow)
        for rules in ((*weaker, stronger), (stronger, *weaker)):
            expected = None if allow else DENIED
            assert verdict(SubjectRules(custom=rules), "Topic:orders", Action.PUB) == expected


def test_of_two_for_the_same_resource_the_one_that_denies_decides() -> None:
    pair = (rule("Topic:t", Action.PUB), rule("Topic:t", Action.ALL, allow=False))
    assert verdict(SubjectRules(custom=pair), "Topic:t", Action.PUB) == DENIED
    assert verdict(SubjectRules(custom=pair[::-1]), "Topic:t", Action.PUB) == DENIED


@pytest.mark.parametrize(
    ("place", "source", "inside"),
    [
        ("10.0.0.0/8", "10.255.0.1", True),
        ("10.0.0.0/8", "11.0.0.1", False),
        ("10.0.0.7", "10.0.0.7", True),
        ("10.0.0.7", "10.0.0.70", False),
        ("fd00::/8", "fd12::1", True),
        ("fd00::/8", "10.0.0.1", False),
        ("0.0.0.0/0", "10.0.0.1", True),
        ("10.0.0.0/8", "", False),
    ],
)
def test_rules_may_be_limited_to_places(place: str, source: str, inside: bool) -> None:
    rules = SubjectRules(custom=(rule("Topic:t", Action.PUB, source=place),))
    expected = None if inside else NO_RULE
    assert verdict(rules, "Topic:t", Action.PUB, source=source) == expected


NAMES = st.text("ab", min_size=1, max_size=4)
RULES = st.builds(
    rule,
    st.one_of(
        st.just("*"),
        st.just("Topic:*"),
        NAMES.map(lambda name: f"Topic:{name}"),
        NAMES.map(lambda name: f"Topic:{name}*"),
        NAMES.map(lambda name: f"Group:{name}"),
    ),
    st.sampled_from([Action.PUB, Action.SUB, Action.ALL]),
    allow=st.booleans(),
)


@given(st.lists(RULES, max_size=6), NAMES, st.randoms(use_true_random=False))
def test_the_order_of_rules_does_not_matter(rules: list[Rule], name: str, random: object) -> None:
    shuffled = sorted(rules, key=lambda _: random.random())  # type: ignore[attr-defined]
    for action in (Action.PUB, Action.SUB):
        first = verdict(SubjectRules(custom=tuple(rules)), f"Topic:{name}", action)
        assert first == verdict(SubjectRules(custom=tuple(shuffled)), f"Topic:{name}", action)


@given(st.lists(RULES, max_size=6), NAMES)
def test_who_has_no_rule_that_allows_is_never_allowed(rules: list[Rule], name: str) -> None:
    denying = SubjectRules(custom=tuple(each for each in rules if not each.allow))
    assert verdict(denying, f"Topic:{name}", Action.PUB) in {DENIED, NO_RULE}
