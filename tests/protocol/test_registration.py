"""A broker's registration, plain and compressed, as Java writes and reads it."""

import contextlib
import struct
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.errors import BodyMalformed
from pocketmq.model import DataVersion, TopicConfig
from pocketmq.model.topics import TopicMapping
from pocketmq.protocol import encode_body, registration
from pocketmq.protocol.peers import VersionGate, version_number
from pocketmq.protocol.requests.topics import TopicTableBody
from tests.protocol.java_bodies import one

V4 = version_number(4, 9, 7)
V5 = version_number(5, 5, 0)


@pytest.mark.parametrize(("release", "version"), [("4.9.7", V4), ("5.5.0", V5)])
def test_javas_compressed_form_holds_what_its_json_form_holds(release: str, version: int) -> None:
    plain = registration.decode_registration(
        one(release, "RegisterBrokerBody", "registration")["json"].encode()
    )
    data = bytes.fromhex(one(release, "RegisterBrokerBody", "compressed")["hex"])
    packed = registration.decode_registration(data, compressed=True, version=version)
    assert packed.topics.topic_config_table == plain.topics.topic_config_table
    assert packed.topics.data_version == plain.topics.data_version
    assert packed.filter_server_list == plain.filter_server_list
    mappings = plain.topics.topic_queue_mapping_info_map
    assert packed.topics.topic_queue_mapping_info_map == (
        None if mappings is None else {each.topic: each for each in mappings.values()}
    )


@pytest.mark.parametrize(("release", "version"), [("4.9.7", V4), ("5.5.0", V5)])
def test_the_compressed_form_is_javas_part_for_part(release: str, version: int) -> None:
    data = bytes.fromhex(one(release, "RegisterBrokerBody", "compressed")["hex"])
    value = registration.decode_registration(data, compressed=True, version=version)
    ours = zlib.decompress(
        registration.encode_registration(value, compressed=True, version=version)
    )
    theirs = zlib.decompress(data)
    if version >= VersionGate.TOPIC_QUEUE_MAPPING:  # Java leaves integer keys bare, we quote them
        assert (
            registration.decode_registration(zlib.compress(ours), compressed=True, version=version)
            == value
        )
        assert (
            ours[: ours.rindex(b"filterServerList-")]
            == theirs[: theirs.rindex(b"filterServerList-")]
        )
    else:  # our data version has one more field
        assert ours[ours.index(b"Topic") :] == theirs[theirs.index(b"Topic") :]


def test_a_4_x_line_has_five_words_and_a_5_x_line_its_attributes() -> None:
    """Q13."""
    config = TopicConfig(topic_name="TopicA", read_queue_nums=4, write_queue_nums=4)
    value = registration.Registration(topics=TopicTableBody(topic_config_table={"TopicA": config}))
    old = zlib.decompress(registration.encode_registration(value, compressed=True, version=V4))
    new = zlib.decompress(registration.encode_registration(value, compressed=True, version=V5))
    assert old.endswith(b"\x00\x00\x00\x17TopicA 4 4 6 SINGLE_TAG\x00\x00\x00\x02[]")
    assert new.endswith(
        b"\x00\x00\x00\x1aTopicA 4 4 6 SINGLE_TAG {}\x00\x00\x00\x02[]\x00\x00\x00\x00"
    )


def packed(*parts: bytes | int) -> bytes:
    raw = b"".join(
        struct.pack(">i", part) if isinstance(part, int) else struct.pack(">i", len(part)) + part
        for part in parts
    )
    return zlib.compress(raw)


def test_attributes_with_blanks_are_kept_and_broken_ones_do_not_cost_the_topic() -> None:
    data = packed(
        b"{}", 3, b'A 1 2 6 SINGLE_TAG {"a b":"c d"}', b"B 1 2 6 MULTI_TAG {oops", b"C 1 2 6 SINGLE_TAG ", b"[]", 0
    )  # fmt: skip
    table = registration.decode_registration(
        data, compressed=True, version=V5
    ).topics.topic_config_table
    assert table["A"].attributes == {"a b": "c d"}
    assert table["B"].attributes == table["C"].attributes == {}
    assert (table["B"].read_queue_nums, table["B"].write_queue_nums) == (1, 2)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not zlib",
        zlib.compress(b""),
        zlib.compress(b"\x00\x00"),
        packed(-1),
        packed(2**31 - 1),
        packed(b"[]", 0, b"[]", 0),
        packed(b"{}", -1),
        packed(b"{}", 2**30),
        packed(b"{}", 1, b"A 1 2 6"),
        packed(b"{}", 1, b"A x 2 6 SINGLE_TAG"),
        packed(b"{}", 1, b"A 4294967296 2 6 SINGLE_TAG"),
        packed(b"{}", 1, b"A 1 2 6 NO_SUCH_TYPE"),
        packed(b"{}", 1, b"\xff 1 2 6 SINGLE_TAG"),
        packed(b"{}", 0, b"{}", 0),
        packed(b"{}", 0, b"[]"),
        packed(b"{}", 0, b"[]", 1, b"[]"),
        packed(b"{}", 0, b"[]", 0)[:-6],
    ],
)
def test_compressed_bodies_that_contradict_themselves_are_refused(data: bytes) -> None:
    with pytest.raises(BodyMalformed):
        registration.decode_registration(data, compressed=True, version=V5)


def test_an_inflation_bomb_is_refused() -> None:
    bomb = zlib.compress(bytes(registration.MAX_INFLATED + 1), 9)
    assert len(bomb) < 100_000
    with pytest.raises(BodyMalformed, match="inflates to more"):
        registration.decode_registration(bomb, compressed=True, version=V5)


def test_a_few_bytes_cannot_pose_as_millions_of_topics() -> None:
    topics = registration.MAX_PARTS + 1
    line = struct.pack(">i", 18) + b"a 1 1 6 SINGLE_TAG"
    bomb = zlib.compress(struct.pack(">i2si", 2, b"{}", topics) + line * topics, 9)
    assert len(bomb) < 100_000
    with pytest.raises(BodyMalformed, match="declares 500001 parts; at most 500000 are allowed"):
        registration.decode_registration(bomb, compressed=True, version=V5)


def test_brokers_before_3_0_11_send_their_topics_bare() -> None:
    table = TopicTableBody(topic_config_table={"T": TopicConfig(topic_name="T")})
    value = registration.decode_registration(
        encode_body(table), version=VersionGate.REGISTER_BODY - 1
    )
    assert value == registration.Registration(topics=table)


NAMES = st.text("abcXYZ%_-0123", min_size=1, max_size=8)
REGISTRATIONS: st.SearchStrategy[Any] = st.builds(
    lambda version, topics, mappings, servers: registration.Registration(
        topics=TopicTableBody(
            data_version=version,
            topic_config_table={each.topic_name: each for each in topics},
            topic_queue_mapping_info_map={each.topic: each for each in mappings},
        ),
        filter_server_list=servers,
    ),
    st.builds(DataVersion, counter=st.integers(0, 9), timestamp=st.integers(0, 2**60)),
    st.lists(
        st.builds(
            TopicConfig,
            topic_name=NAMES,
            read_queue_nums=st.integers(0, 2**31 - 1),
            perm=st.integers(0, 7),
            attributes=st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=2),
        ),
        max_size=4,
    ),
    st.lists(st.builds(TopicMapping, topic=NAMES, bname=NAMES), max_size=2),
    st.lists(st.text(max_size=5), max_size=2),
)


@settings(max_examples=60)
@given(REGISTRATIONS)
def test_registrations_read_back_what_was_written(value: registration.Registration) -> None:
    data = registration.encode_registration(value, compressed=True, version=V5)
    assert registration.decode_registration(data, compressed=True, version=V5) == value
    assert (
        registration.decode_registration(registration.encode_registration(value), version=V5)
        == value
    )


@settings(max_examples=100)
@given(st.binary(max_size=80))
def test_no_inflated_bytes_raise_anything_but_body_malformed(raw: bytes) -> None:
    with contextlib.suppress(BodyMalformed):
        registration.decode_registration(zlib.compress(raw), compressed=True, version=V5)
    with contextlib.suppress(BodyMalformed):
        registration.decode_registration(raw, compressed=True, version=V5)
