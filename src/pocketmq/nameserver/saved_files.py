"""What outlives a name server: key values and updated settings, one file each.

A file is replaced as a whole, so that a crash leaves the old content or the new. Routes are never
saved: brokers register again.
"""

import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from pocketmq.errors import BodyMalformed, InvalidInput, StoreCorrupt, StoreError
from pocketmq.nameserver.config import NameServerConfig
from pocketmq.nameserver.key_values import KeyValues
from pocketmq.nameserver.state import NameServerState

KEY_VALUES_FILE = "kvConfig.json"
"""Java's name and format, so that a Java name server's file can be taken over."""
PROPERTIES_FILE = "namesrv.properties"
"""Settings as last updated over the wire; they win over those given at the start."""

_log = logging.getLogger("pocketmq.nameserver")


def open_state(
    config: NameServerConfig, data: Path | None, clock: Callable[[], float]
) -> NameServerState:
    """Return a name server's state with what was saved in a directory; empty for None.

    Raises `StoreError`.
    """
    if data is None:
        return NameServerState(config, clock)
    # Imported here, as few name servers need it and all start sooner.
    from pocketmq.protocol.config_text import read_properties, write_properties

    try:
        data.mkdir(0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot make {data}: {error.strerror}") from error
    values_path, properties_path = data / KEY_VALUES_FILE, data / PROPERTIES_FILE
    try:
        saved = read_saved(values_path)
        key_values = KeyValues(lambda content: replace_saved(values_path, content), saved=saved)
    except BodyMalformed as error:
        raise StoreCorrupt(f"{values_path} is not readable: {error.reason}") from error
    try:
        properties = read_properties(read_saved(properties_path) or b"")
    except BodyMalformed as error:
        raise StoreCorrupt(f"{properties_path} is not readable: {error}") from error
    state = NameServerState(
        _with_saved(config, properties),
        clock,
        key_values,
        lambda changed: replace_saved(properties_path, write_properties(changed)),
    )
    state.place = {"kvConfigPath": str(values_path), "configStorePath": str(properties_path)}
    return state


def _with_saved(config: NameServerConfig, properties: Mapping[str, str]) -> NameServerConfig:
    """Return settings with those saved before, except values that are not allowed any more."""
    for key, value in properties.items():
        try:
            config = config.updated({key: value})
        except InvalidInput as error:
            _log.warning("ignoring invalid saved value of name server setting %s: %s", key, error)
    return config


def read_saved(path: Path) -> bytes | None:
    """Return the file's content, or None if there is none. Raises `StoreError`."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from error


def replace_saved(path: Path, content: bytes) -> None:
    """Write the file so that a crash leaves the old content or the new. Raises `StoreError`."""
    # The order matters: content on the device, then the name, then the directory that holds it.
    beside = path.with_name(path.name + ".new")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}") from error
