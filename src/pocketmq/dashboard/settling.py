"""What is normal while members rebalance, and what is a problem. Pure: times are arguments.

When a member joins or leaves, or queues come or go, queues are without an owner, or have two, for a
moment. That is a problem only if it lasts.
"""

from collections.abc import Hashable, Iterable

from pocketmq.admin.findings import GroupFinding

GRACE = 20.0
"""Seconds after a change in which members settle; they check every 20 by themselves."""
_PASSING = {"unowned queues", "owned twice"}

Findings = tuple[GroupFinding, ...]


class Settling:
    """Separates problems of one group from what passes."""

    def __init__(self) -> None:
        self._shape: Hashable | None = None
        self._changed: float | None = None

    def sort(
        self, findings: Iterable[GroupFinding], shape: Hashable, at: float
    ) -> tuple[Findings, Findings]:
        """Return the problems, and what is normal for now; `shape` is members and queues."""
        if self._shape is not None and shape != self._shape:
            self._changed = at
        self._shape = shape
        found = tuple(findings)
        if self._changed is None or at - self._changed >= GRACE:
            return found, ()
        passing = tuple(each for each in found if each.kind in _PASSING)
        return tuple(each for each in found if each.kind not in _PASSING), passing


def passing_text(passing: Findings) -> str:
    """Return what is normal for now as one line, empty if there is nothing."""
    if not passing:
        return ""
    told = ", ".join(f"{each.kind} ({each.subject})" for each in passing)
    return f"A rebalance is in progress. Normal for some seconds: {told}."
