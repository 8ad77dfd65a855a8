"""What is added to requests; signatures are those Java's client makes."""

from pocketmq.client import ClientOptions, Credentials
from pocketmq.client.hooks import Signing, hooks_for

USER = Credentials(access_key="RocketMQ", secret_key="12345678")


def test_a_request_is_signed_as_java_signs_it() -> None:
    fields = {"topic": "TopicA"}
    Signing(USER)(105, fields, b"")
    assert fields == {
        "topic": "TopicA",
        "AccessKey": "RocketMQ",
        "Signature": "kCtA20XVewTfdQrdXlF2SYYho44=",
    }


def test_token_and_body_are_signed_too() -> None:
    fields: dict[str, str] = {}
    user = Credentials(access_key="RocketMQ", secret_key="12345678", security_token="tok")
    Signing(user)(34, fields, b"{}")
    assert fields["Signature"] == "NinC1P9Nj0/DlFPhbixWO7t4sCY="


def test_signing_again_does_not_sign_the_signature() -> None:
    fields = {"topic": "TopicA"}
    Signing(USER)(105, fields, b"")
    Signing(USER)(105, fields, b"")
    assert fields["Signature"] == "kCtA20XVewTfdQrdXlF2SYYho44="


def test_namespace_and_stream_mark_come_before_the_signature() -> None:
    options = ClientOptions(namespace_v2="prod", credentials=USER)
    fields: dict[str, str] = {}
    for hook in hooks_for(options, stream=True):
        hook(105, fields, b"")
    assert list(fields) == ["nsd", "ns", "ReqT", "AccessKey", "Signature"]
    assert (fields["nsd"], fields["ns"], fields["ReqT"]) == ("true", "prod", "0")


def test_a_plain_client_adds_nothing() -> None:
    assert hooks_for(ClientOptions()) == ()
