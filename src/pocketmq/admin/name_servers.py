"""Name servers: settings, their key-value store, and the write permission of whole brokers."""

from collections.abc import Mapping

from pocketmq.admin.gathered import Gathered, ServerPlace
from pocketmq.admin.wire import AdminWire
from pocketmq.client.calls import SUCCESS
from pocketmq.errors import ResponseCode
from pocketmq.protocol.requests import key_values, nameserver

ORDER_NAMESPACE = "ORDER_TOPIC_CONFIG"
"""The namespace of the order of ordered topics."""

_OR_NOT_FOUND = SUCCESS | {int(ResponseCode.QUERY_NOT_FOUND)}


class NameServers:
    """Queries and changes all configured name servers, which do not share anything."""

    def __init__(self, wire: AdminWire) -> None:
        self._wire = wire

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses the admin was given."""
        return self._wire.name_servers

    async def config(self) -> Gathered[dict[str, str]]:
        """Return the settings of each, by RocketMQ's names."""

        async def read(place: ServerPlace) -> dict[str, str]:
            return dict(
                (await self._wire.call(place.address, nameserver.GET_NAMESRV_CONFIG)).result()
            )

        return await self._wire.each(self._places(), read)

    async def change_config(self, settings: Mapping[str, str]) -> Gathered[None]:
        """Change settings of each."""
        places = self._places()
        return await self._wire.tell_each(
            places, nameserver.UPDATE_NAMESRV_CONFIG, None, dict(settings)
        )

    async def put(self, namespace: str, key: str, value: str) -> Gathered[None]:
        """Store a value on each."""
        header = key_values.PUT_KV_CONFIG.header(namespace=namespace, key=key, value=value)
        return await self._wire.tell_each(self._places(), key_values.PUT_KV_CONFIG, header)

    async def delete(self, namespace: str, key: str) -> Gathered[None]:
        """Delete a value on each."""
        header = key_values.DELETE_KV_CONFIG.header(namespace=namespace, key=key)
        return await self._wire.tell_each(self._places(), key_values.DELETE_KV_CONFIG, header)

    async def get(self, namespace: str, key: str) -> str | None:
        """Return a value of any name server, None if there is none."""
        header = key_values.GET_KV_CONFIG.header(namespace=namespace, key=key)
        answer = await self._wire.consult(key_values.GET_KV_CONFIG, header, accept=_OR_NOT_FOUND)
        return answer.header().value if answer.code == ResponseCode.SUCCESS else None

    async def values(self, namespace: str) -> dict[str, str]:
        """Return all values of a namespace, of any name server."""
        header = key_values.GET_KVLIST_BY_NAMESPACE.header(namespace=namespace)
        answer = await self._wire.consult(
            key_values.GET_KVLIST_BY_NAMESPACE, header, accept=_OR_NOT_FOUND
        )
        if answer.code != ResponseCode.SUCCESS or answer.is_empty:
            return {}
        return answer.result().table

    async def wipe_write_permission(self, broker: str) -> Gathered[int]:
        """Disable writes to a broker; return the number of topics changed."""
        header = nameserver.WIPE_WRITE_PERM_OF_BROKER.header(broker_name=broker)

        async def wipe(place: ServerPlace) -> int:
            answer = await self._wire.fields(
                place.address, nameserver.WIPE_WRITE_PERM_OF_BROKER, header
            )
            return answer.wipe_topic_count

        return await self._wire.each(self._places(), wipe)

    async def add_write_permission(self, broker: str) -> Gathered[int]:
        """Enable writes to a broker; return the number of topics changed."""
        header = nameserver.ADD_WRITE_PERM_OF_BROKER.header(broker_name=broker)

        async def add(place: ServerPlace) -> int:
            answer = await self._wire.fields(
                place.address, nameserver.ADD_WRITE_PERM_OF_BROKER, header
            )
            return answer.add_topic_count

        return await self._wire.each(self._places(), add)

    def _places(self) -> list[ServerPlace]:
        return [ServerPlace("", "name server", 0, address) for address in self.addresses]
