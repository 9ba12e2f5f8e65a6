"""A seeded op draws the numbers that TensorFlow draws, step after step.

`tests/data/make_random_calls.py` recorded them.
"""

import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.types import DataType, as_dtype

PATH = Path(__file__).parents[2] / "data" / "random_calls.json.xz"
CALLS = json.loads(lzma.decompress(PATH.read_bytes()))


def array(dtype: str, shape: list[int], values: list[Any]) -> Any:
    numbers = [float.fromhex(v) if isinstance(v, str) else v for v in values]
    return np.array(numbers, as_dtype(dtype).numpy_dtype).reshape(shape)


def run(call: dict[str, Any]) -> list[list[Any]]:
    """The outputs of the call's steps in one session."""
    with opkernel.Graph().as_default() as graph:
        given = {name: tensor_of(value) for name, value in call["inputs"].items()}
        attrs = {
            name: as_dtype(value["type"]) if isinstance(value, dict) else value
            for name, value in call["attrs"].items()
        }
        result = getattr(raw_ops, call["op"])(**given, **attrs)
        outputs = [*result] if isinstance(result, tuple | list) else [result]
        handles = [tensor for tensor in given.values() if tensor.dtype == DataType.DT_RESOURCE]
        starts = [
            raw_ops.AssignVariableOp(resource=handle, value=np.array([1, 2, 3], np.int64))
            for handle in handles
        ]
    with opkernel.Session(graph) as session:
        session.run(starts)
        return [session.run(outputs) for _ in call["steps"]]


def tensor_of(value: Any) -> Any:
    if isinstance(value, str):
        return raw_ops.VarHandleOp(dtype=opkernel.int64, shape=[3], shared_name=value)
    return opkernel.constant(array(*value))


def expected(call: dict[str, Any]) -> list[list[Any]]:
    """The outputs of the steps as TensorFlow gave them."""
    return [[array(*output) for output in step] for step in call["steps"]]


ULPS_OF_DOUBLE = 4
"""Logarithm, sine and cosine of double are NumPy's."""

ULPS = {call["op"]: 2 for call in CALLS if "Candidate" in call["op"]}
"""How often classes are expected is computed in double."""


def name_of(call):
    return call["op"] + "".join(
        f"-{v['type']}" for v in call["attrs"].values() if isinstance(v, dict)
    )


@pytest.mark.parametrize("call", CALLS, ids=name_of)
def test_the_numbers_of_each_step_are_tensorflows(call):
    for found, wanted in zip(run(call), expected(call), strict=True):
        for one, other in zip(found, wanted, strict=True):
            one = np.asarray(one)
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            ulps = ULPS_OF_DOUBLE if one.dtype == np.float64 else ULPS.get(call["op"], 0)
            if ulps:
                np.testing.assert_array_max_ulp(one, other, ulps)
            else:
                np.testing.assert_array_equal(one, other)
