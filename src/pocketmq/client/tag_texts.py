"""Text that selects tags, checked for what can only be a mistake.

A text that no message matches is worse than an error: offsets run to the end, and the messages are
skipped for good. RocketMQ takes any text as a tag, so only what people write by mistake is refused:
SQL92, other separators than `||`, and `*` beside tags. `by_tags` takes any tag as it stands.
"""

import re

from pocketmq.errors import FilterSyntaxError
from pocketmq.model.groups import ALL

_SEPARATOR = "||"
_SQL = re.compile(
    r"<|>|\s=|=\s*['\d]|'|\s(?:AND|BETWEEN|LIKE)\s|\sIN\s*\(|\sIS\s+(?:NOT\s+)?NULL\b|^\s*NOT\s",
    re.IGNORECASE,
)
_OR = re.compile(r"\s(?:OR|\|)\s|\|(?!\|)|[,;]", re.IGNORECASE)


def check_tag_text(text: str) -> None:
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
            text, at + part.index(ALL) + 1, "'*' selects everything and stands alone"
        )
