"""The check before every request of a name server with access control.

A super user may do everything, a broker at a trusted address may register, a normal user may read.
A name server without access control has no gate.
"""

from collections.abc import Hashable

from pocketmq.errors import NoPermission, ResponseCode
from pocketmq.nameserver.access_control import KnownUser, NeededRight, Users, right_for
from pocketmq.nameserver.config import NameServerAccess
from pocketmq.nameserver.live_brokers import host_of
from pocketmq.net.doorway import is_among
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.command import Command
from pocketmq.protocol.signature import ACCESS_KEY, Signed, check_signature


class Gate:
    """Decides for one name server. Belongs to its loop."""

    def __init__(self, settings: NameServerAccess, users: Users) -> None:
        self._users = users
        self._trusted = settings.trusted_brokers()
        self._open_to_readers = not settings.read_authentication_enabled

    def check(self, connection: Hashable, request: Command) -> bool:
        """Return whether a super user signed a request. Raises `NoPermission` for who may not.

        Where readers need no signature, none is checked: clients sign with the brokers' users.
        """
        fields = (
            request.ext
        )  # read once: handlers see the same, also of a field that is there twice
        right = right_for(request)
        if right is NeededRight.READ and self._open_to_readers:
            return False
        name = fields.get(ACCESS_KEY, "")
        user = self._signer(name, request) if name else None
        if user is not None and (user.is_super or right is NeededRight.READ):
            return user.is_super
        if right is not NeededRight.CHANGE and self._is_trusted(connection):
            return False
        if not name:
            lack = "the request is not signed"
        elif user is None:
            lack = f"user {name[:80]!r} is unknown here, or the signature is wrong"
        else:
            lack = f"user {name[:80]!r} is a normal user"
        raise _refused(request, right, lack)

    def _signer(self, name: str, request: Command) -> KnownUser | None:
        """Return the user who signed a request; unknown ones take as long as known ones."""
        user = self._users.get(name)
        secret = b"\0" if user is None else user.secret
        signed = check_signature(secret, request.code, request.ext, request.body)
        return None if signed is Signed.NOT else user

    def _is_trusted(self, connection: Hashable) -> bool:
        try:
            return bool(self._trusted) and is_among(host_of(connection), self._trusted)
        except ValueError:
            return False


def _refused(request: Command, right: NeededRight, lack: str) -> NoPermission:
    who = "a user" if right is NeededRight.READ else "a super user"
    also = " or an address in trustedBrokerAddresses" if right is NeededRight.REGISTER else ""
    text = f"{_name(request.code)} needs the signature of {who} of this name server{also}; {lack}"
    return NoPermission(ResponseCode.NO_PERMISSION, text)


def _name(code: int) -> str:
    try:
        return RequestCode(code).name
    except ValueError:
        return f"request {code}"
