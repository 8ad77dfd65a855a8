"""Rules of the translation, without a server."""

import gzip
import zlib
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.errors import HeaderMalformed
from pocketmq.model import MessageQueue
from pocketmq.model import property_names as names
from pocketmq.model.kinds import TopicKind
from pocketmq.model.route import BrokerData, QueueData, TopicRoute
from pocketmq.protocol.handles import PopHandle, TopicMark
from pocketmq.protocol.peers import Language, version_name
from pocketmq.protocol.property_text import decode_properties
from pocketmq.proxy.translation.caller import Caller, client_kind, peer_address, read_caller
from pocketmq.proxy.translation.incoming import resource
from pocketmq.proxy.translation.limits import ProxyLimits
from pocketmq.proxy.translation.outgoing import StoredForm, stored_forms, zlib_of
from pocketmq.proxy.translation.receipts import Receipt, read_receipt_handle, receipt_text
from pocketmq.proxy.translation.refusals import CallRefused
from pocketmq.proxy.translation.routes import assignments, message_queues, queue_of_group
from pocketmq.proxy.translation.transactions import HalfMessagePlace, read_transaction_id
from pocketmq.proxy.wire import definition as d
from tests.proxy.peers import message

NOW = 1_700_000_000_000
LIMITS = ProxyLimits()


def stored(topic: str = "orders", body: bytes = b"x", **system: Any) -> StoredForm:
    (form,) = stored_forms([message(topic, body, **system)], "10.0.0.1:5", LIMITS, NOW)
    return form


def refusal(topic: str = "orders", body: bytes = b"x", **system: Any) -> str:
    with pytest.raises(CallRefused) as refused:
        stored(topic, body, **system)
    return str(d.Code.Name(refused.value.code))


def test_a_message_gets_the_properties_that_apaches_proxy_writes() -> None:
    form = stored(
        message_id="M1",
        tag="paid",
        keys=["a", "b"],
        message_group="g",
        trace_context="t",
        properties={"region": "eu"},
    )
    assert decode_properties(form.properties.encode()) == {
        "region": "eu",
        names.TAGS: "paid",
        names.KEYS: "a b",
        names.UNIQUE_KEY: "M1",
        names.PRODUCER_GROUP: "orders",
        names.SHARDING_KEY: "g",
        names.TRACE_CONTEXT: "t",
        names.BORN_HOST: "10.0.0.1:5",
    }
    assert (form.kind, form.sys_flag, form.born_ms) == (TopicKind.FIFO, 0, NOW)


def test_a_half_message_is_prepared_and_may_wait_for_its_first_check() -> None:
    system = d.SystemProperties(message_type=d.MessageType.TRANSACTION, message_id="M")
    system.orphaned_transaction_recovery_duration.FromSeconds(60)
    sent = d.Message(topic=d.Resource(name="tx"), body=b"x", system_properties=system)
    (form,) = stored_forms([sent], "", LIMITS, NOW)
    properties = decode_properties(form.properties.encode())
    assert properties[names.TRANSACTION_PREPARED] == "true"
    assert properties[names.CHECK_IMMUNITY_SECONDS] == "60"
    assert (form.kind, form.sys_flag) == (TopicKind.TRANSACTION, 4)


@pytest.mark.parametrize(
    ("expected", "fields"),
    [
        ("MESSAGE_BODY_EMPTY", {"body": b""}),
        ("MESSAGE_BODY_TOO_LARGE", {"body": b"x" * (4 * 1024 * 1024 + 1)}),
        ("ILLEGAL_TOPIC", {"topic": ""}),
        ("ILLEGAL_TOPIC", {"topic": "a b"}),
        ("ILLEGAL_TOPIC", {"topic": "t" * 128}),
        ("ILLEGAL_TOPIC", {"topic": "TBW102"}),
        ("ILLEGAL_MESSAGE_ID", {"message_id": " "}),
        ("ILLEGAL_MESSAGE_TAG", {"tag": "a|b"}),
        ("ILLEGAL_MESSAGE_TAG", {"tag": "  "}),
        ("ILLEGAL_MESSAGE_TAG", {"tag": "a\x02"}),
        ("ILLEGAL_MESSAGE_KEY", {"keys": [" "]}),
        ("ILLEGAL_MESSAGE_GROUP", {"message_group": "g" * 64}),
        ("ILLEGAL_MESSAGE_GROUP", {"message_group": "\x7f"}),
        ("ILLEGAL_MESSAGE_PROPERTY_KEY", {"properties": {"KEYS": "x"}}),
        ("ILLEGAL_MESSAGE_PROPERTY_KEY", {"properties": {"a": "b\x01"}}),
        ("ILLEGAL_MESSAGE_PROPERTY_KEY", {"properties": {"": "b"}}),
        ("MESSAGE_PROPERTIES_TOO_LARGE", {"properties": {str(n): "" for n in range(129)}}),
        ("MESSAGE_PROPERTIES_TOO_LARGE", {"properties": {"a": "x" * 16 * 1024}}),
        ("MESSAGE_CORRUPTED", {"body_encoding": 77}),
        ("MESSAGE_CORRUPTED", {"body_encoding": 2}),
        ("BAD_REQUEST", {"priority": -1}),
        ("UNSUPPORTED", {"lite_topic": "l"}),
    ],
)
def test_what_apaches_proxy_refuses_is_refused(expected: str, fields: dict[str, Any]) -> None:
    assert refusal(**fields) == expected


@pytest.mark.parametrize(("ahead_ms", "fine"), [(86_400_000, True), (86_400_001, False)])
def test_a_delay_is_a_day_at_most(ahead_ms: int, fine: bool) -> None:
    sent = message("orders", b"x")
    sent.system_properties.delivery_timestamp.FromMilliseconds(NOW + ahead_ms)
    if fine:
        assert stored_forms([sent], "", LIMITS, NOW)[0].kind is TopicKind.DELAY
    else:
        with pytest.raises(CallRefused, match="max is 86400000"):
            stored_forms([sent], "", LIMITS, NOW)


def test_a_time_outside_of_protobufs_range_is_refused() -> None:
    sent = message("orders", b"x")
    sent.system_properties.delivery_timestamp.seconds = 1 << 62
    with pytest.raises(CallRefused) as refused:
        stored_forms([sent], "", LIMITS, NOW)
    assert refused.value.code == d.Code.ILLEGAL_DELIVERY_TIME


def test_messages_of_one_request_have_one_topic() -> None:
    with pytest.raises(CallRefused, match="topic in message is not same"):
        stored_forms([message("a", b"x"), message("b", b"x")], "", LIMITS, NOW)


@given(st.binary(max_size=5000), st.integers(0, 9))
def test_gzip_becomes_zlib(body: bytes, level: int) -> None:
    assert zlib.decompress(zlib_of(gzip.compress(body, level))) == body


@given(st.data(), st.binary(min_size=1, max_size=300))
def test_broken_gzip_is_refused(data: st.DataObject, body: bytes) -> None:
    whole = gzip.compress(body)
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(CallRefused):
        zlib_of(whole[:cut])


@given(st.binary(max_size=200))
def test_no_bytes_break_the_gzip_reader(noise: bytes) -> None:
    for body in (noise, b"\x1f\x8b\x08" + noise):
        with suppress(CallRefused):
            zlib_of(body)


def test_a_body_that_inflates_too_far_is_refused() -> None:
    with pytest.raises(CallRefused) as refused:
        zlib_of(gzip.compress(bytes(3_000_000)), limit=2_999_999)
    assert refused.value.code == d.Code.MESSAGE_BODY_TOO_LARGE
    assert zlib.decompress(zlib_of(gzip.compress(bytes(3_000_000)), limit=3_000_000))


def test_the_queue_of_a_message_group_is_guavas() -> None:
    """The numbers are those of Guava's own test of `Hashing.consistentHash`."""
    queues = [MessageQueue("t", "b", number) for number in range(100)]
    first = [queue_of_group(queues, number).queue_id for number in range(20)]
    assert first == [0, 55, 62, 8, 45, 59, 86, 97, 82, 59, 73, 37, 17, 56, 86, 21, 90, 37, 38, 83]
    assert queue_of_group(queues[:11], 10_863_919_174_838_991).queue_id == 6
    assert queue_of_group(queues[:11], 2_016_238_256_797_177_309).queue_id == 3
    assert queue_of_group(queues[:1], -5).queue_id == 0


ROUTE = TopicRoute(
    queue_datas=[
        QueueData(broker_name="a", read_queue_nums=1, write_queue_nums=3, perm=6),
        QueueData(broker_name="b", read_queue_nums=2, write_queue_nums=2, perm=4),
        QueueData(broker_name="gone", read_queue_nums=2, write_queue_nums=2, perm=6),
    ],
    broker_datas=[
        BrokerData(broker_name="a", broker_addrs={0: "h:1", 1: "h:2"}),
        BrokerData(broker_name="b", broker_addrs={1: "h:3"}),
    ],
)
ENDPOINTS = d.Endpoints(addresses=[d.Address(host="h", port=8081)])


def test_a_route_lists_the_queues_of_each_process_with_their_permissions() -> None:
    queues = message_queues(ROUTE, d.Resource(name="t"), ENDPOINTS, TopicKind.DELAY)
    write, both, read = d.Permission.WRITE, d.Permission.READ_WRITE, d.Permission.READ
    of_a = [(0, write), (1, write), (2, both)]
    found = [(each.broker.name, each.broker.id, each.id, each.permission) for each in queues]
    assert found == [
        *(("a", 0, *each) for each in of_a),
        *(("a", 1, *each) for each in of_a),
        ("b", 1, 0, read),
        ("b", 1, 1, read),
    ]
    assert {tuple(each.accept_message_types) for each in queues} == {(d.MessageType.DELAY,)}
    assert queues[0].broker.endpoints == ENDPOINTS


def test_an_assignment_is_a_broker_and_for_fifo_each_queue() -> None:
    """Brokers without a master cannot be popped from."""

    def found(*, fifo: bool) -> list[tuple[str, int]]:
        each = assignments(ROUTE, d.Resource(name="t"), ENDPOINTS, fifo=fifo)
        return [(one.message_queue.broker.name, one.message_queue.id) for one in each]

    assert found(fifo=False) == [("a", -1)]
    assert found(fifo=True) == [("a", 0)]
    with pytest.raises(CallRefused, match="no readable queue"):
        assignments(TopicRoute(), d.Resource(name="t"), ENDPOINTS, fifo=False)


HANDLE = PopHandle(
    start_offset=1,
    pop_time_ms=NOW,
    invisible_time_ms=60_000,
    revive_queue_id=3,
    mark=TopicMark.RETRY,
    broker_name="a",
    queue_id=2,
    queue_offset=7,
)


def test_a_receipt_reads_back_and_expires() -> None:
    receipt = Receipt(HANDLE, 4096)
    assert str(receipt) == f"1 {NOW} 60000 3 1 a 2 7 4096"
    assert read_receipt_handle(str(receipt)) == receipt
    receipt.check_valid(NOW + 59_999)
    with pytest.raises(CallRefused, match="receipt handle is expired"):
        receipt.check_valid(NOW + 60_000)


NUMBERS = st.sampled_from(["0", "7", "007", "-1", "+1", "12 3", "", "9" * 9, "9" * 18, "9" * 19])
HANDLES = st.tuples(
    *[NUMBERS] * 4, st.sampled_from("0123"), st.sampled_from("aä"), NUMBERS, NUMBERS
)


@given(HANDLES.map(" ".join))
def test_a_receipt_is_written_as_its_handle_reads(text: str) -> None:
    try:
        expected = str(Receipt(PopHandle.parse(text), 4096))
    except HeaderMalformed:
        with pytest.raises(HeaderMalformed):
            receipt_text(text, 4096)
    else:
        assert receipt_text(text, 4096) == expected


@given(st.one_of(st.text(max_size=60), st.lists(st.integers(), max_size=10).map(str)))
def test_no_text_breaks_the_readers_of_handles(text: str) -> None:
    for read in (read_receipt_handle, read_transaction_id):
        with suppress(CallRefused):
            read(text)


def test_a_transaction_id_names_the_half_message() -> None:
    half = HalfMessagePlace("M1", "broker-a", 5, 1000)
    assert read_transaction_id(str(half)) == half


def test_a_namespace_stands_apart_from_the_name() -> None:
    assert resource("orders") == d.Resource(name="orders")
    assert resource("ns%orders") == d.Resource(resource_namespace="ns", name="orders")
    assert resource("%RETRY%ns%g") == d.Resource(resource_namespace="ns", name="%RETRY%g")


@pytest.mark.parametrize("client_id", ["", " ", "x" * 513, "a\nb"])
def test_a_client_must_name_itself(client_id: str) -> None:
    with pytest.raises(CallRefused):
        read_caller([client_id, None, None, None, None], "1.2.3.4:5")


def test_the_address_of_a_caller_is_host_and_port() -> None:
    fields = ["c", None, None, None, None]
    assert read_caller(fields, peer_address("ipv4:1.2.3.4:5")).address == "1.2.3.4:5"
    assert read_caller(fields, peer_address("ipv6:%5B::1%5D:5")).address == "[::1]:5"


@pytest.mark.parametrize(
    ("language", "version", "shown"),
    [
        ("JAVA", "5.0.7", (Language.JAVA, "V5_0_7")),
        ("PYTHON", "5.1.2", (Language.PYTHON, "V5_1_2")),
        ("GOLANG", "v5.1.1-rc1", (Language.GO, "V5_1_1")),
        ("Go", "5.1.1", (Language.GO, "V5_1_1")),
        ("NODEJS", "5.0.0", (Language.NODE_JS, "V5_0_0")),
        ("dotnet", "", (Language.DOTNET, "V5_3_3")),
        ("rust", "0.1.0", (Language.RUST, "V5_3_3")),  # numbers of its own: no release of RocketMQ
        ("", "5.12.0", (Language.OTHER, "V5_3_3")),
        ("COBOL", "latest", (Language.OTHER, "V5_3_3")),
        ("JAVA", "9" * 5000, (Language.JAVA, "V5_3_3")),
    ],
)
def test_brokers_list_a_client_as_what_it_is(
    language: str, version: str, shown: tuple[Language, str]
) -> None:
    kind = client_kind(Caller("c", "1.2.3.4:5", language, version))
    assert (kind.language, version_name(kind.version)) == shown
