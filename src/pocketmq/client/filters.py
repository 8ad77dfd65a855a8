"""Filters: which messages of a topic a consumer wants."""

import msgspec

from pocketmq.client.tag_texts import check_tag_text
from pocketmq.errors import InvalidInput
from pocketmq.model import Subscription
from pocketmq.model.groups import SQL92, TAG
from pocketmq.protocol.filter.subscribe import subscribe


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

    Raises `FilterSyntaxError`, also for a text that can only be a mistake (`tag_texts`).
    """
    if isinstance(wanted, str):
        check_tag_text(wanted)
        return subscribe(topic, wanted, version_ms=version_ms)
    _check_filter(wanted)
    return subscribe(topic, wanted.expression, wanted.kind, version_ms=version_ms)


def _check_text(what: str, value: object, example: str) -> None:
    if not isinstance(value, str):
        raise InvalidInput(f"{what} is text, as in {example}, not {value!r}")


def _check_filter(wanted: object) -> None:
    if not isinstance(wanted, Filter):
        raise InvalidInput(
            f"an expression is text such as 'paid || refunded', or a Filter, not {wanted!r}"
        )
