"""The compiled core, if there is one: which functions run in Rust is decided here, at import.

`pocketmq-core` is optional. Where it is installed, functions marked with `in_core` are replaced by
its functions of the same name, which have the same results and raise the same errors. The pure ones
are the reference: `POCKETMQ_PURE=1` in the environment forces them, and tests compare both.
"""

import os
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

API = 10
"""The number of the core's interface; a core with another one is not used."""

_PURE = "POCKETMQ_PURE"

F = TypeVar("F", bound=Callable[..., Any])


def _load() -> tuple[ModuleType | None, str]:
    if os.environ.get(_PURE, "") not in ("", "0"):
        return None, f"pure Python ({_PURE} is set)"
    try:
        import pocketmq_core
    except ImportError:
        return None, "pure Python (pocketmq-core is not installed)"
    if pocketmq_core.API != API:
        version = pocketmq_core.__version__
        return None, f"pure Python (pocketmq-core {version} does not fit this version of pocketmq)"
    return pocketmq_core, f"native core {pocketmq_core.__version__}"


core, description = _load()
"""The module of the core, or None; and which path runs, in words for people."""

pure: dict[str, Callable[..., Any]] = {}
"""The pure functions that the core can replace, by name."""


def in_core(function: F) -> F:
    """Return the core's function of the same name; the function itself where there is none."""
    name = function.__name__
    assert name not in pure, f"two functions of the core are named {name}"
    pure[name] = function
    return getattr(core, name, function)  # of None, too
