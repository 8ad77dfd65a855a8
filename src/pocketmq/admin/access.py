"""Access control of brokers: users and rules of 5.x, accounts of 4.x.

Brokers do not share them, so changes go to all.
"""

from typing import Any, TypeVar

import msgspec

from pocketmq.admin.brokers import Brokers
from pocketmq.admin.gathered import Gathered, ServerPlace
from pocketmq.admin.wire import AdminWire
from pocketmq.errors import Absent, ResponseCode, ServerError
from pocketmq.model import DataVersion
from pocketmq.protocol import decode_body
from pocketmq.protocol.request import B, H, R, Request
from pocketmq.protocol.requests import access as rows

T = TypeVar("T")

_NONE_SUCH = {int(ResponseCode.USER_NOT_EXIST), int(ResponseCode.POLICY_NOT_EXIST)}


class Access:
    """Users and rules of brokers; changes go to slaves, too."""

    def __init__(self, wire: AdminWire, brokers: Brokers) -> None:
        self._wire = wire
        self._brokers = brokers

    async def create_user(
        self, user: rows.User, cluster: str | None = None, address: str | None = None
    ) -> Gathered[None]:
        """Create a user."""
        header = rows.AUTH_CREATE_USER.header(username=user.username)
        return await self._tell(rows.AUTH_CREATE_USER, header, user, cluster, address)

    async def update_user(
        self, user: rows.User, cluster: str | None = None, address: str | None = None
    ) -> Gathered[None]:
        """Change a user; fields that are None stay as they are."""
        header = rows.AUTH_UPDATE_USER.header(username=user.username)
        return await self._tell(rows.AUTH_UPDATE_USER, header, user, cluster, address)

    async def delete_user(
        self, username: str, cluster: str | None = None, address: str | None = None
    ) -> Gathered[None]:
        """Delete a user."""
        header = rows.AUTH_DELETE_USER.header(username=username)
        return await self._tell(rows.AUTH_DELETE_USER, header, None, cluster, address)

    async def user(
        self, username: str, cluster: str | None = None, address: str | None = None
    ) -> Gathered[rows.User | None]:
        """Return a user of each broker, None where there is none."""
        header = rows.AUTH_GET_USER.header(username=username)

        return await self._find(rows.AUTH_GET_USER, header, cluster, address)

    async def users(
        self,
        part: str | None = None,
        cluster: str | None = None,
        address: str | None = None,
    ) -> Gathered[list[rows.User]]:
        """Return the users of each broker, or those whose name contains `part`."""
        header = rows.AUTH_LIST_USER.header(filter=part)

        return await self._list(rows.AUTH_LIST_USER, header, cluster, address)

    async def create_rules(
        self, rules: rows.Acl, cluster: str | None = None, address: str | None = None
    ) -> Gathered[None]:
        """Create the rules of a subject such as `User:alice`; see `rules_for`."""
        header = rows.AUTH_CREATE_ACL.header(subject=rules.subject)
        return await self._tell(rows.AUTH_CREATE_ACL, header, rules, cluster, address)

    async def update_rules(
        self, rules: rows.Acl, cluster: str | None = None, address: str | None = None
    ) -> Gathered[None]:
        """Add to a subject's rules, or change those for the same resources."""
        header = rows.AUTH_UPDATE_ACL.header(subject=rules.subject)
        return await self._tell(rows.AUTH_UPDATE_ACL, header, rules, cluster, address)

    async def delete_rules(
        self,
        subject: str,
        resource: str | None = None,
        cluster: str | None = None,
        address: str | None = None,
    ) -> Gathered[None]:
        """Delete a subject's rules, or those for one resource."""
        header = rows.AUTH_DELETE_ACL.header(subject=subject, resource=resource)
        return await self._tell(rows.AUTH_DELETE_ACL, header, None, cluster, address)

    async def rules(
        self, subject: str, cluster: str | None = None, address: str | None = None
    ) -> Gathered[rows.Acl | None]:
        """Return a subject's rules on each broker, None where there are none."""
        header = rows.AUTH_GET_ACL.header(subject=subject)

        return await self._find(rows.AUTH_GET_ACL, header, cluster, address)

    async def all_rules(
        self,
        subject: str | None = None,
        resource: str | None = None,
        cluster: str | None = None,
        address: str | None = None,
    ) -> Gathered[list[rows.Acl]]:
        """Return the rules of each broker, or those that contain `subject` and `resource`."""
        header = rows.AUTH_LIST_ACL.header(subject_filter=subject, resource_filter=resource)

        return await self._list(rows.AUTH_LIST_ACL, header, cluster, address)

    async def copy_users(self, source: str, destination: str, names: list[str]) -> list[str]:
        """Copy users from one broker to another, all or those named; return their names.

        Raises `Absent` if the source has none of a name, and the broker's error.
        """
        if names:
            users = [_there(await self.user(name, address=source), name) for name in names]
        else:
            (users,) = (await self.users(address=source)).all()
        for user in users:
            (known,) = (await self.user(user.username or "", address=destination)).all()
            tell = self.create_user if known is None else self.update_user
            (await tell(user, address=destination)).all()
        return [user.username or "" for user in users]

    async def copy_rules(self, source: str, destination: str, subjects: list[str]) -> list[str]:
        """Copy rules from one broker to another, all or those of some subjects.

        Raises `Absent` if the source has none for a subject, and the broker's error.
        """
        if subjects:
            rules = [_there(await self.rules(name, address=source), name) for name in subjects]
        else:
            (rules,) = (await self.all_rules(address=source)).all()
        for each in rules:
            (known,) = (await self.rules(each.subject or "", address=destination)).all()
            tell = self.create_rules if known is None else self.update_rules
            (await tell(each, address=destination)).all()
        return [each.subject or "" for each in rules]

    async def _tell(
        self,
        request: Request[H, B, Any, Any],
        header: H,
        body: B | None,
        cluster: str | None,
        address: str | None,
    ) -> Gathered[None]:
        places = await self._brokers.targets(cluster, address, slaves=True)
        return await self._wire.tell_each(places, request, header, body)

    async def _find(
        self, request: Request[H, None, Any, R], header: H, cluster: str | None, address: str | None
    ) -> Gathered[R | None]:
        """Read one thing from each broker, None where there is none."""

        async def ask(place: ServerPlace) -> R | None:
            try:
                answer = await self._wire.call(place.address, request, header)
            except ServerError as error:
                if error.code not in _NONE_SUCH:
                    raise
                return None
            return None if answer.is_empty else answer.result()

        return await self._wire.each(await self._brokers.targets(cluster, address), ask)

    async def _list(
        self,
        request: Request[H, None, Any, list[T]],
        header: H,
        cluster: str | None,
        address: str | None,
    ) -> Gathered[list[T]]:
        async def ask(place: ServerPlace) -> list[T]:
            answer = await self._wire.call(place.address, request, header)
            return [] if answer.is_empty else answer.result()

        return await self._wire.each(await self._brokers.targets(cluster, address), ask)


def rules_for(
    subject: str,
    resources: list[str],
    actions: list[str],
    decision: str,
    source_ips: list[str] | None = None,
) -> rows.Acl:
    """Return one subject's rules: the same actions on several resources, as in mqadmin."""
    entries = [
        rows.PolicyEntry(resource=each, actions=actions, source_ips=source_ips, decision=decision)
        for each in resources
    ]
    return rows.Acl(subject=subject, policies=[rows.Policy(entries=entries)])


def _there(found: Gathered[T | None], name: str) -> T:
    (value,) = found.all()
    if value is None:
        raise Absent("user or subject", name)
    return value


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
        self, account: rows.Account, cluster: str | None = None, address: str | None = None
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
