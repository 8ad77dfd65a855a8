"""Our Java programs compiled, and the classes of a release kept for the next start, once for all.

Java's class data sharing halves what it takes to start a broker or a client; a suite starts
hundreds. It needs Java 13 or newer; with an older one processes start as they always did.

python -m tests.interop.ready makes releases ready whose directories are lines of its input, and
Apache's gRPC client.
"""

import hashlib
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.interop import official_java
from tests.interop.jvm import PROGRAMS, Jars, java_major
from tests.ports import free_port

PATIENCE = 240.0
OLDEST = 13


def made_ready(directory: Path) -> Path:
    """Return the folder with the programs of a release, made beside its jars if it is not there."""
    said = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
    content = hashlib.sha256(said.encode())
    for path in PROGRAMS:
        content.update(path.read_bytes())
    place = directory.with_name(f"{directory.name}-{content.hexdigest()[:12]}")
    place.mkdir(exist_ok=True)
    jars = Jars(directory, place)
    if not jars.programs.exists():
        jars.compile()
    if not jars.archive.exists() and java_major() >= OLDEST:
        _train(jars, place)
    return place


def _train(jars: Jars, place: Path) -> None:
    """Use each part once in one process, which leaves the classes it has loaded."""
    home, port = place / "training", free_port()
    home.mkdir(exist_ok=True)
    names, settings, made = home / "names.conf", home / "broker.conf", home / "classes.jsa"
    names.write_text(f"listenPort={port}\n")
    settings.write_text(
        f"listenPort={free_port()}\nnamesrvAddr=127.0.0.1:{port}\nbrokerIP1=127.0.0.1\n"
        f"storePathRootDir={home}/store\nstorePathCommitLog={home}/store/commitlog\n"
        "mappedFileSizeCommitLog=16777216\n"
    )
    words = (str(names), str(settings), f"127.0.0.1:{port}")
    first, *rest = jars.command(home, "Training", *words)
    with suppress(subprocess.TimeoutExpired):
        subprocess.run(
            [
                *(first, f"-XX:ArchiveClassesAtExit={made}", "-Xlog:disable"),
                *("-Dtls.server.mode=disabled", *rest),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=PATIENCE,
            check=False,
        )
        if made.exists():
            made.rename(jars.archive)


if __name__ == "__main__":
    for line in sys.stdin:
        made_ready(Path(line.strip()))
    official_java.made_ready()
