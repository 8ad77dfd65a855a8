"""Signatures: the same as HMAC-SHA1, and a request is checked as the one that is carried out."""

import base64
import hmac
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from pocketmq.broker.access.settings import InnerCredentials
from pocketmq.broker.access.signature import is_signed_with, signed_fields
from pocketmq.protocol.frame import encode_frame
from tests.access.attempts import ACCESS_FILE
from tests.broker.running import client, running, send_fields


@given(
    some.binary(min_size=1, max_size=200),
    some.dictionaries(some.text("abcXYZ", min_size=1), some.text(), max_size=8),
    some.binary(max_size=300),
)
def test_a_signature_is_the_hmac_of_values_by_key_and_body(
    secret: bytes, fields: dict[str, str], body: bytes
) -> None:
    content = "".join(fields[key] for key in sorted(fields)).encode("utf-8", "replace") + body
    signature = base64.b64encode(hmac.digest(secret, content, "sha1")).decode()
    assert is_signed_with(secret, fields | {"Signature": signature}, body)
    assert not is_signed_with(secret, fields | {"Signature": signature}, body + b"x")
    assert not is_signed_with(secret + b"x", fields | {"Signature": signature}, body)


@given(some.text(min_size=1), some.dictionaries(some.text("abc", min_size=1), some.text()))
def test_what_is_signed_is_found_signed(secret: str, fields: dict[str, str]) -> None:
    user = InnerCredentials(access_key="somebody", secret_key=secret)
    signed = signed_fields(user, fields, b"body")
    assert signed["AccessKey"] == "somebody"
    assert is_signed_with(secret.encode("utf-8", "replace"), signed, b"body")


def twice(first: str, second: str, form: str) -> list[bytes]:
    """Make sends whose topic is there twice, signed for the first of the two and for the second."""
    plain = send_fields("TOPIC") | {"AccessKey": "alicekey"}
    pair = form.replace("ONE", f'"b":"{first}"').replace("TWO", second)
    text = json.dumps(plain).replace('"b": "TOPIC"', pair)
    assert pair in text
    frames = []
    for opaque, topic in ((901, first), (902, second)):
        fields = {key: str(value) for key, value in json.loads(text).items()} | {"b": topic}
        content = "".join(fields[key] for key in sorted(fields)).encode() + b"x"
        signature = base64.b64encode(hmac.digest(b"alicesecret", content, "sha1")).decode()
        ext = f'{text[:-1]}, "Signature": "{signature}"}}'
        header = f'{{"code":310,"flag":0,"language":"JAVA","opaque":{opaque},"version":479,'
        header += f'"serializeTypeCurrentRPC":"JSON","extFields":{ext}}}'
        frames.append(encode_frame(0, header.encode(), b"x"))
    return frames


@pytest.mark.parametrize(
    "form",
    [
        'ONE,"b":"TWO"',
        'ONE,"b" :"TWO"',
        'ONE,"b": "TWO"',
        'ONE,"\\u0062":"TWO"',
        'ONE,"z1":"\\\\","z2":"\\\\","z3":"\\\\","z4":"\\\\","b":"TWO"',
        'ONE,"b":null,"b":"TWO"',
        'ONE,"b":7,"b":"TWO"',
    ],
)
@pytest.mark.parametrize("order", [("orders", "forbidden"), ("forbidden", "orders")])
async def test_a_topic_that_is_there_twice_opens_no_door(
    tmp_path: Path, form: str, order: tuple[str, str]
) -> None:
    """Checked as one topic and stored in another: that must not be."""
    path = tmp_path / "plain_acl.yml"
    path.write_text(ACCESS_FILE)
    frames = twice(*order, form)
    async with (
        running(acl_enable=True, acl_file=str(path)) as (broker, address),
        client(address) as peer,
    ):
        peer._writer.write(b"".join(frames))
        answers = [await peer.answer(opaque) for opaque in (901, 902)]
        if order[1] == "orders":  # the last counts, and may be sent to
            assert answers[1].code == 0, answers[1].remark
            assert broker.state.store.queue("orders", 0) is not None
        assert broker.state.store.queue("forbidden", 0) is None
        assert "forbidden" not in broker.state.topics
