"""Ops as functions: signatures, documentation, and where a call runs."""

import contextlib
import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.graph import Graph, Operation, Tensor
from opkernel.opdef import unknown_shape

ROOT = Path(__file__).resolve().parent.parent


def signature(name: str) -> list[tuple[str, object]]:
    parameters = inspect.signature(getattr(raw_ops, name)).parameters.values()
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in parameters)
    assert list(parameters)[-1].name == "name"
    return [(p.name, p.default) for p in parameters][:-1]


REQUIRED = inspect.Parameter.empty


@pytest.mark.parametrize(
    ("op", "parameters"),
    [
        ("AddV2", [("x", REQUIRED), ("y", REQUIRED)]),
        ("Cast", [("x", REQUIRED), ("DstT", REQUIRED), ("Truncate", False)]),
        ("ConcatV2", [("values", REQUIRED), ("axis", REQUIRED)]),
        ("Unique", [("x", REQUIRED), ("out_idx", opkernel.int32)]),
        ("Placeholder", [("dtype", REQUIRED), ("shape", None)]),
        ("LeakyRelu", [("features", REQUIRED), ("alpha", 0.2)]),
        ("NoOp", []),
    ],
)
def test_signatures(op: str, parameters: list[tuple[str, object]]) -> None:
    assert signature(op) == parameters


def test_required_attrs_stand_before_those_with_defaults() -> None:
    assert [name for name, _ in signature("QuantizeV2")][:5] == [
        "input", "min_range", "max_range", "T", "mode",
    ]  # fmt: skip


def test_a_function_is_named_after_its_op() -> None:
    function = raw_ops.MatMul
    assert (function.__name__, function.__qualname__) == ("MatMul", "MatMul")
    assert function.__module__ == "opkernel.raw_ops"
    assert raw_ops.MatMul is function


def test_words_of_python_take_an_underscore() -> None:
    op = opkernel.register_op(
        "RawOpsTestWords",
        inputs=["in: float"],
        outputs=["lambda: float", "count: float"],
        attrs=["is: float = 2", "name: string = ''"],
        shape_fn=unknown_shape,
    )

    @opkernel.register_kernel(op, device="CPU")
    def kernel(value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return value, value

    assert [name for name, _ in signature("RawOpsTestWords")] == ["in_", "is_", "name_"]
    found = raw_ops.RawOpsTestWords(in_=1.5, is_=3.0, name_="a", name="b")
    assert (found.lambda_, found.count) == (1.5, 1.5)


@pytest.mark.parametrize(
    "arguments",
    [{"x": 1}, {"x": 1, "y": 2, "z": 3}, {"x": 1, "y": 2, "T": opkernel.int32}],
)
def test_wrong_arguments_are_told_as_of_any_function(arguments: dict[str, object]) -> None:
    with pytest.raises(TypeError, match=r"AddV2\(\)"):
        getattr(raw_ops, "AddV2")(**arguments)  # noqa: B009  # arguments that the stub refuses


@pytest.mark.parametrize(
    ("op", "arguments", "message"),
    [
        ("Split", {"num_split": 2.5}, "2.5 is not a value for an attr of type int, such as 3: "),
        ("Split", {"num_split": "a"}, "'a' is not a value for an attr of type int, such as 3: "),
        ("Split", {"num_split": 2**70}, ".* such as 3: Value out of range"),
        ("Any", {"keep_dims": 1}, "1 is not a value for an attr of type bool, such as True: "),
        ("Squeeze", {"squeeze_dims": 1}, r"1 is not .* list\(int\), such as \[3\]: it is no list"),
        ("Squeeze", {"squeeze_dims": ["a"]}, r"\['a'\] is not .* list\(int\), such as \[3\]"),
    ],
)
@pytest.mark.parametrize("in_graph", [False, True])
def test_a_wrong_attr_is_told_with_op_argument_and_a_right_value(
    op: str, arguments: dict[str, object], message: str, in_graph: bool
) -> None:
    inputs = {"Split": {"axis": 0, "value": [1.0]}, "Any": {"input": [True], "axis": 0}}
    given = {**inputs.get(op, {"input": [[1.0]]}), **arguments}
    (attr,) = arguments
    with (
        Graph().as_default() if in_graph else contextlib.nullcontext(),
        pytest.raises(InvalidArgumentError, match=f"Attr '{attr}' of '{op}' Op: {message}"),
    ):
        getattr(raw_ops, op)(**given)


def test_an_unexpected_argument_is_told_before_a_missing_one() -> None:
    with pytest.raises(TypeError, match=r"Split\(\) got unexpected keyword arguments: num"):
        getattr(raw_ops, "Split")(axis=0, value=[1.0], num=1)  # noqa: B009  # else mypy refuses it


def test_arrays_run_at_once() -> None:
    assert raw_ops.AddV2(x=np.float32(1), y=2) == 3
    with pytest.raises(opkernel.errors.InvalidArgumentError, match="cannot convert 'y' to a int32"):
        raw_ops.AddV2(x=np.int32(1), y=1.5)


def test_tensors_make_nodes() -> None:
    graph = Graph()
    with graph.as_default():
        x = raw_ops.Placeholder(dtype=opkernel.float32, shape=[2, 3], name="x")
    assert isinstance(x, Tensor)
    y = raw_ops.MatMul(a=x, b=x, transpose_b=True, name="product")
    assert (y.name, y.graph, y.shape.as_list()) == ("product:0", graph, [2, 2])
    rows = raw_ops.Pack(values=[y, y])
    assert rows.op.get_attr("N") == 2
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    with opkernel.Session(graph) as session:
        np.testing.assert_array_equal(session.run(y, {x: value}), value @ value.T)


def test_inside_a_graph_everything_makes_nodes() -> None:
    with Graph().as_default() as graph:
        assert isinstance(raw_ops.AddV2(x=1, y=2), Tensor)
        assert isinstance(raw_ops.NoOp(), Operation)
        found = raw_ops.Unique(x=[3, 3])
        assert found.idx is graph.get_tensor_by_name("Unique:1")
    assert raw_ops.NoOp() is None


def test_ops_without_kernels_make_nodes() -> None:
    with Graph().as_default():
        assert (
            raw_ops.ReaderReadV2(
                reader_handle=raw_ops.IdentityReaderV2(),
                queue_handle=raw_ops.FIFOQueueV2(component_types=[opkernel.string]),
            ).key.dtype
            == opkernel.string
        )


def test_the_documentation_tells_types_and_defaults() -> None:
    text = raw_ops.ConcatV2.__doc__
    assert text is not None
    assert "values: A list of tensors of any type." in text
    assert "axis: A tensor of one of the types `int32`, `int64`." in text
    assert "Returns:\n    A tensor of the type of `values`." in text


def test_the_shipped_stubs_are_current() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "generate_stubs.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")
