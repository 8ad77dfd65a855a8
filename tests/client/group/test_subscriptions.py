"""Subscriptions by two names, and the handlers that go with them."""

import pytest

from pocketmq.client.filters import by_sql
from pocketmq.client.push.handlers import HandledSubscriptions
from pocketmq.errors import FilterSyntaxError, InvalidInput
from pocketmq.model.groups import SQL92


def test_applications_and_the_wire_have_names_of_their_own() -> None:
    subscriptions = HandledSubscriptions("shop")
    subscriptions.add("orders", "paid", print, batch=False, version_ms=5)
    subscriptions.add_own("%RETRY%shop%billing", 6)
    assert subscriptions.topics() == ("shop%orders", "%RETRY%shop%billing")
    assert list(subscriptions.own()) == ["shop%orders"]
    found = subscriptions.get("shop%orders")
    assert found is not None
    assert (found.shown, found.subscription.topic, found.subscription.tags_set) == (
        "orders", "shop%orders", frozenset({"paid"}),
    )  # fmt: skip
    handler = subscriptions.handler_for("orders")
    assert handler is not None
    assert handler.function is print


def test_a_filter_may_be_sql() -> None:
    subscriptions = HandledSubscriptions("")
    subscriptions.add("orders", by_sql("a > 3"), print, batch=True, version_ms=5)
    (told,) = subscriptions.all()
    assert (told.expression_type, told.sub_string, told.sub_version) == (SQL92, "a > 3", 5)


def test_a_topic_keeps_its_handler_when_it_is_left_and_when_its_expression_changes() -> None:
    """What was pulled before, or failed and comes again, is still to be handled."""
    subscriptions = HandledSubscriptions("")
    with pytest.raises(InvalidInput):
        subscriptions.add("orders", "*", None, batch=False, version_ms=5)
    subscriptions.add("orders", "*", print, batch=True, version_ms=5)
    subscriptions.add("orders", "paid", None, batch=False, version_ms=6)
    assert subscriptions.remove("orders")
    assert not subscriptions.remove("orders")
    assert subscriptions.topics() == ()
    handler = subscriptions.handler_for("orders")
    assert handler is not None
    assert handler.batch


def test_an_expression_that_makes_no_sense_changes_nothing() -> None:
    subscriptions = HandledSubscriptions("")
    subscriptions.add("orders", "paid", print, batch=False, version_ms=5)
    with pytest.raises(FilterSyntaxError):
        subscriptions.add("orders", "||", print, batch=False, version_ms=6)
    assert [each.sub_string for each in subscriptions.all()] == ["paid"]
