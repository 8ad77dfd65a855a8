"""Refused requests in the log: peer and reason, few lines however many, no secret."""

import json
import logging
from typing import Any

import pytest

from pocketmq.net.limited_logs import LINES, PERIOD, RefusalLog
from pocketmq.protocol import RequestCode as Code
from tests.broker.running import client, running, send_fields

LOGGER = logging.getLogger("pocketmq.broker")


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "pocketmq.broker" and record.levelno == logging.WARNING
    ]


def test_a_refusal_names_peer_request_code_and_reason(caplog: pytest.LogCaptureFixture) -> None:
    log = RefusalLog(LOGGER)
    log.refused("10.0.0.7:5", Code.SEND_MESSAGE_V2, 16, "not for you", 1.0)
    log.refused("10.0.0.7:5", 9999, 3, None, 1.0)
    assert lines(caplog) == [
        "10.0.0.7:5: SEND_MESSAGE_V2 (310) was refused with code 16: not for you",
        "10.0.0.7:5: request 9999 was refused with code 3: ",
    ]


def test_of_very_many_refusals_a_few_are_logged_and_the_others_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = RefusalLog(LOGGER)
    for _ in range(100_000):
        log.refused("p", 9999, 3, "why", 1.0)
    assert len(lines(caplog)) == LINES
    log.refused("p", 9999, 3, "why", 1.0 + PERIOD)
    log.refused("p", 9999, 3, "why", 1.0 + PERIOD)
    assert lines(caplog)[LINES:] == [
        "p: request 9999 was refused with code 3: why (99990 more before it)",
        "p: request 9999 was refused with code 3: why",
    ]


def test_a_reason_of_any_length_takes_one_line(caplog: pytest.LogCaptureFixture) -> None:
    RefusalLog(LOGGER).refused("p", Code.HEART_BEAT, 1, "x" * 100_000, 1.0)
    assert len(lines(caplog)[0]) < 300


@pytest.mark.parametrize(
    "code", [Code.AUTH_CREATE_USER, Code.AUTH_UPDATE_USER, Code.UPDATE_AND_CREATE_ACL_CONFIG]
)
def test_where_a_request_carries_a_secret_the_reason_is_not_logged(
    caplog: pytest.LogCaptureFixture, code: Code
) -> None:
    RefusalLog(LOGGER).refused("p", code, 1, "malformed User: 'hunter2'", 1.0)
    assert "hunter2" not in caplog.text
    assert lines(caplog) == [f"p: {code.name} ({code}) was refused with code 1: ***"]


async def test_a_broker_tells_of_what_it_refuses_and_of_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running() as (_, address), client(address) as peer:
        caplog.clear()
        me = "{}:{}".format(*peer._writer.get_extra_info("sockname"))
        assert (await peer.ask(Code.SEND_MESSAGE_V2, send_fields("T"), b"x")).code == 0
        query = {"topic": "T", "consumerGroup": "g", "queueId": "7"}
        assert (await peer.ask(Code.QUERY_CONSUMER_OFFSET, query)).code == 22
        assert (await peer.ask(Code.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": "g"})).code == 1
        assert lines(caplog) == []

        assert (await peer.ask(9999)).code == 3
        assert (await peer.ask(Code.HEART_BEAT, {}, b"no heartbeat")).code == 1
        assert (await peer.ask(Code.SEND_MESSAGE_V2, send_fields("T"), b"")).code == 13
        assert (await peer.ask(Code.GET_COLD_DATA_FLOW_CTR_INFO)).code == 3
        told = lines(caplog)
        assert [line.partition(": ")[0] for line in told] == [me] * 4
        assert "request 9999 was refused with code 3" in told[0]
        assert "HEART_BEAT (34) was refused with code 1: malformed Heartbeat" in told[1]
        assert "SEND_MESSAGE_V2 (310) was refused with code 13: the message is illegal" in told[2]
        assert "does not tell cold data from other data" in told[3]


async def test_refusals_of_access_control_are_logged_without_signature_and_secret(
    caplog: pytest.LogCaptureFixture,
) -> None:
    user = json.dumps({"username": "boss", "password": "hunter2"})
    settings: dict[str, Any] = {"authentication_enabled": True, "init_authentication_user": user}
    async with running(**settings) as (_, address), client(address) as peer:
        caplog.clear()
        fields = send_fields("T") | {"AccessKey": "boss", "Signature": "c2lnbmVkIGJhZGx5"}
        assert (await peer.ask(Code.SEND_MESSAGE_V2, fields, b"x")).code == 16
        (line,) = lines(caplog)
        assert "SEND_MESSAGE_V2 (310) was refused with code 16: " in line
        assert "check signature failed" in line
        for secret in ("hunter2", "c2lnbmVkIGJhZGx5"):
            assert secret not in line
