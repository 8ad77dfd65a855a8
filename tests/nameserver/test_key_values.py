from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.errors import BodyMalformed, ServerError, StoreError
from pocketmq.nameserver.key_values import MAX_CHARACTERS, KeyValues
from pocketmq.nameserver.saved_files import read_saved, replace_saved

words = st.sampled_from(("", "a", "é", 'k"\\', "😀"))
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@given(st.lists(st.one_of(st.tuples(words, words, texts), st.tuples(words, words)), max_size=20))
def test_a_store_made_from_what_was_saved_is_the_same(changes: list[tuple[str, ...]]) -> None:
    saved: list[bytes] = []
    values = KeyValues(saved.append)
    model: dict[str, dict[str, str]] = {}
    for namespace, key, *value in changes:
        if value:
            values.put(namespace, key, value[0])
            model.setdefault(namespace, {})[key] = value[0]
        else:
            values.delete(namespace, key)
            model.get(namespace, {}).pop(key, None)
    again = KeyValues(saved=saved[-1] if saved else None)
    for store in (values, again):
        for namespace in ("", "a", "é", 'k"\\', "😀"):
            assert (store.encoded(namespace) is None) == (namespace not in model)
            for key in ("", "a", "é", 'k"\\', "😀"):
                assert store.get(namespace, key) == model.get(namespace, {}).get(key)


def test_a_namespace_is_written_as_java_writes_it() -> None:
    values = KeyValues()
    assert values.encoded("n") is None
    values.put("n", "k", "v")
    assert values.encoded("n") == b'{"table":{"k":"v"}}'
    values.delete("n", "k")
    assert values.encoded("n") == b'{"table":{}}'


def test_javas_file_is_read() -> None:
    saved = b'{"configTable":{"ORDER_TOPIC_CONFIG":{"T1":"broker-a:4;broker-b:4"},"EMPTY":{}}}'
    values = KeyValues(saved=saved)
    assert values.get("ORDER_TOPIC_CONFIG", "T1") == "broker-a:4;broker-b:4"
    assert values.encoded("EMPTY") == b'{"table":{}}'


def test_what_cannot_be_saved_does_not_change() -> None:
    def fail(_: bytes) -> None:
        raise StoreError("the disk is gone")

    values = KeyValues(fail, saved=b'{"configTable":{"n":{"k":"v"}}}')
    with pytest.raises(StoreError):
        values.put("n", "k", "new")
    with pytest.raises(StoreError):
        values.delete("n", "k")
    assert values.get("n", "k") == "v"
    assert values.encoded("n") == b'{"table":{"k":"v"}}'


def test_deleting_what_is_not_there_saves_nothing() -> None:
    saved: list[bytes] = []
    values = KeyValues(saved.append)
    values.delete("n", "k")
    assert saved == []


def test_a_file_that_is_none_is_refused() -> None:
    with pytest.raises(BodyMalformed):
        KeyValues(saved=b'{"configTable":{"n":7}}')


def test_more_than_fits_is_refused_until_there_is_room() -> None:
    values = KeyValues()
    values.put("n", "k", "x" * (MAX_CHARACTERS - 2))
    with pytest.raises(ServerError, match="refused"):
        values.put("n", "l", "")
    values.put("n", "k", "")
    values.put("n", "l", "")
    assert values.get("n", "l") == ""


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
