"""Access control of a name server: users, the right each request needs, and the check.

A super user may do everything, a broker at a trusted address may register, a normal user may read.
A request that is not listed in `RIGHTS` needs `CHANGE`, so that a new one is closed until it is
listed. A name server without access control has no gate and does not import this module.

Users come from the settings and from a JSON file, an array of objects with the fields of RocketMQ's
users: `username`, `password`, `userType` (`Super` or `Normal`, the default) and `userStatus`
(`enable`, the default, or `disable`). The file is read again when it changes; a file that cannot be
read changes nothing, and that is logged.
"""

import logging
from collections.abc import Hashable, Mapping
from enum import Enum
from pathlib import Path

import msgspec

from pocketmq.errors import InvalidInput, NoPermission, ResponseCode
from pocketmq.nameserver.config import NameServerAccess
from pocketmq.nameserver.key_values import ORDER_NAMESPACE
from pocketmq.nameserver.live_brokers import host_of
from pocketmq.net.handshake import is_among
from pocketmq.protocol import Command, RequestCode
from pocketmq.protocol.requests.access import User
from pocketmq.protocol.requests.key_values import DEPARTED_NAMESPACE
from pocketmq.protocol.signature import ACCESS_KEY, Signed, check_signature

_log = logging.getLogger("pocketmq.nameserver")

MAX_FILE_BYTES = 16 << 20
_VALUES = frozenset({RequestCode.GET_KV_CONFIG, RequestCode.GET_KVLIST_BY_NAMESPACE})
_OF_TOPICS = frozenset({ORDER_NAMESPACE, DEPARTED_NAMESPACE})
_KEYS = {field.encode_name for field in msgspec.structs.fields(User)} - {"extra"}


class NeededRight(Enum):
    """The right that a request needs."""

    READ = "read routes and lists"
    REGISTER = "register brokers"
    CHANGE = "change the name server, or read what may be secret"


RIGHTS: dict[int, NeededRight] = {
    RequestCode.GET_ROUTEINFO_BY_TOPIC: NeededRight.READ,
    RequestCode.GET_BROKER_CLUSTER_INFO: NeededRight.READ,
    RequestCode.GET_BROKER_MEMBER_GROUP: NeededRight.READ,
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: NeededRight.READ,
    RequestCode.GET_TOPICS_BY_CLUSTER: NeededRight.READ,
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS: NeededRight.READ,
    RequestCode.GET_UNIT_TOPIC_LIST: NeededRight.READ,
    RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST: NeededRight.READ,
    RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: NeededRight.READ,
    RequestCode.REGISTER_BROKER: NeededRight.REGISTER,
    RequestCode.UNREGISTER_BROKER: NeededRight.REGISTER,
    RequestCode.BROKER_HEARTBEAT: NeededRight.REGISTER,
    RequestCode.QUERY_DATA_VERSION: NeededRight.REGISTER,
    RequestCode.REGISTER_TOPIC_IN_NAMESRV: NeededRight.REGISTER,
    RequestCode.WIPE_WRITE_PERM_OF_BROKER: NeededRight.CHANGE,
    RequestCode.ADD_WRITE_PERM_OF_BROKER: NeededRight.CHANGE,
    RequestCode.DELETE_TOPIC_IN_NAMESRV: NeededRight.CHANGE,
    RequestCode.PUT_KV_CONFIG: NeededRight.CHANGE,
    RequestCode.DELETE_KV_CONFIG: NeededRight.CHANGE,
    RequestCode.GET_KV_CONFIG: NeededRight.CHANGE,
    RequestCode.GET_KVLIST_BY_NAMESPACE: NeededRight.CHANGE,
    RequestCode.UPDATE_NAMESRV_CONFIG: NeededRight.CHANGE,
    RequestCode.GET_NAMESRV_CONFIG: NeededRight.CHANGE,
}


def right_for(request: Command) -> NeededRight:
    """Return the right a request needs; what routes show, or have shown, is no secret."""
    if request.code in _VALUES and request.ext.get("namespace") in _OF_TOPICS:
        return NeededRight.READ
    return RIGHTS.get(request.code, NeededRight.CHANGE)


class KnownUser(msgspec.Struct, frozen=True):
    """A user: the secret that signs requests, and whether everything is allowed."""

    secret: bytes
    is_super: bool

    def __repr__(self) -> str:
        return f"KnownUser(is_super={self.is_super})"


class Users:
    """Users by name. Belongs to the name server's loop."""

    def __init__(self, supers: Mapping[str, str], path: Path | None = None) -> None:
        """Take super users, and a file of users. Raises `InvalidInput` if it cannot be read."""
        self._fixed = {name: KnownUser(word.encode(), True) for name, word in supers.items()}
        self._path = path
        self._seen: tuple[int, ...] | None = None
        self._listed: dict[str, KnownUser | None] = {}
        if path is not None:
            self._seen = _stamp(path)
            self._listed = read_users(path)
            _warn_if_readable(path)

    def get(self, name: str) -> KnownUser | None:
        """Return a user; the file wins over the settings, so that it can replace a password."""
        self._reload_if_changed()
        return self._listed[name] if name in self._listed else self._fixed.get(name)

    def _reload_if_changed(self) -> None:
        if self._path is None:
            return
        stamp = _stamp(self._path)
        if stamp == self._seen:
            return
        self._seen = stamp
        try:
            self._listed = read_users(self._path)
        except InvalidInput as error:
            _log.error("%s; keeping the users read before", error)
        else:
            _log.info("users file reloaded: path=%s users=%d", self._path, len(self._listed))
            _warn_if_readable(self._path)


def read_users(path: Path) -> dict[str, KnownUser | None]:
    """Read a file of users, None for one that is disabled.

    Raises `InvalidInput`, which never shows what the file holds.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise InvalidInput(f"cannot read the users file {path}: {error.strerror}") from error
    if len(content) > MAX_FILE_BYTES:
        raise InvalidInput(f"the users file {path} is larger than {MAX_FILE_BYTES} bytes")
    try:
        listed = msgspec.json.decode(content, type=list[dict[str, str]])
    except msgspec.DecodeError:
        raise InvalidInput(f"the users file {path} is not a JSON array of objects") from None
    known: dict[str, KnownUser | None] = {}
    for number, fields in enumerate(listed, 1):
        name, user = _user(f"user {number} of the users file {path}", fields)
        if name in known:
            raise InvalidInput(f"user {number} of the users file {path} is a duplicate")
        known[name] = user
    return known


def _user(what: str, fields: dict[str, str]) -> tuple[str, KnownUser | None]:
    """Read one user; None for one that is disabled."""
    if not fields.keys() <= _KEYS:
        raise InvalidInput(f"{what} has an unknown field; allowed: {', '.join(sorted(_KEYS))}")
    name, password = fields.get("username", "").strip(), fields.get("password", "")
    if not name or not password.strip():
        raise InvalidInput(f"{what} needs a username and a password")
    kind = fields.get("userType", "Normal").lower()
    status = fields.get("userStatus", "enable").lower()
    if kind not in {"super", "normal"} or status not in {"enable", "disable"}:
        raise InvalidInput(f"{what} needs userType Super or Normal, userStatus enable or disable")
    return name, KnownUser(password.encode(), kind == "super") if status == "enable" else None


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _warn_if_readable(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except OSError:
        return
    if mode & 0o077:
        _log.warning(
            "users file %s can be read by other users of this machine; run chmod 600 on it", path
        )


class NameServerGate:
    """Checks the requests of one name server. Belongs to its loop."""

    def __init__(self, settings: NameServerAccess, users: Users) -> None:
        self._users = users
        self._trusted = settings.trusted_brokers()
        self._open_to_readers = not settings.read_authentication_enabled

    def check(self, connection: Hashable, request: Command) -> bool:
        """Return whether a super user signed a request. Raises `NoPermission` if it is refused.

        Where readers need no signature, none is checked: clients sign with the brokers' users.
        """
        # Read once, for the check and the handler: of a field that is there twice, both must see
        # the same value, or the check could be bypassed.
        fields = request.ext
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
            lack = f"user {name[:80]!r} is unknown, or the signature is wrong"
        else:
            lack = f"user {name[:80]!r} is a normal user"
        raise _refused(request, right, lack)

    def _signer(self, name: str, request: Command) -> KnownUser | None:
        """Return the user who signed a request.

        An unknown user is checked against a dummy secret: the time does not reveal which exist.
        """
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
