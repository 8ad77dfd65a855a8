"""Access control of a proxy: its clients' users and rules are those of the brokers.

The proxy itself talks to the brokers as a super user, so nothing may pass that is not checked here.
"""

from typing import Any

from pocketmq.broker.access.needs import Need
from pocketmq.broker.access.rules import SubjectRules, decide
from pocketmq.broker.access.users import UserStatus, UserType, compiled, subject_of
from pocketmq.client.questions.asking import ask, ask_address
from pocketmq.client.session import Session
from pocketmq.errors import BrokerNotFound, ResponseCode
from pocketmq.protocol.requests.access import AUTH_GET_ACL, AUTH_GET_USER, Acl, User
from pocketmq.proxy.cached_cluster import Cached
from pocketmq.proxy.translation.authorization import needs_of, read_signature, unauthorized
from pocketmq.proxy.translation.caller import Caller
from pocketmq.proxy.translation.limits import ProxyAccess

_NONE_SUCH = frozenset(
    {
        int(ResponseCode.SUCCESS),
        int(ResponseCode.USER_NOT_EXIST),
        int(ResponseCode.POLICY_NOT_EXIST),
    }
)


class AccessGate:
    """Checks the users and rights of calls. Belongs to one event loop."""

    def __init__(self, session: Session, access: ProxyAccess) -> None:
        self._session = session
        self._access = access
        self._users = Cached(self._read_user)
        self._rules = Cached(self._read_rules)

    async def admit(self, caller: Caller, request: Any) -> None:
        """Raise `CallRefused` if a client's user is not proven, or may not make a request."""
        if not self._access.authenticate:
            return
        signed = read_signature(caller)
        user = await self._users.get(signed.username)
        if user is None:
            raise unauthorized(f"User:{signed.username} is not found.")
        if UserStatus.named(user.user_status) is UserStatus.DISABLE:
            raise unauthorized(f"User:{signed.username} is disabled.")
        if not user.password or not signed.proves(user.password):
            raise unauthorized("check signature failed.")
        if self._access.authorize and UserType.named(user.user_type) is not UserType.SUPER:
            source = caller.address.rpartition(":")[0].strip("[]")
            await self._authorize(signed.username, needs_of(request), source)

    async def _authorize(self, username: str, needs: list[Need], source: str) -> None:
        rules = await self._rules.get(subject_of(username))
        for need in needs:
            verdict = decide(rules, need.resource, need.actions, source)
            if verdict is not None:
                raise unauthorized(
                    f"{subject_of(username)} has no permission to access {need.resource} "
                    f"from {source}, {verdict}"
                )

    async def _read_user(self, name: str) -> User | None:
        header = AUTH_GET_USER.header(username=name)
        question = ask(None, AUTH_GET_USER, header, accept=_NONE_SUCH)
        answer = await ask_address(
            self._session.calls.ask, self._broker(), question, timeout=self._timeout
        )
        return (
            answer.result() if answer.code == ResponseCode.SUCCESS and not answer.is_empty else None
        )

    async def _read_rules(self, subject: str) -> SubjectRules:
        header = AUTH_GET_ACL.header(subject=subject)
        question = ask(None, AUTH_GET_ACL, header, accept=_NONE_SUCH)
        answer = await ask_address(
            self._session.calls.ask, self._broker(), question, timeout=self._timeout
        )
        found: Acl | None = None
        if answer.code == ResponseCode.SUCCESS and not answer.is_empty:
            found = answer.result()
        return SubjectRules() if found is None else compiled(found)

    @property
    def _timeout(self) -> float:
        return self._session.options.request_timeout

    def _broker(self) -> str:
        """Return the address of any broker: all have the same users and rules."""
        places = self._session.addresses.places(masters_only=True)
        if not places:
            raise BrokerNotFound("any")
        return self._session.random.choice(places).address
