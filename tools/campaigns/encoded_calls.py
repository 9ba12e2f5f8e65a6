"""Calls of the ops that decode files and messages, by kind of what they decode."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from tools.campaigns import encoded_samples as samples
from tools.campaigns.damage import EXTREMES
from tools.campaigns.encoded_bytes import (
    Damage,
    blindly,
    in_compressed,
    in_json,
    in_message,
    in_png,
    lie_about_sizes,
)

from opkernel.proto import Example, SequenceExample, TensorProto

__all__ = ["KINDS", "Call"]


class Call(NamedTuple):
    """A call of an op: its inputs and attrs by name."""

    op: str
    inputs: dict[str, Any]
    attrs: dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """What some ops decode: samples that are right, ways to damage one, and calls on damaged ones."""

    samples: Callable[[], list[bytes]]
    damage: Sequence[Damage]
    call: Callable[[Sequence[bytes], random.Random], Call]

    def draw(self, rng: random.Random) -> Call:
        """A call on some samples, most of them damaged."""
        others = self.samples()
        drawn = [self._damaged(others, rng)]
        drawn += [
            self._damaged(others, rng) if rng.random() < 0.2 else rng.choice(others) for _ in "ab"
        ]
        return self.call(drawn if rng.random() < 0.5 else drawn[:1] * 3, rng)

    def _damaged(self, others: Sequence[bytes], rng: random.Random) -> bytes:
        data, times = rng.choice(others), rng.choice([0, 1, 1, 1, 2])
        if times:
            is_png = data.startswith(b"\x89PNG") and rng.random() < 0.7
            data = (in_png if is_png else rng.choice(self.damage))(data, others, rng)
        return blindly(data, others, rng) if times > 1 else data


def _strings(*texts: bytes) -> Any:
    found = np.empty(len(texts), object)
    found[:] = texts
    return found


def _text(text: bytes) -> Any:
    return _strings(text).reshape(())


def _decode_image(data: Sequence[bytes], rng: random.Random) -> Call:
    inputs: dict[str, Any] = {"contents": _text(data[0])}
    op = rng.choice(["DecodeImage"] * 3 + ["DecodeJpeg", "DecodePng", "DecodeGif", "DecodeBmp"]
                    + ["DecodeWebP", "DecodeAndCropJpeg", "ExtractJpegShape"])  # fmt: skip
    channels = {"channels": rng.choice([0, 0, 0, 1, 3, 4])}
    jpeg = channels | {
        "ratio": rng.choice([1, 1, 2, 8]),
        "fancy_upscaling": rng.random() < 0.5,
        "try_recover_truncated": rng.random() < 0.3,
        "acceptable_fraction": rng.choice([1.0, 1.0, 0.5]),
        "dct_method": rng.choice(["", "INTEGER_FAST", "INTEGER_ACCURATE"]),
    }
    if op == "DecodeImage":
        dtype = rng.choice(["uint8", "uint8", "uint16", "float32"])
        animated = {"expand_animations": rng.random() < 0.7}
        return Call(op, inputs, channels | animated | {"dtype": dtype})
    if op == "DecodePng":
        return Call(op, inputs, channels | {"dtype": rng.choice(["uint8", "uint16"])})
    if op == "DecodeAndCropJpeg":
        window = [rng.choice([0, 1, 2]), rng.choice([0, 3]), rng.choice([2, 5]), rng.choice([3, 8])]
        if rng.random() < 0.1:
            window[rng.randrange(4)] = rng.choice([-1, 0, 2**31 - 1, -(2**31)])
        return Call(op, inputs | {"crop_window": np.array(window, np.int32)}, jpeg)
    own = {"DecodeJpeg": jpeg, "DecodeGif": {}, "ExtractJpegShape": {}}
    return Call(op, inputs, own.get(op, channels))


def _parse_example(data: Sequence[bytes], rng: random.Random) -> Call:
    op = rng.choice(["ParseExample", "ParseExampleV2", "ParseExampleV2", "ParseSingleExample"])
    shape, default = _dense_feature(rng)
    sparse = {"sparse_types": [rng.choice(_MOSTLY_INT64)]}
    attrs: dict[str, Any] = {"dense_shapes": [shape]} | sparse
    inputs: dict[str, Any] = {"serialized": _strings(*data), "dense_defaults": [default]}
    if op == "ParseSingleExample":
        inputs["serialized"] = _text(data[0])
        keys: dict[str, Any] = {"num_sparse": 1, "sparse_keys": ["i"], "dense_keys": ["a"]}
        return Call(op, inputs, attrs | keys)
    if op == "ParseExample":
        keys = {"sparse_keys": [_text(b"i")], "dense_keys": [_text(b"a")]}
        return Call(op, inputs | keys | {"names": _strings()}, attrs)
    keys = {f"{kind}_keys": _strings(key) for kind, key in _KEYS.items()}
    ragged = {"ragged_value_types": ["string"], "ragged_split_types": [rng.choice(_SPLITS)]}
    return Call(op, inputs | keys | {"names": _strings()}, attrs | ragged | {"num_sparse": 1})


_KEYS = {"sparse": b"i", "dense": b"a", "ragged": b"s"}
_MOSTLY_INT64 = ["int64"] * 9 + ["string"]
_SPLITS = ["int32", "int64"]


def _dense_feature(rng: random.Random) -> tuple[Any, Any]:
    """A shape and a default value; one of a feature that must be there is empty."""
    shape = rng.choice([[2]] * 8 + [[1, 2], [-1], [-1, 2], [], [0]])
    if rng.random() < 0.03:
        shape = rng.choice([[2**40], [2**31, 2**31]])
    dtype = rng.choice(["float32"] * 9 + ["int64"])
    if shape[:1] == [-1]:
        return shape, np.zeros([1] * len(shape), dtype)
    is_small = 2**31 not in shape and 2**40 not in shape
    return shape, np.zeros(shape if is_small and rng.random() < 0.8 else [0], dtype)


def _parse_sequence(data: Sequence[bytes], rng: random.Random) -> Call:
    shape, default = _dense_feature(rng)
    while shape[:1] == [-1]:
        shape, default = _dense_feature(rng)
    steps = rng.choice([[2]] * 40 + [[], [1, 2], [0]] * 4 + [[2**40]])
    attrs: dict[str, Any] = {
        "context_dense_shapes": [shape],
        "context_sparse_types": [rng.choice(_MOSTLY_INT64)],
        "feature_list_sparse_types": [rng.choice(_MOSTLY_INT64)],
        "feature_list_dense_types": [rng.choice(["float32"] * 9 + ["int64"])],
        "feature_list_dense_shapes": [steps],
    }
    inputs = {"context_dense_defaults": [default], "serialized": _strings(*data)}
    op = rng.choice(
        ["ParseSequenceExample", "ParseSequenceExampleV2", "ParseSingleSequenceExample"]
    )
    made = {"ParseSequenceExample": _sequences, "ParseSequenceExampleV2": _sequences_v2}
    more_inputs, more_attrs = made.get(op, _single_sequence)(data, rng)
    return Call(op, inputs | more_inputs, attrs | more_attrs)


_PARTS = ("context", "feature_list")
_More = tuple[dict[str, Any], dict[str, Any]]


def _sequences(data: Sequence[bytes], rng: random.Random) -> _More:
    keys: dict[str, Any] = {f"{part}_sparse_keys": ["i"] for part in _PARTS}
    keys |= {f"{part}_dense_keys": ["a"] for part in _PARTS}
    missing = {"feature_list_dense_missing_assumed_empty": rng.choice([[], ["a"], ["a"]])}
    return {"debug_name": _strings()}, keys | missing


def _sequences_v2(data: Sequence[bytes], rng: random.Random) -> _More:
    inputs: dict[str, Any] = {
        f"{part}_{kind}_keys": _strings(key) for part in _PARTS for kind, key in _KEYS.items()
    }
    inputs["debug_name"] = _strings()
    inputs["feature_list_dense_missing_assumed_empty"] = np.array([rng.random() < 0.8])
    if rng.random() < 0.3:
        inputs["serialized"] = _text(data[0])
        inputs["debug_name"] = _text(b"")
    attrs: dict[str, Any] = {f"{part}_ragged_value_types": ["string"] for part in _PARTS}
    attrs |= {f"{part}_ragged_split_types": [rng.choice(_SPLITS)] for part in _PARTS}
    counts = {"Ncontext_sparse": 1, "Nfeature_list_sparse": 1, "Nfeature_list_dense": 1}
    return inputs, attrs | counts


def _single_sequence(data: Sequence[bytes], rng: random.Random) -> _More:
    inputs: dict[str, Any] = {f"{part}_sparse_keys": [_text(b"i")] for part in _PARTS}
    inputs |= {f"{part}_dense_keys": [_text(b"a")] for part in _PARTS}
    missing = rng.choice([_strings(), _strings(b"a"), _strings(b"a")])
    inputs["feature_list_dense_missing_assumed_empty"] = missing
    return inputs | {"serialized": _text(data[0]), "debug_name": _text(b"")}, {}


def _decode_csv(data: Sequence[bytes], rng: random.Random) -> Call:
    defaults = [np.array([b"d"] if t == "string" else [7], object if t == "string" else t)
                for t in samples.COLUMNS]  # fmt: skip
    if rng.random() < 0.1:
        defaults[rng.randrange(5)] = defaults[0][:0]
        defaults = [
            d.astype(object if t == "string" else t)
            for d, t in zip(defaults, samples.COLUMNS, strict=True)
        ]
    attrs: dict[str, Any] = {"field_delim": rng.choice([","] * 9 + [";"])}
    attrs |= {"use_quote_delim": rng.random() < 0.9, "na_value": rng.choice(["", "nan"])}
    if rng.random() < 0.1:
        attrs["select_cols"] = rng.choice([[0, 1, 2, 3, 4], [0, 2, 3, 5, 2**31], [1, 2, 3, 4, 5]])
    return Call("DecodeCSV", {"records": _strings(*data), "record_defaults": defaults}, attrs)


def _decode_json(data: Sequence[bytes], rng: random.Random) -> Call:
    return Call("DecodeJSONExample", {"json_examples": _strings(*data)}, {})


_FIELDS = {
    1: "float64", 2: "float32", 3: "int64", 4: "uint64", 5: "int32", 6: "uint64", 7: "uint32", 8: "bool",
    9: "string", 11: "string", 12: "string", 13: "int64", 15: "int64", 16: "int64", 17: "int32", 18: "int64",
}  # fmt: skip


def _decode_proto(data: Sequence[bytes], rng: random.Random) -> Call:
    source = samples.descriptors()
    if rng.random() < 0.1:
        source = blindly(source, [source], rng)
    chosen = rng.sample(sorted(_FIELDS), rng.choice([1, 3, 8]))
    attrs = {
        "message_type": "p.All",
        "field_names": [rng.choice("fr") + str(kind) for kind in chosen],
        "output_types": [_FIELDS[kind] for kind in chosen],
        "descriptor_source": b"bytes://" + source,
        "message_format": rng.choice(["binary"] * 9 + ["text"]),
        "sanitize": rng.random() < 0.3,
    }
    if rng.random() < 0.3:
        attrs |= {"message_type": "tensorflow.TensorProto", "descriptor_source": "local://"}
        attrs["field_names"] = ["dtype", "tensor_shape", "float_val", "tensor_content"]
        attrs["output_types"] = ["int32", "string", "float32", "string"]
    return Call("DecodeProtoV2", {"bytes": _strings(*data)}, attrs)


def _encode_proto(data: Sequence[bytes], rng: random.Random) -> Call:
    """Texts and numbers from the bytes that were damaged, and sizes that are right or not."""
    chosen = rng.sample(sorted(_FIELDS), 2)
    values = [_values(_FIELDS[kind], data) for kind in chosen]
    sizes = np.array([[rng.choice([0, 1, 2, *EXTREMES[:4]]) for _ in chosen] for _ in range(2)])
    names = [rng.choice("fr") + str(kind) for kind in chosen]
    attrs: dict[str, Any] = {"message_type": "p.All", "field_names": names}
    attrs["descriptor_source"] = b"bytes://" + samples.descriptors()
    inputs = {"sizes": np.clip(sizes, -1, 2**31 - 1).astype(np.int32), "values": values}
    return Call("EncodeProto", inputs, attrs)


def _values(dtype: str, data: Sequence[bytes]) -> Any:
    """Two rows of two elements."""
    if dtype == "string":
        return _strings(*data, b"").reshape(2, 2)
    raw = b"".join(data).ljust(32, b"\xff")[:32]
    return (
        np.frombuffer(raw, np.uint8 if dtype == "bool" else dtype)[:4].astype(dtype).reshape(2, 2)
    )


def _proto(data: Sequence[bytes], rng: random.Random) -> Call:
    return (_decode_proto if rng.random() < 0.8 else _encode_proto)(data, rng)


def _decode_wav(data: Sequence[bytes], rng: random.Random) -> Call:
    sizes = [-1, -1, 0, 1, 5, 2**31 - 1]
    attrs = {f"desired_{name}": rng.choice(sizes) for name in ("channels", "samples")}
    return Call("DecodeWav", {"contents": _text(data[0])}, attrs)


def _parse_tensor(data: Sequence[bytes], rng: random.Random) -> Call:
    kinds = ["float32", "float32", "string", "float64", "int64", "bool", "half", "variant"]
    return Call("ParseTensor", {"serialized": _text(data[0])}, {"out_type": rng.choice(kinds)})


def _decode_raw(data: Sequence[bytes], rng: random.Random) -> Call:
    kinds = ["uint8", "int16", "float32", "float64", "int64", "bfloat16"]
    attrs = {"out_type": rng.choice(kinds), "little_endian": rng.random() < 0.5}
    texts = _strings(*(data if rng.random() < 0.5 else data[:1]))
    if rng.random() < 0.5:
        return Call("DecodeRaw", {"bytes": texts}, attrs)
    length = np.array(rng.choice([0, 1, 4, 32, 2**31 - 16, -4]), np.int32)
    return Call("DecodePaddedRaw", {"input_bytes": texts, "fixed_length": length}, attrs)


def _decompress(data: Sequence[bytes], rng: random.Random) -> Call:
    attrs = {"compression_type": rng.choice(["ZLIB", "GZIP", "GZIP", ""])}
    return Call("DecodeCompressed", {"bytes": _strings(data[0])}, attrs)


def _decode_base64(data: Sequence[bytes], rng: random.Random) -> Call:
    return Call("DecodeBase64", {"input": _strings(*data)}, {})


def _deserialize(data: Sequence[bytes], rng: random.Random) -> Call:
    op = rng.choice(["DeserializeSparse", "DeserializeManySparse"])
    whole = samples.sparse_tensors()
    at = 3 * rng.randrange(len(whole) // 3)
    rows = [whole[at : at + 3] for _ in range(2)]
    for text in data[: rng.choice([1, 1, 2])]:
        rows[rng.randrange(2)][rng.randrange(3)] = text
    values = _strings(*rows[0], *rows[1]).reshape(2, 3)
    if op == "DeserializeSparse" and rng.random() < 0.3:
        values = values[0]
    return Call(
        op, {"serialized_sparse": values}, {"dtype": rng.choice(["float32"] * 3 + ["int64"])}
    )


_IMAGE_SIZES = lie_about_sizes(
    rb"\xff[\xc0\xc1\xc2\xc4\xda\xdb\xdd].{2}", rb"GIF8..", b",", b"VP8.", b"ANMF"
)
KINDS: dict[str, Kind] = {
    "images": Kind(samples.images, [blindly, _IMAGE_SIZES], _decode_image),
    "examples": Kind(samples.examples, [blindly, in_message(Example)], _parse_example),
    "sequence examples": Kind(
        samples.sequence_examples, [blindly, in_message(SequenceExample)], _parse_sequence
    ),
    "records": Kind(samples.records, [blindly], _decode_csv),
    "JSON": Kind(samples.json_examples, [blindly, in_json], _decode_json),
    "protos": Kind(samples.messages, [blindly, lie_about_sizes()], _proto),
    "WAVs": Kind(samples.wavs, [blindly, lie_about_sizes(b"fmt ", b"data", b"LIST")], _decode_wav),
    "tensors": Kind(samples.tensors, [blindly, in_message(TensorProto)], _parse_tensor),
    "sparse tensors": Kind(samples.sparse_tensors, [blindly, in_message(TensorProto)], _deserialize),
    "raw bytes": Kind(samples.base64_texts, [blindly], _decode_raw),
    "compressed": Kind(samples.compressed, [blindly, in_compressed], _decompress),
    "base64": Kind(samples.base64_texts, [blindly], _decode_base64),
}  # fmt: skip
