"""The estate of a running cluster, ours or Java's: its groups with their members of this moment."""

from pocketmq import Admin, ClientOptions
from pocketmq.errors import InvalidInput, MQError, RouteNotFound
from pocketmq.model.kinds import MessageModel
from pocketmq.model.names import is_retry_topic, is_system_group
from pocketmq.pipelines.fleet.estate import Estate, Group, checked


def cluster_estate(
    name_servers: str = "", *, options: ClientOptions | None = None
) -> tuple[Estate, list[str]]:
    """Ask a cluster for its topics, groups and members; gives what could not be learnt, too.

    Groups without members, and those that broadcast, have nothing to divide and are left out, as
    are retry topics. Raises `InvalidInput` if nothing is left, and what asking a cluster raises.
    """
    topics: dict[str, dict[str, int]] = {}
    groups: dict[str, Group] = {}
    with Admin(name_servers, options=options) as admin:
        configs = admin.groups.configs().some()
        missing = [str(each) for each in configs.missing]
        names = {name for table in configs.values() for name in table if not is_system_group(name)}
        for name in sorted(names):
            try:
                views = admin.groups.connections(name).some()
            except MQError as problem:
                missing.append(f"group {name}: {problem}")
                continue
            members = {
                connection.client_id
                for view in views.values()
                for connection in view.connection_set
                if connection.client_id
            }
            models = {view.message_model for view in views.values() if view.connection_set}
            wanted = {t for v in views.values() for t in v.subscription_table}
            known = [t for t in sorted(wanted) if _learn(admin, t, topics)]
            if members and known and MessageModel.BROADCASTING not in models:
                groups[name] = Group(tuple(known), tuple(sorted(members)))
    if not groups:
        raise InvalidInput("no group of the cluster has a member: there is nothing to divide")
    used = {topic for group in groups.values() for topic in group.topics}
    return checked(Estate({t: topics[t] for t in sorted(used)}, groups)), missing


def _learn(admin: Admin, topic: str, topics: dict[str, dict[str, int]]) -> bool:
    """Find out a topic's queues; False if it has none to divide."""
    if is_retry_topic(topic):
        return False
    if topic not in topics:
        counts: dict[str, int] = {}
        try:
            for queue in admin.topics.route(topic).subscribe_queues(topic):
                counts[queue.broker_name] = counts.get(queue.broker_name, 0) + 1
        except RouteNotFound:
            counts = {}
        topics[topic] = counts
    return bool(topics[topic])
