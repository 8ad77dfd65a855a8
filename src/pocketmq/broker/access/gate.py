"""The access check before every request: authentication, then authorization.

Accounts of 4.x come first, users and rules of 5.x after them; a request has to pass all that are
enabled, and of two refusals the later counts, as in Java. What is checked is what handlers see: the
fields are read once, for both. A broker without access control has no gate and pays nothing.
"""

from collections.abc import Mapping
from typing import Protocol
from weakref import WeakKeyDictionary

from msgspec import Raw

from pocketmq.broker.access import accounts, needs_by_code
from pocketmq.broker.access.allowed import AllowedRequests
from pocketmq.broker.access.needs import ANYBODY, PUB, Need, topic_resource
from pocketmq.broker.access.rules import SubjectRules, decide
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
from pocketmq.protocol import Command, RequestCode
from pocketmq.protocol.header_json import read_ext
from pocketmq.protocol.signature import ACCESS_KEY, Signed, check_signature


class RequestPeer(Protocol):
    """The peer that sent a request."""

    @property
    def remote_address(self) -> str:
        """Host and port."""
        ...


class BrokerGate:
    """Checks the requests of one broker. Belongs to its loop."""

    def __init__(
        self,
        settings: AccessSettings,
        cluster: str,
        users: UserTable,
        acls: AclTable,
        records: needs_by_code.Records,
    ) -> None:
        self.accounts: accounts.PlainAccounts | None = None
        """The accounts of 4.x, if they are enabled."""
        self._cluster = cluster
        self._users = users
        self._acls = acls
        self._records = records
        self.strict = not settings.java_authorization
        """Whether more rights are needed than a Java broker requires."""
        self._binds = settings.require_signed_code
        self._users_of: WeakKeyDictionary[RequestPeer, str] = WeakKeyDictionary()
        self._authenticates = settings.authentication_enabled
        self._authorizes = settings.authorization_enabled
        self._unauthenticated = _codes(settings.authentication_whitelist)
        self._unauthorized = _codes(settings.authorization_whitelist)
        self._allowed = AllowedRequests()
        self._seen = acls.version, users.version

    def check(self, peer: RequestPeer, request: Command, *, served: bool = True) -> bool:
        """Raise `ServerError` with Java's code and words unless a request may pass.

        One that is not `served` needs no right: the answer is that it is not supported. Return
        whether the request's sender is authenticated.
        """
        source = _host(peer)
        fields = _fields_of(request)
        code = request.code
        bound = self._binds and code not in needs_by_code.READING
        first: ServerError | None = None
        if self.accounts is not None:
            asked = accounts.CheckedRequest(
                request,
                fields,
                source,
                needs_by_code.deciding_fields(code, fields),
                self._needs,
            )
            try:
                java = not (self.strict and served)
                accounts.check_account(self.accounts, asked, bound=bound, java=java)
            except ServerError as error:
                first = error
        proven = self.accounts is not None
        if self._authenticates and code not in self._unauthenticated:
            self._authenticate(request, fields, bound=bound)
            proven = True
        if (
            self._authorizes
            and code not in self._unauthorized
            and (served or code in needs_by_code.NEEDS)
        ):
            self._authorize(request, fields, source)
        if first is not None:
            raise first
        if code == RequestCode.HEART_BEAT:
            self._take_note(peer, fields)
        return proven

    def may_send(self, peer: RequestPeer, topic: str) -> bool:
        """Return whether the user whose heartbeats come from a peer may send to a topic.

        Members of a producer group are asked about half messages, which they are shown.
        """
        if not self.strict:
            return True
        name, source = self._users_of.get(peer), _host(peer)
        if self.accounts is not None and not accounts.may_publish(
            self.accounts, name, source, topic
        ):
            return False
        if not self._authorizes or RequestCode.CHECK_TRANSACTION_STATE in self._unauthorized:
            return True
        user = self._users.entries.get(name or "")
        if user is None or user.user_status == UserStatus.DISABLE:
            return False
        try:
            self._check_user(name, [Need(topic_resource(topic), PUB)], source)
        except ServerError:
            return False
        return True

    def same_user(self, peer: RequestPeer, other: RequestPeer) -> bool:
        """Return whether the heartbeats of two peers come from the same user."""
        return not self.strict or self._users_of.get(peer) == self._users_of.get(other)

    def _take_note(self, peer: RequestPeer, fields: Mapping[str, str]) -> None:
        """Remember the user of a peer; a name that was not verified, though others are, is none."""
        checked = self.accounts is not None or not (
            self._authenticates and RequestCode.HEART_BEAT in self._unauthenticated
        )
        name = fields.get(ACCESS_KEY)
        if checked and name is not None:
            self._users_of[peer] = name
        else:
            self._users_of.pop(peer, None)

    def _authenticate(self, request: Command, fields: Mapping[str, str], *, bound: bool) -> None:
        name = fields.get(ACCESS_KEY)
        if not name:
            raise refused("username cannot be null.")
        user = self._users.entries.get(name)
        if user is None:
            raise refused(f"User:{name} is not found.")
        if user.user_status == UserStatus.DISABLE:
            raise refused(f"User:{name} is disabled.")
        secret = (user.password or "").encode()
        signed = check_signature(secret, request.code, fields, request.body)
        if signed is Signed.NOT:
            raise refused("check signature failed.")
        if bound and signed is not Signed.BOUND:
            raise refused(accounts.UNBOUND)

    def _authorize(self, request: Command, fields: Mapping[str, str], source: str) -> None:
        if not self.strict and not fields:
            return
        self._forget_if_changed()
        name, deciding = fields.get(ACCESS_KEY), needs_by_code.deciding_fields(request.code, fields)
        if deciding is None:
            self._check_user(name, self._needs(request), source)
            return
        asked = name, source, request.code, *deciding
        if asked not in self._allowed:
            self._check_user(name, self._needs(request), source)
            if name is not None and name in self._users:
                self._allowed.remember(asked)

    def _needs(self, request: Command) -> list[Need] | None:
        """Return what a request needs, by its fields and by the record it is about."""
        needs = needs_by_code.needs_of(request, self._cluster, java=not self.strict)
        if not self.strict:
            return needs or [ANYBODY]
        if needs is None:
            return None
        rule = needs_by_code.NEEDS[request.code]
        if rule.position is not None:
            position = rule.position(request)
            if position is None:
                return [*needs, Need(topic_resource(None), rule.on_record)]
            more = needs_by_code.needs_on_record(self._records, position, rule.on_record)
            if more is None:
                return None
            needs = needs + more
        return needs or [Need(topic_resource(None), rule.on_record)]

    def _check_user(self, name: str | None, needs: list[Need] | None, source: str) -> None:
        if needs is not None and all(need is ANYBODY for need in needs):
            return
        if name is None:
            raise refused("Authorization failed. Please verify your access rights and try again.")
        if name not in self._users:
            raise refused(f"User:{name} not found.")
        if self._users.is_super(name):
            return
        if needs is None:
            raise refused(f"{subject_of(name)} is not a super user, which this request needs")
        acl = self._acls.entries.get(subject_of(name))
        rules = SubjectRules() if acl is None else compiled(acl)
        for need in needs:
            if need is ANYBODY:
                continue
            verdict = decide(rules, need.resource, need.actions, source)
            if verdict is not None:
                raise refused(
                    f"{subject_of(name)} has no permission to access {need.resource} "
                    f"from {source}, {verdict}"
                )

    def _forget_if_changed(self) -> None:
        """Drop the cache if rules or users have changed."""
        if self._acls.version is not self._seen[0] or self._users.version is not self._seen[1]:
            self._seen = self._acls.version, self._users.version
            self._allowed.clear()


def _fields_of(request: Command) -> dict[str, str]:
    """Return a request's fields; they are cached in the request only if they are ambiguous.

    Otherwise the handler parses the header from the raw bytes, which costs half as much. With a
    field that is there twice, check and handler might see different values: an attacker could pass
    the check with one topic and send to another. Such a request is parsed once, for both.
    """
    raw = request.ext_fields
    if type(raw) is Raw:
        fields, text = read_ext(raw), bytes(raw)
        # Without double backslashes every quote behind a backslash is within a string.
        quotes = -1 if b"\\\\" in text else text.count(b'"') - text.count(b'\\"')
        if fields and quotes == 4 * len(fields):
            return fields
    return request.ext


def _host(peer: RequestPeer) -> str:
    return peer.remote_address.rpartition(":")[0].strip("[]")


def _codes(text: str) -> frozenset[int]:
    words = (word.strip() for word in text.split(","))
    return frozenset(int(word) for word in words if word.isascii() and word.isdigit())
