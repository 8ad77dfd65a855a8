"""Where a topic's messages are sent to and received from."""

from pocketmq.proxy.state import ProxyState
from pocketmq.proxy.translation import checks
from pocketmq.proxy.translation.caller import Caller
from pocketmq.proxy.translation.refusals import OK
from pocketmq.proxy.translation.routes import assignments, check_endpoints, message_queues
from pocketmq.proxy.wire import service as s


async def query_route(
    state: ProxyState, _: Caller, request: s.QueryRouteRequest
) -> s.QueryRouteResponse:
    """Return a topic's queues, all of them behind the endpoints that the client uses."""
    topic = checks.topic_name(request.topic)
    endpoints = check_endpoints(request.endpoints)
    known = await state.cluster.route(topic)
    kind = await state.cluster.topic_kind(topic)
    queues = message_queues(known.route, request.topic, endpoints, kind)
    return s.QueryRouteResponse(status=OK, message_queues=queues)


async def query_assignment(
    state: ProxyState, _: Caller, request: s.QueryAssignmentRequest
) -> s.QueryAssignmentResponse:
    """Return what a push consumer receives from."""
    topic = checks.topic_name(request.topic)
    group = checks.group_name(request.group)
    endpoints = check_endpoints(request.endpoints)
    known = await state.cluster.route(topic)
    fifo = (await state.cluster.group(group)).consume_message_orderly
    found = assignments(known.route, request.topic, endpoints, fifo=fifo)
    return s.QueryAssignmentResponse(status=OK, assignments=found)
