"""Ops give the values, status codes and shapes that TensorFlow gave: recorded calls, some of each op.

`tests/data/make_recorded_calls.py` chose them, from calls that TensorFlow 2.21 answered; `make_recorded_shapes.py`
asked it for the shapes.
"""

import base64
import json
import lzma
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.recorded_nodes import graph_of

from answer_op_calls import op_call, op_sequence
from opkernel.errors import OpError
from opkernel.graph import Graph, import_graph_def
from opkernel.types import DataType

DATA = Path(__file__).parent.parent / "data"


def lines_of(name: str) -> list[str]:
    return lzma.decompress((DATA / name).read_bytes()).decode().splitlines()


LINES = zip(lines_of("recorded_calls.jsonl.xz"), lines_of("recorded_shapes.jsonl.xz"), strict=True)
CALLS = {op: [*lines] for op, lines in groupby(LINES, lambda one: json.loads(one[0])["op"])}
ROUNDING = {"float16": 4e-3, "bfloat16": 2e-2, "float32": 2e-5, "complex64": 2e-5}
ROUNDING |= {"float64": 1e-9, "complex128": 1e-9}


def array_of(data: Any) -> Any:
    if data["dtype"] == "string":
        return [base64.b64decode(value) for value in data["values_b64"]]
    dtype = np.dtype(DataType.from_string(data["dtype"]).as_numpy_dtype)
    return np.frombuffer(base64.b64decode(data["b64"]), dtype).reshape(data["shape"])


def flat(groups: list[Any]) -> list[Any]:
    return [one for group in groups for one in (group if isinstance(group, list) else [group])]


def check_output(found: Any, expected: Any) -> None:
    assert found["dtype"] == expected["dtype"]
    if expected.get("unspecified"):
        return
    assert found["shape"] == expected["shape"]
    value, wanted = array_of(found), array_of(expected)
    rounding = ROUNDING.get(expected["dtype"], 0.13 if "float8" in expected["dtype"] else 0)
    if not rounding:
        assert np.array_equal(value, wanted)
        return
    wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        value, wanted = value.astype(wide), wanted.astype(wide)
        sizes = np.abs(wanted[np.isfinite(wanted)])
        near_zero = (
            rounding * min(1.0, max(0.05, sizes.max(initial=0.0))) if sizes.size else rounding
        )
        np.testing.assert_allclose(value, wanted, rtol=rounding, atol=near_zero)


def check_answer(answer: Any, call: Any) -> None:
    if "needs the library" in answer.get("error_text", ""):
        return  # an extra that is not installed
    if "error" in call:
        assert answer.get("error_code") == call["error"], (answer, call)
        return
    assert "outputs" in answer, (answer, call)
    found, expected = flat(answer["outputs"]), flat(call["outputs"])
    assert len(found) == len(expected), call
    for one, wanted in zip(found, expected, strict=True):
        if "bind" not in wanted:  # a handle
            check_output(one, wanted)


@pytest.mark.parametrize("op", CALLS)
def test_values_and_codes(op: str) -> None:
    for line, _ in CALLS[op]:
        call = json.loads(line)
        check_answer(op_call(call), call)


SEQUENCES = {
    one["name"]: one["steps"]
    for name in ("recorded_sequences.jsonl.xz", "drawn_sequences.jsonl.xz")
    for one in map(json.loads, lines_of(name))
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences(name: str) -> None:
    """Calls that share a variable, a table, a list or a queue."""
    steps = SEQUENCES[name]
    asked = [{**step, "binds": binds_of(step.get("outputs", []))} for step in steps]
    answers = op_sequence({"steps": asked})["steps"]
    for answer, step in zip(answers, steps, strict=True):
        check_answer(answer, step)


def binds_of(outputs: list[Any]) -> list[Any]:
    """The names that handles among outputs are kept under."""
    return [binds_of(one) if isinstance(one, list) else one.get("bind") for one in outputs]


def shapes_of(call: Any, *, are_known: bool) -> Any:
    """The shapes of a call's outputs in a graph, as they are recorded."""
    with Graph().as_default() as graph:
        try:
            import_graph_def(graph_of(call, are_known=are_known), name="")
            outputs = graph.get_operation_by_name("call").outputs
            shapes = [tensor.shape for tensor in outputs]
        except OpError:
            return "error"
    return [None if shape.rank is None else shape.as_list() for shape in shapes]


REFUSED_LATER = {
    "AvgPool",
    "EditDistance",
    "MaxPoolWithArgmax",
    "ParseSequenceExample",
    "Range",
    "Unpack",
}
"""Ops with calls that TensorFlow refuses when a graph is built, and opkernel when they run, if at all."""


def refines(found: Any, recorded: Any) -> bool:
    """Whether shapes say what TensorFlow's do, and perhaps more."""
    if "error" in (found, recorded):
        return bool(found == recorded)
    return all(
        dims is None
        or (
            len(ours or ()) == len(dims)
            and all(d in (None, o) for d, o in zip(dims, ours, strict=True))
        )
        for ours, dims in zip(found, recorded, strict=True)
    )


def check_shapes(call: Any, found: Any, recorded: Any) -> None:
    """Check that shapes are TensorFlow's, or certain where TensorFlow knows less; or that a failing call fails early."""
    if refines(found, recorded):
        wanted = [one.get("shape") for one in flat(call.get("outputs", []))]
        assert found == recorded or "error" in call or refines(wanted, found), call
    elif "error" in call:
        assert found == "error" or call["op"] in {*REFUSED_LATER, "SparseReduceMax"}, call
    else:
        assert recorded == "error", (call, found, recorded)
        assert call["op"] in REFUSED_LATER, (call, found)


@pytest.mark.filterwarnings("ignore:Op .* is deprecated")
@pytest.mark.parametrize("op", CALLS)
def test_shapes(op: str) -> None:
    """Where inputs are constants, and where only their shapes are known."""
    for line, recorded in CALLS[op]:
        call, shapes = json.loads(line), json.loads(recorded)
        for are_known, expected in zip((True, False), shapes or (), strict=False):
            check_shapes(call, shapes_of(call, are_known=are_known), expected)
