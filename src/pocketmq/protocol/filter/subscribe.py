"""Turn a subscription expression into the `Subscription` a heartbeat carries.

Owns how tags are read from `a || b`. SQL92 text is carried as it stands: reading it is the
business of the broker that evaluates it (`compile_sql`).
"""

from pocketmq.errors import FilterSyntaxError
from pocketmq.model.java_strings import java_hash, java_split
from pocketmq.model.subscription import ALL, TAG, Subscription

_SEPARATOR = "||"
_JAVA_BLANK = "".join(map(chr, range(0x21)))  # what Java's trim() takes away, and nothing more


def is_tag_kind(kind: str | None) -> bool:
    """Say whether an expression type means tags: TAG, and on the wire also none at all."""
    return kind is None or kind in ("", TAG)


def subscribe(
    topic: str, expression: str | None, kind: str | None = TAG, *, version_ms: int = 0
) -> Subscription:
    """Build the subscription Java's `FilterAPI.build` builds.

    Tags: nothing, an empty text and `*` select everything; else the parts between `||` are
    trimmed and empty ones dropped, while the text itself is kept as written. Any other kind
    carries its expression unread.

    Raises `FilterSyntaxError` for separators without a tag, and for an empty expression of any
    other kind.
    """
    if kind is not None and kind != TAG:
        if not expression:
            raise FilterSyntaxError("", 1, f"a {kind} subscription needs an expression")
        return Subscription(
            topic=topic, sub_string=expression, expression_type=kind, sub_version=version_ms
        )
    if not expression or expression == ALL:
        return Subscription(topic=topic, sub_version=version_ms)
    parts = java_split(expression, _SEPARATOR)
    if not parts:
        raise FilterSyntaxError(
            expression, 1, "separators without a tag; write '*' to receive everything"
        )
    tags = frozenset(tag for part in parts if (tag := part.strip(_JAVA_BLANK)))
    return Subscription(
        topic=topic,
        sub_string=expression,
        tags_set=tags,
        code_set=frozenset(map(java_hash, tags)),
        sub_version=version_ms,
    )
