"""Requests that are sent again and again: encoded once, but for their numbers.

Pure functions over bytes. Which numbers change is up to the caller; the rest of the header, topics
and groups among it, is as `Command.encode` writes it.
"""

import struct
from collections.abc import Sequence

import msgspec

from pocketmq.protocol.command import Command

_PREFIX = struct.Struct(">II").pack


class RepeatedRequest:
    """A request with JSON headers and without a body; its opaque number and some fields change.

    `fields` are those fields, which hold numbers, in the order in which the header has them.
    """

    __slots__ = ("_header",)

    def __init__(self, command: Command, fields: Sequence[str] = ()) -> None:
        header = msgspec.structs.replace(command, opaque=0, body=b"").encode()[8:]
        done, rest = b"", header.replace(b"%", b"%%")
        # Quotes inside of strings are escaped: what is found is a key, and not part of a value.
        for name in fields:
            before, key, rest = rest.partition(b'"%s":"' % name.encode())
            if not key:
                raise ValueError(f"the header has no {name}, or not in this place")
            done += before + key + b"%d"
            rest = rest[rest.index(b'"') :]
        before, key, rest = rest.rpartition(b'"opaque":')
        self._header = done + before + key + b"%d" + rest.removeprefix(b"0")

    def frame(self, opaque: int, *numbers: int) -> bytes:
        """Return the whole frame, with the opaque number and those of the fields."""
        header = self._header % (*numbers, opaque)
        size = len(header)
        return _PREFIX(4 + size, size) + header
