"""Subscriptions: reading an expression of tags, and selecting messages by tag.

A broker selects by the tag's hash code before a message is read; two tags may share a hash code, so
the client checks exactly what the broker let through. SQL92 text is carried as it stands: reading
it is the business of the broker that evaluates it (`compile_sql`).
"""

from dataclasses import dataclass

from pocketmq.errors import FilterSyntaxError
from pocketmq.model import Subscription
from pocketmq.model.groups import ALL, TAG
from pocketmq.model.java_strings import int32, java_hash, java_split

_SEPARATOR = "||"
_JAVA_BLANK = "".join(map(chr, range(0x21)))  # what Java's trim() takes away, and nothing more


@dataclass(frozen=True, slots=True)
class TagFilter:
    """Which hash codes pass at the broker and which tags at the client; None passes all."""

    codes: frozenset[int] | None = None
    tags: frozenset[str] | None = None

    def matches_code(self, tags_code: int | None) -> bool:
        """Return whether a code of the consume queue passes at the broker (None: it has no code).

        Only the lower 32 bits count, as a signed number: the queue keeps codes as 64 bits.
        """
        return self.codes is None or tags_code is None or int32(tags_code) in self.codes

    def matches_tag(self, tag: str | None) -> bool:
        """Return whether a tag passes at the client; a message without one passes only `*`."""
        return self.tags is None or (tag is not None and tag in self.tags)


def tag_filter(subscription: Subscription) -> TagFilter:
    """Return the filter of a subscription.

    A subscription of another kind passes here whole: its expression decides elsewhere. One whose
    text holds only blanks between separators has no tags: nothing passes the broker, yet the
    client would not filter; so it is in Java.
    """
    if subscription.class_filter_mode:
        return TagFilter()
    by_code = is_tag_kind(subscription.expression_type) and subscription.sub_string != ALL
    return TagFilter(
        codes=subscription.code_set if by_code else None,
        tags=subscription.tags_set or None,
    )


def is_tag_kind(kind: str | None) -> bool:
    """Return whether an expression type means tags: TAG, and on the wire also none at all."""
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
