"""The error tree: flags, messages built inside, and pickling of every class."""

import copy as copying
import inspect
import pickle

import pytest

from pocketmq import errors

SAMPLE_ARGUMENTS: dict[str, object] = {
    "address": "127.0.0.1:10911",
    "addresses": ("127.0.0.1:9876", "127.0.0.1:9877"),
    "attempts": 3,
    "broker": "broker-a",
    "code": 17,
    "codec": "zstd",
    "column": 3,
    "declared": 99,
    "elapsed": 1.5,
    "expected": "heartbeat",
    "expression": "a = ",
    "kind": "topic",
    "last_error": errors.ConnectionLost("127.0.0.1:10911", "closed by peer"),
    "limit": 10,
    "name": "a b",
    "position": 7,
    "reason": "because",
    "remark": "no such topic",
    "request": "SEND_MESSAGE_V2",
    "span": (3, 7),
    "timeout": 3.0,
    "topic": "orders",
}


def every_error_class() -> list[type[errors.MQError]]:
    return sorted(
        (
            value
            for value in vars(errors).values()
            if inspect.isclass(value) and issubclass(value, errors.MQError)
        ),
        key=lambda cls: cls.__name__,
    )


BY_TYPE: dict[object, object] = {str: "something", int: 3, float: 1.5, tuple[str, ...]: ("a", "b")}


def sample(cls: type[errors.MQError]) -> errors.MQError:
    """Build an error from its constructor's own parameters."""
    parameters = list(inspect.signature(cls.__init__, eval_str=True).parameters.values())[1:]
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return cls("something is wrong")
    return cls(
        **{
            p.name: SAMPLE_ARGUMENTS.get(p.name, BY_TYPE.get(p.annotation, []))
            for p in parameters
            if p.default is p.empty or p.name in SAMPLE_ARGUMENTS
        }
    )


@pytest.mark.parametrize("cls", every_error_class(), ids=lambda cls: cls.__name__)
def test_every_error_survives_pickling_with_its_facts(cls: type[errors.MQError]) -> None:
    error = sample(cls)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert isinstance(copy, cls)
    assert str(copy) == str(error)
    assert {k: str(v) for k, v in vars(copy).items()} == {k: str(v) for k, v in vars(error).items()}


@pytest.mark.parametrize("cls", every_error_class(), ids=lambda cls: cls.__name__)
def test_every_error_is_exported_documented_and_says_something(cls: type[errors.MQError]) -> None:
    assert cls.__name__ in errors.__all__
    assert cls.__doc__
    assert len(str(sample(cls))) > 5


def test_a_known_code_becomes_the_class_that_stands_for_it() -> None:
    error = errors.server_error(17, "no topic", request="SEND_MESSAGE_V2", address="10.0.0.1:10911")
    assert type(error) is errors.TopicNotFound
    assert error.retryable
    assert error.refresh_route
    assert str(error) == (
        "10.0.0.1:10911 refused SEND_MESSAGE_V2: TOPIC_NOT_EXIST (17), no topic; "
        "create the topic, or check its name"
    )


def test_a_code_without_a_class_is_still_named() -> None:
    error = errors.server_error(errors.ResponseCode.QUERY_NOT_FOUND)
    assert type(error) is errors.ServerError
    assert str(error) == "refused the request: QUERY_NOT_FOUND (22)"


def test_a_code_from_the_future_keeps_its_number() -> None:
    error = errors.server_error(7777, "new thing")
    assert error.code == 7777
    assert str(error) == "refused the request: unknown code (7777), new thing"


def test_only_errors_after_sending_leave_the_outcome_open() -> None:
    unknown = {cls.__name__ for cls in every_error_class() if cls.outcome_unknown}
    assert unknown == {"ConnectionLost", "RequestTimedOut"}


def test_a_filter_error_points_at_the_column() -> None:
    error = errors.FilterSyntaxError("a >> 1", 4, "a value was expected")
    assert (
        str(error) == "invalid filter expression, column 4: a value was expected\n  a >> 1\n     ^"
    )


def test_the_pointer_hits_its_mark_on_any_line_of_any_length() -> None:
    error = errors.FilterSyntaxError("a = 1\nAND\tb >> 1", 14, "wrong")
    assert (
        str(error)
        == "invalid filter expression, column 14: wrong\n  a = 1 AND b >> 1\n               ^"
    )
    long = errors.FilterSyntaxError("a" * 5_000 + "?" + "b" * 5_000, 5_001, "wrong")
    _, shown, pointer = str(long).split("\n")
    assert shown[pointer.index("^")] == "?"
    assert len(shown) < 150
    assert long.expression[long.column - 1] == "?"


def test_invalid_input_is_a_value_error_too() -> None:
    assert isinstance(errors.NameInvalid("topic", "a b", "blank"), ValueError)


ADDRESS = "127.0.0.1:10911"
LOST = errors.ConnectionLost(ADDRESS, "closed by the peer")
LATE = errors.RequestTimedOut(ADDRESS, "SEND_MESSAGE_V2", 3.0)
BUSY = errors.server_error(2, "[TOO_MANY_REQUESTS]")


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (errors.ConnectFailed(ADDRESS, "refused"), ConnectionError, f"{ADDRESS}: refused"),
        (LOST, ConnectionError, f"{ADDRESS}: closed by the peer"),
        (errors.NameServersUnreachable(("a:1",), "refused"), ConnectionError,
         "no name server responds at a:1: refused"),
        (LATE, TimeoutError, f"{ADDRESS}: no response to SEND_MESSAGE_V2 within 3 s"),
        (errors.RequestNotSent(ADDRESS, "SEND", 3.0), TimeoutError,
         f"{ADDRESS}: SEND was not sent within 3 s: the peer reads too slowly"),
        (errors.SendFailed("orders", None, 0, 3.0, None), TimeoutError,
         ("message to topic 'orders' not sent within 3.000 s; "
         "the message was not stored and can be resent")),
        (errors.SendFailed("orders", "b", 2, 3.0, LATE), TimeoutError,
         ("message to topic 'orders' not acknowledged after 2 tries in 3.000 s, last by broker 'b': "
         f"{LATE}; the message may be stored: resend it only if consumers are idempotent")),
        (errors.SendFailed("orders", "b", 1, 3.0, LOST), ConnectionError,
         ("message to topic 'orders' not acknowledged after 1 try in 3.000 s, last by broker 'b': "
         f"{LOST}; the message may be stored: resend it only if consumers are idempotent")),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Exception) else "",
)  # fmt: skip
def test_what_python_has_a_word_for_is_pythons_error_too(
    error: errors.MQError, kind: type[OSError], text: str
) -> None:
    other = TimeoutError if kind is ConnectionError else ConnectionError
    for each in (error, copying.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(each) is type(error)
        assert issubclass(type(each), kind)
        assert not issubclass(type(each), other)
        assert str(each) == each.message == text
        assert each.args == (text,)
        assert [getattr(each, name) for name in ("errno", "strerror", "filename")] == [None] * 3
        assert vars(each).keys() == vars(error).keys()


@pytest.mark.parametrize(
    ("last", "kind"),
    [(None, "SendTimedOut"), (LATE, "SendTimedOut"), (LOST, "SendDisconnected"),
     (BUSY, "SendFailed"), (errors.BrokerNotFound("b"), "SendFailed")],
)  # fmt: skip
def test_the_class_of_a_failed_send_tells_what_ended_it(
    last: errors.MQError | None, kind: str
) -> None:
    for error in (
        errors.SendFailed("orders", "b", 1, 3.0, last),
        errors.SendFailed(topic="orders", broker="b", attempts=1, elapsed=3.0, last_error=last),
    ):
        assert type(error).__name__ == kind
        assert error.__cause__ is error.last_error is last
        assert error.retryable
        assert isinstance(error, OSError) is (kind != "SendFailed")


def test_other_errors_are_nothing_of_the_operating_systems() -> None:
    found = {cls.__name__ for cls in every_error_class() if issubclass(cls, OSError)}
    assert found == {
        "ConnectFailed", "ConnectionLost", "NameServersUnreachable", "RequestNotSent",
        "RequestTimedOut", "SendDisconnected", "SendTimedOut",
    }  # fmt: skip
