"""Functions, loops and lists of graphs as programs, with kernels and with NumPy alone."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import Graph, Tensor, raw_ops
from opkernel.decompile import decompile
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.graph import FuncGraph, TensorSpec
from opkernel.proto import NameAttrList
from opkernel.types import DataType

FLOAT, INT32 = DataType.DT_FLOAT, DataType.DT_INT32

both_modes = pytest.mark.parametrize("with_numpy_only", [False, True])


@pytest.fixture
def graph():
    with Graph().as_default() as graph:
        yield graph


def program(
    feeds: Sequence[Tensor], fetches: Sequence[Tensor], with_numpy_only: bool
) -> tuple[str, Callable[..., Any]]:
    """The text of a program, and its function of the feeds."""
    found = decompile(feeds, fetches, "A model", with_numpy_only=with_numpy_only)
    namespace: dict[str, Any] = {"__name__": "program", "WEIGHTS": found.weights}
    exec(re.sub("^WEIGHTS = .*", "", found.source, flags=re.MULTILINE), namespace)
    return found.source, namespace["model"]


def define(graph: Graph, name: str, body: Callable[..., Any], *types: DataType) -> NameAttrList:
    """A function of the graph's library."""
    function = FuncGraph(name=name, outer_graph=graph)
    inputs = [function.add_input(TensorSpec(None, dtype), f"a{i}") for i, dtype in enumerate(types)]
    function.trace(lambda: body(*inputs))
    definition = function.function_def
    definition.signature.name = name
    graph.function_library.add_function(definition)
    return NameAttrList(name=name)


@both_modes
def test_conditionals_and_loops_are_statements(graph: Graph, with_numpy_only: bool) -> None:
    x, n = opkernel.placeholder(FLOAT, [2], name="x"), opkernel.placeholder(INT32, [], name="n")
    positive = opkernel.cond(n > 0, lambda: x + 1.0, lambda: x * 3.0, name="positive")
    case = opkernel.switch_case(n, [lambda: -x, lambda: x * 2.0, lambda: x * x])
    _, powers = opkernel.while_loop(lambda i, _: i < n, lambda i, y: (i + 1, y * 2.0), [0, x])
    source, model = program([x, n], [positive, case, powers], with_numpy_only)
    assert re.search(r"^    if truth\(", source, re.MULTILINE)
    assert re.search(r"^    while truth\(", source, re.MULTILINE)
    assert re.search(r"^    elif \w+ == 1:$", source, re.MULTILINE)
    value = np.array([2, 5], np.float32)
    for count, wanted in {
        0: (value * 3, -value, value),
        1: (value + 1, value * 2, value * 2),
        2: (value + 1, value * value, value * 4),
        7: (value + 1, value * value, value * 128),
        -1: (value * 3, value * value, value),
    }.items():
        np.testing.assert_array_equal(model(value, np.int32(count)), wanted)


@both_modes
def test_a_function_may_call_itself(graph: Graph, with_numpy_only: bool) -> None:
    factorial = NameAttrList(name="factorial")
    one = define(graph, "one", lambda n: opkernel.constant(1), INT32)

    def recurse(n: Tensor) -> Any:
        return n * raw_ops.PartitionedCall(args=[n - 1], Tout=[INT32], f=factorial)[0]

    def body(n: Tensor) -> Any:
        then = NameAttrList(name="recurse")
        return raw_ops.StatelessIf(
            cond=n > 0, input=[n], Tout=[INT32], then_branch=then, else_branch=one
        )[0]

    define(graph, "recurse", recurse, INT32)
    define(graph, "factorial", body, INT32)
    n = opkernel.placeholder(INT32, [], name="n")
    result = raw_ops.PartitionedCall(args=[n], Tout=[INT32], f=factorial)[0]
    source, model = program([n], [result], with_numpy_only)
    assert "\ndef recurse(a0):\n" in source
    assert model(np.int32(6)) == (720,)


@both_modes
def test_gradients_of_functions_are_functions(graph: Graph, with_numpy_only: bool) -> None:
    function = define(graph, "square", lambda x: x * x + 2 * x, FLOAT)
    x = opkernel.placeholder(FLOAT, [2], name="x")
    (dx,) = raw_ops.SymbolicGradient(
        input=[x, opkernel.constant([1.0, 10.0])], Tout=[FLOAT], f=function
    )
    _, model = program([x], [dx], with_numpy_only)
    np.testing.assert_array_equal(model(np.array([1, 5], np.float32)), [[4, 120]])


@both_modes
def test_tensor_lists(graph: Graph, with_numpy_only: bool) -> None:
    x, i = opkernel.placeholder(FLOAT, [2], name="x"), opkernel.placeholder(INT32, [], name="i")
    shape, pair = opkernel.constant([2]), opkernel.constant([1, 0])
    of_floats: dict[str, Any] = {"element_dtype": FLOAT}
    items = raw_ops.TensorListReserve(element_shape=shape, num_elements=2, **of_floats)
    items = raw_ops.TensorListSetItem(input_handle=items, index=i, item=x)
    longer = raw_ops.TensorListPushBack(input_handle=items, tensor=-x)
    shorter, last = raw_ops.TensorListPopBack(input_handle=longer, element_shape=shape, **of_floats)
    resized = raw_ops.TensorListResize(input_handle=longer, size=4)
    scattered = raw_ops.TensorListScatterV2(
        tensor=raw_ops.Pack(values=[x, -x]),
        indices=pair,
        element_shape=shape,
        num_elements=-1,
    )
    split = raw_ops.TensorListSplit(tensor=x, element_shape=[-1], lengths=np.array([2, 0]))
    stack = [
        raw_ops.TensorListStack(input_handle=one, element_shape=shape, **of_floats)
        for one in (items, shorter, resized, scattered)
    ]
    joined, lengths = raw_ops.TensorListConcatV2(
        input_handle=split, element_shape=[-1], leading_dims=np.zeros(0, np.int64), **of_floats
    )
    length = raw_ops.TensorListLength(input_handle=resized)
    _, model = program([x, i], [*stack, last, joined, lengths, length], with_numpy_only)
    found = model(np.array([3, 4], np.float32), np.int32(1))
    wanted: list[Any] = [
        [[0, 0], [3, 4]],
        [[0, 0], [3, 4]],
        [[0, 0], [3, 4], [-3, -4], [0, 0]],
        [[-3, -4], [3, 4]],
        *([-3, -4], [3, 4], [2, 0], 4),
    ]
    for one, value in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, value)


@both_modes
def test_tensor_arrays(graph: Graph, with_numpy_only: bool) -> None:
    x = opkernel.placeholder(FLOAT, [2, 2], name="x")
    handle, flow = raw_ops.TensorArrayV3(
        size=2, dtype=FLOAT, dynamic_size=True, clear_after_read=False
    )
    flow = raw_ops.TensorArrayScatterV3(handle=handle, indices=[0, 1], value=x, flow_in=flow)
    flow = raw_ops.TensorArrayWriteV3(handle=handle, index=2, value=x[0] * 2.0, flow_in=flow)
    read = raw_ops.TensorArrayReadV3(handle=handle, index=1, flow_in=flow, dtype=FLOAT)
    gathered = raw_ops.TensorArrayGatherV3(handle=handle, indices=[2, 0], flow_in=flow, dtype=FLOAT)
    size = raw_ops.TensorArraySizeV3(handle=handle, flow_in=flow)
    joined, _ = raw_ops.TensorArrayConcatV3(handle=handle, flow_in=flow, dtype=FLOAT)
    _, model = program([x], [read, gathered, size, joined], with_numpy_only)
    found = model(np.array([[1, 2], [3, 4]], np.float32))
    for one, value in zip(found, [[3, 4], [[2, 4], [1, 2]], 3, [1, 2, 3, 4, 2, 4]], strict=True):
        np.testing.assert_array_equal(one, value)


@both_modes
def test_what_is_not_computed_cannot_be_fetched(graph: Graph, with_numpy_only: bool) -> None:
    x = opkernel.placeholder(FLOAT, [], name="x")
    p, q = (opkernel.placeholder(DataType.DT_BOOL, [], name=name) for name in "pq")
    _, taken = raw_ops.Switch(data=x, pred=p)
    other, _ = raw_ops.Switch(data=x * 2.0, pred=q)
    merged, index = raw_ops.Merge(inputs=[taken, other])
    _, model = program([x, p, q], [merged, index], with_numpy_only)
    value, yes, no = np.float32(3), np.bool_(True), np.bool_(False)
    assert model(value, yes, yes) == (3, 0)
    assert model(value, no, no) == (6, 1)
    with pytest.raises((ValueError, InvalidArgumentError), match="branch that was not taken"):
        model(value, no, yes)


@both_modes
def test_state_is_refused_by_name(graph: Graph, with_numpy_only: bool) -> None:
    handle = raw_ops.VarHandleOp(dtype=FLOAT, shape=[])
    value = raw_ops.ReadVariableOp(resource=handle, dtype=FLOAT)
    with pytest.raises(UnimplementedError, match="op VarHandleOp, which has state"):
        program([], [value], with_numpy_only)


def test_types_that_numpy_does_not_know_are_refused_by_name(graph: Graph) -> None:
    x = opkernel.placeholder(FLOAT, [2], name="x")
    y = raw_ops.Cast(x=x, DstT=DataType.DT_BFLOAT16)
    with pytest.raises(UnimplementedError, match="op Cast of type bfloat16"):
        program([x], [raw_ops.Cast(x=y, DstT=FLOAT)], with_numpy_only=True)


def test_attrs_may_be_infinite(graph: Graph) -> None:
    x = opkernel.placeholder(FLOAT, [3], name="x")
    y = raw_ops.Bucketize(input=x, boundaries=[0.0, float("inf")])
    _, model = program([x], [y], with_numpy_only=True)
    np.testing.assert_array_equal(model(np.array([-1, 2, np.inf], np.float32)), [[0, 1, 2]])


def test_constants_of_types_that_numpy_does_not_know_are_stored(graph: Graph) -> None:
    x = opkernel.placeholder(FLOAT, [3], name="x")
    y = raw_ops.Cast(x=x, DstT=DataType.DT_BFLOAT16) + opkernel.constant(
        [0.5, 1, 2], DataType.DT_BFLOAT16
    )
    _, model = program([x], [raw_ops.Cast(x=y, DstT=FLOAT)], with_numpy_only=False)
    np.testing.assert_array_equal(model(np.array([1, 2, 3], np.float32)), [[1.5, 3, 5]])


@both_modes
def test_plans_of_several_functions(graph: Graph, with_numpy_only: bool) -> None:
    x = opkernel.placeholder(FLOAT, [2], name="x")
    y = x
    for _ in range(2100):
        y = raw_ops.Sin(x=y)
    source, model = program([x], [y], with_numpy_only)
    assert source.count("\ndef plan") > 1
    wanted = np.array([1, 2], np.float32)
    for _ in range(2100):
        wanted = np.sin(wanted)
    np.testing.assert_array_equal(model(np.array([1, 2], np.float32)), [wanted])


def test_names_are_as_long_as_they_must_be(graph: Graph) -> None:
    x = opkernel.placeholder(FLOAT, [2, 2], name="x")
    with graph.name_scope("model"):
        y = x
        for layer in ("layer_1", "layer_2"):
            with graph.name_scope(layer), graph.name_scope("dense"):
                y = raw_ops.MatMul(a=y, b=x, transpose_b=True, name="MatMul")
        y = raw_ops.Add(x=y, y=opkernel.constant(1.0), name="more")
    source, _ = program([x], [y], with_numpy_only=True)
    assert (
        """
def plan(x):
    layer_1_MatMul = matmul(x, x, transpose_b=True)  # model/layer_1/dense/MatMul
    layer_2_MatMul = matmul(layer_1_MatMul, x, transpose_b=True)  # model/layer_2/dense/MatMul
    more = layer_2_MatMul + np.float32(1.0)  # model/more
    return (more,)
"""
        in source
    )


def test_wide_statements_are_broken_and_stand_below_their_scope(graph: Graph) -> None:
    x = opkernel.placeholder(FLOAT, [2], name="x")
    with graph.name_scope("encoder/" + "layer_with_a_long_name/" * 3 + "dense"):
        first = raw_ops.Sin(x=x, name="a_function_with_a_name_that_is_just_as_long_as_the_others")
        second = raw_ops.Cos(x=x, name="another_function_of_which_the_name_is_as_long_as_that")
        third = raw_ops.AddV2(x=first, y=second, name="their_sum")
        fourth = raw_ops.ConcatV2(values=[first, second, third], axis=0, name="all_of_them")
    source, _ = program([x], [fourth], with_numpy_only=True)
    assert (
        """
def plan(x):
    # encoder/layer_with_a_long_name/layer_with_a_long_name/layer_with_a_long_name/dense/
    a_function_with_a_name_that_is_just_as_long_as_the_others = np.sin(x)
    another_function_of_which_the_name_is_as_long_as_that = np.cos(x)
    their_sum = (a_function_with_a_name_that_is_just_as_long_as_the_others +
        another_function_of_which_the_name_is_as_long_as_that)
    all_of_them = concat([a_function_with_a_name_that_is_just_as_long_as_the_others,
        another_function_of_which_the_name_is_as_long_as_that, their_sum], np.int32(0))
    return (all_of_them,)
"""
        in source
    )


def test_kernels_that_claim_nothing(graph: Graph) -> None:
    """What plans check of them is left to `kernel_function`, which a program calls."""
    opkernel.register_op(
        "DecompiledTwice",
        inputs=["x: T"],
        outputs=["y: T"],
        attrs=["T: {float, int32}"],
        shape_fn=lambda c: c.set_output(0, c.input(0)),
    )
    opkernel.register_kernel("DecompiledTwice", device="CPU")(lambda x: x + x)
    x = opkernel.placeholder(FLOAT, [2], name="x")
    y = raw_ops.DecompiledTwice(x=x)  # type: ignore[attr-defined]  # of this test
    source, model = program([x], [y], with_numpy_only=False)
    assert "check_output" not in source
    assert model(np.array([1, 2], np.float32))[0].tolist() == [2, 4]
