"""Whether two topics are one and the same, by whatever addresses their clusters go.

Copied to itself a topic would never end. Addresses of name servers do not tell: a host has many
names, and a broker may be registered with several name servers. The brokers of the routes do.
"""

from pocketmq.blocking.questions import Questions
from pocketmq.client.options import ClientOptions
from pocketmq.errors import MQError
from pocketmq.model.names import wrap_namespace

PATIENCE = 3.0
"""Seconds to wait for a name server."""


def shared_broker(source: ClientOptions, target: ClientOptions, topic: str) -> str | None:
    """Give a broker that has the topic both here and there, None if there is none.

    None as well where it cannot be found out: whoever reads or writes will be told why.
    """
    if source.namespace_v2 != target.namespace_v2:
        return None
    if wrap_namespace(source.namespace, topic) != wrap_namespace(target.namespace, topic):
        return None
    try:
        both = _brokers(source, topic) & _brokers(target, topic)
    except MQError:
        return None
    return min((f"{name} at {address}" for _cluster, name, address in both), default=None)


def _brokers(options: ClientOptions, topic: str) -> set[tuple[str, str, str]]:
    questions = Questions(options, "comparison of routes", PATIENCE)
    try:
        route = questions.route(topic)
    finally:
        questions.close()
    return {
        (data.cluster, data.broker_name, address)
        for data in route.broker_datas
        for address in data.broker_addrs.values()
    }
