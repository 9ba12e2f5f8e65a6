"""Calls of models as data, and the comparison of their results with what TensorFlow gave."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np


class Call(NamedTuple):
    """A call of a part of a model: `Call("signatures.serving_default", [], {"x": x})`."""

    path: str
    args: Any = ()
    kwargs: Mapping[str, Any] = MappingProxyType({})


class Parts(NamedTuple):
    """A ragged tensor (values, then row splits from outside in) or a sparse one (indices, values, shape)."""

    kind: str
    parts: Any


def ragged(values: Any, *splits: Any) -> Parts:
    return Parts("ragged", [values, *[np.array(one, np.int64) for one in splits]])


def sparse(indices: Any, values: Any, shape: Any) -> Parts:
    return Parts("sparse", [np.array(indices, np.int64), values, np.array(shape, np.int64)])


def part_of(model: Any, path: str) -> Any:
    """What a path of attributes, positions and keys leads to."""
    for name in path.split("."):
        if name == "__call__":
            return model
        if name.isdecimal():
            model = model[int(name)]
        elif isinstance(model, Mapping):
            model = model[name]
        else:
            model = getattr(model, name)
    return model


def map_leaves(function: Any, value: Any) -> Any:
    if isinstance(value, Parts):
        return function(value)
    if isinstance(value, Mapping):
        return {key: map_leaves(function, one) for key, one in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[map_leaves(function, one) for one in value])
    if isinstance(value, list | tuple):
        return type(value)([map_leaves(function, one) for one in value])
    return function(value)


def ours(value: Any) -> Any:
    """Arguments as opkernel takes them."""
    return map_leaves(lambda one: tuple(one.parts) if isinstance(one, Parts) else one, value)


def plain(value: Any) -> Any:
    """A result as lists, dicts, arrays and Python values, whoever gave it."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    kind = type(value).__name__
    if kind == "RaggedTensor":
        return [plain(value.flat_values), *map(plain, value.nested_row_splits)]
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if kind in ("SparseTensor", "IndexedSlices"):
        order = ("indices", "values") if kind == "SparseTensor" else ("values", "indices")
        parts = [getattr(value, name) for name in (*order, "dense_shape")]
        return [plain(one) for one in parts if one is not None]
    value = value.numpy() if hasattr(value, "numpy") else value
    if isinstance(value, bytes):
        scalar = np.empty((), object)
        scalar[()] = value
        return scalar
    return np.asarray(value)


def difference(found: Any, expected: Any, rtol: float = 1e-5, atol: float = 1e-6) -> str:
    """What differs between two results, in words; empty where they are the same."""
    if isinstance(expected, Mapping):
        if not isinstance(found, Mapping) or found.keys() != expected.keys():
            return f"{found!r} has not the keys {[*expected]}"
        pairs = [(key, found[key], expected[key]) for key in expected]
    elif isinstance(expected, list):
        if not isinstance(found, list) or len(found) != len(expected):
            return f"{found!r} is not as long as {expected!r}"
        pairs = [(i, *both) for i, both in enumerate(zip(found, expected, strict=True))]
    else:
        return _difference_of_leaves(found, expected, rtol, atol)
    return "; ".join(
        f"[{key!r}] {text}" for key, f, e in pairs if (text := difference(f, e, rtol, atol))
    )


def _difference_of_leaves(found: Any, expected: Any, rtol: float, atol: float) -> str:
    if not isinstance(expected, np.ndarray):
        return (
            ""
            if found == expected and type(found) is type(expected)
            else f"{found!r} is not {expected!r}"
        )
    if not isinstance(found, np.ndarray):
        return f"{found!r} is no array"
    if (found.dtype, found.shape) != (expected.dtype, expected.shape):
        return f"{found.dtype}{found.shape} is not {expected.dtype}{expected.shape}"
    if expected.dtype == object or expected.dtype.kind in "biu":
        same = found.tolist() == expected.tolist()
    else:
        wide = np.complex128 if expected.dtype.kind == "c" else np.float64
        same = np.allclose(found.astype(wide), expected.astype(wide), rtol, atol, equal_nan=True)
    return "" if same else f"{found!r} is not {expected!r}"


# Arguments and results as JSON.


def to_json(value: Any) -> Any:
    if isinstance(value, Parts):
        return {"parts": value.kind, "of": [to_json(one) for one in value.parts]}
    value = np.array(value, object) if isinstance(value, bytes) else value
    if isinstance(value, np.ndarray | np.generic):
        return {"dtype": value.dtype.name, "shape": [*value.shape], "values": _numbers(value)}
    if isinstance(value, Mapping):
        return {"dict": {key: to_json(one) for key, one in value.items()}}
    if isinstance(value, list | tuple):
        return {"list" if isinstance(value, list) else "tuple": [to_json(one) for one in value]}
    return value


def _numbers(value: Any) -> list[Any]:
    flat = np.asarray(value).reshape(-1)
    if flat.dtype == object:
        return [one.decode("latin-1") for one in flat.tolist()]
    if flat.dtype.kind == "c":
        return [[one.real, one.imag] for one in flat.tolist()]
    return flat.tolist() if flat.dtype.kind in "biuf" else flat.astype(np.float32).tolist()


def from_json(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "parts" in value:
        return Parts(value["parts"], [from_json(one) for one in value["of"]])
    if "dtype" in value:
        return _array(value)
    if "dict" in value:
        return {key: from_json(one) for key, one in value["dict"].items()}
    items = [from_json(one) for one in value["list" if "list" in value else "tuple"]]
    return items if "list" in value else tuple(items)


def _array(value: Any) -> Any:
    values, name = value["values"], value["dtype"]
    if name == "object":
        result = np.empty(len(values), object)
        result[:] = [one.encode("latin-1") for one in values]
    elif name.startswith("complex"):
        result = np.array([complex(*one) for one in values], name)
    else:
        result = np.array(values, getattr(ml_dtypes, name, name))
    return result.reshape(value["shape"])


def dumps(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True)
