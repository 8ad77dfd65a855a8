"""Parsers of options, which Spark passes as text with case-insensitive names.

An invalid option is refused by its name, with what is allowed. Values of secret options are never
part of a message. Independent of particular options.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, TypeVar

from pocketmq.errors import InvalidInput, OptionInvalid

T = TypeVar("T")
Read = Callable[[str], Any]

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_SECONDS = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)\Z")
_SIZES = {"": 1, "b": 1, "k": 1024, "kb": 1024, "m": 1 << 20, "mb": 1 << 20}
_SIZE = re.compile(r"(\d+)\s*([a-z]*)\Z")
_FLAGS = {"true": True, "false": False}


def read_options(
    given: Mapping[str, str], known: Mapping[str, Read], *, spark_own: Iterable[str] = ()
) -> dict[str, Any]:
    """Read options; the result has their names as `known` spells them.

    Names are case-insensitive. Those of `spark_own` are Spark's and are ignored. Raises
    `OptionInvalid` for an unknown name and for a value that does not read.
    """
    spelled = {name.lower(): name for name in known}
    passed = {name.lower() for name in spark_own}
    found: dict[str, Any] = {}
    for key, text in given.items():
        name = spelled.get(key.lower())
        if name is None:
            if key.lower() in passed:
                continue
            raise OptionInvalid(key, f"is unknown{_hint(key, spelled)}")
        if name in found:
            raise OptionInvalid(name, "is given twice")
        try:
            found[name] = known[name](str(text))
        except OptionInvalid:
            raise
        except InvalidInput as error:
            raise OptionInvalid(name, f"is invalid: {error}") from None
    return found


def _hint(key: str, spelled: Mapping[str, str]) -> str:
    near = get_close_matches(key.lower()[:80], spelled, 1)
    return f"; did you mean {spelled[near[0]]!r}?" if near else ""


def text(value: str) -> str:
    """Read text that is not empty."""
    if not value.strip():
        raise InvalidInput("must not be empty")
    return value.strip()


def flag(value: str) -> bool:
    """Read true or false."""
    found = _FLAGS.get(value.strip().lower())
    if found is None:
        raise InvalidInput(f"must be true or false, not {value!r}")
    return found


def whole(at_least: int = 0, at_most: int = 2**63 - 1) -> Read:
    """Return a parser of whole numbers."""

    def read(value: str) -> int:
        plain = value.strip().replace("_", "")
        if not (plain.isascii() and plain.isdigit() and len(plain) < 20):
            raise InvalidInput(f"must be a whole number of at least {at_least}, not {value!r}")
        if not at_least <= int(plain) <= at_most:
            raise InvalidInput(f"must be from {at_least} to {at_most}, not {value}")
        return int(plain)

    return read


def seconds(value: str) -> float:
    """Read a duration such as `15m`, `30s`, `200ms`; a bare number is seconds."""
    found = _SECONDS.match(value.strip().lower())
    unit = found and (_UNITS.get(found[2]) if found[2] else 1.0)
    if not found or unit is None:
        raise InvalidInput(f"must be a duration such as 200ms, 30s, 15m or 1h, not {value!r}")
    return float(found[1]) * unit


def size(value: str) -> int:
    """Read a number of bytes such as `4m` or `65536`."""
    found = _SIZE.match(value.strip().lower())
    unit = found and _SIZES.get(found[2])
    if not found or not unit or not int(found[1]):
        raise InvalidInput(f"must be a number of bytes such as 65536, 512k or 4m, not {value!r}")
    return int(found[1]) * unit


def time_ms(value: str) -> int:
    """Read a time: milliseconds since 1970, or ISO 8601 with a UTC offset."""
    plain = value.strip()
    if plain.isascii() and plain.isdigit() and len(plain) < 17:
        return int(plain)
    try:
        time = datetime.fromisoformat(plain)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise InvalidInput(
            f"must be milliseconds since 1970 or a time such as 2026-01-31T12:00:00Z, not {value!r}"
        )
    return int((time - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1000)


def one_of(**choices: T) -> Callable[[str], T]:
    """Return a parser of one of some words."""

    def read(value: str) -> T:
        word = value.strip().lower()
        if word not in choices:
            raise InvalidInput(f"must be one of {', '.join(choices)}, not {value!r}")
        return choices[word]

    return read


def names(value: str) -> tuple[str, ...]:
    """Read names joined by commas."""
    found = tuple(dict.fromkeys(name.strip() for name in value.split(",") if name.strip()))
    if not found:
        raise InvalidInput("must list at least one name")
    return found


def alone(found: Mapping[str, Any], *alternatives: str) -> str | None:
    """Return which of some mutually exclusive options is given; raises `OptionInvalid`."""
    given = [name for name in alternatives if name in found]
    if len(given) > 1:
        raise OptionInvalid(given[1], f"cannot be combined with {given[0]!r}; set one of them")
    return given[0] if given else None


def together(found: Mapping[str, Any], name: str, needs: str) -> None:
    """Raise `OptionInvalid` for an option without the one it requires."""
    if name in found and needs not in found:
        raise OptionInvalid(name, f"requires option {needs!r}")
