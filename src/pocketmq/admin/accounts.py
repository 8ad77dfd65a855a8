"""Accounts of 4.x brokers with access control; 5.x has users and rules instead (`access`)."""

import msgspec

from pocketmq.admin.brokers import Brokers
from pocketmq.admin.gathered import Gathered, ServerPlace
from pocketmq.admin.wire import AdminWire
from pocketmq.model import DataVersion
from pocketmq.protocol.json_values import decode_body
from pocketmq.protocol.requests import access as rows
from pocketmq.protocol.requests.access import Account


class AccountVersion(msgspec.Struct, frozen=True):
    """The versions of a broker's access files, by name."""

    broker: str
    cluster: str
    files: dict[str, DataVersion]


class Accounts:
    """Accounts of brokers. 5.x brokers of Apache refuse these requests."""

    def __init__(self, wire: AdminWire, brokers: Brokers) -> None:
        self._wire = wire
        self._brokers = brokers

    async def put(
        self, account: Account, cluster: str | None = None, address: str | None = None
    ) -> Gathered[None]:
        """Create an account, or change those of its fields that are given."""
        header = rows.UPDATE_AND_CREATE_ACL_CONFIG.header(
            access_key=account.access_key or "",
            secret_key=account.secret_key,
            white_remote_address=account.white_remote_address,
            admin=account.admin,
            default_topic_perm=account.default_topic_perm,
            default_group_perm=account.default_group_perm,
            topic_perms=_joined(account.topic_perms),
            group_perms=_joined(account.group_perms),
        )

        places = await self._brokers.targets(cluster, address)
        return await self._wire.tell_each(places, rows.UPDATE_AND_CREATE_ACL_CONFIG, header)

    async def delete(
        self, access_key: str, cluster: str | None = None, address: str | None = None
    ) -> Gathered[None]:
        """Delete an account."""
        header = rows.DELETE_ACL_CONFIG.header(access_key=access_key)

        places = await self._brokers.targets(cluster, address)
        return await self._wire.tell_each(places, rows.DELETE_ACL_CONFIG, header)

    async def trust(
        self,
        addresses: list[str],
        cluster: str | None = None,
        address: str | None = None,
        *,
        file: str | None = None,
    ) -> Gathered[None]:
        """Replace the addresses that need no signature, in one file if there are several."""
        fields = {"globalWhiteAddrs": ",".join(addresses)}  # the row's header asks for a file
        if file is not None:
            fields["aclFileFullPath"] = file

        async def tell(place: ServerPlace) -> None:
            await self._wire.ask(place.address, rows.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG.code, fields)

        return await self._wire.each(await self._brokers.targets(cluster, address), tell)

    async def versions(
        self, cluster: str | None = None, address: str | None = None
    ) -> Gathered[AccountVersion]:
        """Return the versions of access files: how often and when they were changed."""

        async def ask(place: ServerPlace) -> AccountVersion:
            answer = await self._wire.fields(place.address, rows.GET_BROKER_CLUSTER_ACL_INFO, None)
            if answer.all_acl_file_version:
                files = decode_body(answer.all_acl_file_version, dict[str, DataVersion])
            else:
                files = {"": decode_body(answer.version, DataVersion)}
            return AccountVersion(answer.broker_name, answer.cluster_name, files)

        return await self._wire.each(await self._brokers.targets(cluster, address), ask)


def _joined(values: list[str] | None) -> str | None:
    return None if values is None else ",".join(values)
