"""Who has logged in: signed cookies, and how often one may try. Pure, over `now`."""

import base64
import hashlib
import hmac
from collections import OrderedDict

COOKIE = "pocketmq_session"
LASTS = 12 * 3600.0
"""Seconds after which one has to log in again."""
_MOST_ADDRESSES = 1024
_FREE_TRIES = 3
_LONGEST_WAIT = 60.0


class Sessions:
    """Gives out cookies and knows them again. A cookie is `expiry.nonce.signature`."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._ended: dict[str, float] = {}

    def begin(self, now: float, nonce: str) -> str:
        """Give a cookie for one who knows the password; `nonce` is random hex."""
        text = f"{int(now + LASTS)}.{nonce}"
        return f"{text}.{self._signature(text)}"

    def end(self, cookie: str, now: float) -> None:
        """Know a cookie no more: its owner has logged out."""
        nonce = self.who(cookie, now)
        if nonce is not None:
            self._ended = {known: at for known, at in self._ended.items() if at > now}
            self._ended[nonce] = now + LASTS

    def who(self, cookie: str, now: float) -> str | None:
        """Give the nonce of a cookie that is ours and still good, else None."""
        text, _, signature = cookie.rpartition(".")
        expected = self._signature(text)
        if not hmac.compare_digest(signature.encode(errors="replace"), expected.encode()):
            return None
        expiry, _, nonce = text.partition(".")
        return nonce if now < int(expiry) and nonce not in self._ended else None

    def _signature(self, text: str) -> str:
        return hmac.new(self._key, text.encode(errors="replace"), hashlib.sha256).hexdigest()


class Attempts:
    """Slows down those who guess: after three wrong passwords each further one costs more time."""

    def __init__(self) -> None:
        self._failed: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def wait(self, address: str, now: float) -> float:
        """Give the seconds until this address may try again, 0 if it may now."""
        count, last = self._failed.get(address, (0, 0.0))
        if count < _FREE_TRIES:
            return 0.0
        pause = min(_LONGEST_WAIT, 2.0 ** (count - _FREE_TRIES))
        return max(0.0, last + pause - now)

    def failed(self, address: str, now: float) -> None:
        """Remember a wrong password."""
        count, _ = self._failed.pop(address, (0, 0.0))
        self._failed[address] = (count + 1, now)
        while len(self._failed) > _MOST_ADDRESSES:
            self._failed.popitem(last=False)

    def succeeded(self, address: str) -> None:
        """Forget wrong passwords of one who knows the right one."""
        self._failed.pop(address, None)


def same_password(given: str, wanted: str) -> bool:
    """Compare in a time that tells nothing about either."""
    digests = [hashlib.sha256(text.encode(errors="replace")).digest() for text in (given, wanted)]
    return hmac.compare_digest(*digests)


def basic_password(header: str) -> str | None:
    """Give the password of an `Authorization: Basic` header, None if it is none."""
    kind, _, text = header.partition(" ")
    if kind.lower() != "basic":
        return None
    try:
        decoded = base64.b64decode(text.strip(), validate=True).decode()
    except ValueError:
        return None
    return decoded.partition(":")[2]
