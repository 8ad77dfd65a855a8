"""Where a topic lives, as a question for any name server."""

from pocketmq.client.calls import SUCCESS
from pocketmq.client.questions.asking import Question, ask
from pocketmq.errors import ResponseCode, RouteNotFound
from pocketmq.model import TopicRoute
from pocketmq.protocol.requests.nameserver import GET_ROUTEINFO_BY_TOPIC, GetRouteRequest

ABSENT = frozenset({int(ResponseCode.TOPIC_NOT_EXIST)})
"""The response code of a name server that does not know a topic."""


def route_of(topic: str, absent: frozenset[int] = ABSENT) -> Question[TopicRoute]:
    """Return a topic's route; raises `RouteNotFound` for an answer in `absent`, or without one."""
    header = GetRouteRequest(topic=topic)
    answer = yield from ask(None, GET_ROUTEINFO_BY_TOPIC, header, accept=SUCCESS | absent)
    if answer.code in absent or answer.is_empty:
        raise RouteNotFound(topic)
    return answer.result()
