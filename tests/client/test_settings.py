from typing import get_type_hints

import msgspec
import pytest

from pocketmq.client import consumer_options
from pocketmq.client.consumer_options import PullConsumerOptions, PushConsumerOptions
from pocketmq.client.options import ClientOptions, ClientSettings, sort_settings
from pocketmq.errors import InvalidInput


def test_keywords_go_to_the_options_they_belong_to() -> None:
    client, member = sort_settings(
        PullConsumerOptions, "g", "a:1", None, {"namespace": "n", "pull_batch": 7}
    )
    assert client == ClientOptions(name_servers="a:1", namespace="n")
    assert member == PullConsumerOptions(group="g", pull_batch=7)


def test_given_options_are_a_start_that_keywords_change() -> None:
    given = ClientOptions(name_servers="a:1", unit_name="u", namespace="old")
    client, _ = sort_settings(PullConsumerOptions, "g", "", given, {"namespace": "new"})
    assert client == ClientOptions(name_servers="a:1", unit_name="u", namespace="new")


def test_an_unknown_keyword_is_named_with_the_one_that_was_meant() -> None:
    with pytest.raises(InvalidInput, match="'pull_bach'; did you mean 'pull_batch'"):
        sort_settings(PullConsumerOptions, "g", "", None, {"pull_bach": 7})


def test_values_are_checked_as_if_given_to_the_options() -> None:
    with pytest.raises(InvalidInput, match="request_timeout"):
        sort_settings(PullConsumerOptions, "g", "", None, {"request_timeout": -1.0})
    with pytest.raises(InvalidInput, match="pull_batch"):
        sort_settings(PullConsumerOptions, "g", "", None, {"pull_batch": 0})


def test_type_checkers_know_every_field_of_the_client() -> None:
    fields = set(ClientOptions.__struct_fields__) - {"name_servers"}
    assert set(ClientSettings.__annotations__) == fields


def test_type_checkers_know_every_field_of_the_members() -> None:
    kinds: list[tuple[type[msgspec.Struct], type]] = [
        (PullConsumerOptions, consumer_options.PullSettings),
        (consumer_options.PopConsumerOptions, consumer_options.PopSettings),
        (PushConsumerOptions, consumer_options.PushConsumerSettings),
    ]
    for options, settings in kinds:
        known = get_type_hints(settings).keys() - get_type_hints(ClientSettings).keys()
        assert known == set(options.__struct_fields__) - {"group"}
