"""The two ids of a message: where it is stored, and which client sent it when.

A broker's offset id is a location: host and commit-log offset. A client's unique id travels as a
property and stays the same through retries. Both are upper-case hexadecimal, 32 digits with an
IPv4 address, 56 with IPv6.
"""

import ipaddress
import struct
from collections.abc import Iterable
from itertools import count, islice

import msgspec

from pocketmq.errors import InvalidInput, MessageMalformed
from pocketmq.protocol.hosts import V4_SIZE, V6_SIZE, decode_host

_DIGITS = frozenset("0123456789abcdefABCDEF")
_V4_DIGITS = 32
_V6_DIGITS = 56
_OFFSET = struct.Struct(">q")
_UNIQUE_TAIL = struct.Struct(">HIIH")
_DAY_MS = 86_400_000
_SMALL_STEP_MS = 1_000_000


class OffsetId(msgspec.Struct, frozen=True):
    """A message's place: the broker's address, and the offset in its commit log."""

    host: str
    commit_log_offset: int


class UniqueId(msgspec.Struct, frozen=True):
    """The parts of a client's id. `ms_of_month` counts from the first of the sender's month."""

    ip: str
    pid: int
    loader_hash: int
    ms_of_month: int
    counter: int


def encode_offset_id(store_host: bytes, commit_log_offset: int) -> str:
    """Return the offset id of a message. The host is 8 or 20 bytes, as `hosts` encodes it."""
    if len(store_host) not in (V4_SIZE, V6_SIZE):
        raise InvalidInput("a host must have 8 bytes (IPv4) or 20 (IPv6)")
    try:
        return (store_host + _OFFSET.pack(commit_log_offset)).hex().upper()
    except struct.error as error:
        raise InvalidInput(f"{commit_log_offset} is not a commit-log offset") from error


def parse_offset_id(text: str) -> OffsetId:
    """Read an offset id; raises `InvalidInput` if it is not one."""
    raw = _bytes_of(text, "a message id with an offset")
    (offset,) = _OFFSET.unpack(raw[-8:])
    try:
        host = decode_host(raw[:-8])
    except MessageMalformed as error:
        raise InvalidInput(f"{text!r} is not a message id with an offset") from error
    if offset < 0:
        raise InvalidInput(f"{text!r} is not a message id with an offset: it is negative")
    return OffsetId(host, offset)


def parse_unique_id(text: str) -> UniqueId:
    """Read a client's id; raises `InvalidInput` if it cannot be one.

    Both kinds of id look alike: the caller must know which one a text is.
    """
    raw = _bytes_of(text, "a client's message id")
    pid, loader_hash, ms_of_month, counter = _UNIQUE_TAIL.unpack(raw[-12:])
    return UniqueId(str(ipaddress.ip_address(raw[:-12])), pid, loader_hash, ms_of_month, counter)


def _bytes_of(text: str, kind: str) -> bytes:
    if len(text) not in (_V4_DIGITS, _V6_DIGITS) or not _DIGITS.issuperset(text):
        raise InvalidInput(f"{text!r} is not {kind}: 32 or 56 hexadecimal digits are needed")
    return bytes.fromhex(text)


class UniqueIds:
    """Makes the unique ids of one process, in Java's form.

    Any thread may ask: the counter is stepped in one indivisible operation, and two threads that
    see a new month at once set the same values. Only the counter's low 16 bits show, so an id
    repeats after 65536 others within one millisecond, as in Java.
    """

    def __init__(
        self, ip: bytes, pid: int, loader_hash: int, *, utc_offset_ms: int = 0, first: int = 0
    ) -> None:
        """Take the host's IP as 4 or 16 bytes, the process id, and any 32 bits of the process.

        `utc_offset_ms` is local time less UTC: months begin at local midnight.
        """
        if len(ip) not in (4, 16):
            raise InvalidInput(f"an IP address has 4 or 16 bytes, not {len(ip)}")
        fixed = (
            ip + (pid & 0xFFFF).to_bytes(2, "big") + (loader_hash & 0xFFFF_FFFF).to_bytes(4, "big")
        )
        self._prefix = fixed.hex().upper()
        self._utc_offset_ms = utc_offset_ms
        self._counter = count(first)
        self.next_number = self._counter.__next__
        """Returns the number of another id that begins as the last one of `next_parts`."""
        self._month = (0, 0)
        self._last = (-1, "")  # a millisecond, and all but the counter of its ids

    def next_id(self, now_ms: int) -> str:
        """Return a new id."""
        last_ms, prefix = self._last
        if last_ms != now_ms:
            prefix = f"{self._prefix}{self._ms_of_month(now_ms):08X}"
            self._last = (now_ms, prefix)
        return "%s%04X" % (prefix, next(self._counter) & 0xFFFF)  # noqa: UP031 - quicker

    def next_parts(self, now_ms: int) -> tuple[str, int]:
        """Return what a new id begins with, and its number; see `numbered_ids`."""
        last_ms, prefix = self._last
        if last_ms != now_ms:
            prefix = f"{self._prefix}{self._ms_of_month(now_ms):08X}"
            self._last = (now_ms, prefix)
        return prefix, next(self._counter)

    def next_ids(self, now_ms: int, amount: int) -> list[str]:
        """Return several new ids at once."""
        return numbered_ids(*self.take(now_ms, amount))

    def take(self, now_ms: int, amount: int) -> tuple[str, list[int]]:
        """Return what several new ids begin with, and their numbers; see `numbered_ids`."""
        prefix = f"{self._prefix}{self._ms_of_month(now_ms):08X}"
        return prefix, list(islice(self._counter, amount))

    def take_run(self, now_ms: int, amount: int) -> tuple[str, int]:
        """Return what several new ids begin with, and the first of their numbers in a row."""
        prefix = f"{self._prefix}{self._ms_of_month(now_ms):08X}"
        return prefix, next(
            islice(self._counter, amount - 1, None), 0
        ) - amount + 1 if amount else 0

    def _ms_of_month(self, now_ms: int) -> int:
        start, end = self._month
        if now_ms >= end:
            start, end = self._month = month_span(now_ms, self._utc_offset_ms)
        passed = now_ms - start
        if -_SMALL_STEP_MS < passed < 0:
            return 0  # the clock was set back a little, across the start of the month
        return passed & 0xFFFF_FFFF


def numbered_ids(prefix: str, steps: Iterable[int]) -> list[str]:
    """Return the ids that `UniqueIds.take` stands for."""
    form = f"{prefix}%04X"
    return [form % (step & 0xFFFF) for step in steps]


def month_span(now_ms: int, utc_offset_ms: int) -> tuple[int, int]:
    """Return the first millisecond of a time's month and of the next, both since 1970 in UTC.

    The offset counts as fixed: in a month with a change of the clocks the start may be an
    hour off, which no id minds.
    """
    days = (now_ms + utc_offset_ms) // _DAY_MS
    year, month = _civil_month(days)
    following = (year, month + 1) if month < 12 else (year + 1, 1)
    start, end = _first_day(year, month), _first_day(*following)
    return start * _DAY_MS - utc_offset_ms, end * _DAY_MS - utc_offset_ms


def _first_day(year: int, month: int) -> int:
    """Count the days from 1970-01-01 to the first of a month (years begin in March here)."""
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - 719_468


def _civil_month(days: int) -> tuple[int, int]:
    """Return year and month of a day counted from 1970-01-01."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return era * 400 + year_of_era + (month <= 2), month
