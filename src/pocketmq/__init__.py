"""PocketMQ: RocketMQ in Python.

PYTEST_DONT_REWRITE: pytest wants to rewrite the asserts of packages that bring a plugin, and warns
about those imported before it starts. There is none here, so there is nothing to warn about.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pocketmq.embedded import Cluster as Cluster

__version__ = "0.1.0"
__all__ = ["Cluster", "__version__"]

# name -> module; imported when first asked for, so that each user pays for what they use
_LAZY = {"Cluster": "pocketmq.embedded.cluster"}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
