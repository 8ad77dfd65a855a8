"""Values of the rules are frozen: nobody changes what another part still looks at."""

import dataclasses
import importlib
import pkgutil
from collections.abc import Iterator

import msgspec

# Filled in step by step by the function that made it, and seen by nobody else.
EXCEPTIONS = {"_Written"}


def value_types() -> Iterator[type]:
    for layer in ("errors", "model", "protocol", "balance"):
        package = importlib.import_module(f"pocketmq.{layer}")
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(found.name)
            for thing in vars(module).values():
                if (
                    isinstance(thing, type)
                    and thing.__module__ == module.__name__
                    and (issubclass(thing, msgspec.Struct) or dataclasses.is_dataclass(thing))
                ):
                    yield thing


def is_frozen(value: type) -> bool:
    if issubclass(value, msgspec.Struct):
        return value.__struct_config__.frozen
    return bool(value.__dataclass_params__.frozen)  # type: ignore[attr-defined]


def test_values_cannot_be_changed() -> None:
    values = list(value_types())
    assert len(values) > 300
    assert {value.__name__ for value in values if not is_frozen(value)} == EXCEPTIONS
