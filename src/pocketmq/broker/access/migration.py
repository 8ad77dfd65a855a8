"""Accounts of 4.x as users and rules of 5.x (Java: AuthMigrator). Pure."""

from pocketmq.broker.access.rules import Action, Kind
from pocketmq.broker.access.users import PolicyDecision, PolicyType, UserType
from pocketmq.model.names import RETRY_PREFIX
from pocketmq.protocol.requests.access import Account, Acl, Policy, PolicyEntry, User

_ACTIONS = {
    "PUB": [Action.PUB],
    "SUB": [Action.SUB],
    "PUB|SUB": [Action.PUB, Action.SUB],
    "SUB|PUB": [Action.PUB, Action.SUB],
}


def user_of_account(account: Account) -> User:
    """Give the user an account becomes; an admin can do everything."""
    return User(
        username=account.access_key,
        password=account.secret_key,
        user_type=str(UserType.SUPER if account.admin else UserType.NORMAL),
    )


def acl_of_account(account: Account) -> Acl:
    """Give the rules an account's permissions become; white addresses have no counterpart."""
    custom = [
        *_listed(Kind.TOPIC, account.topic_perms),
        *_listed(Kind.GROUP, account.group_perms),
    ]
    default = [
        _entry(f"{kind}:*", right)
        for kind, right in (
            (Kind.TOPIC, account.default_topic_perm),
            (Kind.GROUP, account.default_group_perm),
        )
        if right and right.strip()
    ]
    policies = [
        Policy(policy_type=str(kind), entries=entries)
        for kind, entries in ((PolicyType.CUSTOM, custom), (PolicyType.DEFAULT, default))
        if entries
    ]
    return Acl(policies=policies)


def _listed(kind: Kind, lines: list[str] | None) -> list[PolicyEntry]:
    found = []
    for line in lines or ():
        words = [word.strip() for word in line.split("=")]
        if len(words) == 2 and all(words):
            found.append(_entry(f"{kind}:{words[0].removeprefix(RETRY_PREFIX)}", words[1]))
    return found


def _entry(resource: str, right: str) -> PolicyEntry:
    """Say it in 5.x's words; what is no right denies, where Java would allow everything."""
    actions = _ACTIONS.get(right.strip())
    return PolicyEntry(
        resource=resource,
        actions=[str(action) for action in actions or [Action.ALL]],
        decision=str(PolicyDecision.DENY if actions is None else PolicyDecision.ALLOW),
    )
