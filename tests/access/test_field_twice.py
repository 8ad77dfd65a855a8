"""A field that is there twice: a request is checked as the one that is carried out."""

import base64
import hmac
import json
from pathlib import Path

import pytest

from pocketmq.protocol.frame import encode_frame
from tests.access.attempts import ACCESS_FILE
from tests.broker.running import client, running, send_fields


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
