"""The 4.x access file on disk: read, noticed when it changes, written by admin requests.

YAML as Java's plain_acl.yml if PyYAML is installed; JSON and TOML always. What is written into a
YAML file without PyYAML is JSON, which YAML readers read. It holds secrets, and is written for its
owner only.
"""

import os
from pathlib import Path
from typing import Any

import msgspec

from pocketmq.broker.access.accounts import PlainAccounts, read_accounts
from pocketmq.errors import InvalidInput
from pocketmq.model import DataVersion
from pocketmq.protocol.requests.access import Account

_LARGEST = 4 * 1024 * 1024
_WHITE = "globalWhiteRemoteAddresses"
_ACCOUNTS = "accounts"
_VERSION = "dataVersion"


class AccountFile:
    """One file, as it was when it was read last. Belongs to the broker's loop."""

    def __init__(self, path: Path) -> None:
        """Read a file. Raises `InvalidInput` if it is not there or not what it should be."""
        self.path = path
        self._stamp = self._look()
        self._content = _read(path)
        self.accounts = _understood(self._content)

    @property
    def listed(self) -> list[Account]:
        """The accounts as the file lists them, with secrets."""
        return _accounts(self._content)

    @property
    def white(self) -> list[str]:
        """The addresses from which no signature is needed, as the file lists them."""
        return _lines(self._content.get(_WHITE))

    @property
    def version(self) -> DataVersion:
        """How often the file was changed by requests."""
        found = self._content.get(_VERSION)
        entry = found[0] if isinstance(found, list) and found else {}
        try:
            timestamp, counter = int(entry.get("timestamp", 0)), int(entry.get("counter", 0))
        except (AttributeError, ValueError):
            return DataVersion()
        return DataVersion(timestamp=timestamp, counter=counter)

    def reload(self) -> bool:
        """Read the file again if it changed; return whether it did.

        Raises `InvalidInput` if it cannot be read; what was read before stays.
        """
        stamp = self._look()
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        content = _read(self.path)
        self.accounts = _understood(content)
        self._content = content
        return True

    def put(self, account: Account, now_ms: int) -> None:
        """Add an account, or change the given fields of one. Raises `InvalidInput`."""
        entries = [dict(entry) for entry in _entries(self._content)]
        given = {key: value for key, value in _wire(account).items() if value is not None}
        for entry in entries:
            if entry.get("accessKey") == account.access_key:
                entry.update(given)
                break
        else:
            entries.append(given)
        self._save(self._content | {_ACCOUNTS: entries}, now_ms)

    def remove(self, access_key: str, now_ms: int) -> bool:
        """Delete an account; return whether there was one."""
        entries = [dict(entry) for entry in _entries(self._content)]
        left = [entry for entry in entries if entry.get("accessKey") != access_key]
        if len(left) == len(entries):
            return False
        self._save(self._content | {_ACCOUNTS: left}, now_ms)
        return True

    def set_white(self, addresses: list[str], now_ms: int) -> None:
        """Replace the addresses from which no signature is needed. Raises `InvalidInput`."""
        self._save(self._content | {_WHITE: addresses}, now_ms)

    def _save(self, content: dict[str, Any], now_ms: int) -> None:
        accounts = _understood(content)
        version = self.version.following(now_ms)
        entry = {"counter": version.counter, "timestamp": version.timestamp}
        content |= {_VERSION: [entry]}
        _write(self.path, content)
        self._stamp = self._look()
        self._content = content
        self.accounts = accounts

    def _look(self) -> tuple[int, int, int] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise InvalidInput(f"cannot read the access file {path}: {error.strerror}") from error
    if len(data) > _LARGEST:
        raise InvalidInput(f"the access file {path} is larger than {_LARGEST} bytes")
    try:
        content = _parsed(path, data.decode())
    except InvalidInput:
        raise
    except (ValueError, msgspec.DecodeError):
        # The parser's message may quote a secret, so it is not shown.
        raise InvalidInput(f"the access file {path} is not well-formed") from None
    if content is None or content == "":
        return {}
    if not isinstance(content, dict):
        raise InvalidInput(f"the access file {path} holds no accounts")
    return content


def _parsed(path: Path, text: str) -> Any:
    if path.suffix == ".toml":
        import tomllib

        return tomllib.loads(text)
    if path.suffix == ".json":
        return msgspec.json.decode(text)
    try:
        import yaml  # type: ignore[import-untyped]
    except ImportError:
        try:
            return msgspec.json.decode(text) if text.strip() else {}
        except msgspec.DecodeError:
            hint = "pip install 'pocketmq[yaml]', or write it as .json or .toml"
            raise InvalidInput(f"the access file {path} is YAML: {hint}") from None
    try:
        # Every scalar as the text it is: a secret of digits is no number.
        return yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - makes nothing but text
    except (yaml.YAMLError, RecursionError):
        raise ValueError from None


def _write(path: Path, content: dict[str, Any]) -> None:
    if path.suffix == ".toml":
        raise InvalidInput(f"the access file {path} is TOML: it is only read, change it by hand")
    text = msgspec.json.format(msgspec.json.encode(content), indent=2)
    if path.suffix != ".json":
        try:
            import yaml
        except ImportError:
            pass
        else:
            text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True).encode()
    beside = path.with_name(f".{path.name}.new")
    try:
        mode = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with os.fdopen(os.open(beside, mode, 0o600), "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        raise InvalidInput(f"cannot write the access file {path}: {error.strerror}") from error


def _understood(content: dict[str, Any]) -> PlainAccounts:
    return read_accounts(_lines(content.get(_WHITE)), _accounts(content))


def _entries(content: dict[str, Any]) -> list[dict[str, Any]]:
    entries = content.get(_ACCOUNTS) or []
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        raise InvalidInput("the accounts in the access file must be a list of objects")
    return entries


def _accounts(content: dict[str, Any]) -> list[Account]:
    return [_account(entry) for entry in _entries(content)]


def _account(entry: dict[str, Any]) -> Account:
    return Account(
        access_key=_text(entry.get("accessKey")),
        secret_key=_text(entry.get("secretKey")),
        white_remote_address=_text(entry.get("whiteRemoteAddress")),
        admin=(_text(entry.get("admin")) or "").lower() == "true",
        default_topic_perm=_text(entry.get("defaultTopicPerm")),
        default_group_perm=_text(entry.get("defaultGroupPerm")),
        topic_perms=_lines(entry.get("topicPerms")) or None,
        group_perms=_lines(entry.get("groupPerms")) or None,
    )


def _wire(account: Account) -> dict[str, Any]:
    fields = msgspec.structs.fields(account)
    known = {field.name: field.encode_name for field in fields if field.name != "extra"}
    return {key: getattr(account, name) for name, key in known.items()}


def _lines(value: object) -> list[str]:
    return [text for each in value if (text := _text(each))] if isinstance(value, list) else []


def _text(value: object) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)
