"""All access files of a broker: its own, and those in the directory `acl` beside it (4.9.x).

Java reads `conf/acl/**.yml` first and then `conf/plain_acl.yml`; an access key counts where it is
found first, white addresses of all files add up. An account is changed in the file it is in, a new
one goes to the broker's own. Files that come, go or change are noticed. Belongs to the broker's
loop.
"""

import os
from pathlib import Path

from pocketmq.broker.access.account_file import AccountFile
from pocketmq.broker.access.accounts import PlainAccounts, read_accounts
from pocketmq.errors import InvalidInput
from pocketmq.model import DataVersion
from pocketmq.protocol.requests.access import Account

DIRECTORY = "acl"
_READABLE = (".yml", ".yaml", ".json", ".toml")
_MOST_FILES = 1000


class AccountFiles:
    """The files as they were when they were read last."""

    def __init__(self, path: Path) -> None:
        """Read all. Raises `InvalidInput` if the broker's own is not there, or one is no good."""
        self.own = AccountFile(path)
        self._others = {each: AccountFile(each) for each in _beside(path)}
        self._bad: dict[Path, int] = {}
        self.accounts = self._joined()

    @property
    def files(self) -> list[AccountFile]:
        """All files, in the order in which they count."""
        return [*self._others.values(), self.own]

    @property
    def listed(self) -> list[Account]:
        """The accounts that count, secrets and all."""
        found: dict[str | None, Account] = {}
        for file in self.files:
            for account in file.listed:
                found.setdefault(account.access_key, account)
        return list(found.values())

    @property
    def white(self) -> list[str]:
        """The addresses from which no signature is needed."""
        return [address for file in self.files for address in file.white]

    @property
    def versions(self) -> dict[str, DataVersion]:
        """How often each file was changed by requests, by its whole path."""
        return {str(file.path.absolute()): file.version for file in self.files}

    def reload(self) -> list[Path]:
        """Read again what changed, came or went; return those files.

        Raises `InvalidInput` if one cannot be read, after all others have been: what was read of
        it before stays. It is reported once, until it changes again.
        """
        changed, fault = [], None
        present = set(_beside(self.own.path))
        for path in [path for path in self._others if path not in present]:
            del self._others[path]
            changed.append(path)
        for path in sorted(present - self._others.keys()):
            try:
                if self._read_new(path):
                    changed.append(path)
            except InvalidInput as error:
                fault = error
        for file in self.files:
            try:
                if file.path not in changed and file.reload():
                    changed.append(file.path)
            except InvalidInput as error:
                fault = error
        if changed:
            self.accounts = self._joined()
        if fault is not None:
            raise fault
        return changed

    def put(self, account: Account, now_ms: int) -> None:
        """Add an account, or change the given fields of one. Raises `InvalidInput`."""
        (self._file_of(account.access_key) or self.own).put(account, now_ms)
        self.accounts = self._joined()

    def remove(self, access_key: str, now_ms: int) -> bool:
        """Delete an account; return whether there was one."""
        file = self._file_of(access_key)
        if file is None or not file.remove(access_key, now_ms):
            return False
        self.accounts = self._joined()
        return True

    def set_white(self, addresses: list[str], path: str, now_ms: int) -> None:
        """Replace the addresses of one file that need no signature; "" is the broker's own.

        Raises `InvalidInput`, also for a file that is none of these: others are not touched.
        """
        file = self.own
        if path.strip():
            wanted = os.path.abspath(path.strip())  # noqa: PTH100 - compared, never opened
            known = {str(each.path.absolute()): each for each in self.files}
            if wanted not in known:
                raise InvalidInput(f"{wanted[:200]} is not one of this broker's access files")
            file = known[wanted]
        file.set_white(addresses, now_ms)
        self.accounts = self._joined()

    def _file_of(self, access_key: str | None) -> AccountFile | None:
        for file in self.files:
            if any(account.access_key == access_key for account in file.listed):
                return file
        return None

    def _read_new(self, path: Path) -> bool:
        try:
            stamp = path.stat().st_mtime_ns
        except OSError:  # gone again
            return False
        if self._bad.get(path) == stamp:
            return False
        try:
            self._others[path] = AccountFile(path)
        except InvalidInput:
            self._bad[path] = stamp
            raise
        self._bad.pop(path, None)
        self._others = dict(sorted(self._others.items()))
        return True

    def _joined(self) -> PlainAccounts:
        return read_accounts(self.white, self.listed)


def _beside(path: Path) -> list[Path]:
    """List the files in the directory of access files, in order; links to others are not gone."""
    found: list[Path] = []
    for folder, folders, names in os.walk(path.parent / DIRECTORY):
        folders.sort()
        found += [
            Path(folder, name)
            for name in names
            if name.endswith(_READABLE) and not name.startswith(".")
        ]
        if len(found) > _MOST_FILES:
            break
    return sorted(found)[:_MOST_FILES]
