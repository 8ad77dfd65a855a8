"""A snapshot of a group: members, queues, owners, and what members report of their hand-overs.

Values, no requests. Reports are read from the properties of running infos and never trusted:
one may come from a process of any kind. What is malformed or too long is unknown, and the
report says so; queues that do not exist are ignored.
"""

from collections.abc import Collection, Mapping

import msgspec

from pocketmq.model import MessageModel, MessageQueue
from pocketmq.model.group_balance import BalanceMode, QueueStage, stages_read
from pocketmq.protocol.peers import version_name
from pocketmq.protocol.requests import client_calls, groups, stats

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


class GroupFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A group as its brokers and members report it; what none reports is missing, not empty."""

    group: str
    views: dict[str, groups.ConsumerConnections]
    """The members as each broker lists them."""
    unseen_brokers: dict[str, str]
    """Brokers that did not answer, with the reason."""
    running: dict[str, client_calls.RunningInfo]
    """What members report of themselves."""
    silent: dict[str, str]
    """Members that did not answer, with the reason."""
    queues: dict[str, tuple[MessageQueue, ...]]
    """The queues of every subscribed topic."""
    progress: dict[MessageQueue, stats.QueueProgress]
    now_ms: int
    reports: dict[str, BalanceReport] = {}
    """What members report of their hand-overs, of those that do."""

    def members(self) -> list[str]:
        """Return the members that any broker lists, in the order that members use themselves."""
        return sorted(
            {
                connection.client_id
                for view in self.views.values()
                for connection in view.connection_set
                if connection.client_id is not None
            }
        )

    def popping(self) -> list[str]:
        """Return the members that pop as gRPC clients do."""
        return sorted(member for member, info in self.running.items() if is_grpc(info))

    def clients(self) -> dict[str, str]:
        """Return the language and the release of each member, as brokers list them."""
        return {
            each.client_id: f"{'?' if each.language is None else each.language.name} "
            f"{version_name(each.version)}"
            for view in self.views.values()
            for each in view.connection_set
            if each.client_id is not None
        }

    def holders(self) -> dict[MessageQueue, list[str]]:
        """Return the owners of each queue, as members report them.

        Dropped queues do not count, nor those that a member drains, or does not have yet.
        """
        holders: dict[MessageQueue, list[str]] = {}
        for member, info in sorted(self.running.items()):
            report = self.reports.get(member)
            not_owned = () if report is None else report.not_owned()
            for queue, held in info.mq_table.items():
                if not held.dropped and queue not in not_owned:
                    holders.setdefault(queue, []).append(member)
            for queue, popped in info.mq_pop_table.items():
                if not popped.dropped:
                    holders.setdefault(queue, []).append(member)
        return holders

    def model(self) -> MessageModel | None:
        """Return the message model, None if no broker reports it."""
        models = [view.message_model for view in self.views.values() if view.connection_set]
        return next((model for model in models if model is not None), None)

    def stages(self) -> dict[MessageQueue, dict[str, QueueStage]]:
        """Return the stages of each queue that is not simply running, by member."""
        stages: dict[MessageQueue, dict[str, QueueStage]] = {}
        for member, report in sorted(self.reports.items()):
            for queue, stage in report.stages.items():
                stages.setdefault(queue, {})[member] = stage
        return stages

    def held(self, member: str, queue: MessageQueue) -> client_calls.ProcessQueueBody | None:
        """Return what a member reports of a queue, None if nothing."""
        info = self.running.get(member)
        return None if info is None else info.mq_table.get(queue)


def is_push(info: client_calls.RunningInfo) -> bool:
    """Return whether a member is a push consumer."""
    return info.properties.get(client_calls.PROP_CONSUME_TYPE) == "CONSUME_PASSIVELY"


def is_grpc(info: client_calls.RunningInfo) -> bool:
    """Return whether a member is a gRPC client: it pops from all queues and owns none."""
    return info.properties.get(client_calls.PROP_PROTOCOL) == client_calls.GRPC


def is_orderly(info: client_calls.RunningInfo) -> bool:
    """Return whether a member consumes orderly, and so locks its queues."""
    return info.properties.get(client_calls.PROP_ORDERLY, "").lower() == "true"
