"""Java members of a group and the producer that feeds them, each in a process of its own."""

from collections.abc import Callable

import pocketmq as mq
from pocketmq.balance.allocation import allocate
from pocketmq.balance.strategies import strategy_by_name
from pocketmq.model import MessageQueue
from tests.interop.jvm import Process, wait_until


class Member(Process):
    """One member of the group, in a process of its own."""

    @property
    def client_id(self) -> str:
        said = [line[3:] for line in self.lines if line.startswith("is ")]
        return said[0] if said else ""

    @property
    def owned(self) -> set[str]:
        said = [line[5:] for line in self.lines if line.startswith("owns ")]
        return set(said[-1].split()) if said else set()

    @property
    def got(self) -> list[tuple[str, str]]:
        """Place and body of every message, in the order of their arrival."""
        said = [line[4:].split(" ", 1) for line in list(self.lines) if line.startswith("got ")]
        return [(place, body) for place, body in said]


class Load(Process):
    """A producer that keeps sending."""

    @property
    def accepted(self) -> set[str]:
        return {line[5:] for line in list(self.lines) if line.startswith("sent ")}

    def stop(self) -> set[str]:
        self.say("stop")
        self.wait_for_end()
        return self.accepted


def share(member: str, members: list[str], queues: set[MessageQueue]) -> set[str]:
    """Return what Java's rule gives a member."""
    queues_of_it = allocate(strategy_by_name("AVG"), "", member, queues, members)
    return {f"{queue.broker_name}/{queue.queue_id}" for queue in queues_of_it}


def settled(members: list[Member], queues: set[MessageQueue]) -> Callable[[], bool]:
    """Return when every member is there and owns its share, no less and no more."""

    def reached() -> bool:
        ids = [member.client_id for member in members]
        return all(ids) and all(
            member.owned == share(member.client_id, ids, queues) for member in members
        )

    return reached


def consumed(members: list[Member]) -> set[str]:
    return {body for member in members for _, body in member.got}


def wait_for_commits(address: str, consumer: mq.PushConsumer, group: str, topic: str) -> None:
    """Wait until a broker has noted that a group is at the end of a topic.

    A message counts as consumed shortly after its handler has ended.
    """
    with mq.Admin(address) as admin:

        def at_the_end() -> bool:
            consumer.commit()
            progress = admin.groups.progress(group, topic)
            return bool(progress.queues) and not progress.missing and progress.lag == 0

        wait_until(at_the_end, f"{group} at the end of {topic}")
