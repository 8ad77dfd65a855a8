"""Name servers: settings, their key-value store, and the write permission of whole brokers."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from pocketmq.admin.gathered import Gathered, ServerPlace
from pocketmq.admin.wire import AdminWire
from pocketmq.client.calls import SUCCESS
from pocketmq.errors import ResponseCode
from pocketmq.protocol.bodies.cluster import KVTable
from pocketmq.protocol.bodies.properties_text import read_properties, write_properties
from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.json_values import decode_body
from pocketmq.protocol.requests.key_values import (
    DeleteKVConfigRequest,
    GetKVConfigRequest,
    GetKVConfigResponse,
    GetKVListRequest,
    PutKVConfigRequest,
)
from pocketmq.protocol.requests.nameserver import (
    ADD_WRITE_PERM_OF_BROKER,
    WIPE_WRITE_PERM_OF_BROKER,
    AddWritePermissionRequest,
    WipeWritePermissionRequest,
)

ORDER_NAMESPACE = "ORDER_TOPIC_CONFIG"
"""Where name servers keep the order of ordered topics."""

_OR_NOT_FOUND = SUCCESS | {int(ResponseCode.QUERY_NOT_FOUND)}
T = TypeVar("T")


class NameServers:
    """Asks and tells all configured name servers, which know nothing of each other."""

    def __init__(self, wire: AdminWire) -> None:
        self._wire = wire

    @property
    def addresses(self) -> tuple[str, ...]:
        """Those the admin was given."""
        return self._wire.name_servers

    async def config(self) -> Gathered[dict[str, str]]:
        """Give the settings of each, by RocketMQ's names."""

        async def read(place: ServerPlace) -> dict[str, str]:
            answer = await self._wire.ask(place.address, Code.GET_NAMESRV_CONFIG)
            return read_properties(answer.body)

        return await self._each(read)

    async def change_config(self, settings: Mapping[str, str]) -> Gathered[None]:
        """Change settings of each."""
        body = write_properties(settings)

        async def change(place: ServerPlace) -> None:
            await self._wire.ask(place.address, Code.UPDATE_NAMESRV_CONFIG, None, body)

        return await self._each(change)

    async def put(self, namespace: str, key: str, value: str) -> Gathered[None]:
        """Store a value on each."""
        header = PutKVConfigRequest(namespace=namespace, key=key, value=value)

        async def store(place: ServerPlace) -> None:
            await self._wire.ask(place.address, Code.PUT_KV_CONFIG, header)

        return await self._each(store)

    async def delete(self, namespace: str, key: str) -> Gathered[None]:
        """Delete a value on each."""
        header = DeleteKVConfigRequest(namespace=namespace, key=key)

        async def forget(place: ServerPlace) -> None:
            await self._wire.ask(place.address, Code.DELETE_KV_CONFIG, header)

        return await self._each(forget)

    async def get(self, namespace: str, key: str) -> str | None:
        """Give a value as any name server has it, None if there is none."""
        header = GetKVConfigRequest(namespace=namespace, key=key)
        answer = await self._wire.consult(Code.GET_KV_CONFIG, header, accept=_OR_NOT_FOUND)
        if answer.code != ResponseCode.SUCCESS:
            return None
        return answer.header(GetKVConfigResponse).value

    async def values(self, namespace: str) -> dict[str, str]:
        """Give all values of a namespace as any name server has them."""
        header = GetKVListRequest(namespace=namespace)
        answer = await self._wire.consult(
            Code.GET_KVLIST_BY_NAMESPACE, header, accept=_OR_NOT_FOUND
        )
        if answer.code != ResponseCode.SUCCESS or not answer.body:
            return {}
        return decode_body(answer.body, KVTable).table

    async def wipe_write_permission(self, broker: str) -> Gathered[int]:
        """Have producers pass over a broker; tells how many topics that changed."""
        header = WipeWritePermissionRequest(broker_name=broker)

        async def wipe(place: ServerPlace) -> int:
            told = await self._wire.fields(place.address, WIPE_WRITE_PERM_OF_BROKER, header)
            return told.wipe_topic_count

        return await self._each(wipe)

    async def add_write_permission(self, broker: str) -> Gathered[int]:
        """Let producers use a broker again; tells how many topics that changed."""
        header = AddWritePermissionRequest(broker_name=broker)

        async def add(place: ServerPlace) -> int:
            told = await self._wire.fields(place.address, ADD_WRITE_PERM_OF_BROKER, header)
            return told.add_topic_count

        return await self._each(add)

    async def _each(self, work: Callable[[ServerPlace], Awaitable[T]]) -> Gathered[T]:
        places = [ServerPlace("", "name server", 0, address) for address in self.addresses]
        return await self._wire.each(places, work)
