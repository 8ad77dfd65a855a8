"""Signatures of requests (Java: AclClientRPCHook), the same in 4.x and 5.x.

Signed are the values of all fields in Java's order of their keys, then the body. Nothing in it is
of one moment: whoever sees a request can send it again unchanged. TLS keeps others from seeing it.
"""

import binascii
import hmac
from collections.abc import Mapping

from pocketmq.model.java_strings import java_sorted

ACCESS_KEY = "AccessKey"
SIGNATURE = "Signature"
_UNIQUE_KEY_QUERY = "_UNIQUE_KEY_QUERY"
"""Signed by clients from 4.9.4 on, unsigned by those before: both count."""


def is_signed_with(secret: bytes, fields: Mapping[str, str], body: bytes) -> bool:
    """Tell whether a request's signature was made with a secret, in the same time either way."""
    given = fields.get(SIGNATURE, "").encode("utf-8", "replace")
    good = hmac.compare_digest(_signature(secret, fields, body), given)
    if _UNIQUE_KEY_QUERY in fields:
        unsigned = {key: value for key, value in fields.items() if key != _UNIQUE_KEY_QUERY}
        good |= hmac.compare_digest(_signature(secret, unsigned, body), given)
    return good


def _signature(secret: bytes, fields: Mapping[str, str], body: bytes) -> bytes:
    keys = java_sorted([key for key in fields if key != SIGNATURE])
    content = "".join([fields[key] for key in keys]).encode("utf-8", "replace")
    digest = hmac.digest(secret, content + body, "sha1")
    return binascii.b2a_base64(digest, newline=False)
