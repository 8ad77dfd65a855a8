"""The users a name server knows: those of its settings, and those of a file that may change.

The file is a JSON array of objects with the fields of RocketMQ's users: `username`, `password`,
`userType` (`Super` or `Normal`, the default) and `userStatus` (`enable`, the default, or
`disable`). A file that cannot be read changes nothing; the log says so.
"""

import logging
from collections.abc import Mapping
from pathlib import Path

import msgspec

from pocketmq.errors import InvalidInput
from pocketmq.protocol.requests.access import User

_log = logging.getLogger("pocketmq.nameserver")

MAX_FILE_BYTES = 16 << 20


class Known(msgspec.Struct, frozen=True):
    """A user: the secret that signs, and whether everything is allowed."""

    secret: bytes
    is_super: bool

    def __repr__(self) -> str:
        return f"Known(is_super={self.is_super})"


class Users:
    """Users by name. Belongs to the name server's loop."""

    def __init__(self, supers: Mapping[str, str], path: Path | None = None) -> None:
        """Take super users, and a file of users. Raises `InvalidInput` if it cannot be read."""
        self._fixed = {name: Known(word.encode(), True) for name, word in supers.items()}
        self._path = path
        self._seen: tuple[int, ...] | None = None
        self._listed: dict[str, Known | None] = {}
        if path is not None:
            self._seen = _stamp(path)
            self._listed = read_users(path)
            _warn_if_readable(path)

    def get(self, name: str) -> Known | None:
        """Return a user; those of the file count first, so that it can replace a password."""
        self._look()
        return self._listed[name] if name in self._listed else self._fixed.get(name)

    def _look(self) -> None:
        if self._path is None:
            return
        stamp = _stamp(self._path)
        if stamp == self._seen:
            return
        self._seen = stamp
        try:
            self._listed = read_users(self._path)
        except InvalidInput as error:
            _log.error("%s; the users known before stay", error)
        else:
            _log.info("users file read again: path=%s users=%d", self._path, len(self._listed))
            _warn_if_readable(self._path)


def read_users(path: Path) -> dict[str, Known | None]:
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
    known: dict[str, Known | None] = {}
    for number, fields in enumerate(listed, 1):
        name, user = _user(f"user {number} of the users file {path}", fields)
        if name in known:
            raise InvalidInput(f"user {number} of the users file {path} is there twice")
        known[name] = user
    return known


_KEYS = {field.encode_name for field in msgspec.structs.fields(User)} - {"extra"}


def _user(what: str, fields: dict[str, str]) -> tuple[str, Known | None]:
    """Read one user; None for one that is disabled."""
    if not fields.keys() <= _KEYS:
        raise InvalidInput(f"{what} has a field that is none of {', '.join(sorted(_KEYS))}")
    name, password = fields.get("username", "").strip(), fields.get("password", "")
    if not name or not password.strip():
        raise InvalidInput(f"{what} needs a username and a password")
    kind = fields.get("userType", "Normal").lower()
    status = fields.get("userStatus", "enable").lower()
    if kind not in {"super", "normal"} or status not in {"enable", "disable"}:
        raise InvalidInput(f"{what} needs userType Super or Normal, userStatus enable or disable")
    return name, Known(password.encode(), kind == "super") if status == "enable" else None


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
