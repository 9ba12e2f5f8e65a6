"""Weights of TensorFlow.js models: the bytes of each type, and how quantised weights become numbers."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opkernel.graph.io.tfjs_weights import ModelFiles, read_weights


def read(folder: Path, *groups: tuple[bytes, list[dict[str, Any]]], cut: int = 3) -> dict[str, Any]:
    """The weights of groups, each in files of a few bytes."""
    manifest = []
    for number, (data, weights) in enumerate(groups):
        names = []
        for start in range(0, len(data), cut):
            names.append(f"parts/{number}-{start}")
            (folder / "parts").mkdir(exist_ok=True)
            (folder / names[-1]).write_bytes(data[start : start + cut])
        manifest.append({"paths": names, "weights": weights})
    return read_weights(manifest, ModelFiles(str(folder / "model.json")))


def entry(name: str, of_type: str, /, *shape: int, **quantization: Any) -> dict[str, Any]:
    more = {"quantization": quantization} if quantization else {}
    return {"name": name, "shape": [*shape], "dtype": of_type, **more}


@pytest.mark.parametrize(
    ("dtype", "code"),
    [("float32", "f"), ("float64", "d"), ("float16", "e"), ("int32", "i"), ("int64", "q"),
     ("int16", "h"), ("int8", "b"), ("uint16", "H"), ("uint8", "B")],
)  # fmt: skip
def test_numbers(tmp_path: Path, dtype: str, code: str) -> None:
    data = struct.pack(f"<6{code}", *range(6))
    found = read(
        tmp_path, (data, [entry("a", dtype, 2, 2), entry("b", dtype, 0, 7), entry("c", dtype, 2)])
    )
    assert {name: one.tolist() for name, one in found.items()} == {
        "a": [[0, 1], [2, 3]], "b": [], "c": [4, 5]
    }  # fmt: skip
    assert {one.dtype.name for one in found.values()} == {dtype}


def test_bools_complex_numbers_and_strings(tmp_path: Path) -> None:
    texts = [b"ab", b"", "\u00e9".encode(), b"\x00\xff"]
    strings = b"".join(struct.pack("<I", len(one)) + one for one in texts)
    found = read(
        tmp_path,
        (b"\x00\x01\x02", [entry("flags", "bool", 3)]),
        (struct.pack("<4f", 1, 2, 3, 4), [entry("z", "complex64", 2)]),
        (strings + b"\x07", [entry("words", "string", 2, 2), entry("byte", "uint8")]),
    )
    assert found["flags"].tolist() == [False, True, True]
    assert found["z"].tolist() == [1 + 2j, 3 + 4j]
    assert found["words"].tolist() == [texts[:2], texts[2:]]
    assert found["byte"] == 7


@pytest.mark.parametrize(("stored", "code"), [("uint8", "B"), ("uint16", "H")])
def test_quantised_weights_are_scaled_in_double_precision(
    tmp_path: Path, stored: str, code: str
) -> None:
    top = np.iinfo(stored).max
    numbers, scale, least = [0, 1, 77, top - 1, top], 0.0123456789, -1.23456789
    weights = [
        entry("f", "float32", 5, dtype=stored, scale=scale, min=least, original_dtype="float32"),
        entry("i", "int32", 5, dtype=stored, scale=0.5, min=-1),
    ]
    found = read(tmp_path, (struct.pack(f"<10{code}", *numbers, *numbers), weights))
    assert found["f"].dtype == np.float32
    assert found["f"].tolist() == [float(np.float32(n * scale + least)) for n in numbers]
    halves_round_up = [int(np.floor(n * 0.5 - 1 + 0.5)) for n in numbers]
    assert found["i"].tolist() == halves_round_up


def test_half_precision(tmp_path: Path) -> None:
    found = read(
        tmp_path, (struct.pack("<3e", 1.5, -2, 65504), [entry("h", "float32", 3, dtype="float16")])
    )
    assert found["h"].dtype == np.float32
    assert found["h"].tolist() == [1.5, -2, 65504]
