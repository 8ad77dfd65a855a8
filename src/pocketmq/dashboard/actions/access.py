"""Changing users and rules of brokers with access control (5.x). Passwords are never logged."""

import msgspec

from pocketmq.admin.access import rules_for
from pocketmq.admin.admin import Admin
from pocketmq.dashboard.actions.changing import Audit
from pocketmq.errors import InvalidInput
from pocketmq.protocol.requests.access import User

USER_TYPES = ("Normal", "Super")
USER_STATES = ("enable", "disable")
DECISIONS = ("Allow", "Deny")


class RuleChange(msgspec.Struct, frozen=True):
    """A rule for one or more resources: who may do what with them, from where."""

    subject: str
    resources: list[str]
    actions: list[str]
    decision: str
    sources: list[str]

    def __post_init__(self) -> None:
        kind, colon, name = self.subject.partition(":")
        if not (kind and colon and name):
            raise InvalidInput(f"{self.subject!r} is not a subject; write for example User:alice")
        if not self.resources or not self.actions:
            raise InvalidInput("a rule needs a resource, such as Topic:orders, and an action")
        if self.decision not in DECISIONS:
            raise InvalidInput("the decision must be Allow or Deny")

    def __str__(self) -> str:
        return (
            f"{self.decision} {self.subject!r} {self.actions!r} on {self.resources!r} "
            f"from {self.sources or 'anywhere'}"
        )


class AccessActions:
    """Changes users and rules on all brokers; returns how many took part."""

    def __init__(self, admin: Admin, audit: Audit) -> None:
        self._admin = admin
        self._audit = audit

    async def create_user(self, who: str, user: User) -> int:
        """Create a user."""

        async def work() -> int:
            if not user.username or not user.password:
                raise InvalidInput("a user needs a name and a password")
            return len((await self._admin.access.create_user(user)).all())

        return await self._audit(who, f"create user {user.username!r} ({user.user_type})", work)

    async def change_user(self, who: str, user: User) -> int:
        """Change type, status, or the password if it is not empty."""

        async def work() -> int:
            changed = msgspec.structs.replace(user, password=user.password or None)
            return len((await self._admin.access.update_user(changed)).all())

        told = ", new password" if user.password else ""
        what = f"change user {user.username!r} ({user.user_type}, {user.user_status}{told})"
        return await self._audit(who, what, work)

    async def delete_user(self, who: str, username: str) -> int:
        """Delete a user."""

        async def work() -> int:
            return len((await self._admin.access.delete_user(username)).all())

        return await self._audit(who, f"delete user {username!r}", work)

    async def put_rule(self, who: str, rule: RuleChange) -> int:
        """Add a rule, or change the one for the same resources."""

        async def work() -> int:
            rules = rules_for(
                rule.subject, rule.resources, rule.actions, rule.decision, rule.sources or None
            )
            done = 0
            for known in await self._admin.access.rules(rule.subject):
                access, address = self._admin.access, known.place.address
                tell = access.create_rules if known.value is None else access.update_rules
                done += len((await tell(rules, address=address)).all())
            return done

        return await self._audit(who, f"put rule: {rule}", work)

    async def delete_rule(self, who: str, subject: str, resource: str) -> int:
        """Delete the rule of a subject for a resource."""

        async def work() -> int:
            return len((await self._admin.access.delete_rules(subject, resource)).all())

        return await self._audit(who, f"delete rule of {subject!r} for {resource!r}", work)
