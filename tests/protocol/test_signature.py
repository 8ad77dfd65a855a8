"""Signatures: Java's HMAC-SHA1, and bound to the request's code and the fields' keys."""

import base64
import hmac
import tracemalloc

from hypothesis import given
from hypothesis import strategies as some

from pocketmq.client.calls import Signing
from pocketmq.client.options import Credentials
from pocketmq.protocol.signature import (
    BINDING,
    SIGNATURE,
    Signed,
    SigningUser,
    check_signature,
    sign,
)

SECRET = b"root-secret"
TEXT = some.text(max_size=12)
GET_TOPIC_STATS, DELETE_TOPIC = 202, 215


def as_java(secret: bytes, fields: dict[str, str], body: bytes) -> dict[str, str]:
    """Sign as Java's AclClientRPCHook does; all keys here are ASCII."""
    content = "".join(fields[key] for key in sorted(fields)).encode("utf-8", "replace") + body
    signature = base64.b64encode(hmac.digest(secret, content, "sha1")).decode()
    return fields | {SIGNATURE: signature}


def bound(code: int, fields: dict[str, str], body: bytes = b"") -> dict[str, str]:
    fields = dict(fields)
    sign(SigningUser("root", SECRET), code, fields, body)
    return fields


@given(
    some.binary(min_size=1, max_size=200),
    some.dictionaries(some.text("abcXYZ", min_size=1), some.text(), max_size=8),
    some.binary(max_size=300),
)
def test_a_signature_is_the_hmac_of_values_by_key_and_body(
    secret: bytes, fields: dict[str, str], body: bytes
) -> None:
    signed = as_java(secret, fields, body)
    assert check_signature(secret, 10, signed, body) is Signed.UNBOUND
    assert check_signature(secret, 10, signed, body + b"x") is Signed.NOT
    assert check_signature(secret + b"x", 10, signed, body) is Signed.NOT


@given(some.dictionaries(TEXT, TEXT, max_size=8), some.binary(max_size=40), TEXT, some.data())
def test_what_clients_sign_is_what_brokers_check(
    fields: dict[str, str], body: bytes, secret: str, data: some.DataObject
) -> None:
    secret += "s"
    fields = {k: v for k, v in fields.items() if k not in {SIGNATURE, "SecurityToken", BINDING}}
    Signing(Credentials(access_key="somebody", secret_key=secret))(10, fields, body)
    plain = not any(key < BINDING or set(key) & set("=,;") for key in fields)
    expected = Signed.BOUND if plain else Signed.UNBOUND
    assert check_signature(secret.encode(), 10, fields, body) is expected
    assert check_signature(secret.encode() + b"x", 10, fields, body) is Signed.NOT
    assert check_signature(secret.encode(), 10, fields, body + b"x") is Signed.NOT
    if plain:
        assert check_signature(secret.encode(), 11, fields, body) is Signed.NOT
    key = data.draw(some.sampled_from([key for key in fields if key != SIGNATURE]))
    altered = fields | {key: fields[key] + "x"}
    assert check_signature(secret.encode(), 10, altered, body) is Signed.NOT


def test_the_signed_content_begins_with_the_code_and_the_fields_keys_and_lengths() -> None:
    fields = bound(GET_TOPIC_STATS, {"topic": "orders"})
    assert fields[BINDING] == "pocketmq.code=202;AccessKey=4,topic=6;"
    assert min(fields) == BINDING
    sent = bound(310, {"a": "shop", "b": "orders"})
    assert sent[BINDING] == "pocketmq.code=310;AccessKey,a,b;"
    unsigned = {key: value for key, value in fields.items() if key != SIGNATURE}
    assert as_java(SECRET, unsigned, b"") == fields


def test_a_captured_request_cannot_be_sent_as_another() -> None:
    """The same values in the same order, under other keys or another code."""
    fields = bound(GET_TOPIC_STATS, {"topic": "orders-old"})
    kept = {"AccessKey": "root", SIGNATURE: fields[SIGNATURE]}
    mark = fields[BINDING]
    attempts: list[dict[str, str]] = [
        fields,
        kept | {"!": mark, "topic": "orders", "zz": "-old"},
        kept | {" ": mark, "topic": "orders-old"},
        kept | {"!": "", "!!": mark, "topic": "orders-old"},
        kept | {" ": "", "!": mark, "topic": "orders-old"},
        kept | {"!": mark[:-1], "!!": mark[-1:], "topic": "orders-old"},
        kept | {"!": mark.replace("202", "215"), "topic": "orders-old"},
        kept | {"!": mark + "root", "AccessKey": "", "topic": "orders-old"},
        kept | {"AA": mark, "topic": "orders-old"},
    ]
    for attempt in attempts:
        assert check_signature(SECRET, DELETE_TOPIC, attempt, b"") is Signed.NOT, attempt
    for attempt in attempts[1:]:
        assert check_signature(SECRET, GET_TOPIC_STATS, attempt, b"") is Signed.NOT, attempt
    assert check_signature(SECRET, GET_TOPIC_STATS, fields, b"") is Signed.BOUND


def test_values_cannot_move_to_the_body_nor_to_a_field_that_older_clients_leave_unsigned() -> None:
    fields = bound(12, {"topic": "orders"}, b"body")
    moved = fields | {"topic": "order"}
    assert check_signature(SECRET, 12, moved, b"sbody") is Signed.NOT
    assert check_signature(SECRET, 12, fields | {"topic": "ordersbody"}, b"") is Signed.NOT
    added = fields | {"_UNIQUE_KEY_QUERY": "true"}
    assert check_signature(SECRET, 12, added, b"body") is Signed.BOUND  # as from clients < 4.9.4
    assert check_signature(SECRET, 13, added, b"body") is Signed.NOT
    whole = "".join(fields[key] for key in sorted(fields) if key != SIGNATURE)
    only_body = {SIGNATURE: fields[SIGNATURE]}
    assert check_signature(SECRET, 12, only_body, whole.encode() + b"body") is Signed.NOT


def test_javas_signature_without_a_binding_counts_for_any_code() -> None:
    fields = as_java(SECRET, {"AccessKey": "root", "topic": "orders"}, b"")
    assert check_signature(SECRET, GET_TOPIC_STATS, fields, b"") is Signed.UNBOUND
    assert check_signature(SECRET, DELETE_TOPIC, fields, b"") is Signed.UNBOUND


def test_requests_with_long_or_many_keys_are_not_remembered() -> None:
    """Anybody can send them, before the signature is checked."""
    kinds = [[f"{number}" + "k" * 100_000] for number in range(50)]
    kinds += [[f"{number}.{each}" for each in range(4000)] for number in range(20)]
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for keys in kinds:
            fields = {"AccessKey": "root", SIGNATURE: "x"} | dict.fromkeys(keys, "")
            assert check_signature(SECRET, 310, fields, b"") is Signed.NOT
        del fields
        kept = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert kept < 1_000_000
    fields = bound(310, dict.fromkeys(kinds[0], "value"))
    assert check_signature(SECRET, 310, fields, b"") is Signed.BOUND
