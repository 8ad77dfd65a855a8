"""Answers to single requests: refusals, hostile bytes, and what only the handlers decide."""

import json
import logging
import re
import zlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.errors import StoreError
from pocketmq.model import TopicConfig
from pocketmq.nameserver.config import NameServerConfig
from pocketmq.nameserver.key_values import KeyValues
from pocketmq.nameserver.server import HANDLERS, answer
from pocketmq.nameserver.state import NameServerState
from pocketmq.protocol import Command
from pocketmq.protocol.registration import MAX_INFLATED, Registration, encode_registration
from pocketmq.protocol.requests.topics import TopicTableBody

BROKER = {
    "brokerName": "b",
    "brokerAddr": "b:1",
    "clusterName": "c",
    "haServerAddr": "h:1",
    "brokerId": "0",
}


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def make(config: NameServerConfig | None = None) -> tuple[NameServerState, Clock]:
    clock = Clock()
    return NameServerState(config or NameServerConfig(), clock), clock


def ask(
    state: NameServerState,
    code: int,
    ext: dict[str, str] | None = None,
    body: bytes = b"",
    version: int = 513,
) -> Command:
    request = msgspec.structs.replace(Command.request(code, 7, ext, body), version=version)
    reply = answer(state, "connection", request)
    assert (reply.opaque, reply.is_response) == (7, True)
    return reply


def registration(*names: str) -> bytes:
    configs = {name: TopicConfig(topic_name=name) for name in names}
    return encode_registration(Registration(topics=TopicTableBody(topic_config_table=configs)))


def test_every_code_of_a_name_server_is_answered() -> None:
    assert set(HANDLERS) == {
        100, 101, 102, 103, 104, 105, 106, 205, 206, 216, 217, 219, 224, 304, 311, 312, 313, 318,
        319, 322, 327, 901, 904,
    }  # fmt: skip


def test_other_codes_are_not_supported() -> None:
    state, _ = make()
    reply = ask(state, 10)
    assert (reply.code, reply.remark) == (3, " request type 10 not supported")


def test_what_a_controller_would_answer_is_refused_with_the_reason() -> None:
    state, _ = make()
    for code in (1001, 1005, 1013):
        reply = ask(state, code)
        remark = f" request type {code} not supported: there is no controller here"
        assert (reply.code, reply.remark) == (3, remark)


@given(
    code=st.sampled_from(sorted(HANDLERS)),
    ext=st.dictionaries(
        st.sampled_from(
            [*BROKER, "topic", "namespace", "key", "value", "cluster", "compressed", "bodyCrc32",
             "heartbeatTimeoutMillis", "__ZONE_NAME", "__ZONE_MODE"]
        ),
        st.one_of(st.text(max_size=5), st.sampled_from(["true", "0", "-1", str(2**63 - 1)])),
    ),
    body=st.one_of(
        st.binary(max_size=40),
        st.sampled_from([b"{}", b"null", b"[]", b'{"queueDatas":[{}]}', b"\\u12", b"a=b"]),
        st.binary(max_size=40).map(zlib.compress),
    ),
    version=st.integers(-5, 700),
)  # fmt: skip
def test_any_request_gets_an_answer(
    code: int, ext: dict[str, str], body: bytes, version: int
) -> None:
    state, _ = make()
    reply = ask(state, code, ext, body, version)
    assert reply.encode()
    assert not re.match(r"\w+(Error|Exception): ", reply.remark or ""), "an unforeseen error"


@pytest.mark.parametrize(
    ("ext", "body", "remark"),
    [
        (
            {"brokerId": "x"},
            b"",
            "RegisterBrokerRequest has an invalid value in field 'brokerId': 'x'",
        ),
        ({"compressed": "true"}, b"no zlib", "does not inflate"),
        ({"bodyCrc32": "1"}, b"{}", "crc32 not match"),
        ({"bodyCrc32": "1"}, b"", "crc32 not match"),
        ({}, b"{", "malformed"),
        ({}, b'{"topicConfigSerializeWrapper":[]}', "not an object"),
        (
            {"compressed": "true"},
            zlib.compress(bytes(MAX_INFLATED + 1)),
            f"inflates to more than {MAX_INFLATED} bytes",
        ),
    ],
)
def test_a_registration_that_cannot_be_read_is_refused_with_the_reason(
    ext: dict[str, str], body: bytes, remark: str
) -> None:
    state, _ = make()
    reply = ask(state, 103, BROKER | ext, body)
    assert reply.code == 1
    assert remark in str(reply.remark)
    assert state.table.brokers.clusters() == {}


def test_a_registration_with_the_right_checksum_is_taken() -> None:
    state, _ = make()
    body = registration("t", "u")
    crc = zlib.crc32(body) & 0x7FFFFFFF
    assert ask(state, 103, BROKER | {"bodyCrc32": str(crc)}, body).code == 0
    assert ask(state, 103, BROKER | {"bodyCrc32": str(crc ^ 1)}, body).code == 1


def test_a_compressed_registration_is_read_even_if_it_denies_being_so() -> None:
    """Java 5.x brokers with compressedRegister=true send it so."""
    state, _ = make()
    configs = {name: TopicConfig(topic_name=name) for name in ("t", "u")}
    told = Registration(topics=TopicTableBody(topic_config_table=configs))
    body = encode_registration(told, compressed=True)
    assert ask(state, 103, BROKER | {"compressed": "false"}, body).code == 0
    assert ask(state, 105, {"topic": "t"}).code == 0


@pytest.mark.parametrize(
    ("timeout", "deadline"), [(None, 120.0), ("10000", 10.0), ("0", 120.0), ("-5", 120.0)]
)
def test_a_broker_names_how_long_it_may_be_silent(timeout: str | None, deadline: float) -> None:
    state, _ = make()
    ext = BROKER if timeout is None else BROKER | {"heartbeatTimeoutMillis": timeout}
    ask(state, 103, ext, registration("t", "u"))
    assert state.table.next_deadline() == deadline


@pytest.mark.parametrize("code", [103, 322, 904])
def test_registering_asking_and_heartbeats_are_signs_of_life(code: int) -> None:
    state, clock = make()
    ask(state, 103, BROKER, registration("t", "u"))
    clock.now = 100.0
    ask(state, code, BROKER, registration("t", "u") if code == 103 else b"")
    assert state.table.next_deadline() == 220.0


def test_a_repeated_registration_is_not_read_again_until_it_must_be() -> None:
    state, clock = make()
    version = b'"dataVersion":{"counter":1,"timestamp":1,"stateVersion":0}'
    body = registration("t", "u").replace(
        b'"dataVersion":{"counter":0,"stateVersion":0,"timestamp":0}', version
    )
    assert version in body
    ask(state, 103, BROKER, body)
    clock.now = 30.0
    assert ask(state, 103, BROKER, body).code == 0
    assert state.table.next_deadline() == 150.0
    ask(state, 216, {"topic": "t"})
    assert ask(state, 105, {"topic": "t"}).code == 17
    ask(state, 103, BROKER, body)
    assert ask(state, 105, {"topic": "t"}).code == 0
    # The same bytes mean something else if they are said to be compressed.
    assert ask(state, 103, BROKER | {"compressed": "true"}, body).code == 1


def test_routes_are_refused_while_brokers_are_still_expected() -> None:
    state, clock = make(NameServerConfig(need_wait_for_service=True, wait_seconds_for_service=10))
    ask(state, 103, BROKER, registration("t", "u"))
    clock.now = 9.9
    reply = ask(state, 105, {"topic": "t"})
    assert (reply.code, reply.remark) == (1, "name server not ready")
    clock.now = 10.0
    assert ask(state, 105, {"topic": "t"}).code == 0


def test_topics_are_not_listed_if_that_is_switched_off() -> None:
    state, _ = make(NameServerConfig(enable_topic_list=False, enable_all_topic_list=False))
    for code in (206, 224, 311, 312, 313):
        reply = ask(state, code, {"cluster": "c"})
        assert (reply.code, reply.remark) == (1, "disable"), code
    assert ask(state, 304).code == 0


def test_settings_are_shown_sorted_with_where_the_name_server_is() -> None:
    state, _ = make()
    state.place = {"listenPort": "9876"}
    lines = ask(state, 319).body.decode().splitlines()
    assert lines == sorted(lines)
    assert "listenPort=9876" in lines
    assert "orderMessageEnable=false" in lines


def test_settings_are_changed_all_or_none() -> None:
    state, _ = make()
    reply = ask(state, 318, body=b"orderMessageEnable=true\nwaitSecondsForService=soon\n")
    assert reply.code == 1
    assert "waitSecondsForService must be a whole number from 1 to 3600, not 'soon'" in str(
        reply.remark
    )
    assert state.config == NameServerConfig()
    assert ask(state, 318, body=b"orderMessageEnable=\\u00").code == 1
    assert ask(state, 318, body=b"orderMessageEnable=true\nrocketmqHome=/\n").code == 16
    assert ask(state, 318, body=b"orderMessageEnable=true\n").code == 0
    assert state.config == NameServerConfig(order_message_enable=True)


def test_settings_that_cannot_be_saved_are_not_changed() -> None:
    def fail(_: dict[str, str]) -> None:
        raise StoreError("the disk is gone")

    state = NameServerState(NameServerConfig(), Clock(), save_properties=fail)
    assert ask(state, 318, body=b"orderMessageEnable=true\n").code == 1
    assert state.config == NameServerConfig()


def test_a_broken_handler_costs_one_answer(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(KeyValues):
        def get(self, namespace: str, key: str) -> str | None:
            raise ZeroDivisionError("oh")

    state = NameServerState(NameServerConfig(), Clock(), Broken())
    with caplog.at_level(logging.ERROR, "pocketmq.nameserver"):
        reply = ask(state, 101, {"namespace": "n", "key": "k"})
    assert (reply.code, reply.remark) == (1, "ZeroDivisionError: oh")
    assert "request 101 from connection failed" in caplog.text


def test_the_body_of_a_static_topic_is_passed_on() -> None:
    state, _ = make()
    body = (
        b'{"topicConfigSerializeWrapper":{"dataVersion":{"counter":1},"topicConfigTable":'
        b'{"t":{"topicName":"t"},"u":{"topicName":"u"}},"topicQueueMappingInfoMap":{"t":'
        b'{"bname":"b","currIdMap":{0:1,"2":3},"dirty":false,"epoch":9,"scope":"__global__",'
        b'"topic":"t","totalQueues":4}}}}'
    )
    ask(state, 103, BROKER, body)
    route = json.loads(ask(state, 105, {"topic": "t"}).body)
    assert route["topicQueueMappingByBroker"] == {
        "b": {
            "bname": "b",
            "currIdMap": {"0": 1, "2": 3},
            "dirty": False,
            "epoch": 9,
            "scope": "__global__",
            "topic": "t",
            "totalQueues": 4,
        }
    }
