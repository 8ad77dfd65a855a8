"""Sends over a real socket: every answer a Java broker gives, and what is stored for it.

The codes and words were seen on RocketMQ 5.5.0; where we answer otherwise the test says so.
"""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.broker.writing.drafts import encode_peer
from pocketmq.net import Address
from pocketmq.protocol import Command, RecordView
from pocketmq.protocol.batch import BatchEntry, encode_batch
from pocketmq.protocol.hosts import encode_host
from pocketmq.protocol.property_text import decode_properties, encode_properties
from pocketmq.protocol.records import Record, decode_record
from tests.broker.background import Caller, background
from tests.broker.running import position, pull_fields, records, send_fields

SEND_V1, PULL, VIEW, SEND, SEND_BATCH = 10, 11, 33, 310, 320
REGION = {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
HELP = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
TOO_LARGE = (
    "the message is illegal, maybe msg body or properties length not matched. "
    "msg body length limit 4194304B, msg properties length limit 32KB."
)
BATCH = encode_batch([BatchEntry(b"b%d" % n, b"UNIQ_KEY\1K%d\2" % n, n) for n in range(3)])
V1_NAMES = {
    "a": "producerGroup", "b": "topic", "c": "defaultTopic", "d": "defaultTopicQueueNums",
    "e": "queueId", "f": "sysFlag", "g": "bornTimestamp", "h": "flag", "i": "properties",
    "j": "reconsumeTimes", "k": "unitMode", "m": "batch",
}  # fmt: skip


@pytest.fixture(scope="module")
def address() -> Iterator[Address]:
    with background(broker_ip1="127.0.0.1") as found:
        yield found


@pytest.fixture
def caller(address: Address) -> Iterator[Caller]:
    connected = Caller(address)
    yield connected
    connected.close()


def stored(caller: Caller, answer: Command) -> Record:
    """Return the message that was just stored, looked up by its id."""
    assert answer.code == 0, answer.remark
    view = caller.ask(VIEW, {"offset": str(position(answer))})
    assert view.code == 0
    return decode_record(view.body)


def properties(record: Record) -> dict[str, str]:
    return decode_properties(record.property_bytes)


# One message


def test_a_send_is_answered_with_the_place_of_the_message(caller: Caller, address: Address) -> None:
    fields = send_fields("Plain", "UNIQ_KEY\1ABC\2WAIT\1true\2TAGS\1paid\2", e="2", h="7", j="1")
    answer = caller.ask(SEND, fields, b"hello")
    record = stored(caller, answer)
    host = encode_host(str(address)).hex().upper()
    assert answer.ext == REGION | {
        "msgId": f"{host}{record.commit_log_offset:016X}",
        "queueId": "2",
        "queueOffset": "0",
        "transactionId": "ABC",
    }
    assert answer.remark is None
    assert (record.topic, record.body, record.queue_id) == (b"Plain", b"hello", 2)
    assert (record.flag, record.sys_flag, record.reconsume_times) == (7, 0, 1)
    assert record.born_timestamp_ms == 17
    assert record.born_host == encode_host(caller.local_address)
    assert record.store_host == encode_host(str(address))


def test_what_is_stored_has_the_properties_of_java(caller: Caller) -> None:
    answer = caller.ask(SEND, send_fields("Props", "UNIQ_KEY\1K\2WAIT\1true\2TAGS\1t"), b"x")
    assert properties(stored(caller, answer)) == REGION | {
        "CLUSTER": "DefaultCluster",
        "TAGS": "t",
        "UNIQ_KEY": "K",
        "WAIT": "true",
    }


def test_odd_properties_are_kept_as_java_reads_them(caller: Caller) -> None:
    text = "A\1\2B\1x\1y\2\1z\2CLUSTER\1me\2MSG_REGION\1mars\2POP_CK\1z\2TRACE_ON\1no\2D\1last"
    answer = caller.ask(SEND, send_fields("Props", text), b"x")
    found = properties(stored(caller, answer))
    assert found.pop("UNIQ_KEY") == answer.ext["transactionId"]
    assert found == REGION | {"B": "x\1y", "CLUSTER": "DefaultCluster", "D": "last"}


def test_a_message_sent_on_does_not_collect_the_brokers_properties_twice(caller: Caller) -> None:
    first = stored(caller, caller.ask(SEND, send_fields("Again"), b"x"))
    text = first.property_bytes.decode()
    second = stored(caller, caller.ask(SEND, send_fields("Again", text), b"x"))
    assert second.property_bytes.count(b"CLUSTER\1") == 1
    assert properties(second) == properties(first)


@pytest.mark.parametrize("text", [None, "", "TAGS\1x\2", "UNIQ_KEY\1\2", "MY_UNIQ_KEY\1z\2"])
def test_a_message_without_a_key_gets_one(caller: Caller, text: str | None) -> None:
    fields = send_fields("Keyless")
    if text is None:
        del fields["i"]
    else:
        fields["i"] = text
    answer = caller.ask(SEND, fields, b"x")
    key = answer.ext["transactionId"]
    assert len(key) == 32
    assert key.startswith("7F000001")
    assert properties(stored(caller, answer))["UNIQ_KEY"] == key


@pytest.mark.parametrize("key", ['a"b\\c', "schlüssel", "a b", "\x7f", "%d%s", "0" * 500])
def test_any_key_comes_back_in_the_answer(caller: Caller, key: str) -> None:
    answer = caller.ask(SEND, send_fields("Keys", f"UNIQ_KEY\1{key}\2"), b"x")
    assert answer.ext["transactionId"] == key


def test_of_several_values_the_last_counts(caller: Caller) -> None:
    text = "UNIQ_KEY\1A\2TAGS\1one\2X_TAGS\1no\2UNIQ_KEY\1B\2TAGS\1two\2Y_TAGS\1no\2"
    answer = caller.ask(SEND, send_fields("Doubles", text), b"x")
    assert answer.ext["transactionId"] == "B"
    for tag, code in (("two", 0), ("one", 20), ("no", 20)):
        pull = pull_fields("Doubles", subscription=tag, sysFlag="4")
        assert caller.ask(PULL, pull).code == code


def test_the_form_with_long_names_is_the_same(caller: Caller) -> None:
    short = send_fields("Long", "UNIQ_KEY\1K\2TAGS\1t\2")
    long = {V1_NAMES[key]: value for key, value in short.items()}
    answer = caller.ask(SEND_V1, long, b"x")
    assert answer.ext["transactionId"] == "K"
    assert properties(stored(caller, answer))["TAGS"] == "t"


def test_binary_headers_are_answered_in_kind(caller: Caller) -> None:
    answer = caller.ask(SEND, send_fields("Binary", "UNIQ_KEY\1K\2"), b"x", serialize=1)
    assert (answer.code, answer.ext["transactionId"], answer.ext["queueOffset"]) == (0, "K", "0")


def test_numbers_may_come_as_json_numbers(caller: Caller) -> None:
    """As the Node client sends them."""
    text = b'{"code":310,"extFields":{"a":"P","b":"Numbers","c":"TBW102","d":4,"e":1,"f":0,"g":1,'
    text += b'"h":0,"i":"","j":0,"k":false,"m":false},"flag":0,"language":"JAVA","opaque":900,'
    text += b'"version":121}'
    size = len(text)
    caller._socket.sendall((size + 5).to_bytes(4, "big") + size.to_bytes(4, "big") + text + b"x")
    answer = caller.receive()
    assert (answer.opaque, answer.code, answer.ext["queueId"]) == (900, 0, "1")


def test_a_negative_queue_lets_the_broker_choose(caller: Caller) -> None:
    queues = {caller.ask(SEND, send_fields("Any", e="-1"), b"x").ext["queueId"] for _ in range(60)}
    assert queues == {"0", "1", "2", "3"}


def test_one_way_sends_are_stored_and_not_answered(caller: Caller) -> None:
    caller.post(SEND, send_fields("OneWay"), b"first", oneway=True)
    caller.post(SEND, send_fields("OneWay", b="no name"), b"refused", oneway=True)
    assert caller.ask(SEND, send_fields("OneWay"), b"second").ext["queueOffset"] == "1"


def test_many_sends_at_once_are_all_answered(caller: Caller) -> None:
    numbers = [caller.post(SEND, send_fields("Many", e=str(n % 4)), b"x") for n in range(500)]
    answers = [caller.receive() for _ in numbers]
    assert sorted(answer.opaque for answer in answers) == numbers
    assert [answer.code for answer in answers] == [0] * 500


# Topics made by sends


@pytest.mark.parametrize(("wanted", "made"), [("3", 3), ("8", 8), ("100", 8)])
def test_a_new_topic_has_the_queues_asked_for_within_its_template(
    caller: Caller, wanted: str, made: int
) -> None:
    topic = f"Made{wanted}"
    assert caller.ask(SEND, send_fields(topic, d=wanted), b"x").code == 0
    assert caller.ask(SEND, send_fields(topic, e=str(made - 1)), b"x").code == 0
    assert caller.ask(SEND, send_fields(topic, e=str(made)), b"x").code == 29


@pytest.mark.parametrize("wanted", ["0", "-1"])
def test_a_topic_without_queues_takes_nothing(caller: Caller, wanted: str) -> None:
    topic = f"None{wanted}"
    answer = caller.ask(SEND, send_fields(topic, d=wanted), b"x")
    assert answer.code == 29
    assert answer.remark == (
        f"request queueId[0] is illegal, TopicConfig [topicName={topic}, readQueueNums=0, "
        "writeQueueNums=0, perm=RW-, topicFilterType=SINGLE_TAG, topicSysFlag=0, order=false, "
        f"attributes={{}}] Producer: {caller.local_address}"
    )
    assert caller.ask(SEND, send_fields(topic, e="-1"), b"x").code == 29


# Refusals


@pytest.mark.parametrize(
    ("changes", "body", "code", "remark"),
    [
        ({"b": "a b"}, b"x", 29, ("The specified topic: a b, contains illegal characters, "
         "allowing only ^[%|a-zA-Z0-9_-]+$")),
        ({"b": " "}, b"x", 29, "The specified topic is blank."),
        ({"b": "x" * 128}, b"x", 29, (f"The specified topic: {'x' * 128}, "
         "is longer than topic max length: 127")),
        ({"b": "SCHEDULE_TOPIC_XXXX"}, b"x", 16,
         "Sending message to topic[SCHEDULE_TOPIC_XXXX] is forbidden."),
        ({"b": "RMQ_SYS_TRANS_HALF_TOPIC"}, b"x", 16,
         "Sending message to topic[RMQ_SYS_TRANS_HALF_TOPIC] is forbidden."),
        ({"b": "RMQ_SYS_TRANS_OP_HALF_TOPIC"}, b"x", 16,
         "Sending message to topic[RMQ_SYS_TRANS_OP_HALF_TOPIC] is forbidden."),
        ({"b": "TRANS_CHECK_MAX_TIME_TOPIC"}, b"x", 16,
         "Sending message to topic[TRANS_CHECK_MAX_TIME_TOPIC] is forbidden."),
        ({"b": "SELF_TEST_TOPIC"}, b"x", 16,
         "Sending message to topic[SELF_TEST_TOPIC] is forbidden."),
        ({"b": "OFFSET_MOVED_EVENT"}, b"x", 16,
         "Sending message to topic[OFFSET_MOVED_EVENT] is forbidden."),
        ({"b": "Unknown", "c": "nowhere"}, b"x", 17,
         f"topic[Unknown] not exist, apply first please!{HELP}"),
        ({"b": "Unknown", "c": "BenchmarkTest"}, b"x", 17,
         f"topic[Unknown] not exist, apply first please!{HELP}"),
        ({"b": "%RETRY%"}, b"x", 26, f"subscription group not exist,  {HELP}"),
        ({"b": "%RETRY%bad|" + "g" * 130}, b"x", 26,
         f"subscription group not exist, bad|{'g' * 130} {HELP}"),
        ({}, b"", 13, TOO_LARGE),  # Java 5.5 fails on its own null here, with code 1
        ({}, b"x" * 4194305, 13, TOO_LARGE),
        ({"i": "A\1" + "x" * 32760 + "\2"}, b"x", 13, TOO_LARGE),
        ({"i": "A\1" + "ü" * 17000 + "\2"}, b"x", 13, TOO_LARGE),
        ({"f": "128"}, b"x", 13, TOO_LARGE),
        ({"i": "INNER_NUM\0013\2"}, b"x", 13, TOO_LARGE),
        # Java stores these where nobody will ever read them, and says success.
        ({"f": "4"}, b"x", 13, "a prepared or rolled back message is never delivered"),
        ({"f": "12"}, b"x", 13, "a prepared or rolled back message is never delivered"),
    ],
)  # fmt: skip
def test_a_refused_send_says_why_in_javas_words(
    caller: Caller, changes: dict[str, str], body: bytes, code: int, remark: str
) -> None:
    answer = caller.ask(SEND, send_fields("Refusals") | changes, body)
    assert (answer.code, answer.remark, answer.ext) == (code, remark, REGION)


@pytest.mark.parametrize("code", [SEND, SEND_BATCH])
def test_properties_that_could_be_torn_are_refused(caller: Caller, code: int) -> None:
    """Java stores them; after a loss of power ours could not be told from damaged ones."""
    text = "A\1" + "x" * 600 + "\0y\2"
    fields = send_fields("Torn", text, m="true" if code == SEND_BATCH else "false")
    body = encode_batch([BatchEntry(b"x", text.encode())]) if code == SEND_BATCH else b"x"
    answer = caller.ask(code, fields, body)
    assert (answer.code, answer.ext) == (13, REGION)
    assert (answer.remark or "").endswith("cannot be stored")
    assert caller.ask(SEND, send_fields("Torn", "A\1x\0"), b"x").code == 0


@pytest.mark.parametrize(
    ("changes", "body"),
    [
        ({}, b"x" * 4194304),
        ({"i": "A\1" + "x" * 32500 + "\2"}, b"x"),
        ({"g": "-1", "j": "-3"}, b"x"),
        ({"f": "8"}, b"x"),
        ({"f": "48"}, b"x"),
        ({"b": "TBW102"}, b"x"),
        ({"b": "BenchmarkTest", "e": "1023"}, b"x"),
        ({"b": "%DLQ%group"}, b"x"),
        ({"b": "%RETRY%group"}, b"x"),
        ({"b": "%RETRY%" + "g" * 120}, b"x"),
    ],
)
def test_what_java_takes_is_taken(caller: Caller, changes: dict[str, str], body: bytes) -> None:
    answer = caller.ask(SEND, send_fields("Accepted") | changes, body)
    record = stored(caller, answer)
    assert record.body == body
    assert record.sys_flag == int(changes.get("f", "0")) & ~48
    assert record.topic == changes.get("b", "Accepted").encode()


@pytest.mark.parametrize("name", ["b", "e", "f", "g", "h"])
def test_a_send_that_lacks_a_field_is_refused(caller: Caller, name: str) -> None:
    fields = send_fields("Lacking")
    del fields[name]
    answer = caller.ask(SEND, fields, b"x")
    assert (answer.code, answer.remark) == (
        1,
        f"malformed header: SendRequestV2 has no field {name!r}, which is required",
    )
    fields[name] = "none" if name != "b" else ""
    assert caller.ask(SEND, fields, b"x").code in (1, 29)


def test_the_topics_own_permission_is_not_asked_for(caller: Caller) -> None:
    """As seen on 5.5.0: clients read it from the route, the broker does not look."""
    fields = {
        "topic": "ReadOnly", "defaultTopic": "TBW102", "readQueueNums": "1", "writeQueueNums": "1",
        "perm": "4", "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
    }  # fmt: skip
    assert caller.ask(17, fields).code == 0
    assert caller.ask(SEND, send_fields("ReadOnly"), b"x").code == 0


def test_a_topic_of_many_tags_marks_its_messages(caller: Caller) -> None:
    fields = {
        "topic": "MultiTag", "defaultTopic": "TBW102", "readQueueNums": "1", "writeQueueNums": "1",
        "perm": "6", "topicFilterType": "MULTI_TAG", "topicSysFlag": "0", "order": "false",
    }  # fmt: skip
    assert caller.ask(17, fields).code == 0
    assert stored(caller, caller.ask(SEND, send_fields("MultiTag"), b"x")).sys_flag == 2
    batch = caller.ask(SEND_BATCH, send_fields("MultiTag", m="true"), BATCH)
    view = caller.ask(VIEW, {"offset": str(int(batch.ext["msgId"][16:32], 16))})
    assert decode_record(view.body).sys_flag == 2


def test_a_deleted_topic_is_created_again_by_the_next_send(caller: Caller) -> None:
    assert caller.ask(SEND, send_fields("Gone"), b"old").ext["queueOffset"] == "0"
    assert caller.ask(SEND, send_fields("Gone"), b"old").ext["queueOffset"] == "1"
    assert caller.ask(215, {"topic": "Gone"}).code == 0
    assert caller.ask(SEND, send_fields("Gone", d="1"), b"new").ext["queueOffset"] == "0"
    assert caller.ask(SEND, send_fields("Gone", e="1"), b"new").code == 29


# Retries sent by consumers


@pytest.mark.parametrize(
    ("times", "limit", "topic"),
    [
        ("16", None, b"%RETRY%shop"),
        ("17", None, b"%DLQ%shop"),
        ("3", "3", b"%RETRY%shop"),
        ("4", "3", b"%DLQ%shop"),
    ],
)
def test_too_many_retries_end_in_the_dead_letters(
    caller: Caller, times: str, limit: str | None, topic: bytes
) -> None:
    fields = send_fields("%RETRY%shop", j=times)
    if limit is not None:
        fields["l"] = limit
    record = stored(caller, caller.ask(SEND, fields, b"x"))
    assert (record.topic, record.queue_id, record.reconsume_times) == (topic, 0, int(times))


def test_a_group_with_locked_queues_has_retried_enough(caller: Caller) -> None:
    lock = b'{"clientId":"c","consumerGroup":"orderly","mqSet":[{"brokerName":"broker-a",'
    lock += b'"queueId":0,"topic":"T"}]}'
    assert caller.ask(41, {}, lock).code == 0
    record = stored(caller, caller.ask(SEND, send_fields("%RETRY%orderly"), b"x"))
    assert record.topic == b"%DLQ%orderly"


# Batches


@pytest.mark.parametrize("code", [SEND_BATCH, SEND])
def test_a_batch_is_stored_message_by_message(caller: Caller, code: int) -> None:
    """The flag `m` makes a batch, not the code; each message has an id that can be looked up."""
    topic = f"Batch{code}"
    fields = send_fields(topic, "UNIQ_KEY\1ALL\2WAIT\1true\2", e="1", f="2", g="99", m="true")
    answer = caller.ask(code, fields, BATCH)
    assert (answer.code, answer.ext["queueOffset"], answer.ext["queueId"]) == (0, "0", "1")
    assert answer.ext["transactionId"] == "ALL"
    ids = answer.ext["msgId"].split(",")
    assert len(ids) == 3
    for number, identity in enumerate(ids):
        view = caller.ask(VIEW, {"offset": str(int(identity[16:], 16))})
        record = decode_record(view.body)
        assert record.body == b"b%d" % number
        assert record.property_bytes == b"UNIQ_KEY\1K%d\2" % number  # nothing of the batch's own
        assert (record.flag, record.queue_offset, record.queue_id) == (number, number, 1)
        assert (record.sys_flag, record.born_timestamp_ms) == (2, 99)
    assert caller.ask(code, fields, BATCH).ext["queueOffset"] == "3"


def test_a_batch_without_a_key_of_its_own_is_answered_without_one(caller: Caller) -> None:
    answer = caller.ask(SEND_BATCH, send_fields("Batch49", "WAIT\1true", m="true"), BATCH)
    assert answer.code == 0
    assert "transactionId" not in answer.ext


def test_a_batch_code_without_the_flag_is_one_message(caller: Caller) -> None:
    answer = caller.ask(SEND_BATCH, send_fields("NoFlag"), BATCH)
    assert stored(caller, answer).body == BATCH


def test_a_batch_finds_its_readers_by_tag(caller: Caller) -> None:
    entries = [
        BatchEntry(b"%d" % n, b"TAGS\1%b\2" % (b"odd" if n % 2 else b"even")) for n in range(6)
    ]
    fields = send_fields("BatchTags", m="true")
    assert caller.ask(SEND_BATCH, fields, encode_batch(entries)).code == 0
    pull = caller.ask(PULL, pull_fields("BatchTags", subscription="odd", sysFlag="4"))
    assert [record.stored_body for record in records(pull)] == [b"1", b"3", b"5"]


@pytest.mark.parametrize(
    ("changes", "body", "remark"),
    [
        ({}, b"", TOO_LARGE),
        ({}, BATCH[:-1], "malformed message at byte 72: an entry of 36 bytes; 35 remain"),
        ({}, b"nonsense", "malformed message at byte 0: 8 extra bytes at the end of the batch"),
        ({}, b"\xff" * 40, "malformed message at byte 0: an entry of -1 bytes; 40 remain"),
        ({"b": "%RETRY%G"}, BATCH, "batch request does not support retry group %RETRY%G"),
        ({"i": "DELAY\0013\2"}, BATCH, TOO_LARGE),
        ({"f": "4"}, BATCH, TOO_LARGE),
        ({}, encode_batch([BatchEntry(b"x" * 1_000_000)] * 5), TOO_LARGE),
    ],
)
def test_a_batch_is_taken_whole_or_not_at_all(
    caller: Caller, changes: dict[str, str], body: bytes, remark: str
) -> None:
    before = caller.ask(30, {"topic": "Whole", "queueId": "0"}).ext["offset"]
    answer = caller.ask(SEND_BATCH, send_fields("Whole", m="true") | changes, body)
    assert (answer.code, answer.remark, answer.ext) == (13, remark, REGION)
    assert caller.ask(30, {"topic": "Whole", "queueId": "0"}).ext["offset"] == before


# Whatever is sent can be pulled

# Zero bytes are refused where they could be damage; see above.
names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\1\2"), min_size=1)
broker_names = {"MSG_REGION", "TRACE_ON", "CLUSTER", "UNIQ_KEY"}
asking_names = {"DELAY", "TRAN_MSG", "POP_CK", "INNER_NUM", "_SYS_MSG_PRIORITY_", "__LITE_TOPIC"}
property_maps = st.dictionaries(
    names.filter(lambda name: name not in asking_names and not name.startswith("TIMER_")),
    names,
    max_size=5,
)


@settings(max_examples=60, deadline=None)
@given(
    messages=st.lists(
        st.tuples(
            st.binary(min_size=1, max_size=2000),
            property_maps,
            st.integers(-(2**31), 2**31 - 1),
            st.sampled_from([0, 1]),
        ),
        min_size=1,
        max_size=6,
    ),
    batch=st.booleans(),
)
def test_what_was_sent_is_pulled_unchanged(
    address: Address,
    messages: list[tuple[bytes, dict[str, str], int, int]],
    batch: bool,
) -> None:
    caller = Caller(address)
    try:
        start = int(caller.ask(30, {"topic": "Law", "queueId": "0"}).ext["offset"])
        if batch:
            entries = [
                BatchEntry(body, encode_properties(p), flag) for body, p, flag, _ in messages
            ]
            sent = send_fields("Law", m="true")
            assert caller.ask(SEND_BATCH, sent, encode_batch(entries)).code == 0
        else:
            for body, props, flag, serialize in messages:
                sent = send_fields("Law", encode_properties(props).decode(), h=str(flag))
                assert caller.ask(SEND, sent, body, serialize=serialize).code == 0
        pull = caller.ask(PULL, pull_fields("Law", start, sysFlag="4"))
        assert pull.code == 0
        found = records(pull)
        assert [record.queue_offset for record in found] == [*range(start, start + len(messages))]
        for record, (body, props, flag, _) in zip(found, messages, strict=True):
            assert (record.stored_body, record.flag) == (body, flag)
            assert record.crc_matches()
            assert _without_brokers_own(record) == _without(props)
    finally:
        caller.close()


def _without_brokers_own(record: RecordView) -> dict[str, str]:
    return _without(decode_properties(record.property_bytes))


def _without(found: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in found.items() if name not in broker_names}


# Where a message was born


@pytest.mark.parametrize(
    ("peer", "host"),
    [
        ("10.1.2.3:5", "10.1.2.3:5"),
        ("[2001:db8::1]:5", "[2001:db8::1]:5"),
        ("[::ffff:10.1.2.3]:5", "10.1.2.3:5"),
        ("[fe80::1%eth0]:5", "[fe80::1]:5"),
        ("", "0.0.0.0:0"),
        ("somewhere", "0.0.0.0:0"),
    ],
)
def test_a_senders_address_is_kept_as_java_keeps_it(peer: str, host: str) -> None:
    assert encode_peer(peer) == encode_host(host)


def test_a_sender_with_ipv6_is_born_there() -> None:
    with background(bind_address="::1", broker_ip1="::1") as address:
        caller = Caller(address)
        try:
            record = stored(caller, caller.ask(SEND, send_fields("V6"), b"x"))
            assert record.born_host == encode_host(caller.local_address)
            assert record.store_host == encode_host(str(address))
            assert record.sys_flag == 48
            pull = caller.ask(PULL, pull_fields("V6", sysFlag="4"))
            assert [found.stored_body for found in records(pull)] == [b"x"]
        finally:
            caller.close()
