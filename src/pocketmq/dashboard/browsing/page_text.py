"""A page of messages in one line: how many, from when to when, how many older. Pure."""

from pocketmq.dashboard.browsing.content_filter import ContentFilter
from pocketmq.dashboard.browsing.reader import BrowsedPage
from pocketmq.dashboard.formatting import count, moment


def described(page: BrowsedPage, wanted: ContentFilter) -> str:
    """Return what a page shows."""
    older = sum(end - first for first, end in page.older.values())
    found = len(page.messages)
    parts = []
    if wanted.text:
        parts.append(f"{count(found)} of {count(page.scanned)} messages searched match")
    elif found:
        parts.append(f"{count(found)} {'message' if found == 1 else 'messages'}, newest first")
    if found:
        times = [each.store_timestamp_ms for each in page.messages]
        parts.append(f"stored {moment(min(times))} to {moment(max(times))}")
    if older:
        rest = "not searched yet" if wanted.text else "older"
        parts.append(f"{count(older)} {rest}")
    return "; ".join(parts) + ("." if parts else "")
