"""Users and rules of 5.x brokers with access control.

Brokers do not share them, so changes go to all.
"""

from typing import Any, TypeVar

from pocketmq.admin.brokers import Brokers
from pocketmq.admin.gathered import Gathered, ServerPlace
from pocketmq.admin.wire import AdminWire
from pocketmq.errors import Absent, ResponseCode, ServerError
from pocketmq.protocol.request import B, H, R, Request
from pocketmq.protocol.requests import access as rows
from pocketmq.protocol.requests.access import Acl, Policy, PolicyEntry, User

T = TypeVar("T")

_NONE_SUCH = {int(ResponseCode.USER_NOT_EXIST), int(ResponseCode.POLICY_NOT_EXIST)}


class Access:
    """Users and rules of brokers; changes go to slaves, too."""

    def __init__(self, wire: AdminWire, brokers: Brokers) -> None:
        self._wire = wire
        self._brokers = brokers

    async def create_user(
        self, user: User, cluster: str | None = None, address: str | None = None
    ) -> Gathered[None]:
        """Create a user."""
        header = rows.AUTH_CREATE_USER.header(username=user.username)
        return await self._tell(rows.AUTH_CREATE_USER, header, user, cluster, address)

    async def update_user(
        self, user: User, cluster: str | None = None, address: str | None = None
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
    ) -> Gathered[User | None]:
        """Return a user of each broker, None where there is none."""
        header = rows.AUTH_GET_USER.header(username=username)

        return await self._find(rows.AUTH_GET_USER, header, cluster, address)

    async def users(
        self,
        part: str | None = None,
        cluster: str | None = None,
        address: str | None = None,
    ) -> Gathered[list[User]]:
        """Return the users of each broker, or those whose name contains `part`."""
        header = rows.AUTH_LIST_USER.header(filter=part)

        return await self._list(rows.AUTH_LIST_USER, header, cluster, address)

    async def create_rules(
        self, rules: Acl, cluster: str | None = None, address: str | None = None
    ) -> Gathered[None]:
        """Create the rules of a subject such as `User:alice`; see `rules_for`."""
        header = rows.AUTH_CREATE_ACL.header(subject=rules.subject)
        return await self._tell(rows.AUTH_CREATE_ACL, header, rules, cluster, address)

    async def update_rules(
        self, rules: Acl, cluster: str | None = None, address: str | None = None
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
    ) -> Gathered[Acl | None]:
        """Return a subject's rules on each broker, None where there are none."""
        header = rows.AUTH_GET_ACL.header(subject=subject)

        return await self._find(rows.AUTH_GET_ACL, header, cluster, address)

    async def all_rules(
        self,
        subject: str | None = None,
        resource: str | None = None,
        cluster: str | None = None,
        address: str | None = None,
    ) -> Gathered[list[Acl]]:
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
) -> Acl:
    """Return one subject's rules: the same actions on several resources, as in mqadmin."""
    entries = [
        PolicyEntry(resource=each, actions=actions, source_ips=source_ips, decision=decision)
        for each in resources
    ]
    return Acl(subject=subject, policies=[Policy(entries=entries)])


def _there(found: Gathered[T | None], name: str) -> T:
    (value,) = found.all()
    if value is None:
        raise Absent("user or subject", name)
    return value
