"""The name server's small key-value store: namespaces of names and values.

RocketMQ keeps the order of ordered topics in it. The creator passes a function that saves it; a
change takes effect only once it is saved.
"""

from collections.abc import Callable, Mapping

import msgspec

from pocketmq.model import WireValue
from pocketmq.nameserver.registrations import refused
from pocketmq.protocol import decode_body, encode_body
from pocketmq.protocol.requests.key_values import KVTable

ORDER_NAMESPACE = "ORDER_TOPIC_CONFIG"
"""Topics as keys, and as values the queues of each broker in order: `broker-a:4;broker-b:4`."""

MAX_CHARACTERS = 8 * 1024 * 1024
"""Limit of the store's size: it is rewritten with every change."""

Save = Callable[[bytes], None]


class _Saved(WireValue, frozen=True, kw_only=True):
    """The file's form, which is Java's."""

    config_table: dict[str, dict[str, str]] = {}


class KeyValues:
    """Values by namespace and key."""

    def __init__(self, save: Save | None = None, *, saved: bytes | None = None) -> None:
        """Create a store, from saved content if given. Raises `BodyMalformed`."""
        self._save = save
        self._table: dict[str, dict[str, str]] = {}
        self._encoded: dict[str, bytes] = {}
        if saved is not None:
            self._table = decode_body(saved, _Saved).config_table
        self._size = sum(_size(name, values) for name, values in self._table.items())

    def get(self, namespace: str, key: str) -> str | None:
        """Return a value."""
        return self._table.get(namespace, {}).get(key)

    def put(self, namespace: str, key: str, value: str) -> None:
        """Set a value. Raises `ServerError` if the store is full, `StoreError` if not saved."""
        values = self._table.get(namespace, {})
        self._change(namespace, values | {key: value})

    def delete(self, namespace: str, key: str) -> None:
        """Delete a value; as in Java the namespace stays. Raises `StoreError` if not saved."""
        values = self._table.get(namespace)
        if values is not None and key in values:
            self._change(namespace, {name: each for name, each in values.items() if name != key})

    def encoded(self, namespace: str) -> bytes | None:
        """Return a namespace as a body, or None if there never was one."""
        values = self._table.get(namespace)
        if values is None:
            return None
        body = self._encoded.get(namespace)
        if body is None:
            body = self._encoded[namespace] = encode_body(KVTable(table=values))
        return body

    def _change(self, namespace: str, values: Mapping[str, str]) -> None:
        before = self._table.get(namespace)
        size = self._size + _size(namespace, values) - _size(namespace, before)
        if size > MAX_CHARACTERS and size > self._size:
            raise refused(f"more than {MAX_CHARACTERS} characters of values")
        table = self._table | {namespace: dict(values)}
        if self._save is not None:
            self._save(msgspec.json.encode({"configTable": table}))
        self._table, self._size = table, size
        self._encoded.pop(namespace, None)


def _size(namespace: str, values: Mapping[str, str] | None) -> int:
    if values is None:
        return 0
    return len(namespace) + sum(len(key) + len(value) for key, value in values.items())
