"""The accounts of 4.x and what each may do: pure rules with Java's texts (PlainPermissionManager).

A group is guarded under the name of its retry topic, as in Java. Java checks a signature only
for most requests. Here every request needs what `needs_by_code` says, as far as accounts can have
it: to publish and to subscribe; to read a topic's state either is enough. Everything else needs an
admin.
"""

from collections.abc import Callable, Mapping
from enum import IntFlag
from typing import NamedTuple

import msgspec

from pocketmq.broker.access.addresses import AddressPattern, parse_pattern
from pocketmq.broker.access.allowed import AllowedRequests
from pocketmq.broker.access.needs import ANYBODY, Need
from pocketmq.broker.access.rules import Action, ResourceKind
from pocketmq.errors import InvalidInput, ResponseCode, ServerError, server_error
from pocketmq.model.names import TRACE_TOPIC, is_retry_topic, retry_topic
from pocketmq.protocol import Command
from pocketmq.protocol import RequestCode as Code
from pocketmq.protocol.requests.access import Account
from pocketmq.protocol.signature import ACCESS_KEY, Signed, check_signature

_EXCEPTION = "org.apache.rocketmq.acl.common.AclException"
_SHORTEST = 7
UNBOUND = "the signature is not bound to the request code, which requireSignedCode asks for"
_JAVA_ADMIN = frozenset(
    {Code.UPDATE_AND_CREATE_TOPIC, Code.UPDATE_BROKER_CONFIG, Code.DELETE_TOPIC_IN_BROKER}
    | {Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, Code.DELETE_SUBSCRIPTIONGROUP}
)
_JAVA_GUARDED = frozenset(
    {Code.SEND_MESSAGE, Code.SEND_MESSAGE_V2, Code.CONSUMER_SEND_MSG_BACK, Code.PULL_MESSAGE}
    | {Code.QUERY_MESSAGE, Code.HEART_BEAT, Code.UNREGISTER_CLIENT}
    | {Code.GET_CONSUMER_LIST_BY_GROUP, Code.UPDATE_CONSUMER_OFFSET}
)
"""All others need a signature in Java."""


class AccountRight(IntFlag):
    """What an account may do with a topic or group."""

    DENY = 1
    PUB = 4
    SUB = 8


_RIGHTS = {
    "PUB": AccountRight.PUB,
    "SUB": AccountRight.SUB,
    "PUB|SUB": AccountRight.PUB | AccountRight.SUB,
    "SUB|PUB": AccountRight.PUB | AccountRight.SUB,
}


class Holder(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """An account, ready for questions."""

    access_key: str
    secret: bytes
    white: AddressPattern
    admin: bool
    topics: AccountRight
    groups: AccountRight
    rights: dict[str, AccountRight]

    def may(self, wanted: "_Wanted") -> bool:
        """Return whether it has a right."""
        default = self.groups if is_retry_topic(wanted.name) else self.topics
        owned = self.rights.get(wanted.name, default)
        return bool(not owned & AccountRight.DENY and owned & wanted.right)

    def __repr__(self) -> str:
        return f"Holder(access_key={self.access_key!r})"


class PlainAccounts(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """All accounts of the access files, and the addresses that need no signature."""

    holders: dict[str, Holder] = {}
    white: tuple[AddressPattern, ...] = ()
    allowed: AllowedRequests = msgspec.field(default_factory=AllowedRequests)

    def is_white(self, source: str) -> bool:
        """Return whether an address needs no signature."""
        return bool(self.white) and any(pattern(source) for pattern in self.white)


def read_accounts(white: list[str], accounts: list[Account]) -> PlainAccounts:
    """Make accounts of what a file says. Raises `InvalidInput`."""
    holders: dict[str, Holder] = {}
    for account in accounts:
        holder = _holder(account)
        holders.setdefault(holder.access_key, holder)  # the first counts, as in Java
    return PlainAccounts(holders=holders, white=tuple(parse_pattern(each) for each in white))


class CheckedRequest(msgspec.Struct, frozen=True, gc=False):
    """A request under check."""

    request: Command
    fields: Mapping[str, str]
    source: str
    deciding: tuple[str | None, ...] | None
    """The fields on which its needs depend; None if more counts."""
    needs_of: Callable[[Command], list[Need] | None]
    """Returns what a request needs; None if unknown. Raises `ServerError` if it cannot be read."""


def check_account(
    accounts: PlainAccounts, asked: CheckedRequest, *, bound: bool, java: bool = False
) -> None:
    """Raise `ServerError` with Java's code and words unless a request may pass.

    `bound` refuses signatures that are not bound to the request's code.
    """
    if accounts.is_white(asked.source):
        return
    request, fields = asked.request, asked.fields
    name = fields.get(ACCESS_KEY)
    if name is None:
        raise _refused("No accessKey is configured")
    holder = accounts.holders.get(name)
    if holder is None:
        raise _refused(f"No acl config for {name}")
    if holder.white(asked.source):
        return
    signed = check_signature(holder.secret, request.code, fields, request.body)
    if signed is Signed.NOT:
        raise _refused(f"Check signature failed for accessKey={name}")
    if bound and signed is not Signed.BOUND:
        raise _refused(UNBOUND)
    if asked.deciding is None:
        _check_rights(holder, asked, java=java)
        return
    known = name, request.code, *asked.deciding
    if known not in accounts.allowed:
        _check_rights(holder, asked, java=java)
        accounts.allowed.remember(known)


def may_publish(accounts: PlainAccounts, name: str | None, source: str, topic: str) -> bool:
    """Return whether an account may send to a topic."""
    holder = accounts.holders.get(name or "")
    if accounts.is_white(source):
        return True
    return holder is not None and (
        holder.white(source) or holder.may(_Wanted(topic, AccountRight.PUB, f"topic:{topic}"))
    )


class _Wanted(NamedTuple):
    name: str
    right: AccountRight
    shown: str


def _wanted(need: Need) -> _Wanted | None:
    """Return the right an account can have that a need stands for; None if only an admin has it."""
    (kind, name, _), actions = need
    if name is None or kind not in (ResourceKind.TOPIC, ResourceKind.GROUP):
        return None
    if Action.PUB in actions:
        right = AccountRight.PUB
    elif Action.SUB in actions:
        right = AccountRight.SUB
    elif Action.GET in actions:
        right = (
            AccountRight.SUB if kind is ResourceKind.GROUP else AccountRight.PUB | AccountRight.SUB
        )
    else:
        return None
    if kind is ResourceKind.GROUP:
        return _Wanted(retry_topic(name), right, f"group:{name}")
    return _Wanted(name, right, f"topic:{name}")


def _check_rights(holder: Holder, asked: CheckedRequest, *, java: bool) -> None:
    code = asked.request.code
    needs: list[Need] | None = [ANYBODY]
    if not java or code in _JAVA_GUARDED:
        try:
            needs = asked.needs_of(asked.request)
        except ServerError as error:
            raise _refused(str(error.__cause__ or error.remark)) from error
    rights = [_wanted(need) for need in needs or () if need is not ANYBODY]
    if rights == [_Wanted(TRACE_TOPIC, AccountRight.PUB, f"topic:{TRACE_TOPIC}")]:
        return
    beyond = needs is None or None in rights
    if (code in _JAVA_ADMIN or beyond) and not holder.admin:
        raise _refused(
            f"Need admin permission for request code={code}, "
            f"but accessKey={holder.access_key} is not"
        )
    if holder.admin and not holder.rights:
        return
    for wanted in rights:
        if wanted is not None and not holder.may(wanted):
            raise _refused(f"No default permission for {wanted.shown}")


def _refused(text: str) -> ServerError:
    """Make Java's answer; it names the class of its exception before the text."""
    return server_error(ResponseCode.SYSTEM_ERROR, f"{_EXCEPTION}: {text}")


def _holder(account: Account) -> Holder:
    key, secret = account.access_key or "", account.secret_key or ""
    if len(key) < _SHORTEST or len(secret) < _SHORTEST:
        raise InvalidInput(
            f"the account {key!r} needs an accessKey and a secretKey of more than 6 characters each"
        )
    topics = _listed("topic", account.topic_perms)
    groups = _listed("group", account.group_perms)
    return Holder(
        access_key=key,
        secret=secret.encode(),
        white=parse_pattern(account.white_remote_address),
        admin=account.admin,
        topics=_right(account.default_topic_perm),
        groups=_right(account.default_group_perm),
        rights=topics | {retry_topic(group): right for group, right in groups.items()},
    )


def _listed(kind: str, lines: list[str] | None) -> dict[str, AccountRight]:
    rights = {}
    for line in lines or ():
        words = [word.strip() for word in line.split("=")]
        if len(words) != 2 or not all(words):
            raise InvalidInput(f"Parse resource permission failed for {kind}:{line}")
        rights[words[0]] = _right(words[1])
    return rights


def _right(text: str | None) -> AccountRight:
    """Read a right; an invalid one denies, as in Java."""
    return _RIGHTS.get((text or "").strip(), AccountRight.DENY)
