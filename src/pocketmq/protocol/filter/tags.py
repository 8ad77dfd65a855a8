"""Decide by tag: on the broker by hash code before a message is read, on the client exactly.

Two tags may share a hash code, so the client looks again at what the broker let through.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pocketmq.model.java_strings import int32
from pocketmq.model.subscription import ALL, Subscription
from pocketmq.protocol.filter.subscribe import is_tag_kind


@dataclass(frozen=True, slots=True)
class TagFilter:
    """Which hash codes pass at the broker and which tags at the client; None passes all."""

    codes: frozenset[int] | None = None
    tags: frozenset[str] | None = None

    def matches_code(self, tags_code: int | None) -> bool:
        """Decide at the broker, by the code its consume queue holds (None: it holds none).

        Only the lower 32 bits count, as a signed number: the queue keeps codes as 64 bits.
        """
        return self.codes is None or tags_code is None or int32(tags_code) in self.codes

    def matches_tag(self, tag: str | None) -> bool:
        """Decide at the client, by the tag itself; a message without one passes only `*`."""
        return self.tags is None or (tag is not None and tag in self.tags)

    def select_codes(self, tags_codes: Iterable[int | None]) -> list[int]:
        """Give the positions of the codes that pass at the broker."""
        codes = self.codes
        if codes is None:
            return [position for position, _ in enumerate(tags_codes)]
        return [
            position
            for position, code in enumerate(tags_codes)
            if code is None
            or (code if -0x8000_0000 <= code < 0x8000_0000 else int32(code)) in codes
        ]

    def select_tags(self, tags: Iterable[str | None]) -> list[int]:
        """Give the positions of the tags that pass at the client."""
        wanted = self.tags
        if wanted is None:
            return [position for position, _ in enumerate(tags)]
        return [position for position, tag in enumerate(tags) if tag in wanted]


def tag_filter(subscription: Subscription) -> TagFilter:
    """Make the filter of a subscription.

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
