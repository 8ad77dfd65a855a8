"""Every body, against what Java's own classes wrote."""

import contextlib
import time
from collections import Counter
from enum import Enum
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.errors import BodyMalformed
from pocketmq.model import DataVersion, MessageModel, MessageQueue
from pocketmq.protocol import decode_body, encode_body
from pocketmq.protocol.fastjson import ObjectKey, loads
from pocketmq.protocol.request import BATCH, NOTHING, RAW, REGISTRATION, STORED_MESSAGES, Form
from pocketmq.protocol.requests import (
    access,
    broker_admin,
    client_calls,
    key_values,
    membership,
    nameserver,
    pop,
)
from pocketmq.protocol.requests import offsets as rows
from pocketmq.protocol.requests.stats import (
    BrokerStats,
    ConsumeStatsBody,
    OffsetRange,
    QueueProgress,
    TopicStatsBody,
)
from tests.protocol.foreign import EVERY_REQUEST
from tests.protocol.java_bodies import FRAMES, JSON_LINES, LINES, MODELS, named, one

# --- Java's own instances ---


def strip(value: Any) -> Any:
    """Drop nulls, give sets of names and numbers an order, and object keys one notation."""
    if isinstance(value, dict):
        return {
            repr(sorted(loads(key).items())) if type(key) is ObjectKey else key: strip(item)
            for key, item in value.items()
            if item is not None
        }
    if isinstance(value, list):
        items = [strip(item) for item in value]
        return items if any(isinstance(item, dict) for item in items) else sorted(items, key=repr)
    return value


def holds(whole: Any, part: Any) -> bool:
    """Return whether everything of `part` is in `whole`, which may have more fields."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            key in whole and holds(whole[key], item) for key, item in part.items()
        )
    if isinstance(part, list):
        return isinstance(whole, list) and len(whole) == len(part) and all(map(holds, whole, part))
    return bool(whole == part)


def unknown(value: Any) -> list[Any]:
    """Gather whatever landed in an `extra` anywhere inside."""
    if isinstance(value, msgspec.Struct):
        extra = getattr(value, "extra", None)
        own = [extra] if extra else []
        return own + [
            found for name in value.__struct_fields__ for found in unknown(getattr(value, name))
        ]
    if isinstance(value, dict):
        return [found for item in value.values() for found in unknown(item)]
    if isinstance(value, list | tuple):
        return [found for item in value for found in unknown(item)]
    return []


def is_nameless(line: dict[str, Any]) -> bool:
    """A fresh Java instance has no topic, group or client yet; such a body is never sent."""
    required = [
        each.encode_name for each in msgspec.structs.fields(MODELS[line["name"]]) if each.required
    ]
    return bool(set(required) - loads(line["json"]).keys())


USABLE = [line for line in JSON_LINES if not is_nameless(line)]


def test_every_java_class_was_asked_for() -> None:
    assert {line["name"] for line in JSON_LINES} == MODELS.keys()
    assert Counter(line["release"] for line in JSON_LINES) == {"5.5.0": 362, "4.9.7": 218}
    assert {line["variant"] for line in JSON_LINES if line not in USABLE} == {"fresh"}


@pytest.mark.parametrize("line", USABLE, ids=named)
def test_javas_instances_keep_every_field_and_their_meaning(line: dict[str, Any]) -> None:
    cls = MODELS[line["name"]]
    value = decode_body(line["json"], cls)
    assert unknown(value) == []
    written = encode_body(value)
    assert decode_body(written, cls) == value
    assert decode_body(encode_body(value, ascii_only=True), cls) == value
    assert holds(strip(loads(written)), strip(loads(line["json"])))


@pytest.mark.parametrize(
    "line",
    [line for line in JSON_LINES if (line["release"], line["variant"]) == ("5.5.0", "full")],
    ids=named,
)
def test_a_full_instance_is_written_byte_for_byte_as_java_writes_it(line: dict[str, Any]) -> None:
    value = decode_body(line["json"], MODELS[line["name"]])
    assert encode_body(value, bare_integer_keys=True).decode() == line["json"]


def test_old_releases_differ_only_in_fields_they_do_not_have() -> None:
    same = Counter(
        encode_body(
            decode_body(line["json"], MODELS[line["name"]]), bare_integer_keys=True
        ).decode()
        == line["json"]
        for line in USABLE
        if (line["release"], line["variant"]) == ("4.9.7", "full")
    )
    assert same == {True: 40, False: 14}


def test_a_missing_name_is_reported() -> None:
    for line in JSON_LINES:
        if is_nameless(line):
            with pytest.raises(BodyMalformed, match="the body lacks"):
                decode_body(line["json"], MODELS[line["name"]])


def test_javas_reference_to_a_shared_subscription_is_resolved() -> None:
    """Q5, as fastjson 1.x writes it."""
    line = one("4.9.7", "HeartbeatData", "shared")
    assert "$ref" in line["json"]
    first, second = decode_body(line["json"], membership.Heartbeat).consumer_data_set
    assert first.subscription_data_set == second.subscription_data_set
    assert len(first.subscription_data_set) == 2


# --- captured frames ---


def form_of(code: int, kind: str) -> Form[Any]:
    row = EVERY_REQUEST[code]
    return row.body if kind == "req" else row.result


def captured() -> list[tuple[int, str, str]]:
    found = []
    for frame in FRAMES:
        form = form_of(frame["reqcode"], frame["kind"])
        if frame["bodyLen"] and form not in (RAW, BATCH, STORED_MESSAGES):
            assert frame["bodyComplete"], frame["reqcode"]
            found.append((frame["reqcode"], frame["kind"], frame["bodyText"]))
    return found


CAPTURED = captured()


def body_class(code: int, kind: str) -> Any:
    form = form_of(code, kind)
    return MODELS["RegisterBrokerBody"] if form is REGISTRATION else form.json


@pytest.mark.parametrize(("code", "kind", "text"), CAPTURED)
def test_captured_bodies_keep_every_field_and_their_meaning(
    code: int, kind: str, text: str
) -> None:
    cls = body_class(code, kind)
    value = decode_body(text, cls)
    assert unknown(value) == []
    written = encode_body(value)
    assert decode_body(written, cls) == value
    assert holds(strip(loads(written)), strip(loads(text)))


def test_captured_bodies_come_out_byte_for_byte_unless_4_x_lacks_a_field() -> None:
    differing = Counter(
        (code, kind)
        for code, kind, text in CAPTURED
        if encode_body(
            decode_body(text, body_class(code, kind)), bare_integer_keys=code == 106
        ).decode()
        != text
    )
    assert len(CAPTURED) == 51
    assert differing == {
        (34, "req"): 4,  # heartbeatFingerprint, withoutSub
        (41, "req"): 2,  # onlyThisBroker
        (42, "req"): 2,
        (103, "req"): 2,  # stateVersion, attributes
        (200, "req"): 1,  # attributes and more
        (202, "resp"): 2,  # topicPutTps
        (208, "resp"): 2,  # pullOffset
        (307, "resp"): 2,  # mqPopTable, userConsumerInfo
    }


def test_frames_without_a_body_are_those_the_table_says_have_none() -> None:
    for frame in FRAMES:
        if frame["bodyLen"]:
            assert form_of(frame["reqcode"], frame["kind"]) is not NOTHING, frame["reqcode"]


# --- the table of codes ---


def test_every_typed_body_of_the_catalogue_can_be_read() -> None:
    for row in EVERY_REQUEST.values():
        for form in (row.body, row.result):
            if form.json is not None:
                with pytest.raises(BodyMalformed):
                    form.decode(b"7")


# --- quirks that need a body to show ---


def test_a_cluster_is_read_with_bare_and_quoted_ids_and_written_either_way() -> None:
    """Q1."""
    bare = b'{"brokerAddrTable":{"b":{"brokerAddrs":{0:"h:1",1:"h:2"},"brokerName":"b","cluster":"c"}},"clusterAddrTable":{"c":["b"]}}'
    quoted = bare.replace(b"0:", b'"0":').replace(b",1:", b',"1":')
    value = decode_body(bare, nameserver.ClusterInfo)
    assert decode_body(quoted, nameserver.ClusterInfo) == value
    assert value.broker_addr_table["b"].broker_addrs == {0: "h:1", 1: "h:2"}
    assert encode_body(value, bare_integer_keys=True) == bare
    assert encode_body(value) == quoted


def test_offsets_are_read_with_bare_queue_ids() -> None:
    """Q1, and Q11: counters are plain numbers."""
    text = '{"dataVersion":{"counter":5,"stateVersion":0,"timestamp":1},"offsetTable":{"T@G":{0:16,1:11}}}'
    value = decode_body(text, rows.ConsumerOffsets)
    assert value.offset_table == {"T@G": {0: 16, 1: 11}}
    assert value.data_version == DataVersion(counter=5, timestamp=1)
    assert encode_body(value, bare_integer_keys=True).decode() == text


def test_queue_maps_are_written_with_objects_as_keys() -> None:
    """Q2: fastjson 2 (RocketMQ 5.5) refuses the form of Q4, a string that holds JSON."""
    value = rows.ResetOffset(offset_table={MessageQueue("t", "b", 0): 5})
    text = b'{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"t"}:5}}'
    assert encode_body(value) == text
    assert decode_body(text, rows.ResetOffset) == value


def test_a_reset_for_cpp_clients_is_a_list() -> None:
    value = rows.ResetOffset(
        offset_table={MessageQueue("t", "b", 0): 5, MessageQueue("t", "b", 1): 6}
    )
    listed = value.listed()
    assert encode_body(listed) == (
        b'{"offsetTable":[{"brokerName":"b","offset":5,"queueId":0,"topic":"t"},'
        b'{"brokerName":"b","offset":6,"queueId":1,"topic":"t"}]}'
    )
    assert decode_body(encode_body(listed), rows.ListedResetOffset).mapped() == value


def test_rates_that_are_no_numbers_are_null_on_the_wire() -> None:
    """Q6."""
    value = TopicStatsBody(topic_put_tps=float("nan"))
    assert encode_body(value) == b'{"offsetTable":{},"topicPutTps":null}'
    assert decode_body(b'{"offsetTable":{},"topicPutTps":null}', TopicStatsBody) == TopicStatsBody()


def test_booleans_lose_their_is_and_java_spells_dropped_its_own_way() -> None:
    """Q8."""
    assert b'"withoutSub":true' in encode_body(
        membership.Heartbeat(client_id="c", without_sub=True)
    )
    assert b'"droped":true' in encode_body(client_calls.ProcessQueueBody(dropped=True))


def test_an_enum_may_come_as_javas_ordinal() -> None:
    """Q10."""
    text = '{"clientID":"c","consumerDataSet":[{"groupName":"g","messageModel":%s}]}'
    for spelling, model in [
        ("0", MessageModel.BROADCASTING),
        ("1", MessageModel.CLUSTERING),
        ('"LITE_SELECTIVE"', MessageModel.LITE_SELECTIVE),
        ('"FROM_THE_FUTURE"', MessageModel.CLUSTERING),
    ]:
        (consumer,) = decode_body(text % spelling, membership.Heartbeat).consumer_data_set
        assert consumer.message_model is model


def test_running_info_is_read_with_both_kinds_of_queue_tables() -> None:
    value = decode_body(
        one("5.5.0", "ConsumerRunningInfo", "full")["json"], client_calls.RunningInfo
    )
    assert len(value.mq_table) == len(value.mq_pop_table) == 2
    assert all(isinstance(queue, MessageQueue) for queue in [*value.mq_table, *value.mq_pop_table])


# --- the small rules beside the fields ---


def test_lag_is_what_is_not_committed() -> None:
    stats = ConsumeStatsBody(
        offset_table={
            MessageQueue("t", "b", 0): QueueProgress(
                broker_offset=10, consumer_offset=7, pull_offset=9
            ),
            MessageQueue("t", "b", 1): QueueProgress(
                broker_offset=5, consumer_offset=5, pull_offset=5
            ),
        }
    )
    assert (stats.lag(), stats.in_flight()) == (3, 2)


def test_a_data_version_counts_changes() -> None:
    version = DataVersion(state_version=3, timestamp=1, counter=7)
    assert version.following(50) == DataVersion(state_version=3, timestamp=50, counter=8)
    assert version.following(50, 4) == DataVersion(state_version=4, timestamp=50, counter=8)


def test_javas_bits_are_offsets() -> None:
    ack = decode_body(one("5.5.0", "BatchAck", "full")["json"], pop.BatchAck)
    assert ack.acked_offsets() == [ack.start_offset + 1, ack.start_offset + 70]
    assert pop.bits_of(ack.acked_offsets(), ack.start_offset) == ack.bits


@given(st.sets(st.integers(0, 200)), st.integers(0, 2**62))
def test_bits_keep_every_offset(bits: set[int], start: int) -> None:
    offsets = sorted(start + bit for bit in bits)
    ack = pop.BatchAck(
        consumer_group="g", topic="t", start_offset=start, bits=pop.bits_of(offsets, start)
    )
    assert ack.acked_offsets() == offsets


@pytest.mark.parametrize("bits", ["?", "AQ", "é", "A" * 8196])
def test_bits_that_are_none_are_refused(bits: str) -> None:
    with pytest.raises(BodyMalformed):
        pop.BatchAck(consumer_group="g", topic="t", bits=bits).acked_offsets()


def test_a_timer_checkpoint_is_seven_numbers_or_four() -> None:
    data = bytes.fromhex(one("5.5.0", "TimerCheckpoint", "full")["hex"])
    value = broker_admin.decode_timer_checkpoint(data)
    assert value == broker_admin.TimerCheckpoint(
        last_read_time_ms=1700000000004,
        last_timer_log_flush_pos=1700000000005,
        last_timer_queue_offset=1700000000006,
        master_timer_queue_offset=1700000000007,
        data_version=DataVersion(state_version=1700000000009, timestamp=1700000000010, counter=11),
    )
    assert broker_admin.encode_timer_checkpoint(value) == data
    assert broker_admin.decode_timer_checkpoint(data[:32]).data_version == DataVersion()
    for length in (0, 31, 33, 55, 57):
        with pytest.raises(BodyMalformed):
            broker_admin.decode_timer_checkpoint(bytes(length))


def test_secrets_never_print_but_travel() -> None:
    user = decode_body(b'{"username":"ann","password":"hunter2","token":"hunter3"}', access.User)
    account = access.Account(access_key="ann", secret_key="hunter2")
    shown = repr([user, account, access.AccountTable(plain_access_configs=[account])])
    assert "hunter" not in shown
    assert "ann" in shown
    assert "hunter" not in str(dict(user.__rich_repr__()))
    assert b"hunter2" in encode_body(user)
    assert b"hunter3" in encode_body(user)


# --- laws over every class ---

FINITE = st.floats(allow_nan=False, allow_infinity=False)
SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(max_size=8),
    int: st.integers(-(2**63), 2**63 - 1),
    float: FINITE,
    bool: st.booleans(),
}


def values_of(form: Any) -> st.SearchStrategy[Any]:
    origin, arguments = get_origin(form), get_args(form)
    if origin is UnionType:
        (only,) = (each for each in arguments if each is not NoneType)
        return st.none() | values_of(only)
    if origin is dict:
        return st.dictionaries(values_of(arguments[0]), values_of(arguments[1]), max_size=2)
    if origin is list:
        return st.lists(values_of(arguments[0]), max_size=2)
    if origin is tuple:
        return st.lists(values_of(arguments[0]), max_size=2).map(tuple)
    if origin is frozenset:
        return st.frozensets(values_of(arguments[0]), max_size=2)
    if form is MessageQueue:
        return st.builds(
            MessageQueue, st.text(max_size=5), st.text(max_size=5), st.integers(0, 2**31 - 1)
        )
    if form in SCALARS:
        return SCALARS[form]
    if issubclass(form, Enum):
        return st.sampled_from(list(form))
    return structs(form)


def structs(cls: type[Any]) -> st.SearchStrategy[Any]:
    fields = {
        each.name: values_of(each.type)
        for each in msgspec.structs.fields(cls)
        if each.name != "extra"
    }
    return st.builds(cls, **fields)


CLASSES = sorted(set(MODELS.values()), key=lambda cls: str(cls.__name__))


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
@settings(max_examples=8, deadline=None)
@given(st.data())
def test_every_class_reads_back_what_it_writes(cls: type[Any], data: st.DataObject) -> None:
    value = data.draw(structs(cls))
    assert decode_body(encode_body(value), cls) == value
    loose = encode_body(value, ascii_only=True, bare_integer_keys=True)
    assert decode_body(loose, cls) == value


SHAPES = st.recursive(
    st.none() | st.booleans() | st.integers() | FINITE | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["topic", "offsetTable", "table", "clientID", "0", "{}"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
@settings(max_examples=8, deadline=None)
@given(st.data())
def test_no_shape_raises_anything_but_body_malformed(cls: type[Any], data: st.DataObject) -> None:
    names = [each.encode_name for each in msgspec.structs.fields(cls) if each.name != "extra"]
    body = data.draw(st.dictionaries(st.sampled_from(names), SHAPES, max_size=4))
    with contextlib.suppress(BodyMalformed):
        encode_body(decode_body(msgspec.json.encode(body), cls))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(USABLE), st.data())
def test_damaged_bodies_raise_nothing_but_body_malformed(
    line: dict[str, Any], data: st.DataObject
) -> None:
    raw = bytearray(line["json"].encode())
    position = data.draw(st.integers(0, len(raw) - 1))
    raw[position : position + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    with contextlib.suppress(BodyMalformed):
        decode_body(bytes(raw), MODELS[line["name"]])


def seconds_to_write_and_read(queues: int) -> tuple[float, float]:
    """Return the processor time that the body of a topic with so many queues takes, at the least."""
    value = TopicStatsBody(
        offset_table={
            MessageQueue("TopicA", "broker-a", number): OffsetRange(
                min_offset=0, max_offset=number, last_update_timestamp=1794706894205
            )
            for number in range(queues)
        }
    )
    writes, reads = [], []
    for _ in range(3):
        start = time.thread_time()
        text = encode_body(value)
        written = time.thread_time()
        assert decode_body(text, TopicStatsBody) == value
        writes.append(written - start)
        reads.append(time.thread_time() - written)
    return min(writes), min(reads)


def test_ten_times_the_queues_take_about_ten_times_as_long() -> None:
    """Not a hundred times, as they would if each were compared with all others."""
    write, read = seconds_to_write_and_read(1000)
    longer_write, longer_read = seconds_to_write_and_read(10_000)
    assert longer_write < 40 * write
    assert longer_read < 40 * read


def test_broker_stats_may_lack_a_span() -> None:
    assert decode_body(b"{}", BrokerStats) == BrokerStats()
    assert decode_body(b'{"table":{"a":1}}', key_values.KVTable).table == {"a": "1"}


def test_every_line_of_the_vectors_is_used() -> None:
    kinds = {"json", "hex", "text"}
    assert all(len(kinds & line.keys()) == 1 for line in LINES)
