"""Access control of a running broker: set up at the start, and reloaded when its files change.

The first users of a new broker come from its settings; accounts of 4.x can be migrated to users and
rules of 5.x (Java: AuthMigrator).
"""

import asyncio
import logging
from pathlib import Path

from pocketmq.broker.access.account_files import AccountFiles
from pocketmq.broker.access.gate import BrokerGate
from pocketmq.broker.access.rules import Action, ResourceKind
from pocketmq.broker.access.users import PolicyDecision, PolicyType, UserType, subject_of
from pocketmq.broker.saving import save_changes
from pocketmq.broker.state import BrokerState
from pocketmq.errors import InvalidInput, ServerError
from pocketmq.model.names import RETRY_PREFIX
from pocketmq.protocol.requests.access import Account, Acl, Policy, PolicyEntry, User

logger = logging.getLogger("pocketmq.broker")

LOOK_PERIOD = 0.5
"""Seconds between two checks of the access files, as in Java."""

_ACTIONS = {
    "PUB": [Action.PUB],
    "SUB": [Action.SUB],
    "PUB|SUB": [Action.PUB, Action.SUB],
    "SUB|PUB": [Action.PUB, Action.SUB],
}


class AccessControl:
    """Keeps a broker's gate. Belongs to its loop."""

    def __init__(self, state: BrokerState, loop: asyncio.AbstractEventLoop) -> None:
        """Read the access file and create users; raises `InvalidInput` if that fails."""
        self._state = state
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        config = state.config
        if config.acl_enable or config.migrate_auth_from_v1_enabled:
            files = AccountFiles(Path(config.acl_file))
            state.account_files = files if config.acl_enable else None
            if config.migrate_auth_from_v1_enabled:
                _migrate(state, files)
        if config.authorization_enabled and not config.authentication_enabled:
            logger.warning(
                "authorizationEnabled without authenticationEnabled: signatures are not verified, "
                "so any client can claim to be any user; set authenticationEnabled=true"
            )
        _add_initial_users(state)
        save_changes(state)
        if config.acl_enable or config.authentication_enabled or config.authorization_enabled:
            state.gate = BrokerGate(
                config, config.broker_cluster_name, state.users, state.acls, state.store
            )
            if state.account_files is not None:
                state.gate.accounts = state.account_files.accounts

    def start(self) -> None:
        """Start to poll the files, if there are any."""
        if self._state.account_files is not None:
            self._timer = self._loop.call_later(LOOK_PERIOD, self._look)

    async def stop(self) -> None:
        """Stop polling."""
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        self._timer = self._loop.call_later(LOOK_PERIOD, self._look)
        files, gate = self._state.account_files, self._state.gate
        if files is None or gate is None:
            return
        try:
            for path in files.reload():
                logger.info("access file reloaded: %s", path)
        except InvalidInput as error:
            logger.error("%s; keeping its accounts as they were", error)  # noqa: TRY400 - no trace of secrets
        if gate.accounts is not files.accounts:
            gate.accounts = files.accounts


def _add_initial_users(state: BrokerState) -> None:
    now_ms = state.clock.now_ms()
    for name, password in state.config.initial_users():
        if name not in state.users:
            user = User(username=name, password=password, user_type=UserType.SUPER)
            state.users.create(user, now_ms)


def _migrate(state: BrokerState, files: AccountFiles) -> None:
    """Migrate accounts to users with rules, once: existing users stay as they are."""
    now_ms = state.clock.now_ms()
    for account in files.listed:
        name = account.access_key or ""
        if name in state.users:
            continue
        try:
            state.users.create(user_of_account(account), now_ms)
            acl = acl_of_account(account)
            if acl.policies:
                state.acls.merge(subject_of(name), acl, now_ms)
        except ServerError as error:
            logger.warning("migrating account %s failed: %s", name, error.remark)


def user_of_account(account: Account) -> User:
    """Return the user an account becomes; an admin can do everything."""
    return User(
        username=account.access_key,
        password=account.secret_key,
        user_type=str(UserType.SUPER if account.admin else UserType.NORMAL),
    )


def acl_of_account(account: Account) -> Acl:
    """Return the rules an account's permissions become; white addresses have no counterpart."""
    custom = [
        *_listed(ResourceKind.TOPIC, account.topic_perms),
        *_listed(ResourceKind.GROUP, account.group_perms),
    ]
    default = [
        _entry(f"{kind}:*", right)
        for kind, right in (
            (ResourceKind.TOPIC, account.default_topic_perm),
            (ResourceKind.GROUP, account.default_group_perm),
        )
        if right and right.strip()
    ]
    policies = [
        Policy(policy_type=str(kind), entries=entries)
        for kind, entries in ((PolicyType.CUSTOM, custom), (PolicyType.DEFAULT, default))
        if entries
    ]
    return Acl(policies=policies)


def _listed(kind: ResourceKind, lines: list[str] | None) -> list[PolicyEntry]:
    found = []
    for line in lines or ():
        words = [word.strip() for word in line.split("=")]
        if len(words) == 2 and all(words):
            found.append(_entry(f"{kind}:{words[0].removeprefix(RETRY_PREFIX)}", words[1]))
    return found


def _entry(resource: str, right: str) -> PolicyEntry:
    """Return a policy entry of 5.x; an invalid right denies, where Java would allow everything."""
    actions = _ACTIONS.get(right.strip())
    return PolicyEntry(
        resource=resource,
        actions=[str(action) for action in actions or [Action.ALL]],
        decision=str(PolicyDecision.DENY if actions is None else PolicyDecision.ALLOW),
    )
