"""The gate before every request: who asks, and may they? One for a broker with access control.

Accounts of 4.x come first, users and rules of 5.x after them; a request has to pass all that are
enabled, and of two refusals the later counts, as in Java. A broker without access control has no
gate, and its requests pay nothing.
"""

from typing import Protocol

from pocketmq.broker.access.accounts import Accounts, check_account
from pocketmq.broker.access.needs import Need, needs_of
from pocketmq.broker.access.rules import NO_RULE, Rules, decide
from pocketmq.broker.access.settings import AccessSettings
from pocketmq.broker.access.signature import ACCESS_KEY, is_signed_with
from pocketmq.broker.access.users import (
    AclTable,
    UserStatus,
    UserTable,
    compiled,
    refused,
    subject_of,
)
from pocketmq.errors import ServerError
from pocketmq.protocol.command import Command

_REMEMBERED = 10_000


class Peer(Protocol):
    """Where a request came from."""

    @property
    def remote_address(self) -> str:
        """Host and port."""
        ...


class Gate:
    """Decides for one broker. Belongs to its loop."""

    def __init__(
        self, settings: AccessSettings, cluster: str, users: UserTable, acls: AclTable
    ) -> None:
        self.accounts: Accounts | None = None
        """Those of the access file, if it counts."""
        self._cluster = cluster
        self._users = users
        self._acls = acls
        self._authenticates = settings.authentication_enabled
        self._authorizes = settings.authorization_enabled
        self._unauthenticated = _codes(settings.authentication_whitelist)
        self._unauthorized = _codes(settings.authorization_whitelist)
        self._verdicts: dict[tuple[str, Need, str], str | None] = {}
        self._rules: dict[str, Rules] = {}
        self._seen = acls.version

    def check(self, peer: Peer, request: Command) -> None:
        """Raise `ServerError` with Java's code and words unless a request may pass."""
        source = peer.remote_address.rpartition(":")[0].strip("[]")
        first: ServerError | None = None
        if self.accounts is not None:
            try:
                check_account(self.accounts, source, request)
            except ServerError as error:
                first = error
        if self._authenticates and request.code not in self._unauthenticated:
            self._authenticate(request)
        if self._authorizes and request.code not in self._unauthorized:
            self._authorize(request, source)
        if first is not None:
            raise first

    def _authenticate(self, request: Command) -> None:
        fields = request.ext
        name = fields.get(ACCESS_KEY)
        if not name:
            raise refused("username cannot be null.")
        user = self._users.entries.get(name)
        if user is None:
            raise refused(f"User:{name} is not found.")
        if user.user_status == UserStatus.DISABLE:
            raise refused(f"User:{name} is disabled.")
        if not is_signed_with((user.password or "").encode(), fields, request.body):
            raise refused("check signature failed.")

    def _authorize(self, request: Command, source: str) -> None:
        if not request.ext:
            return
        needs = needs_of(request, self._cluster)
        if not needs:
            return
        name = request.ext.get(ACCESS_KEY)
        if name is None:
            raise refused("Authorization failed. Please verify your access rights and try again.")
        if name not in self._users:
            raise refused(f"User:{name} not found.")
        if self._users.is_super(name):
            return
        self._forget_if_changed()
        for need in needs:
            key = name, need, source
            try:
                verdict = self._verdicts[key]
            except KeyError:
                verdict = self._decide(name, need, source)
                if len(self._verdicts) >= _REMEMBERED:
                    self._verdicts.clear()
                self._verdicts[key] = verdict
            if verdict is not None:
                raise refused(
                    f"{subject_of(name)} has no permission to access {need.resource} "
                    f"from {source}, {verdict}"
                )

    def _decide(self, name: str, need: Need, source: str) -> str | None:
        subject = subject_of(name)
        rules = self._rules.get(subject)
        if rules is None:
            acl = self._acls.entries.get(subject)
            if acl is None:
                return NO_RULE
            rules = self._rules[subject] = compiled(acl)
        return decide(rules, need.resource, need.actions, source)

    def _forget_if_changed(self) -> None:
        if self._acls.version is not self._seen:
            self._seen = self._acls.version
            self._verdicts.clear()
            self._rules.clear()


def _codes(text: str) -> frozenset[int]:
    words = (word.strip() for word in text.split(","))
    return frozenset(int(word) for word in words if word.isascii() and word.isdigit())
