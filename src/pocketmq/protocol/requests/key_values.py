"""The name server's small key-value store; it holds the order of ordered topics."""

from pocketmq.protocol.header import Header


class PutKVConfigRequest(Header, frozen=True, kw_only=True):
    """Stores a value."""

    namespace: str
    key: str
    value: str


class GetKVConfigRequest(Header, frozen=True, kw_only=True):
    """Asks for a value."""

    namespace: str
    key: str


class GetKVConfigResponse(Header, frozen=True, kw_only=True):
    """The value, if there is one."""

    value: str | None = None


class DeleteKVConfigRequest(Header, frozen=True, kw_only=True):
    """Deletes a value."""

    namespace: str
    key: str


class GetKVListRequest(Header, frozen=True, kw_only=True):
    """Asks for all values of a namespace."""

    namespace: str
