"""Users and rules as all brokers report them. Pure but for the query."""

import asyncio

import msgspec

from pocketmq.admin.admin import Admin
from pocketmq.admin.gathered import Gathered
from pocketmq.protocol.requests.access import Acl, PolicyEntry, User


class UserRow(msgspec.Struct, frozen=True):
    """A user and the brokers that know it; never a password."""

    name: str
    kind: str
    status: str
    brokers: tuple[str, ...]


class RuleRow(msgspec.Struct, frozen=True):
    """A rule and the brokers that have it."""

    subject: str
    resource: str
    actions: tuple[str, ...]
    sources: tuple[str, ...]
    decision: str
    brokers: tuple[str, ...]

    @property
    def key(self) -> str:
        """What tells it from others."""
        return f"{self.subject} {self.resource} {self.actions} {self.sources} {self.decision}"


class AccessView(msgspec.Struct, frozen=True):
    """All users and rules."""

    users: list[UserRow]
    rules: list[RuleRow]
    missing: tuple[str, ...]


async def read_access(admin: Admin) -> AccessView:
    """Return users and rules of all brokers. Raises the error if no broker responds."""
    users, rules = await asyncio.gather(admin.access.users(), admin.access.all_rules())
    missing = dict.fromkeys(str(each) for each in (*users.missing, *rules.missing))
    return AccessView(user_rows(users.some()), rule_rows(rules.some()), tuple(missing))


def user_rows(told: Gathered[list[User]]) -> list[UserRow]:
    """Return users that look the same on several brokers as one row."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for answer in told:
        for user in answer.value:
            row = user.username or "", user.user_type or "", user.user_status or ""
            found.setdefault(row, []).append(answer.place.broker)
    return [UserRow(*row, tuple(sorted(brokers))) for row, brokers in sorted(found.items())]


def rule_rows(told: Gathered[list[Acl]]) -> list[RuleRow]:
    """Return rules that are the same on several brokers as one row."""
    found: dict[tuple[str, str, tuple[str, ...], tuple[str, ...], str], list[str]] = {}
    for answer in told:
        for acl in answer.value:
            for policy in acl.policies or ():
                for entry in policy.entries or ():
                    row = _rule(acl.subject or "", entry)
                    found.setdefault(row, []).append(answer.place.broker)
    return [RuleRow(*row, tuple(sorted(brokers))) for row, brokers in sorted(found.items())]


def _rule(
    subject: str, entry: PolicyEntry
) -> tuple[str, str, tuple[str, ...], tuple[str, ...], str]:
    return (
        subject,
        entry.resource or "",
        tuple(entry.actions or ()),
        tuple(entry.source_ips or ()),
        entry.decision or "",
    )
