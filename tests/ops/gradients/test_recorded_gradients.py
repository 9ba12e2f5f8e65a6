"""Gradients of ops are those of TensorFlow: of some of the recorded calls.

`tests/data/make_recorded_gradients.py` chose them, and asked TensorFlow 2.21.
"""

import json
import lzma
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.recorded_nodes import graph_of

import opkernel
from opkernel.gradients.gradient_nodes import as_dense
from opkernel.graph import Graph, import_graph_def
from opkernel.runtime import Session

FILE = Path(__file__).parent.parent.parent / "data" / "recorded_gradients.jsonl.xz"
LINES = lzma.decompress(FILE.read_bytes()).decode().splitlines() if FILE.exists() else []
CALLS = {op: [*lines] for op, lines in groupby(LINES, lambda line: json.loads(line)["op"])}
DIFFERENTIABLE = {"float32", "float64", "complex64", "complex128"}
Gradients = list[list[float] | None]
"""The values of the gradients of a call by its inputs, in one row, with None for none; complex ones as pairs."""


def weights(shape: Any) -> Any:
    """What the elements of an output count in the sum that is differentiated."""
    return (1 + 0.5 * np.sin(np.arange(int(np.prod(shape))))).reshape(shape)


def numbers(value: Any) -> list[float]:
    array = np.asarray(value).reshape(-1)
    return array.view(array.real.dtype).tolist() if array.dtype.kind == "c" else array.tolist()


def gradients_of(call: Any) -> Gradients:
    with Graph().as_default() as graph:
        import_graph_def(graph_of(call, are_known=True), name="")
        op = graph.get_operation_by_name("call")
        ys = [y for y in op.outputs if y.dtype.tf_name in DIFFERENTIABLE]
        xs = [x for x in op.inputs if x.dtype.tf_name in DIFFERENTIABLE]
        by = [weights(y.shape.as_list()).astype(y.dtype.as_numpy_dtype) for y in ys]
        found = [None if one is None else as_dense(one) for one in opkernel.gradients(ys, xs, by)]
        values = iter(Session(graph).run([one for one in found if one is not None]))
    return [None if one is None else numbers(next(values)) for one in found]


def check_gradients(found: Gradients, expected: Gradients) -> None:
    assert [one is None for one in found] == [one is None for one in expected]
    for one, wanted in zip(found, expected, strict=True):
        if one is not None and wanted is not None:
            largest = max((abs(value) for value in wanted if abs(value) < np.inf), default=0)
            np.testing.assert_allclose(one, wanted, rtol=1e-3, atol=1e-4 * min(1, largest) + 1e-9)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", CALLS)
def test_gradients_are_those_of_tensorflow(op: str) -> None:
    for line in CALLS[op]:
        call = json.loads(line)
        check_gradients(gradients_of(call), call["gradients"])
