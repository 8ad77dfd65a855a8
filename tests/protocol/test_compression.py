import contextlib
import sys
import tracemalloc
import zlib
from collections.abc import Callable

import lz4.frame  # type: ignore[import-untyped]
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.errors import CodecMissing, InvalidInput, MessageMalformed
from pocketmq.model import SysFlag
from pocketmq.protocol import compression

every_codec = pytest.mark.parametrize("codec", list(compression.Codec))
MIB = 1 << 20


@every_codec
def test_bodies_survive_the_round_trip(codec: compression.Codec) -> None:
    @settings(max_examples=50)
    @given(st.binary(max_size=3000) | st.integers(0, 300_000).map(bytes))
    def check(body: bytes) -> None:
        packed = compression.compress(body, codec)
        assert compression.decompress(packed, codec) == body
        flag = compression.mark_compressed(int(SysFlag.PREPARED), codec)
        assert compression.decompress_body(packed, flag) == body

    check()


@every_codec
def test_the_limit_is_exact(codec: compression.Codec) -> None:
    packed = compression.compress(b"ab" * 50_000, codec)
    assert len(compression.decompress(packed, codec, 100_000)) == 100_000
    with pytest.raises(MessageMalformed):
        compression.decompress(packed, codec, 99_999)


def unsized_zstd(body: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_content_size=False).compress(body)


@pytest.mark.parametrize(
    ("codec", "pack"),
    [
        (compression.Codec.ZLIB, lambda body: zlib.compress(body, 9)),
        (compression.Codec.LZ4, lz4.frame.compress),
        (compression.Codec.LZ4, lambda body: lz4.frame.compress(body, store_size=False)),
        (compression.Codec.ZSTD, zstandard.ZstdCompressor().compress),
        (compression.Codec.ZSTD, unsized_zstd),
    ],
    ids=["zlib", "lz4 with its size", "lz4", "zstd with its size", "zstd"],
)
def test_a_bomb_is_refused_before_it_takes_memory(
    codec: compression.Codec, pack: Callable[[bytes], bytes]
) -> None:
    bomb = pack(bytes(256 * MIB))
    tracemalloc.start()
    try:
        with pytest.raises(MessageMalformed, match="more than the limit of 1048576 bytes"):
            compression.decompress(bomb, codec, MIB)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * MIB


def test_a_declared_size_is_not_believed() -> None:
    """A zstd frame of 12 bytes that claims an exabyte."""
    frame = zstandard.FRAME_HEADER + b"\xe0" + (1 << 60).to_bytes(8, "little") + b"\x01\x00\x00"
    assert zstandard.get_frame_parameters(frame).content_size == 1 << 60
    with pytest.raises(MessageMalformed, match="more than"):
        compression.decompress(frame, compression.Codec.ZSTD)


@every_codec
def test_a_body_cut_anywhere_is_refused(codec: compression.Codec) -> None:
    packed = compression.compress(b"the quick brown fox " * 20, codec)
    for end in range(len(packed)):
        with pytest.raises(MessageMalformed):
            compression.decompress(packed[:end], codec, 10_000)


def test_an_unsized_zstd_frame_cut_anywhere_is_refused() -> None:
    packed = unsized_zstd(b"the quick brown fox " * 20)
    for end in range(len(packed)):
        with pytest.raises(MessageMalformed):
            compression.decompress(packed[:end], compression.Codec.ZSTD, 10_000)


@every_codec
def test_garbage_is_refused_and_nothing_else_escapes(codec: compression.Codec) -> None:
    sound = compression.compress(b"some text, some text", codec)

    @settings(max_examples=150)
    @given(st.binary(max_size=60), st.integers(0, len(sound)))
    def check(garbage: bytes, kept: int) -> None:
        with contextlib.suppress(MessageMalformed):
            compression.decompress(sound[:kept] + garbage, codec, 100_000)

    check()


@every_codec
def test_flag_bits_tell_the_codec(codec: compression.Codec) -> None:
    flag = compression.mark_compressed(0x30 | 0x700, codec)
    assert (
        flag
        == 0x31
        | {
            compression.Codec.LZ4: 0x100,
            compression.Codec.ZSTD: 0x200,
            compression.Codec.ZLIB: 0x300,
        }[codec]
    )
    assert compression.codec_of(flag) is codec


def test_without_a_type_it_is_zlib_and_without_the_bit_it_is_plain() -> None:
    assert compression.codec_of(1) is compression.Codec.ZLIB
    assert compression.codec_of(0x300) is None
    assert compression.decompress_body(b"plain", 0x300) == b"plain"


@pytest.mark.parametrize("number", [4, 5, 6, 7])
def test_an_unknown_type_is_refused(number: int) -> None:
    with pytest.raises(MessageMalformed, match=f"compression type {number}"):
        compression.codec_of(1 | number << 8)


def test_an_empty_body_is_never_inflated() -> None:
    assert compression.decompress_body(b"", 1 | 0x700) == b""


def test_lz4_blocks_do_not_depend_on_each_other() -> None:
    """Java's reader refuses linked blocks."""
    packed = compression.compress(b"x" * 200_000, compression.Codec.LZ4)
    info = lz4.frame.get_frame_info(packed)
    assert info["block_linked"] is False
    assert info["content_size"] == 0


@pytest.mark.parametrize(
    ("codec", "level"),
    [(compression.Codec.ZLIB, 10), (compression.Codec.ZLIB, -2), (compression.Codec.ZSTD, 99)],
)
def test_a_level_a_codec_lacks_is_refused(codec: compression.Codec, level: int) -> None:
    with pytest.raises(InvalidInput, match=str(level)):
        compression.compress(b"x", codec, level)


@pytest.mark.parametrize(
    ("codec", "package"), [(compression.Codec.LZ4, "lz4"), (compression.Codec.ZSTD, "zstandard")]
)
def test_a_codec_that_is_not_installed_is_named(
    codec: compression.Codec, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = compression.compress(b"x", codec)
    monkeypatch.delitem(compression.stand_ins, codec, raising=False)  # Spark's, if it is imported
    for module in {package, *(name for name in sys.modules if name.startswith(package + "."))}:
        monkeypatch.setitem(sys.modules, module, None)  # importing it now fails
    with pytest.raises(CodecMissing, match=rf"{package}.*pocketmq\[compression\]"):
        compression.decompress(packed, codec)
    with pytest.raises(CodecMissing):
        compression.compress(b"x", codec)
