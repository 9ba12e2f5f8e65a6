"""Files and messages that ops decode, all of them right."""

import base64
import functools
import gzip
import importlib.util
import io
import json
import lzma
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf import descriptor_pb2, json_format

from opkernel import raw_ops
from opkernel.proto import Example, SequenceExample, TensorProto
from opkernel.types import tensor_to_proto

__all__ = [
    "COLUMNS",
    "base64_texts",
    "compressed",
    "descriptors",
    "examples",
    "images",
    "json_examples",
    "messages",
    "records",
    "sequence_examples",
    "sparse_tensors",
    "tensors",
    "wavs",
]

_IMAGES = Path(__file__).parents[2] / "tests" / "ops" / "image" / "image_files.json.xz"
_FIELD = descriptor_pb2.FieldDescriptorProto
COLUMNS = ["float", "int64", "string", "double", "int32"]
"""The types of the columns of the records."""


@functools.cache
def images() -> list[bytes]:
    """Images of all formats: gray, colored, with a palette, opacity or four inks, of 8 and 16 bits, animated."""
    stored = json.loads(lzma.decompress(_IMAGES.read_bytes()))["files"]
    return [base64.b64decode(text) for text in stored.values()] + _made_images()


def _made_images() -> list[bytes]:
    """Images that are larger, or of kinds that the stored ones are not."""
    if importlib.util.find_spec("PIL") is None:
        return []
    from PIL import Image  # a library that the ops use where it is there, too

    pixels = np.random.default_rng(5).integers(0, 255, (40, 56, 4), np.uint8)
    rgba = Image.fromarray(np.sort(pixels, 0))
    rgb = rgba.convert("RGB")
    frames = [Image.fromarray(pixels[at:, at:]).resize((20, 16)) for at in range(3)]
    made: list[tuple[Any, str, dict[str, Any]]] = [
        (rgb, "JPEG", {"restart_marker_blocks": 2, "quality": 60}),
        (rgba.convert("CMYK"), "JPEG", {"subsampling": 2, "progressive": True}),
        (rgb.convert("I;16") if rgb.mode == "I" else rgb.convert("L"), "PNG", {}),
        (rgba.convert("LA"), "PNG", {}),
        (rgba, "BMP", {}),
        (rgb, "WEBP", {"quality": 50}),
        (frames[0], "WEBP", {"save_all": True, "append_images": frames[1:]}),
        (rgb.convert("1"), "GIF", {}),
    ]
    return [_saved(image, kind, options) for image, kind, options in made]


def _saved(image: Any, kind: str, options: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


@functools.cache
def examples() -> list[bytes]:
    """Examples with the features a (float), i (int64), s (string)."""
    found = [_example(a=[1.0, 2.0], i=[3, -4], s=[b"x"]), _example(i=[5]), b""]
    found.append(_example(a=[6.0, 7.0], s=[b"", b"yz" * 100], other=[1] * 40))
    loose = b"\x0a\x13\x0a\x11\x0a\x01a\x12\x0c\x12\x0a\x0d\0\0\x80?\x0d\0\0\0@\xf8\x01\x07"
    return [*found, found[0] + found[1], loose]


def _example(**features: Any) -> bytes:
    made = Example()
    for key, values in features.items():
        _fill(made.features.feature[key], values)
    return made.SerializeToString(deterministic=True)


def _fill(feature: Any, values: Sequence[Any]) -> None:
    kinds = {float: "float_list", int: "int64_list", bytes: "bytes_list"}
    getattr(feature, kinds[type(values[0])]).value.extend(values)


@functools.cache
def sequence_examples() -> list[bytes]:
    """SequenceExamples with the features a, i, s in their contexts and in lists."""
    return [
        _sequence([[[1.0, 2.0]], [[3, 4], [5, 6]], [[b"x"], [b"yz"]]]),
        _sequence([[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [[7, 8]], [[b""]]]),
        _sequence([[], [], []]),
        b"",
    ]


def _sequence(lists: Sequence[Sequence[Sequence[Any]]]) -> bytes:
    made = SequenceExample()
    for key, value in (("a", [1.0, 2.0]), ("i", [3]), ("s", [b"c", b"d"])):
        _fill(made.context.feature[key], value)
    for key, steps in zip("ais", lists, strict=True):
        features = made.feature_lists.feature_list[key].feature
        for values in steps:
            _fill(features.add(), values)
    return made.SerializeToString(deterministic=True)


@functools.cache
def json_examples() -> list[bytes]:
    """Examples in JSON."""
    return [json_format.MessageToJson(Example.FromString(one)).encode() for one in examples()]


def records() -> list[bytes]:
    """Records of five columns."""
    return [
        b"1.5,7,text,2.25,-3",
        b'1e3,,"quoted, with ""quotes""",-0.5,9',
        b'nan,-9223372036854775808,"",inf,2147483647',
        b",,,,",
    ]


@functools.cache
def descriptors() -> bytes:
    """The description of a message with a field of each type of number and text, one alone and one repeated."""
    file = descriptor_pb2.FileDescriptorProto(name="all.proto", package="p", syntax="proto3")
    message = file.message_type.add(name="All")
    kinds = [one for one in range(1, 19) if one not in (_FIELD.TYPE_GROUP, _FIELD.TYPE_ENUM)]
    for number, kind in enumerate(kinds, 1):
        for label, name in ((_FIELD.LABEL_OPTIONAL, "f"), (_FIELD.LABEL_REPEATED, "r")):
            at = number + 20 * (name == "r")
            field = message.field.add(name=f"{name}{kind}", number=at, type=kind, label=label)
            if kind == _FIELD.TYPE_MESSAGE:
                field.type_name = ".p.All"
    return descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()


def messages() -> list[bytes]:
    """Messages of that type, and TensorProtos."""
    numbers = (
        b"\x09\0\0\0\0\0\0\xf8?\x15\0\0\xc0?\x18\x05 \x07(\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    )
    packed = b"\xaa\x01\x10\0\0\0\0\0\0\xf8?\0\0\0\0\0\0\0@\xba\x01\x03\x01\x02\x03\xca\x01\x01\x05"
    text = b"J\x03abcR\x04\x18\x05 \x07Z\x02\xff\0"
    return [numbers, packed, numbers + text, packed + text + numbers, *tensors()]


@functools.cache
def tensors() -> list[bytes]:
    """Tensors of several types, in the fields of their types or as one content."""
    values = [np.arange(6, dtype=np.float32).reshape(2, 3), np.array([b"a", b"bc"], object)]
    values += [np.array(2.5), np.arange(3), np.array([[True, False]]), np.zeros(20, np.float16)]
    found = [tensor_to_proto(value) for value in values]
    found.append(TensorProto(dtype=1, float_val=[1.0, 2.0], tensor_shape=found[0].tensor_shape))
    return [one.SerializeToString() for one in found]


@functools.cache
def sparse_tensors() -> list[bytes]:
    """The three serialized tensors of a sparse one, five times."""
    found = []
    for rank in (1, 1, 2, 2, 3):
        indices = np.arange(2 * rank).reshape(2, rank)
        shape = np.full(rank, 2 * rank)
        found += raw_ops.SerializeSparse(
            sparse_indices=indices, sparse_values=np.array([1, 2], np.float32), sparse_shape=shape
        ).tolist()
    return found


@functools.cache
def wavs() -> list[bytes]:
    """WAV files of one and two channels, one with chunks that nobody needs."""
    samples = np.linspace(-1, 1, 24, dtype=np.float32)
    found: list[bytes] = [
        raw_ops.EncodeWav(audio=samples.reshape(-1, channels), sample_rate=8000)
        for channels in (1, 2)
    ]
    return [*found, found[0] + b"LIST" + struct.pack("<I", 4) + b"more"]


def compressed() -> list[bytes]:
    """Compressed strings."""
    text = b"a text of words, words, words" * 20
    return [zlib.compress(text), gzip.compress(text), gzip.compress(text) + gzip.compress(b"more")]


def base64_texts() -> list[bytes]:
    """Texts in base64 for the web, with and without padding."""
    texts = [base64.urlsafe_b64encode(bytes(range(size, 3 * size))) for size in (1, 2, 3, 40)]
    return [*texts, *(text.rstrip(b"=") for text in texts)]
