"""The rules of 5.x: which policy decides about an action on a resource. Pure.

A subject's `Custom` rules take precedence over its `Default` ones; of those that match, the one
for the most precise resource decides, and of two for the same resource the one that denies. That a
request without a stated right is refused is decided in `gate`.
"""

import ipaddress
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple, Self

import msgspec

NO_RULE = "no matched policies."
DENIED = "the decision is deny."


class NamedEnum(StrEnum):
    """Members are written as Java writes them, and read in upper or lower case."""

    @classmethod
    def named(cls, text: str | None) -> Self | None:
        """Return the member of that name; None if there is none."""
        return next((each for each in cls if each.lower() == (text or "").lower()), None)


class ResourceKind(NamedEnum):
    """What is guarded."""

    ANY = "Any"
    CLUSTER = "Cluster"
    NAMESPACE = "Namespace"
    TOPIC = "Topic"
    GROUP = "Group"


class Action(NamedEnum):
    """What is done with it."""

    ALL = "All"
    ANY = "Any"
    PUB = "Pub"
    SUB = "Sub"
    CREATE = "Create"
    UPDATE = "Update"
    DELETE = "Delete"
    GET = "Get"
    LIST = "List"


class Pattern(StrEnum):
    """How a rule names what it guards; the most precise first."""

    LITERAL = "LITERAL"
    PREFIXED = "PREFIXED"
    ANY = "ANY"


_PRECISION = {pattern: rank for rank, pattern in enumerate(Pattern)}


class Resource(NamedTuple):
    """What a rule is for, or what a request is about."""

    kind: ResourceKind
    name: str | None
    pattern: Pattern = Pattern.LITERAL

    def __str__(self) -> str:
        if self.kind is ResourceKind.ANY:
            return "*"
        if self.pattern is Pattern.ANY:
            return f"{self.kind}:*"
        return f"{self.kind}:{self.name}" + ("*" if self.pattern is Pattern.PREFIXED else "")

    def covers(self, other: "Resource") -> bool:
        """Return whether a rule for this one is a rule for the other."""
        if self.kind is ResourceKind.ANY:
            return True
        if self.kind is not other.kind:
            return False
        if self.pattern is Pattern.PREFIXED:
            return (other.name or "").startswith(self.name or "")
        return self.pattern is Pattern.ANY or self.name == other.name


def parse_resource(text: str | None) -> Resource | None:
    """Read `*`, `Topic:*`, `Topic:orders`, `Group:audit*`; None for what is none of them."""
    if text is None or not text.strip():
        return None
    if text == "*":
        return Resource(ResourceKind.ANY, None, Pattern.ANY)
    word, _, name = text.partition(":")
    kind = ResourceKind.named(word)
    if kind is None:
        return None
    if name == "*":
        return Resource(kind, None, Pattern.ANY)
    if name.endswith("*"):
        return Resource(kind, name.partition("*")[0], Pattern.PREFIXED)
    return Resource(kind, name)


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """What one entry of a policy says."""

    resource: Resource
    actions: frozenset[Action]
    sources: tuple[str, ...] = ()
    """Addresses and networks it is limited to; empty: any address."""
    allow: bool

    def matches(self, resource: Resource, actions: Iterable[Action], source: str) -> bool:
        """Return whether it has something to say about one of these actions."""
        if not self.resource.covers(resource):
            return False
        if Action.ALL not in self.actions and self.actions.isdisjoint(actions):
            return False
        return not self.sources or any(is_within(source, each) for each in self.sources)


class SubjectRules(msgspec.Struct, frozen=True, kw_only=True):
    """All rules of one subject."""

    custom: tuple[Rule, ...] = ()
    default: tuple[Rule, ...] = ()


def decide(
    rules: SubjectRules, resource: Resource, actions: Iterable[Action], source: str
) -> str | None:
    """Return why a subject may not do any of these actions; None if it may."""
    for stage in (rules.custom, rules.default):
        matching = [rule for rule in stage if rule.matches(resource, actions, source)]
        if matching:
            return None if min(matching, key=_rank).allow else DENIED
    return NO_RULE


def _rank(rule: Rule) -> tuple[bool, int, int, bool]:
    found = rule.resource
    length = len(found.name or "") if found.pattern is Pattern.PREFIXED else 0
    return found.kind is ResourceKind.ANY, _PRECISION[found.pattern], -length, rule.allow


def is_source(text: str) -> bool:
    """Return whether a text is an address or a network."""
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def is_within(source: str, place: str) -> bool:
    """Return whether an address is a place or lies in it."""
    try:
        return ipaddress.ip_address(source) in ipaddress.ip_network(place, strict=False)
    except ValueError:
        return False
