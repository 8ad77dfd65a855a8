"""A snapshot of a group: members, queues, owners. Values without behaviour."""

import msgspec

from pocketmq.admin.balance_reports import BalanceReport
from pocketmq.model import MessageModel, MessageQueue
from pocketmq.model.group_balance import QueueStage
from pocketmq.protocol.peers import version_name
from pocketmq.protocol.requests import client_calls, groups, stats


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
