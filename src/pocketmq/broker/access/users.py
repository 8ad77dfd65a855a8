"""The users of 5.x and their rules: tables a broker keeps, and what an admin may do to them.

Rules over tables in memory, with Java's texts; the caller saves changes. Passwords stay
readable, since signatures are checked with them: the store's file is for its owner only.
"""

from pocketmq.broker.access.rules import (
    Action,
    NamedEnum,
    Rule,
    SubjectRules,
    is_source,
    parse_resource,
)
from pocketmq.broker.core.config_table import ConfigTable
from pocketmq.errors import ResponseCode, ServerError, server_error
from pocketmq.protocol.requests.access import Acl, Policy, PolicyEntry, User

MAX_USERS = 100_000
"""More than any installation has."""
_SUBJECT = "User:"


class UserType(NamedEnum):
    """What a user is allowed by being one."""

    SUPER = "Super"
    NORMAL = "Normal"


class UserStatus(NamedEnum):
    """Whether a user is let in."""

    ENABLE = "enable"
    DISABLE = "disable"


class PolicyType(NamedEnum):
    """Which rules count first."""

    CUSTOM = "Custom"
    DEFAULT = "Default"


class PolicyDecision(NamedEnum):
    """What a rule says."""

    ALLOW = "Allow"
    DENY = "Deny"


class UserTable(ConfigTable[User]):
    """Users by name."""

    kind = "user"

    def __init__(self, now_ms: int = 0) -> None:
        super().__init__(User, MAX_USERS, now_ms)

    def is_super(self, name: str) -> bool:
        """Return whether a user may do everything."""
        user = self.entries.get(name)
        return user is not None and UserType.named(user.user_type) is UserType.SUPER

    def create(self, wanted: User, now_ms: int) -> None:
        """Add a user. Raises `ServerError` as Java refuses it."""
        name = _checked_name(wanted.username)
        if not (wanted.password or "").strip():
            raise refused("password can not be blank")
        if name in self.entries:
            raise refused("The user is existed")
        if self.full:
            raise refused(f"there are {MAX_USERS} users already")
        user = User(
            username=name,
            password=wanted.password,
            user_type=str(UserType.named(wanted.user_type) or UserType.NORMAL),
            user_status=str(UserStatus.named(wanted.user_status) or UserStatus.ENABLE),
        )
        self.put(name, user, now_ms)

    def update(self, wanted: User, now_ms: int) -> None:
        """Change the given fields of a user. Raises `ServerError` as Java refuses it."""
        name = _checked_name(wanted.username)
        old = self.entries.get(name)
        if old is None:
            raise refused("The user is not exist")
        user = User(
            username=name,
            password=wanted.password if (wanted.password or "").strip() else old.password,
            user_type=str(UserType.named(wanted.user_type) or old.user_type),
            user_status=str(UserStatus.named(wanted.user_status) or old.user_status),
        )
        self.put(name, user, now_ms)


class AclTable(ConfigTable[Acl]):
    """Rules by subject, `User:name`."""

    kind = "acl"

    def __init__(self, now_ms: int = 0) -> None:
        super().__init__(Acl, MAX_USERS, now_ms)

    def merge(self, subject: str, wanted: Acl, now_ms: int) -> None:
        """Add rules to a subject's, replacing those for the same resource; creates it if new.

        Raises `ServerError` with Java's text if a rule is invalid.
        """
        policies = [_checked(policy) for policy in wanted.policies or () if policy.entries]
        if not policies:
            raise refused("The policies is empty.")
        old = self.entries.get(subject)
        merged: dict[str, dict[str, PolicyEntry]] = {}
        for policy in [*((old and old.policies) or ()), *policies]:
            entries = merged.setdefault(str(policy.policy_type), {})
            entries.update({str(entry.resource): entry for entry in policy.entries or ()})
        self.put(subject, _acl(subject, merged), now_ms)

    def cut(self, subject: str, policy_type: str | None, resource: str | None, now_ms: int) -> None:
        """Delete the rule for a resource, or all. Raises `ServerError` if there are none."""
        old = self.entries.get(subject)
        if old is None:
            raise refused("The acl is not exist.")
        named = parse_resource(resource)
        kind = PolicyType.named(policy_type) or PolicyType.CUSTOM
        left = {
            str(policy.policy_type): {
                str(entry.resource): entry
                for entry in policy.entries or ()
                if policy.policy_type != kind or entry.resource != str(named)
            }
            for policy in old.policies or ()
        }
        left = {name: entries for name, entries in left.items() if entries}
        if named is None or not left:
            self.remove(subject, now_ms)
        else:
            self.put(subject, _acl(subject, left), now_ms)


def subject_of(name: str) -> str:
    """Return the subject that a user is."""
    return _SUBJECT + name


def user_of(subject: str | None) -> str | None:
    """Return the user that a subject is; None for what is no user."""
    kind, colon, name = (subject or "").partition(":")
    return name if colon and kind.lower() == "user" else None


def compiled(acl: Acl) -> SubjectRules:
    """Make rules of what was saved."""
    found: dict[str, list[Rule]] = {PolicyType.CUSTOM: [], PolicyType.DEFAULT: []}
    for policy in acl.policies or ():
        rules = found[PolicyType.named(policy.policy_type) or PolicyType.CUSTOM]
        rules += [rule for entry in policy.entries or () if (rule := _rule(entry)) is not None]
    return SubjectRules(
        custom=tuple(found[PolicyType.CUSTOM]), default=tuple(found[PolicyType.DEFAULT])
    )


def refused(remark: str) -> ServerError:
    """Make a refusal (NO_PERMISSION), in Java's code."""
    return server_error(ResponseCode.NO_PERMISSION, remark)


def _checked_name(name: str | None) -> str:
    if not (name or "").strip():
        raise refused("username can not be blank")
    assert name is not None
    return name


def _acl(subject: str, policies: dict[str, dict[str, PolicyEntry]]) -> Acl:
    return Acl(
        subject=subject,
        policies=[
            Policy(policy_type=kind, entries=list(entries.values()))
            for kind, entries in policies.items()
        ],
    )


def _checked(policy: Policy) -> Policy:
    kind = str(PolicyType.named(policy.policy_type) or PolicyType.CUSTOM)
    return Policy(policy_type=kind, entries=[_checked_entry(each) for each in policy.entries or ()])


def _checked_entry(entry: PolicyEntry) -> PolicyEntry:
    resource = parse_resource(entry.resource)
    if resource is None:
        raise refused("The resource is null.")
    actions = [found for text in entry.actions or () if (found := Action.named(text))]
    if not actions:
        raise refused("The actions is empty.")
    if Action.ANY in actions:
        raise refused("The actions can not be Any.")
    for source in entry.source_ips or ():
        if not source.strip():
            raise refused("The source ip is empty.")
        if not is_source(source):
            raise refused("The source ip is invalid.")
    decision = PolicyDecision.named(entry.decision)
    if decision is None:
        raise refused("The decision is null or illegal.")
    return PolicyEntry(
        resource=str(resource),
        actions=[str(action) for action in dict.fromkeys(actions)],
        source_ips=entry.source_ips or None,
        decision=str(decision),
    )


def _rule(entry: PolicyEntry) -> Rule | None:
    resource = parse_resource(entry.resource)
    if resource is None:
        return None
    return Rule(
        resource=resource,
        actions=frozenset(found for text in entry.actions or () if (found := Action.named(text))),
        sources=tuple(entry.source_ips or ()),
        allow=PolicyDecision.named(entry.decision) is PolicyDecision.ALLOW,
    )
