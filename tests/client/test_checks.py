"""Options: plain words where they are natural, and no for what is of the wrong kind."""

from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from pocketmq.balance.profile import V4, V5
from pocketmq.client import checks
from pocketmq.client.consumer_options import (
    PopConsumerOptions,
    PullConsumerOptions,
    PushConsumerOptions,
)
from pocketmq.client.options import ClientOptions, Credentials, sort_settings
from pocketmq.client.producer_options import ProducerOptions
from pocketmq.errors import InvalidInput
from pocketmq.model import ConsumeFromWhere, MessageModel
from pocketmq.protocol.compression import Codec

FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
KINDS: list[type[msgspec.Struct]] = [
    ProducerOptions, PushConsumerOptions, PullConsumerOptions, PopConsumerOptions,
]  # fmt: skip


@pytest.mark.parametrize("kind", [PushConsumerOptions, PullConsumerOptions, PopConsumerOptions])
@pytest.mark.parametrize("word", ["first", "First", "CONSUME_FROM_FIRST_OFFSET", FIRST])
def test_where_to_begin_is_a_word_or_javas_name(kind: Any, word: object) -> None:
    assert kind(group="g", consume_from=word).consume_from is FIRST


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        (PushConsumerOptions, {"model": "broadcasting"}, MessageModel.BROADCASTING),
        (PullConsumerOptions, {"model": "CLUSTERING"}, MessageModel.CLUSTERING),
        (ProducerOptions, {"compression": "zstd"}, Codec.ZSTD),
        (PushConsumerOptions, {"stop_wait": 3}, 3),
        (PullConsumerOptions, {"consume_from": "timestamp", "start_at": 5}, 5),
    ],
)
def test_words_stand_for_values(kind: Any, given: dict[str, Any], expected: object) -> None:
    assert getattr(kind(group="g", **given), list(given)[-1]) == expected


def test_the_line_to_behave_like_is_a_word() -> None:
    client, _ = sort_settings(ProducerOptions, "g", "", None, {"profile": "4.x"})
    assert client.profile is V4
    assert ClientOptions(profile="5.x").profile is V5  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
def test_no_option_is_none_unless_it_may_be(kind: type[msgspec.Struct]) -> None:
    hints = get_type_hints(kind)
    refused = 0
    for name in kind.__struct_fields__:
        if type(None) not in get_args(hints[name]):
            with pytest.raises(InvalidInput, match=f"^{name} must be "):
                kind(**{"group": "g"} | {name: None})
            refused += 1
    assert refused >= 6


@pytest.mark.parametrize(
    ("kind", "wrong", "told"),
    [
        (PushConsumerOptions, {"consume_from": "begin"},
         "consume_from must be 'first', 'last' or 'timestamp', not 'begin'"),
        (PushConsumerOptions, {"threads": "20"}, "threads must be a whole number, not '20'"),
        (PushConsumerOptions, {"threads": True}, "threads must be a whole number, not True"),
        (PushConsumerOptions, {"stop_wait": "3"}, "stop_wait must be a number, not '3'"),
        (PushConsumerOptions, {"trace": 1}, "trace must be True or False, not 1"),
        (PushConsumerOptions, {"strategy": 5}, "strategy must be a name such as 'AVG', not 5"),
        (PushConsumerOptions, {"limits": 5}, "limits must be a PullLimits, not an int"),
        (ProducerOptions, {"compression": 3}, "compression must be 'lz4', 'zstd' or 'zlib', not 3"),
        (PullConsumerOptions, {"start_at": 5.0},
         "start_at needs consume_from='timestamp'"),
        (PullConsumerOptions, {"consume_from": "timestamp", "start_at": 1.7e12},
         "start_at must be in seconds since 1970, not 1700000000000.0"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(kind: Any, wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        kind(group="g", **wrong)
    assert str(caught.value) == told


def test_name_servers_are_text_and_options_are_options() -> None:
    for wrong in (["a:1"], None):
        with pytest.raises(InvalidInput, match="'host1:9876;host2:9876'"):
            sort_settings(ProducerOptions, "g", wrong, None, {})  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="options must be a ClientOptions, not a dict"):
        sort_settings(ProducerOptions, "g", "", {}, {})  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="did you mean 'name_servers'"):
        sort_settings(ProducerOptions, "g", "", None, {"name_server": "a:1"})


def test_secrets_of_the_wrong_kind_are_not_shown() -> None:
    with pytest.raises(InvalidInput) as of_credentials:
        Credentials(access_key="me", secret_key=b"s3cret")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput) as of_options:
        ClientOptions(credentials=("me", "s3cret"))  # type: ignore[arg-type]
    assert str(of_credentials.value) == "access key, secret key and security token must be text"
    assert str(of_options.value) == "credentials must be a Credentials or None, not a tuple"


def test_type_checkers_know_the_words() -> None:
    known: list[tuple[Any, type]] = [
        (checks.StartWord, ConsumeFromWhere),
        (checks.ModelWord, MessageModel),
        (checks.ProfileWord, type(V5)),
        (checks.CodecWord, Codec),
    ]
    for literal, kind in known:
        assert set(get_args(literal)) == set(checks.words_of(kind))
