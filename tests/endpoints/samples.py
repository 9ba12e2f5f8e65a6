"""What the calls of `calls.txt` are made with: arrays with names, and how results are written down."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
CALLS = HERE / "calls.txt"
RECORDED = HERE / "recorded.json.xz"
MODULES = [
    "audio",
    "bitwise",
    "image",
    "linalg",
    "math",
    "nest",
    "nn",
    "quantization",
    "ragged",
    "random",
    "sets",
    "signal",
    "sparse",
    "strings",
]

_rng = np.random.default_rng(7)


def _float(*shape: int) -> Any:
    return _rng.normal(size=shape).astype(np.float32)


ARRAYS: dict[str, Any] = {
    "v": np.array([0.5, -1.25, 3.0, 0.0], np.float32),
    "p": np.array([0.1, 0.5, 0.75, 0.9], np.float32),
    "q": np.array([0.25, 1.5, 2.5, 4.0], np.float32),
    "m": _float(2, 3),
    "n": _float(3, 4),
    "a": _float(2, 3, 4),
    "d": _float(2, 3).astype(np.float64),
    "i": np.array([3, -1, 4, 1], np.int32),
    "j": np.array([[1, 2, 3], [4, 5, 6]], np.int32),
    "k": np.array([[1, 0, 2], [2, 2, 1]], np.int64),
    "u": np.array([1, 7, 200, 255], np.uint8),
    "b": np.array([True, False, True, True]),
    "bb": np.array([[True, False, True], [False, False, True]]),
    "c": (_float(4) + 1j * _float(4)).astype(np.complex64),
    "cm": (_float(2, 4) + 1j * _float(2, 4)).astype(np.complex64),
    "s": np.array([b"hello world", b"", b"a b  c", b"Z\xc3\xbcrich"], object),
    "ss": np.array([[b"a", b"b"], [b"cd", b""]], object),
    "sq": np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]], np.float32),
    "sqs": np.stack([np.eye(3) * 2 + 0.1, np.diag([1.0, 4.0, 9.0]) + 0.2]).astype(np.float64),
    "im": _rng.uniform(size=(2, 6, 8, 3)).astype(np.float32),
    "img": _rng.uniform(size=(6, 8, 3)).astype(np.float32),
    "gray": _rng.uniform(size=(2, 6, 8, 1)).astype(np.float32),
    "u8": _rng.integers(0, 256, size=(6, 8, 3)).astype(np.uint8),
    "f2": _float(3, 3, 3, 4),
    "f1": _float(3, 3, 4),
    "x1": _float(2, 9, 3),
    "x3": _float(1, 4, 5, 6, 2),
    "f3": _float(2, 2, 2, 2, 3),
    "dw": _float(3, 3, 3, 2),
    "pw": _float(1, 1, 6, 4),
    "lo": _float(3, 5),
    "onehot": np.eye(5, dtype=np.float32)[[1, 3, 0]],
    "lab": np.array([1, 3, 0], np.int32),
    "seg": np.array([0, 0, 1, 3], np.int32),
    "wave": _rng.normal(size=(2, 64)).astype(np.float32),
    "boxes": np.array([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3]], np.float32),
    "scores": np.array([0.9, 0.75, 0.6], np.float32),
}

TYPES = [
    "bool",
    "complex64",
    "complex128",
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "qint8",
    "quint8",
    "string",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bfloat16",
]


def calls() -> Iterator[str]:
    """The calls, one a line; `#` begins a comment."""
    for line in CALLS.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            yield line


def written(value: Any) -> Any:
    """A result as JSON: arrays with type, shape and elements; parts of ragged and sparse tensors."""
    is_python = isinstance(value, str | int | float | bool) and not isinstance(value, np.generic)
    if is_python or value is None:
        return {"python": value}
    if hasattr(value, "dense_shape"):
        return {"sparse": [written(p) for p in (value.indices, value.values, value.dense_shape)]}
    if hasattr(value, "row_splits"):
        return {"ragged": [written(value.values), written(value.row_splits)]}
    if isinstance(value, dict):
        return {"dict": {key: written(item) for key, item in value.items()}}
    if isinstance(value, list | tuple):
        return {"list": [written(item) for item in value]}
    if not isinstance(value, np.ndarray | np.generic) and hasattr(value, "numpy"):
        value = value.numpy()
    array = np.asarray(value)
    if array.dtype.kind in "OSU":
        items = [t.decode("latin-1") if isinstance(t, bytes) else t for t in array.ravel().tolist()]
        return {"dtype": "string", "shape": list(array.shape), "items": items}
    if array.dtype.names:
        array = array[array.dtype.names[0]]
    wide = array
    if array.dtype.kind == "c":
        wide = np.stack([array.real, array.imag], -1)
    elif array.dtype.kind not in "biuf":  # bfloat16
        wide = array.astype(np.float32)
    items = [float(f"{x:.9g}") if isinstance(x, float) else x for x in wide.ravel().tolist()]
    return {"dtype": array.dtype.name, "shape": list(array.shape), "items": items}
