"""The sdist and the wheel: whole, equal, and with a description whose links work everywhere."""

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.metadata import Metadata

ROOT = Path(__file__).parents[2]
PUBLISHED = "https://github.com/pocketmq/pocketmq/blob/main/"
PICTURES = "https://raw.githubusercontent.com/pocketmq/pocketmq/main/"


def build(source: Path, target: str, into: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", target]
    subprocess.run(
        [*command, "--directory", str(into)], cwd=source, check=True, capture_output=True
    )
    (built,) = into.iterdir()
    return built


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def unpacked(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        safely: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # since 3.11.4
        archive.extractall(place, **safely)
    (folder,) = place.iterdir()
    return folder


@pytest.fixture(scope="module")
def wheel(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Return the wheel as an index's users build it: from the sdist."""
    return zipfile.ZipFile(build(unpacked, "wheel", tmp_path_factory.mktemp("wheel")))


def read(wheel: zipfile.ZipFile, name: str) -> bytes:
    (found,) = (file for file in wheel.namelist() if file.endswith(f".dist-info/{name}"))
    return wheel.read(found)


def tracked(*folders: str) -> set[str]:
    listed = subprocess.run(
        ["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout: nothing says which files belong to it")
    return set(listed.stdout.splitlines())


def test_the_wheel_has_every_file_of_the_packages(wheel: zipfile.ZipFile) -> None:
    ours = {name.removeprefix("src/") for name in tracked("src")}
    assert "pocketmq/py.typed" in ours
    assert {name for name in wheel.namelist() if ".dist-info/" not in name} == ours


def test_a_contributor_can_work_from_the_sdist(unpacked: Path) -> None:
    ours = tracked() - tracked(".ci", ".gitignore")
    files = {str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if path.is_file()}
    assert ours - files == set()
    assert files - ours == {"PKG-INFO", ".gitignore"}


def test_the_metadata_are_valid_and_tell_who_where_and_what(wheel: zipfile.ZipFile) -> None:
    metadata = Metadata.from_email(read(wheel, "METADATA"), validate=True)
    assert metadata.author or metadata.author_email
    assert set(metadata.project_urls or ()) >= {"Homepage", "Documentation", "Changelog", "Issues"}
    assert metadata.license_expression == "Apache-2.0"
    assert {"Framework :: Pytest", "Framework :: AsyncIO", "Typing :: Typed"} <= set(
        metadata.classifiers or ()
    )
    points = read(wheel, "entry_points.txt").decode()
    assert "pocketmq = pocketmq.cli:main" in points
    assert "pocketmq = pocketmq.testing.plugin" in points


def test_the_description_links_to_files_that_exist(wheel: zipfile.ZipFile) -> None:
    text = Metadata.from_email(read(wheel, "METADATA")).description or ""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text)
    links = [link for link in re.findall(r"\]\(([^)]+)\)", text) if link not in pictures]
    assert pictures
    assert len(links) > 10
    wrong = [link for link in links if not _exists(link, PUBLISHED)]
    wrong += [picture for picture in pictures if not _exists(picture, PICTURES)]
    assert wrong == []


def _exists(link: str, base: str) -> bool:
    path = link.removeprefix(base).partition("#")[0]
    return link.startswith(base) and (ROOT / path).exists()
