"""The rules for names of topics and groups, in the words of Java's broker, which tools show.

`pocketmq.model.names` has the same rules for clients.
"""

import re

from pocketmq.model.names import DLQ_PREFIX, RETRY_PREFIX

_ALLOWED = re.compile(r"[%|a-zA-Z0-9_-]+")
_ALLOWED_TEXT = "allowing only ^[%|a-zA-Z0-9_-]+$"
_TOPIC_LIMIT = 127
_DERIVED_TOPIC_LIMIT = 255
_GROUP_LIMIT = 120


def topic_fault(topic: str) -> str | None:
    """Return why a topic cannot have this name; None if it can."""
    if not topic.strip():
        return "The specified topic is blank."
    if not _ALLOWED.fullmatch(topic):
        return f"The specified topic: {topic}, contains illegal characters, {_ALLOWED_TEXT}"
    if topic.startswith((RETRY_PREFIX, DLQ_PREFIX)):
        if len(topic) > _DERIVED_TOPIC_LIMIT:
            return (
                f"The specified topic is DLQ or Retry topic: {topic}, "
                f"and it's longer than topic max length: {_DERIVED_TOPIC_LIMIT}"
            )
    elif len(topic) > _TOPIC_LIMIT:
        return f"The specified topic: {topic}, is longer than topic max length: {_TOPIC_LIMIT}"
    return None


def group_fault(group: str) -> str | None:
    """Return why a group cannot have this name; None if it can."""
    if not group.strip():
        return "The specified group is blank."
    if not _ALLOWED.fullmatch(group):
        return f"The specified group: {group}, contains illegal characters, {_ALLOWED_TEXT}"
    if len(group) > _GROUP_LIMIT:
        return f"The specified group: {group}, is longer than group max length: {_GROUP_LIMIT}"
    return None
