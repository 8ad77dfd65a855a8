"""Bodies that Arrow inflates, in an installation without lz4 and zstandard."""

import subprocess
import sys

import lz4.frame  # type: ignore[import-untyped]
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.errors import BodyTooLarge, MessageMalformed
from pocketmq.protocol.compression import Codec, compress, decompress
from pocketmq.spark.codecs import inflate

CODECS = [Codec.LZ4, Codec.ZSTD]


@given(st.binary(min_size=1, max_size=4000), st.integers(1, 400), st.sampled_from(CODECS))
def test_arrow_reads_what_the_packages_write(piece: bytes, times: int, codec: Codec) -> None:
    body = piece * times
    packed = compress(body, codec)
    assert inflate(codec, packed, len(body)) == body == decompress(packed, codec)
    with pytest.raises(BodyTooLarge):
        inflate(codec, packed, len(body) - 1)


def test_frames_of_other_senders_are_read() -> None:
    """Java's do not declare their size; lz4's own have blocks that depend on each other."""
    body = bytes(range(256)) * 2000
    stream = zstandard.ZstdCompressor().compressobj()
    assert inflate(Codec.ZSTD, stream.compress(body) + stream.flush(), 1 << 20) == body
    linked = lz4.frame.compress(body, block_linked=True, content_checksum=True)
    assert inflate(Codec.LZ4, linked, 1 << 20) == body


@pytest.mark.parametrize("codec", CODECS)
def test_damage_is_told(codec: Codec) -> None:
    packed = compress(b"some text" * 500, codec)
    for wrong in (packed[:-1], packed[:9], b"junk" * 9, packed + b"more"):
        with pytest.raises(MessageMalformed, match=f"not valid {codec.name} data"):
            inflate(codec, wrong, 1 << 20)


WITHOUT = """
import sys
sys.modules["lz4"] = sys.modules["lz4.frame"] = sys.modules["zstandard"] = None
from pocketmq.protocol.compression import Codec, decompress
import pocketmq.spark.records
for number in (1, 2):
    print(decompress(bytes.fromhex(sys.argv[number]), Codec(number)).decode())
"""


def test_nothing_else_has_to_be_installed() -> None:
    packed = [compress(codec.name.encode() * 9, codec).hex() for codec in CODECS]
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT, *packed], capture_output=True, text=True, check=True
    )
    assert ended.stdout.split() == ["LZ4" * 9, "ZSTD" * 9]
