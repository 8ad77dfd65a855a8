"""Apache's gRPC clients for Go, Node and Rust: fetched once into a cache, with our programs for them.

A directory of the cache has the contents of its files in its name, and gets it when it is whole, so
a run that was cut short leaves none.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
GO, NODE, RUST = HERE / "go_grpc", HERE / "node_grpc", HERE / "rust_grpc"


def go_program() -> list[str]:
    """Return the command that runs the Go program, built now if it is not there."""

    def build(place: Path) -> None:
        _run(["go", "build", "-buildvcs=false", "-o", str(place / "main"), "."], GO)

    return [str(_made("go", GO, build) / "main")]


def node_program() -> list[str]:
    """Return the command that runs the Node program, installed now if it is not there."""

    def install(place: Path) -> None:
        for file in NODE.iterdir():
            shutil.copy(file, place)
        _run(["npm", "ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"], place)

    return ["node", str(_made("node", NODE, install) / "client.js")]


def rust_program() -> list[str]:
    """Return the command that runs the Rust program, built now if it is not there.

    The packages are compiled once for all versions of the program: that takes minutes.
    """

    def build(place: Path) -> None:
        target = place.parents[1] / "target"
        _run(["cargo", "build", "--locked", "--quiet", "--target-dir", str(target)], RUST)
        shutil.copy(target / "debug" / "official-client", place)

    return [str(_made("rust", RUST, build) / "official-client")]


def _made(kind: str, source: Path, make: Callable[[Path], None]) -> Path:
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pocketmq" / kind
    files = sorted(each for each in source.rglob("*") if each.is_file())
    content = hashlib.sha256(b"".join(each.read_bytes() for each in files)).hexdigest()[:12]
    place = caches / f"grpc-{content}"
    if place.is_dir():
        return place
    caches.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=caches, prefix="grpc-") as filling:
        made = Path(filling) / "made"
        made.mkdir()
        make(made)
        try:
            made.rename(place)
        except OSError:  # another run was first
            if not place.is_dir():
                raise
    return place


def _run(command: list[str], directory: Path) -> None:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
