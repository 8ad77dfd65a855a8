"""Rows of the catalogue: typed, named as their codes, one for each."""

from types import ModuleType
from typing import assert_type

import pytest

from pocketmq.errors import BodyMalformed
from pocketmq.model import TopicRoute
from pocketmq.protocol import RequestCode as Code
from pocketmq.protocol.catalogue import rows_of
from pocketmq.protocol.peers import BROKER, PeerKind
from pocketmq.protocol.request import (
    NOTHING,
    RAW,
    NoHeader,
    Request,
    RequestQueue,
    json_of,
    request,
)
from pocketmq.protocol.requests import access, membership, nameserver, offsets


def test_the_type_checker_knows_what_a_request_carries_both_ways() -> None:
    assert_type(
        offsets.GET_MAX_OFFSET,
        Request[offsets.GetMaxOffsetRequest, None, offsets.GetMaxOffsetResponse, None],
    )
    assert_type(
        membership.HEART_BEAT,
        Request[
            membership.HeartbeatRequest, membership.Heartbeat, membership.HeartbeatResponse, None
        ],
    )
    assert_type(
        nameserver.GET_ROUTEINFO_BY_TOPIC,
        Request[nameserver.GetRouteRequest, None, NoHeader, TopicRoute],
    )


def test_a_row_is_for_a_broker_and_its_tools_unless_it_says_otherwise() -> None:
    row = request(Code.GET_MAX_OFFSET, offsets.GetMaxOffsetRequest, offsets.GetMaxOffsetResponse)
    assert (row.served_by, row.queue) == (BROKER, RequestQueue.ADMIN)
    assert (row.body, row.result) == (NOTHING, NOTHING)
    assert (row.main_port, row.announced, row.foreign) == (False, False, False)
    assert membership.HEART_BEAT.served_by == {PeerKind.BROKER}
    assert membership.HEART_BEAT.main_port


def module(name: str, **rows: object) -> ModuleType:
    made = ModuleType(name)
    vars(made).update(rows)
    return made


def test_a_row_under_another_name_is_refused() -> None:
    with pytest.raises(TypeError, match=r"wrong\.GET_MIN_OFFSET: misplaced row of .*MAX_OFFSET"):
        rows_of(module("wrong", GET_MIN_OFFSET=offsets.GET_MAX_OFFSET))


def test_a_second_row_of_a_code_is_refused() -> None:
    one = module("one", GET_MAX_OFFSET=offsets.GET_MAX_OFFSET)
    with pytest.raises(TypeError, match=r"two\.GET_MAX_OFFSET"):
        rows_of(one, module("two", GET_MAX_OFFSET=offsets.GET_MAX_OFFSET))


def test_forms_are_written_and_read_back() -> None:
    users = json_of(list[access.User])
    value = [access.User(username="ann"), access.User(username="bob")]
    assert users.decode(users.encode(value)) == value
    assert "list" in users.name
    assert RAW.decode(RAW.encode(b"\0x")) == b"\0x"
    assert NOTHING.encode(None) == b""
    with pytest.raises(BodyMalformed):
        users.decode(b"{")
