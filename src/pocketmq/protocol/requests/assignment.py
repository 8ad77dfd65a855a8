"""Who consumes which queues if the broker decides, and by pulling or popping."""

from pocketmq.protocol.bodies.assignment import (
    AssignmentQuery,
    Assignments,
    RequestMode,
    RequestModes,
)
from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.forms import json_of
from pocketmq.protocol.request import NoHeader, RequestQueue, request

QUERY_ASSIGNMENT = request(
    Code.QUERY_ASSIGNMENT,
    NoHeader,
    NoHeader,
    body=json_of(AssignmentQuery),
    result=json_of(Assignments),
    queue=RequestQueue.UNLIMITED,
)
SET_MESSAGE_REQUEST_MODE = request(
    Code.SET_MESSAGE_REQUEST_MODE,
    NoHeader,
    NoHeader,
    body=json_of(RequestMode),
    queue=RequestQueue.UNLIMITED,
)
GET_ALL_MESSAGE_REQUEST_MODE = request(
    Code.GET_ALL_MESSAGE_REQUEST_MODE, NoHeader, NoHeader, result=json_of(RequestModes)
)
