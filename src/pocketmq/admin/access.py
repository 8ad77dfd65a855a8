"""Users and rules of 5.x brokers with access control. Brokers do not share them: all are told."""

from typing import TypeVar

from pocketmq.admin.brokers import Brokers
from pocketmq.admin.gathered import Gathered, ServerPlace
from pocketmq.admin.wire import AdminWire
from pocketmq.errors import Absent, ResponseCode, ServerError
from pocketmq.protocol.bodies.access import Acl, Policy, PolicyEntry, User
from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.header import Header
from pocketmq.protocol.json_values import decode_body
from pocketmq.protocol.requests.auth import (
    CreateAclRequest,
    CreateUserRequest,
    DeleteAclRequest,
    DeleteUserRequest,
    GetAclRequest,
    GetUserRequest,
    ListAclsRequest,
    ListUsersRequest,
    UpdateAclRequest,
    UpdateUserRequest,
)

T = TypeVar("T")

_NONE_SUCH = {int(ResponseCode.USER_NOT_EXIST), int(ResponseCode.POLICY_NOT_EXIST)}


class Access:
    """Asks and tells brokers, slaves too, about users and what they may do."""

    def __init__(self, wire: AdminWire, brokers: Brokers) -> None:
        self._wire = wire
        self._brokers = brokers

    async def create_user(
        self, user: User, cluster: str | None = None, address: str | None = None
    ) -> Gathered[None]:
        """Make a user."""
        header = CreateUserRequest(username=user.username)
        return await self._tell(Code.AUTH_CREATE_USER, header, user, cluster, address)

    async def update_user(
        self, user: User, cluster: str | None = None, address: str | None = None
    ) -> Gathered[None]:
        """Change what is given of a user; what is None stays."""
        header = UpdateUserRequest(username=user.username)
        return await self._tell(Code.AUTH_UPDATE_USER, header, user, cluster, address)

    async def delete_user(
        self, username: str, cluster: str | None = None, address: str | None = None
    ) -> Gathered[None]:
        """Delete a user."""
        header = DeleteUserRequest(username=username)
        return await self._tell(Code.AUTH_DELETE_USER, header, None, cluster, address)

    async def user(
        self, username: str, cluster: str | None = None, address: str | None = None
    ) -> Gathered[User | None]:
        """Give a user as each broker knows it, None where there is none."""
        header = GetUserRequest(username=username)

        async def ask(place: ServerPlace) -> User | None:
            try:
                answer = await self._wire.ask(place.address, Code.AUTH_GET_USER, header)
            except ServerError as error:
                _check_none_such(error)
                return None
            return decode_body(answer.body, User) if answer.body else None

        return await self._wire.each(await self._brokers.targets(cluster, address), ask)

    async def users(
        self,
        part: str | None = None,
        cluster: str | None = None,
        address: str | None = None,
    ) -> Gathered[list[User]]:
        """List the users of each broker, or those with a part in their name."""
        header = ListUsersRequest(filter=part)

        async def ask(place: ServerPlace) -> list[User]:
            answer = await self._wire.ask(place.address, Code.AUTH_LIST_USER, header)
            return decode_body(answer.body, list[User]) if answer.body else []

        return await self._wire.each(await self._brokers.targets(cluster, address), ask)

    async def create_rules(
        self, rules: Acl, cluster: str | None = None, address: str | None = None
    ) -> Gathered[None]:
        """Give a subject such as `User:alice` its first rules; see `rules_for`."""
        header = CreateAclRequest(subject=rules.subject)
        return await self._tell(Code.AUTH_CREATE_ACL, header, rules, cluster, address)

    async def update_rules(
        self, rules: Acl, cluster: str | None = None, address: str | None = None
    ) -> Gathered[None]:
        """Add to a subject's rules, or change those for the same resources."""
        header = UpdateAclRequest(subject=rules.subject)
        return await self._tell(Code.AUTH_UPDATE_ACL, header, rules, cluster, address)

    async def delete_rules(
        self,
        subject: str,
        resource: str | None = None,
        cluster: str | None = None,
        address: str | None = None,
    ) -> Gathered[None]:
        """Delete a subject's rules, or those for one resource."""
        header = DeleteAclRequest(subject=subject, resource=resource)
        return await self._tell(Code.AUTH_DELETE_ACL, header, None, cluster, address)

    async def rules(
        self, subject: str, cluster: str | None = None, address: str | None = None
    ) -> Gathered[Acl | None]:
        """Give a subject's rules as each broker knows them, None where there are none."""
        header = GetAclRequest(subject=subject)

        async def ask(place: ServerPlace) -> Acl | None:
            try:
                answer = await self._wire.ask(place.address, Code.AUTH_GET_ACL, header)
            except ServerError as error:
                _check_none_such(error)
                return None
            return decode_body(answer.body, Acl) if answer.body else None

        return await self._wire.each(await self._brokers.targets(cluster, address), ask)

    async def all_rules(
        self,
        subject: str | None = None,
        resource: str | None = None,
        cluster: str | None = None,
        address: str | None = None,
    ) -> Gathered[list[Acl]]:
        """List the rules of each broker, or those with a part in their subject and resource."""
        header = ListAclsRequest(subject_filter=subject, resource_filter=resource)

        async def ask(place: ServerPlace) -> list[Acl]:
            answer = await self._wire.ask(place.address, Code.AUTH_LIST_ACL, header)
            return decode_body(answer.body, list[Acl]) if answer.body else []

        return await self._wire.each(await self._brokers.targets(cluster, address), ask)

    async def copy_users(self, source: str, destination: str, names: list[str]) -> list[str]:
        """Have one broker know the users of another, all or those named; give their names.

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
        """Have one broker know the rules of another, all or those of some subjects.

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
        code: Code,
        header: Header,
        body: object | None,
        cluster: str | None,
        address: str | None,
    ) -> Gathered[None]:
        async def tell(place: ServerPlace) -> None:
            await self._wire.ask(place.address, code, header, b"" if body is None else body)

        return await self._wire.each(
            await self._brokers.targets(cluster, address, slaves=True), tell
        )


def rules_for(
    subject: str,
    resources: list[str],
    actions: list[str],
    decision: str,
    source_ips: list[str] | None = None,
) -> Acl:
    """Make one subject's rules: the same actions on several resources, as mqadmin does."""
    entries = [
        PolicyEntry(resource=each, actions=actions, source_ips=source_ips, decision=decision)
        for each in resources
    ]
    return Acl(subject=subject, policies=[Policy(entries=entries)])


def _check_none_such(error: ServerError) -> None:
    """Raise an error that says more than that there is none."""
    if error.code not in _NONE_SUCH:
        raise error


def _there(found: Gathered[T | None], name: str) -> T:
    (value,) = found.all()
    if value is None:
        raise Absent("user or subject", name)
    return value
