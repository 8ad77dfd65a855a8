"""Frames whose bytes Java wrote, beside the commands they mean."""

from pocketmq.protocol import Command
from pocketmq.protocol.command import read_command
from pocketmq.protocol.frame import FrameReader, SerializeType
from pocketmq.protocol.peers import Language

_SEND = {
    "a": "PG",
    "b": "TopicA",
    "c": "TBW102",
    "d": "4",
    "e": "2",
    "f": "0",
    "g": "1700000000000",
    "h": "0",
    "i": "TAGS\x01TagA\x02",
    "j": "0",
    "k": "false",
    "m": "false",
    "n": "broker-a",
}


def _command(
    code: int,
    opaque: int,
    flag: int = 0,
    *,
    ext: dict[str, str] | None = None,
    remark: str | None = None,
    body: bytes = b"",
    language: Language = Language.JAVA,
    version: int = 401,
    serialize: SerializeType = SerializeType.JSON,
) -> Command:
    return Command(code, opaque, flag, language, version, remark, ext, body, serialize)


def _json(prefix: str, header: str, body: str = "") -> bytes:
    return bytes.fromhex(prefix) + header.encode() + bytes.fromhex(body)


_BINARY = SerializeType.ROCKETMQ

GOLDEN: dict[str, tuple[bytes, Command]] = {
    "G1 route request, JSON": (
        bytes.fromhex(
            "0000008400000080"
            "7b22636f6465223a3130352c226578744669656c6473223a7b22746f706963223a22546f70696341227d2c22"
            "666c6167223a302c226c616e6775616765223a224a415641222c226f7061717565223a372c2273657269616c"
            "697a655479706543757272656e74525043223a224a534f4e222c2276657273696f6e223a3430317d"
        ),
        _command(105, 7, ext={"topic": "TopicA"}),
    ),
    "G2 route request, binary": (
        bytes.fromhex(
            "0000002a 01000026 0069 00 0191 00000007 00000000 00000000 00000011"
            "0005 746f706963 00000006 546f70696341"
        ),
        _command(105, 7, ext={"topic": "TopicA"}, serialize=_BINARY),
    ),
    "G3 oneway, binary": (
        bytes.fromhex(
            "0000002e 0100002a 0028 00 0191 00000100 00000002 00000000 00000015"
            "000d 636f6e73756d657247726f7570 00000002 4347"
        ),
        _command(40, 256, 2, ext={"consumerGroup": "CG"}, serialize=_BINARY),
    ),
    "G4 response with body, JSON": (
        _json(
            "0000007700000070",
            '{"code":0,"flag":1,"language":"JAVA","opaque":9,"remark":"FOUND",'
            '"serializeTypeCurrentRPC":"JSON","version":401}',
            "010203",
        ),
        _command(0, 9, 1, remark="FOUND", body=b"\1\2\3"),
    ),
    "G4 response with body, binary": (
        bytes.fromhex(
            "00000021 0100001a 0000 00 0191 00000009 00000001 00000005 464f554e44 00000000 010203"
        ),
        _command(0, 9, 1, remark="FOUND", body=b"\1\2\3", serialize=_BINARY),
    ),
    "G5 error, binary": (
        bytes.fromhex(
            "0000001f 0100001b 0011 03 0000 ffffffff 00000001 00000006 6e6f20e4b8ad 00000000"
        ),
        _command(
            17,
            -1,
            1,
            remark="no 中",
            language=Language.PYTHON,
            version=0,
            serialize=_BINARY,
        ),
    ),
    "G7 send, binary": (
        bytes.fromhex(
            "000000b2010000ac01360001910000000100000000000000000000009700016100000002504700016200000006"
            "546f7069634100016300000006544257313032000164000000013400016500000001320001660000000130"
            "0001670000000d3137303030303030303030303000016800000001300001690000000a5441475301546167"
            "410200016a000000013000016b0000000566616c736500016d0000000566616c736500016e000000086272"
            "6f6b65722d616869"
        ),
        _command(310, 1, ext=_SEND, body=b"hi", serialize=_BINARY),
    ),
    "G7 send, JSON": (
        _json(
            "0000011600000110",
            '{"code":310,"extFields":{"a":"PG","b":"TopicA","c":"TBW102","d":"4","e":"2","f":"0",'
            '"g":"1700000000000","h":"0","i":"TAGS\\u0001TagA\\u0002","j":"0","k":"false",'
            '"m":"false","n":"broker-a"},"flag":0,"language":"JAVA","opaque":1,'
            '"serializeTypeCurrentRPC":"JSON","version":401}',
            "6869",
        ),
        _command(310, 1, ext=_SEND, body=b"hi"),
    ),
    "G8 escapes, JSON": (
        _json(
            "000000b0000000ac",
            '{"code":310,"extFields":{"i":"KEYS\\u0001k1\\u0002TAGS\\u0001中\\u2028\\"\\\\/\\u007F\\u0002"},'
            '"flag":0,"language":"JAVA","opaque":1,"serializeTypeCurrentRPC":"JSON","version":401}',
        ),
        _command(310, 1, ext={"i": 'KEYS\x01k1\x02TAGS\x01中\u2028"\\/\x7f\x02'}),
    ),
}


def read_one(data: bytes) -> Command:
    """Read a stream that holds exactly one frame."""
    (frame,) = FrameReader().feed(data)
    return read_command(frame)
