"""Every header against Java's classes, against captured frames, and against chance."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import NODEFAULT, structs

from pocketmq.errors import HeaderMalformed
from pocketmq.protocol.catalogue import REQUESTS
from pocketmq.protocol.header import EmptyResponse, Header, Int32, Int64
from pocketmq.protocol.header_binary import read_binary_header
from pocketmq.protocol.peers import PeerKind
from pocketmq.protocol.request import NoHeader
from pocketmq.protocol.requests import groups, membership, reading, sending
from tests.protocol.foreign import EVERY_REQUEST

PLACES = ("pocketmq.protocol.requests.", "tests.protocol.foreign.")
VECTORS = Path(__file__).parents[1] / "vectors"
JAVA: dict[str, dict[str, Any]] = json.loads((VECTORS / "java-headers.json").read_text())
FRAMES = [json.loads(line) for line in (VECTORS / "java-frames.jsonl").read_text().splitlines()]

OUR_NAMES = {  # those that are not Java's name without "Header"
    "AckMessageRequestHeader": "AckRequest",
    "AddWritePermOfBrokerRequestHeader": "AddWritePermissionRequest",
    "AddWritePermOfBrokerResponseHeader": "AddWritePermissionResponse",
    "CleanControllerBrokerDataRequestHeader": "CleanBrokerDataRequest",
    "ConsumeMessageDirectlyResultRequestHeader": "ConsumeDirectlyRequest",
    "ConsumerSendMsgBackRequestHeader": "SendBackRequest",
    "DeleteTopicFromNamesrvRequestHeader": "DeleteTopicInNameServerRequest",
    "ExportRocksDBConfigToJsonRequestHeader": "ExportRocksdbConfigRequest",
    "GetAllProducerInfoRequestHeader": "GetAllProducersRequest",
    "GetBrokerAclConfigResponseHeader": "GetBrokerAclVersionResponse",
    "GetConsumeStatsInBrokerHeader": "GetBrokerConsumeStatsRequest",
    "GetConsumerConnectionListRequestHeader": "GetConsumerConnectionsRequest",
    "GetConsumerListByGroupRequestHeader": "GetConsumerListRequest",
    "GetConsumerListByGroupResponseHeader": "EmptyResponse",
    "GetEarliestMsgStoretimeRequestHeader": "GetEarliestStoreTimeRequest",
    "GetEarliestMsgStoretimeResponseHeader": "GetEarliestStoreTimeResponse",
    "GetKVListByNamespaceRequestHeader": "GetKVListRequest",
    "GetMetaDataResponseHeader": "GetControllerMetadataResponse",
    "GetProducerConnectionListRequestHeader": "GetProducerConnectionsRequest",
    "GetRouteInfoRequestHeader": "GetRouteRequest",
    "GetTopicStatsInfoRequestHeader": "GetTopicStatsRequest",
    "LiteSubscriptionCtlRequestHeader": "LiteSubscriptionRequest",
    "LockBatchMqRequestHeader": "LockQueuesRequest",
    "PeekMessageRequestHeader": "PeekRequest",
    "PopLiteMessageRequestHeader": "PopLiteRequest",
    "PopLiteMessageResponseHeader": "PopLiteResponse",
    "PopMessageRequestHeader": "PopRequest",
    "PopMessageResponseHeader": "PopResponse",
    "PullMessageRequestHeader": "PullRequest",
    "PullMessageResponseHeader": "PullResponse",
    "QueryCorrectionOffsetHeader": "QueryCorrectionOffsetRequest",
    "QueryTopicConsumeByWhoRequestHeader": "QueryTopicConsumersRequest",
    "RecallMessageRequestHeader": "RecallRequest",
    "RecallMessageResponseHeader": "RecallResponse",
    "ReplyMessageRequestHeader": "PushReplyRequest",
    "ResetMasterFlushOffsetHeader": "ResetMasterFlushOffsetRequest",
    "SendMessageRequestHeader": "SendRequest",
    "SendMessageRequestHeaderV2": "SendRequestV2",
    "SendMessageResponseHeader": "SendResponse",
    "UnRegisterBrokerRequestHeader": "UnregisterBrokerRequest",
    "UnlockBatchMqRequestHeader": "UnlockQueuesRequest",
    "UnregisterClientResponseHeader": "EmptyResponse",
    "UpdateConsumerOffsetResponseHeader": "EmptyResponse",
    "UpdateGlobalWhiteAddrsConfigRequestHeader": "UpdateGlobalWhiteAddrsRequest",
    "ViewBrokerStatsDataRequestHeader": "ViewBrokerStatsRequest",
    "WipeWritePermOfBrokerRequestHeader": "WipeWritePermissionRequest",
    "WipeWritePermOfBrokerResponseHeader": "WipeWritePermissionResponse",
}
NEVER_ON_THE_WIRE = {
    "EndTransactionResponseHeader": "the request is oneway, and the class is used nowhere",
    "GetBrokerClusterAclConfigResponseHeader": "its one field is a list, which no ext field can "
    "hold; the list is in the body",
    "InitConsumerOffsetRequestHeader": "no request code",
    "RegisterOrderTopicRequestHeader": "no request code",
    "StatisticsMessagesRequestHeader": "no request code",
    "ViewMessageResponseHeader": "the response is made without it",
}
OPTIONAL_WITH_US = {
    ("GetAllTopicConfigRequestHeader", "topicSeq"): "4.9 asks without any field",
    ("GetAllSubscriptionGroupRequestHeader", "groupSeq"): "4.9 asks without any field",
    ("GetAllSubscriptionGroupResponseHeader", "totalGroupNum"): "4.9 answers without any field",
}
LEFT_OUT = {
    ("SendMessageRequestHeaderV2", "bname"): "inherited by the class and never written or read: "
    "in this form the broker's name is `n`",
}
ADDED: dict[
    type[Header], set[str]
] = {  # what Java writes and reads by hand, beside its header classes
    sending.SendResponse: {"MSG_REGION", "TRACE_ON"},
    sending.RecallResponse: {"MSG_REGION"},
    reading.QueryMessageRequest: {"_UNIQUE_KEY_QUERY"},
}
WITHOUT_JAVA_CLASS = {
    "HeartbeatResponse",
    "SetCommitLogReadModeRequest",
    "SwitchTimerEngineRequest",
}
HOOK_FIELDS = {"ReqT"}  # put into every request of a lite pull consumer

TYPES: dict[Any, set[str]] = {
    str: {"String", "enum BoundaryType"},
    bool: {"boolean", "Boolean"},
    Int32: {"int", "Integer"},
    Int64: {"long", "Long"},
}


def our_headers() -> Iterator[type[Header]]:
    todo = [Header]
    while todo:
        cls = todo.pop()
        todo.extend(cls.__subclasses__())
        if cls is EmptyResponse or cls.__module__.startswith(PLACES):
            yield cls


HEADERS = {cls.__name__: cls for cls in our_headers()}
ALL_HEADERS = pytest.mark.parametrize(
    "cls", [HEADERS[n] for n in sorted(HEADERS)], ids=lambda c: c.__name__
)


def ours(java: str) -> type[Header]:
    return HEADERS[OUR_NAMES.get(java, java.removesuffix("Header"))]


def kind_of(field: structs.FieldInfo) -> Any:
    return next(each for each in (field.type, *get_args(field.type)) if each in TYPES)


def by_wire_name(cls: type[Header]) -> dict[str, structs.FieldInfo]:
    return {field.encode_name: field for field in structs.fields(cls)}


def text(value: str | bool | int) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


JAVA_CLASSES = [
    pytest.param(release, name, id=f"{release}-{name}")
    for release, classes in JAVA.items()
    for name in classes
    if name not in NEVER_ON_THE_WIRE
]


@pytest.mark.parametrize(("release", "name"), JAVA_CLASSES)
def test_every_java_field_is_ours_by_name_type_and_need(release: str, name: str) -> None:
    fields = by_wire_name(ours(name))
    for wire, facts in JAVA[release][name]["fields"].items():
        if (name, wire) in LEFT_OUT:
            assert wire not in fields
            continue
        field = fields[wire]
        assert facts["type"] in TYPES[kind_of(field)], wire
        if (name, wire) in OPTIONAL_WITH_US:
            assert facts["required"]
            assert not field.required
        else:
            assert field.required == facts["required"], wire


@pytest.mark.parametrize("name", [n for n in JAVA["5.5.0"] if n not in NEVER_ON_THE_WIRE])
def test_what_an_optional_field_starts_with_is_what_java_starts_with(name: str) -> None:
    """5.5.0 decides; in 4.9.7 a few flags start as false that are absent in 5.5.0."""
    fields = by_wire_name(ours(name))
    for wire, facts in JAVA["5.5.0"][name]["fields"].items():
        if (name, wire) in LEFT_OUT or fields[wire].required:
            continue
        default = fields[wire].default
        assert (None if default is None else text(default)) == facts.get("initial"), wire
        assert (type(None) in get_args(fields[wire].type)) == (default is None), wire


def test_we_have_no_field_that_java_has_not() -> None:
    known: dict[type[Header], set[str]] = {cls: set(added) for cls, added in ADDED.items()}
    for classes in JAVA.values():
        for name, facts in classes.items():
            if name not in NEVER_ON_THE_WIRE:
                known.setdefault(ours(name), set()).update(facts["fields"])
    for cls in HEADERS.values():
        if cls.__name__ not in WITHOUT_JAVA_CLASS:
            assert set(by_wire_name(cls)) <= known[cls], cls


def test_listed_differences_are_real() -> None:
    java = {name: facts for classes in JAVA.values() for name, facts in classes.items()}
    assert set(OUR_NAMES) | set(NEVER_ON_THE_WIRE) <= set(java)
    assert not {n for n, our in OUR_NAMES.items() if n.removesuffix("Header") == our}
    for name, wire in (*OPTIONAL_WITH_US, *LEFT_OUT):
        assert wire in java[name]["fields"]
    assert set(HEADERS) >= WITHOUT_JAVA_CLASS


@pytest.mark.parametrize("release", list(JAVA))
def test_codes_lead_to_the_header_java_binds_to_them(release: str) -> None:
    """5.x header classes carry their request code; responses are told apart by their name."""
    for name, facts in JAVA[release].items():
        if facts["action"] is not None:
            row = EVERY_REQUEST[facts["action"]]
            assert (row.answer if "Response" in name else row.header) is ours(name)


def test_every_header_belongs_to_a_code() -> None:
    rows = EVERY_REQUEST.values()
    used = {row.header for row in rows} | {row.answer for row in rows}
    assert used - {NoHeader} == set(HEADERS.values())


SERVED = {
    # The cases of RocketMQ's dispatchers and the codes registered beside them, 5.5.0 and 4.9.7.
    PeerKind.NAME_SERVER: {*range(100, 107), 205, 206, 216, 217, 219, 224, 304, 311, 312, 313}
    | {318, 319, 322, 327, 901, 904},
    PeerKind.BROKER: {10, 11, 12, 14, 15, 17, 18, 21, 25, 26, *range(28, 39), 41, 42, 43, 45, 46}
    | {*range(50, 55), 60, 61, *range(200, 205), 207, 208, 215, 222, 223, 225, 300, 303}
    | {*range(305, 311), *range(314, 318), 320, 321, 323, 324, 325, 328, 329, 343, 345}
    | {*range(351, 356), 361, 370, 400, 401, 402, 513, 902, 903, *range(905, 909), 1007, 1008}
    | {*range(2001, 2005), *range(3001, 3011), 5001, *range(200050, 200057), 200070, 200071}
    | {*range(200074, 200080), 200151},
    PeerKind.CLIENT: {39, 40, 220, 221, 307, 309, 326, 200073},
    PeerKind.CONTROLLER: {904, *range(1001, 1007), *range(1009, 1014)},
}


@pytest.mark.parametrize("peer", PeerKind)
def test_codes_are_served_by_whom_java_lets_serve_them(peer: PeerKind) -> None:
    assert {code for code, row in REQUESTS.items() if peer in row.served_by} == SERVED[peer]
    assert {code for code, row in EVERY_REQUEST.items() if peer in row.served_by} == SERVED[peer]


def captured(frame: dict[str, Any]) -> tuple[int, dict[str, str]]:
    """Return the code and the ext fields of a captured frame."""
    if frame["serialize"] == "JSON":
        header = json.loads(frame["header"])
        return header["code"], header.get("extFields") or {}
    code, *_, ext = read_binary_header(bytes.fromhex(frame["header"]))
    return code, ext or {}


@pytest.mark.parametrize("frame", FRAMES, ids=lambda f: f"{f['kind']}-{f['reqcode']}-{f['client']}")
def test_headers_of_captured_frames_are_read_and_written_back(frame: dict[str, Any]) -> None:
    """Written back are the same fields, and those whose value the sender left to the default."""
    code, ext = captured(frame)
    own = {key: value for key, value in ext.items() if key not in HOOK_FIELDS}
    row = EVERY_REQUEST[frame["reqcode"]]
    cls = row.header if frame["kind"] == "req" else row.answer
    if cls is NoHeader or (frame["kind"] == "resp" and code not in (0, 19, 20, 21)):
        assert own == {}
        return
    header = cls.from_ext(ext)
    fields = by_wire_name(cls).items()
    defaults = {wire: text(f.default) for wire, f in fields if f.default not in (None, NODEFAULT)}
    assert header.to_ext() == {**defaults, **own}
    assert msgspec.json.decode(json.dumps(ext), type=cls, strict=False) == header


VALUES: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text() | st.sampled_from(["null", "true", "0", ""]),
    bool: st.booleans(),
    Int32: st.integers(-(2**31), 2**31 - 1),
    Int64: st.integers(-(2**63), 2**63 - 1),
}


def any_header(cls: type[Header]) -> st.SearchStrategy[Header]:
    required: dict[str, st.SearchStrategy[Any]] = {}
    optional: dict[str, st.SearchStrategy[Any]] = {}
    for field in structs.fields(cls):
        values = VALUES[kind_of(field)]
        (required if field.required else optional)[field.name] = values
    return st.fixed_dictionaries(required, optional=optional).map(lambda kw: cls(**kw))


@ALL_HEADERS
def test_a_header_survives_being_written_and_read(cls: type[Header]) -> None:
    decode = msgspec.json.Decoder(cls, strict=False).decode

    @settings(max_examples=10, deadline=None)
    @given(any_header(cls))
    def law(header: Header) -> None:
        ext = header.to_ext()
        assert cls.from_ext(ext) == header
        assert decode(msgspec.json.encode(ext)) == header

    law()


@ALL_HEADERS
def test_arbitrary_fields_are_read_or_refused_as_malformed(cls: type[Header]) -> None:
    keys = st.sampled_from([*by_wire_name(cls), "topic", "?"]) | st.text(max_size=3)
    values = st.text(max_size=6) | st.integers().map(str) | st.sampled_from(["true", "1", "+7"])

    @settings(max_examples=15, deadline=None)
    @given(st.dictionaries(keys, values))
    def law(ext: dict[str, str]) -> None:
        try:
            header = cls.from_ext(ext)
        except HeaderMalformed:
            return
        assert cls.from_ext(header.to_ext()) == header

    law()


def test_both_forms_of_a_send_request_hold_the_same_without_loss() -> None:
    @settings(max_examples=50, deadline=None)
    @given(any_header(sending.SendRequest))
    def law(header: Header) -> None:
        assert isinstance(header, sending.SendRequest)
        short = header.to_v2()
        assert type(short) is sending.SendRequestV2
        assert structs.asdict(short) == structs.asdict(header)
        assert type(short.to_v1()) is sending.SendRequest
        assert short.to_v1() == header

    law()


def test_the_short_form_of_a_send_request_has_one_letter_names() -> None:
    header = sending.SendRequest(
        producer_group="PG",
        topic="TopicA",
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=-1,
        sys_flag=0,
        born_timestamp=1794707172145,
        flag=8,
        properties="TAGS\x01a\x02",
        reconsume_times=0,
        unit_mode=False,
        max_reconsume_times=16,
        batch=True,
        bname="broker-a",
    )
    values = ["PG", "TopicA", "TBW102", "4", "-1", "0", "1794707172145", "8", "TAGS\x01a\x02"]
    values += ["0", "false", "16", "true", "broker-a"]
    assert header.to_v2().to_ext() == dict(zip("abcdefghijklmn", values, strict=True))


def test_offsets_go_with_a_group_whichever_release_asks() -> None:
    """4.9 and 5.x name the flag differently; a caller of either gets what it wants."""
    for wire in ("cleanOffset", "removeOffset"):
        assert groups.DeleteSubscriptionGroupRequest.from_ext(
            {"groupName": "g", wire: "true"}
        ).deletes_offsets
    assert not groups.DeleteSubscriptionGroupRequest.from_ext({"groupName": "g"}).deletes_offsets


def test_an_old_broker_answers_a_heartbeat_without_fields() -> None:
    assert membership.HeartbeatResponse.from_ext({}) == membership.HeartbeatResponse(
        is_support_heart_beat_v2=False, is_sub_change=False
    )
