"""Access control: accounts of 4.x, users and policies of 5.x. Secrets never print."""

from typing import ClassVar

from pocketmq.model.guarded import Guarded
from pocketmq.model.value import WireValue


class Account(Guarded, frozen=True, kw_only=True):
    """An account of a 4.x broker (Java: PlainAccessConfig)."""

    SECRET: ClassVar[frozenset[str]] = frozenset({"secret_key"})

    access_key: str | None = None
    secret_key: str | None = None
    white_remote_address: str | None = None
    admin: bool = False
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: list[str] | None = None
    group_perms: list[str] | None = None


class AccountTable(WireValue, frozen=True, kw_only=True):
    """Every account of a 4.x broker, and the addresses it trusts (Java: AclConfig)."""

    global_white_addrs: list[str] | None = None
    plain_access_configs: list[Account] | None = None


class User(Guarded, frozen=True, kw_only=True):
    """A user of a 5.x broker (Java: UserInfo)."""

    SECRET: ClassVar[frozenset[str]] = frozenset({"password"})

    username: str | None = None
    password: str | None = None
    user_type: str | None = None
    user_status: str | None = None


class PolicyEntry(WireValue, frozen=True, kw_only=True):
    """One rule: actions on a resource, from where, allowed or denied."""

    resource: str | None = None
    actions: list[str] | None = None
    source_ips: list[str] | None = None
    decision: str | None = None


class Policy(WireValue, frozen=True, kw_only=True):
    """Rules of one kind, `Custom` or `Default`."""

    policy_type: str | None = None
    entries: list[PolicyEntry] | None = None


class Acl(WireValue, frozen=True, kw_only=True):
    """What a subject such as `User:alice` may do on a 5.x broker (Java: AclInfo)."""

    subject: str | None = None
    policies: list[Policy] | None = None
