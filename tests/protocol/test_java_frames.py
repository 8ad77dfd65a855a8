"""Frames recorded between Java clients and servers: 4.9.8 and 5.3, both serialisations."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from pocketmq.protocol.command import read_command
from pocketmq.protocol.frame import FrameReader, SerializeType, encode_frame
from pocketmq.protocol.peers import Language

VECTORS = Path(__file__).parent.parent / "vectors" / "java-frames.jsonl"
SAMPLES: list[dict[str, Any]] = [json.loads(line) for line in VECTORS.read_text().splitlines()]


def _frame(sample: dict[str, Any]) -> bytes:
    serialize = SerializeType[sample["serialize"]]
    text = sample["header"]
    header = text.encode() if serialize is SerializeType.JSON else bytes.fromhex(text)
    body = bytes.fromhex(sample["bodyHex"]) if "bodyHex" in sample else b""
    body = sample["bodyText"].encode() if "bodyText" in sample else body
    return encode_frame(serialize, header, body)


FRAMES = [_frame(sample) for sample in SAMPLES]


def test_every_recorded_frame_reads_and_is_written_back_byte_for_byte() -> None:
    different = []
    for sample, data in zip(SAMPLES, FRAMES, strict=True):
        (frame,) = FrameReader().feed(data)
        command = read_command(frame)
        if command.encode() != data:
            different.append((sample["header"], command.encode()))
    assert different == []
    assert len(FRAMES) == 215


def test_every_recorded_frame_is_what_its_sample_says() -> None:
    for sample, data in zip(SAMPLES, FRAMES, strict=True):
        (frame,) = FrameReader().feed(data)
        command = read_command(frame)
        assert command.is_response == (sample["kind"] == "resp")
        assert command.language is Language.JAVA
        if not command.is_response:
            assert command.code == sample["reqcode"]
        if sample.get("bodyComplete", True):
            assert len(command.body) == sample["bodyLen"]
        if command.serialize == SerializeType.JSON:
            assert command.ext == json.loads(sample["header"]).get("extFields", {})


def test_the_recording_as_one_stream_gives_the_same_frames() -> None:
    stream = b"".join(FRAMES)
    reader = FrameReader()
    frames = [
        frame for at in range(0, len(stream), 997) for frame in reader.feed(stream[at : at + 997])
    ]
    assert [encode_frame(each.serialize, each.header, each.body) for each in frames] == FRAMES
    assert reader.buffered == 0


def test_the_recording_holds_both_serialisations() -> None:
    assert Counter(sample["serialize"] for sample in SAMPLES) == {"JSON": 176, "ROCKETMQ": 39}
