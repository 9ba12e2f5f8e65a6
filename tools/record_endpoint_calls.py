"""Record what TensorFlow gives for the calls of `tests/endpoints/calls.txt`, and the signatures of its functions.

    .venv-tensorflow/bin/python tools/record_endpoint_calls.py

writes `tests/endpoints/recorded.json.xz`, with which the tests run without TensorFlow.
"""

import inspect
import json
import lzma
import sys
import types
from pathlib import Path
from typing import Any

import tensorflow as tf
from keras.src.losses import losses

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tests.endpoints import samples


def namespace() -> dict[str, Any]:
    found: dict[str, Any] = {name: getattr(tf, name) for name in samples.MODULES}
    found |= {name: getattr(tf, name) for name in samples.TYPES}
    found |= {"array": tf, "losses": losses, "SparseTensor": tf.SparseTensor}
    found["IndexedSlices"] = indexed_slices
    return found | {"RaggedTensor": ragged, "inf": float("inf"), "nan": float("nan")}


def indexed_slices(values: Any, indices: Any, dense_shape: Any = None) -> Any:
    given = [
        None if one is None else tf.convert_to_tensor(one) for one in (values, indices, dense_shape)
    ]
    return tf.IndexedSlices(*given)


def ragged(values: Any, row_splits: Any) -> Any:
    return tf.RaggedTensor.from_row_splits(values, row_splits)


def answer(call: str, names: dict[str, Any]) -> Any:
    tf.random.set_seed(11)
    values = {name: tf.constant(value) for name, value in samples.ARRAYS.items()}
    try:
        return samples.written(eval(call, names | values))
    except (tf.errors.OpError, ValueError, TypeError, AssertionError, AttributeError) as error:
        return {"error": type(error).__name__}


def signatures() -> dict[str, str]:
    found = {}
    for module in [*samples.MODULES, "array"]:
        place = tf if module == "array" else getattr(tf, module)
        for name, value in vars(place).items():
            if name.startswith("_") or isinstance(value, type | types.ModuleType):
                continue
            if callable(value):
                found[f"{module}.{name}"] = parameters(value)
    return found


def parameters(function: Any) -> str:
    parts = []
    for p in inspect.signature(function).parameters.values():
        default = p.default
        if isinstance(default, tf.DType):
            default = default.name
        elif callable(default) and p.default is not p.empty:
            default = "function"
        star = "*" * ((p.kind is p.VAR_POSITIONAL) + 2 * (p.kind is p.VAR_KEYWORD))
        parts.append(f"{star}{p.name}" + ("" if p.default is p.empty else f"={default!r}"))
    return ", ".join(parts)


def main() -> None:
    names = namespace()
    found = {call: answer(call, names) for call in samples.calls()}
    text = json.dumps({"calls": found, "signatures": signatures()}, separators=(",", ":"))
    samples.RECORDED.write_bytes(lzma.compress(text.encode(), preset=9))
    errors = [call for call, result in found.items() if "error" in result]
    print(f"{len(found)} calls, {len(errors)} errors, {samples.RECORDED.stat().st_size} bytes")
    for call in errors:
        print("  error:", found[call]["error"], call)


if __name__ == "__main__":
    main()
