"""What is added to requests; signatures are those Java's client makes."""

import base64
import hmac

from pocketmq.client.calls import Signing, hooks_for
from pocketmq.client.options import ClientOptions, Credentials

USER = Credentials(access_key="RocketMQ", secret_key="12345678")


def javas_signature(fields: dict[str, str], body: bytes) -> str:
    """Return what Java's client signs fields with."""
    content = "".join(fields[key] for key in sorted(fields) if key != "Signature").encode() + body
    return base64.b64encode(hmac.digest(b"12345678", content, "sha1")).decode()


def test_a_request_is_signed_as_java_signs_it() -> None:
    """Two signatures that Java's own client made check the rule."""
    java = {"topic": "TopicA", "AccessKey": "RocketMQ"}
    assert javas_signature(java, b"") == "kCtA20XVewTfdQrdXlF2SYYho44="
    lent = {"AccessKey": "RocketMQ", "SecurityToken": "tok"}
    assert javas_signature(lent, b"{}") == "NinC1P9Nj0/DlFPhbixWO7t4sCY="
    fields = {"topic": "TopicA"}
    Signing(USER)(105, fields, b"")
    assert fields == java | {
        "!": "pocketmq.code=105;AccessKey=8,topic=6;",
        "Signature": javas_signature(fields, b""),
    }


def test_token_and_body_are_signed_too() -> None:
    fields: dict[str, str] = {}
    user = Credentials(access_key="RocketMQ", secret_key="12345678", security_token="tok")
    Signing(user)(34, fields, b"{}")
    assert fields["SecurityToken"] == "tok"
    assert fields["Signature"] == javas_signature(fields, b"{}")


def test_signing_again_does_not_sign_the_signature() -> None:
    fields = {"topic": "TopicA"}
    Signing(USER)(105, fields, b"")
    once = dict(fields)
    Signing(USER)(105, fields, b"")
    assert fields == once


def test_namespace_and_stream_mark_come_before_the_signature() -> None:
    options = ClientOptions(namespace_v2="prod", credentials=USER)
    fields: dict[str, str] = {}
    for hook in hooks_for(options, stream=True):
        hook(105, fields, b"")
    assert list(fields) == ["nsd", "ns", "ReqT", "AccessKey", "!", "Signature"]
    assert (fields["nsd"], fields["ns"], fields["ReqT"]) == ("true", "prod", "0")


def test_a_plain_client_adds_nothing() -> None:
    assert hooks_for(ClientOptions()) == ()
