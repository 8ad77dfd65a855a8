"""Filters: which messages of a topic a consumer wants.

Text that selects tags is checked for what can only be a mistake. A text that no message matches is
worse than an error: offsets run to the end, and the messages are skipped for good. RocketMQ takes
any text as a tag, so only what people write by mistake is refused: SQL92, other separators than
`||`, and `*` beside tags. `by_tags` takes any tag as it stands.
"""

import re

import msgspec

from pocketmq.errors import FilterSyntaxError, InvalidInput
from pocketmq.model import Subscription
from pocketmq.model.groups import ALL, SQL92, TAG
from pocketmq.protocol.filter.subscribe import subscribe

_SEPARATOR = "||"
_SQL = re.compile(
    r"<|>|\s=|=\s*['\d]|'|\s(?:AND|BETWEEN|LIKE)\s|\sIN\s*\(|\sIS\s+(?:NOT\s+)?NULL\b|^\s*NOT\s",
    re.IGNORECASE,
)
_OR = re.compile(r"\s(?:OR|\|)\s|\|(?!\|)|[,;]", re.IGNORECASE)


class Filter(msgspec.Struct, frozen=True):
    """An expression and its kind; make one with `by_tags` or `by_sql`."""

    expression: str
    kind: str = TAG


def by_tags(*tags: str) -> Filter:
    """Select messages that carry one of these tags, whatever they read; without any, select all.

    Raises `InvalidInput` for what is not text.
    """
    for tag in tags:
        _check_text("a tag", tag, "by_tags('paid', 'refunded')")
    return Filter(" || ".join(tags) or "*")


def by_sql(expression: str) -> Filter:
    """Select messages by their properties, such as `region = 'eu' AND price > 10`.

    Raises `FilterSyntaxError` at once for what no broker could read.
    """
    _check_text("an expression", expression, "by_sql('price > 10')")
    from pocketmq.protocol.filter import compile_sql  # few consumers need it

    compile_sql(expression)
    return Filter(expression, SQL92)


def subscription_to(topic: str, wanted: "str | Filter", version_ms: int) -> Subscription:
    """Return a subscription as heartbeats carry it; plain text is tags, as in Java.

    Raises `FilterSyntaxError`, also for a text that can only be a mistake.
    """
    if isinstance(wanted, str):
        _check_tags(wanted)
        return subscribe(topic, wanted, version_ms=version_ms)
    _check_filter(wanted)
    return subscribe(topic, wanted.expression, wanted.kind, version_ms=version_ms)


def _check_text(what: str, value: object, example: str) -> None:
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be text, as in {example}, not {value!r}")


def _check_filter(wanted: object) -> None:
    if not isinstance(wanted, Filter):
        raise InvalidInput(
            f"an expression must be text such as 'paid || refunded', or a Filter, not {wanted!r}"
        )


def _check_tags(text: str) -> None:
    """Raise `FilterSyntaxError`, with the cure, for a text that can only be a mistake."""
    if not text or text == ALL:
        return
    if not text.strip():
        raise FilterSyntaxError(text, 1, "there is no tag; write '*' to receive everything")
    at = 0
    for part in text.split(_SEPARATOR):
        _check_part(text, part, at)
        at += len(part) + len(_SEPARATOR)


def _check_part(text: str, part: str, at: int) -> None:
    if found := _SQL.search(part):
        raise FilterSyntaxError(
            text,
            at + found.start() + 1,
            f"text selects tags, and this reads like SQL92; write by_sql({text.strip()!r}), "
            f"or by_tags({part.strip()!r}) if that is one tag",
        )
    if found := _OR.search(part):
        tags = [tag for each in text.split(_SEPARATOR) for tag in _OR.split(each) if tag.strip()]
        meant = " || ".join(tag.strip() for tag in tags)
        raise FilterSyntaxError(
            text,
            at + found.start() + 1,
            f"{found[0].strip()!r} does not separate tags; write {meant!r}, "
            f"or by_tags({part.strip()!r}) if that is one tag",
        )
    if part.strip() == ALL:
        raise FilterSyntaxError(
            text,
            at + part.index(ALL) + 1,
            "'*' selects everything and cannot be combined with tags",
        )
