"""The gate before every request: who asks, and may they? One for a broker with access control.

Accounts of 4.x come first, users and rules of 5.x after them; a request has to pass all that are
enabled, and of two refusals the later counts, as in Java. What is checked is what handlers see: the
fields are read once, for both. A broker without access control has no gate and pays nothing.
"""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Raw

from pocketmq.broker.access.accounts import Accounts, check_account
from pocketmq.broker.access.needs import Need, deciding_fields, needs_of
from pocketmq.broker.access.rules import Rules, decide
from pocketmq.broker.access.settings import AccessSettings
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
from pocketmq.protocol.header_json import read_ext
from pocketmq.protocol.signature import ACCESS_KEY, Signed, check_signature

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
        self._allowed: set[tuple[object, ...]] = set()  # what was asked and may pass again
        self._seen = acls.version, users.version

    def check(self, peer: Peer, request: Command) -> None:
        """Raise `ServerError` with Java's code and words unless a request may pass."""
        source = peer.remote_address.rpartition(":")[0].strip("[]")
        fields = _fields_of(request)
        first: ServerError | None = None
        if self.accounts is not None:
            try:
                check_account(self.accounts, source, request, fields)
            except ServerError as error:
                first = error
        if self._authenticates and request.code not in self._unauthenticated:
            self._authenticate(request, fields)
        if self._authorizes and request.code not in self._unauthorized:
            self._authorize(request, fields, source)
        if first is not None:
            raise first

    def _authenticate(self, request: Command, fields: Mapping[str, str]) -> None:
        name = fields.get(ACCESS_KEY)
        if not name:
            raise refused("username cannot be null.")
        user = self._users.entries.get(name)
        if user is None:
            raise refused(f"User:{name} is not found.")
        if user.user_status == UserStatus.DISABLE:
            raise refused(f"User:{name} is disabled.")
        secret = (user.password or "").encode()
        if check_signature(secret, request.code, fields, request.body) is Signed.NOT:
            raise refused("check signature failed.")

    def _authorize(self, request: Command, fields: Mapping[str, str], source: str) -> None:
        if not fields:
            return
        self._forget_if_changed()
        name, deciding = fields.get(ACCESS_KEY), deciding_fields(request.code, fields)
        asked = name, source, request.code, deciding
        if deciding is not None and asked in self._allowed:
            return
        needs = needs_of(request, self._cluster)
        if needs:
            self._check_user(name, needs, source)
        if deciding is not None:
            if len(self._allowed) >= _REMEMBERED:
                self._allowed.clear()
            self._allowed.add(asked)

    def _check_user(self, name: str | None, needs: list[Need], source: str) -> None:
        if name is None:
            raise refused("Authorization failed. Please verify your access rights and try again.")
        if name not in self._users:
            raise refused(f"User:{name} not found.")
        if self._users.is_super(name):
            return
        acl = self._acls.entries.get(subject_of(name))
        rules = Rules() if acl is None else compiled(acl)
        for need in needs:
            verdict = decide(rules, need.resource, need.actions, source)
            if verdict is not None:
                raise refused(
                    f"{subject_of(name)} has no permission to access {need.resource} "
                    f"from {source}, {verdict}"
                )

    def _forget_if_changed(self) -> None:
        """Decide anew what was decided by rules, or about users, that are no more."""
        if self._acls.version is not self._seen[0] or self._users.version is not self._seen[1]:
            self._seen = self._acls.version, self._users.version
            self._allowed.clear()


def _fields_of(request: Command) -> dict[str, str]:
    """Give a request's fields; if they leave no doubt they are not kept.

    Whoever reads the header then reads it from what came, which costs half as much. With a field
    that is there twice the two might see different values: such a request is read once for all.
    """
    raw = request.ext_fields
    if type(raw) is Raw:
        fields, text = read_ext(raw), bytes(raw)
        # Without double backslashes every quote behind a backslash is within a string.
        quotes = -1 if b"\\\\" in text else text.count(b'"') - text.count(b'\\"')
        if fields and quotes == 4 * len(fields):
            return fields
    return request.ext


def _codes(text: str) -> frozenset[int]:
    words = (word.strip() for word in text.split(","))
    return frozenset(int(word) for word in words if word.isascii() and word.isdigit())
