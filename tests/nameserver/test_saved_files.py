from pathlib import Path

import pytest

from pocketmq.errors import StoreError
from pocketmq.nameserver.saved_files import read_saved, replace_saved


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert read_saved(path) is None
    replace_saved(path, b"a longer first content")
    replace_saved(path, b"second")
    assert read_saved(path) == b"second"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_crash_before_the_replacement_leaves_the_old_content(tmp_path: Path) -> None:
    path = tmp_path / "file"
    replace_saved(path, b"old")
    (tmp_path / "file.new").write_bytes(b"half a new o")
    assert read_saved(path) == b"old"
    replace_saved(path, b"new")
    assert read_saved(path) == b"new"


def test_errors_of_the_system_are_store_errors(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot read"):
        read_saved(tmp_path)
    with pytest.raises(StoreError, match="cannot write"):
        replace_saved(tmp_path / "missing" / "file", b"")
