"""What members report of their hand-overs, read from the properties of their running info.

Never trusted: a report may come from a process of any kind. What is malformed or too long is
unknown, and the report says so; queues that do not exist are ignored.
"""

from collections.abc import Collection, Mapping

import msgspec

from pocketmq.model import MessageQueue
from pocketmq.model.group_balance import BalanceMode, QueueStage, stages_read
from pocketmq.protocol.requests import client_calls

LONGEST_REASON = 300
_MODES = {mode.value: mode for mode in BalanceMode}
ON_THEIR_WAY = (QueueStage.WANTED, QueueStage.CLAIMED, QueueStage.TAKING)
"""Stages of queues that a member is to have and does not own yet."""


class BalanceReport(msgspec.Struct, frozen=True, kw_only=True):
    """How a member shares queues, as it reports itself."""

    mode: BalanceMode | None = None
    """None if it is unknown."""
    reason: str = ""
    stages: dict[MessageQueue, QueueStage] = {}
    """Of queues that are not simply running, which are few."""
    unclear: bool = False
    """Whether a part could not be read."""

    def not_owned(self) -> set[MessageQueue]:
        """Return the queues that are not the member's own although it may list them."""
        away = (QueueStage.DRAINING, *ON_THEIR_WAY)
        return {queue for queue, stage in self.stages.items() if stage in away}


def balance_reports(
    running: Mapping[str, client_calls.RunningInfo], queues: Mapping[str, Collection[MessageQueue]]
) -> dict[str, BalanceReport]:
    """Return the report of each member that has one; `queues` are those of each topic."""
    existing = {queue for of_topic in queues.values() for queue in of_topic}
    reports = {}
    for member, info in running.items():
        report = _report(info.properties, existing)
        if report is not None:
            reports[member] = report
    return reports


def _report(
    properties: Mapping[str, str], existing: Collection[MessageQueue]
) -> BalanceReport | None:
    mode, text = (
        properties.get(client_calls.PROP_BALANCE_MODE),
        properties.get(client_calls.PROP_BALANCE_STAGES),
    )
    if mode is None and text is None:
        return None
    stages = {} if text is None else stages_read(text)
    return BalanceReport(
        mode=_MODES.get(mode or ""),
        reason=_readable(properties.get(client_calls.PROP_BALANCE_REASON, "")),
        stages={
            queue: stage
            for queue, stage in (stages or {}).items()
            if stage is not QueueStage.RUNNING and queue in existing
        },
        unclear=stages is None or (mode is not None and mode not in _MODES),
    )


def _readable(text: str) -> str:
    """Return a text of one line that fits a page."""
    shown = "".join(char if char.isprintable() else " " for char in text[: LONGEST_REASON + 1])
    return shown if len(shown) <= LONGEST_REASON else f"{shown[:LONGEST_REASON]}…"
