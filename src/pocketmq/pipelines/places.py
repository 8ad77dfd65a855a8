"""A directory that a pipeline writes to: of this machine, or of any file system Spark reaches.

Spark itself writes the data; here are the few small files beside them. Other file systems are
reached through Spark's own Hadoop client, with the settings and credentials that Spark has.
"""

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlsplit

from pyspark.errors import PySparkException

from pocketmq.errors import InvalidInput
from pocketmq.pipelines.queries import reason_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # at least two letters: C:/ is a drive
_DRAFT = ".part"


class DataPlace(Protocol):
    """A directory; names are relative to it, with slashes. Reading and writing raise OSError."""

    def __str__(self) -> str: ...

    def make(self) -> None:
        """Create the directory, if it does not exist."""

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder; none if it does not exist."""

    def read(self, name: str) -> str | None:
        """Return the text of a file; None if it does not exist."""

    def write(self, name: str, text: str) -> None:
        """Write a new file; a reader sees all of it or nothing."""

    def remove(self, folder: str) -> None:
        """Delete a folder and what is in it."""


def place_of(where: str | Path, spark: "SparkSession") -> DataPlace:
    """Return the directory of a path, or of an address such as `s3a://lake/orders`.

    Raises `InvalidInput` if Spark does not know the file system.
    """
    local = local_path(where)
    return LocalPlace(local) if local is not None else HadoopPlace(str(where), spark)


def local_path(where: str | Path) -> Path | None:
    """Return the path of a directory on this machine; None for one elsewhere."""
    if isinstance(where, Path) or _SCHEME.match(where) is None:
        return Path(where)
    parts = urlsplit(where)
    if parts.scheme.lower() == "file" and parts.netloc in ("", "localhost"):
        return Path(unquote(parts.path))
    return None


class LocalPlace:
    """A directory of this machine."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def __str__(self) -> str:
        return str(self.root)

    def make(self) -> None:  # noqa: D102 - as in DataPlace
        self.root.mkdir(parents=True, exist_ok=True)

    def names(self, folder: str) -> list[str]:  # noqa: D102
        path = self.root / folder
        return [each.name for each in path.iterdir()] if path.is_dir() else []

    def read(self, name: str) -> str | None:  # noqa: D102
        path = self.root / name
        return path.read_text("utf-8") if path.exists() else None

    def write(self, name: str, text: str) -> None:  # noqa: D102
        path = self.root / name
        draft = path.with_name(f".{path.name}{_DRAFT}")
        draft.write_text(text, "utf-8")
        draft.replace(path)

    def remove(self, folder: str) -> None:  # noqa: D102
        shutil.rmtree(self.root / folder, ignore_errors=True)


class HadoopPlace:
    """A directory of a file system that Spark's Hadoop client reaches."""

    def __init__(self, where: str, spark: "SparkSession") -> None:
        self._where = where.rstrip("/")
        # PySpark has no public way to a file system.
        self._jvm: Any = spark._jvm  # noqa: SLF001
        settings: Any = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
        try:
            self._files = self._try(lambda: self._path("").getFileSystem(settings))
        except OSError as problem:
            raise InvalidInput(f"Spark cannot reach {where}: {problem.strerror}") from problem

    def __str__(self) -> str:
        return self._where

    def make(self) -> None:  # noqa: D102 - as in DataPlace
        self._try(lambda: self._files.mkdirs(self._path("")))

    def names(self, folder: str) -> list[str]:  # noqa: D102
        path = self._path(folder)
        if not self._try(lambda: self._files.exists(path)):
            return []
        return [
            each.getPath().getName() for each in self._try(lambda: self._files.listStatus(path))
        ]

    def read(self, name: str) -> str | None:  # noqa: D102
        path = self._path(name)
        if not self._try(lambda: self._files.exists(path)):
            return None
        return str(self._try(lambda: self._read(path)))

    def write(self, name: str, text: str) -> None:  # noqa: D102
        folder, _, last = name.rpartition("/")
        draft = self._path(f"{folder}/.{last}{_DRAFT}" if folder else f".{last}{_DRAFT}")
        self._try(lambda: self._write(draft, text))
        if not self._try(lambda: self._files.rename(draft, self._path(name))):
            raise OSError(0, f"{name} could not be renamed")

    def remove(self, folder: str) -> None:  # noqa: D102
        self._try(lambda: self._files.delete(self._path(folder), True))

    def _path(self, name: str) -> Any:
        whole = f"{self._where}/{name}" if name else self._where
        return self._jvm.org.apache.hadoop.fs.Path(whole)

    def _read(self, path: Any) -> str:
        stream = self._files.open(path)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def _write(self, path: Any, text: str) -> None:
        stream = self._files.create(path, True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    @staticmethod
    def _try(do: Any) -> Any:
        from py4j.protocol import Py4JJavaError

        try:
            return do()
        except (Py4JJavaError, PySparkException) as problem:  # Spark's for what it converts
            raise OSError(0, reason_of(problem)) from problem
