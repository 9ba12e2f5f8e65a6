"""Ops that are XLA's own; expected values are formulas of NumPy, and literals from TensorFlow's programs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.xla import single_ops
from tests.xla.single_ops import compiled

import opkernel
from opkernel import raw_ops
from opkernel.errors import FailedPreconditionError, InternalError, InvalidArgumentError
from opkernel.graph import get_default_graph
from opkernel.testing import infer_shapes
from opkernel.testing.op_runs import node_of
from opkernel.types import DataType
from opkernel.xla import XlaArgument, XlaCompiler

pytestmark = pytest.mark.jax


@pytest.fixture(params=[True, False], ids=["marked", "unmarked"], autouse=True)
def _marks(request, monkeypatch):
    """Each op compiled in a marked function, and computed by its kernel in one without marks."""
    monkeypatch.setattr(single_ops, "JIT", request.param)


X = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
INTEGERS = X.astype(np.int32)


def vector(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int32)


def message(**fields: list[int]) -> str:
    """A serialized message of integers, each field `f<number>` repeated and packed."""
    data = bytearray()
    for name, numbers in fields.items():
        data += bytes([int(name[1:]) << 3 | 2, len(numbers), *numbers])
    return data.decode("ascii")


def single(**fields: int) -> str:
    """A serialized message of single integers."""
    return bytes(b for name, n in fields.items() for b in (int(name[1:]) << 3, n)).decode("ascii")


def named(function: Callable[..., Any], count: int) -> str:
    """The name of a function of scalars of float, in the library of the graph that is built."""
    scalar = opkernel.TensorSpec((), opkernel.float32)
    traced = opkernel.function(function).get_concrete_function(*[scalar] * count)
    traced.graph.add_to(get_default_graph())
    return traced.name


def of_scalars(
    op: str, *inputs: Any, functions: dict[str, Callable[..., Any]], **fixed: Any
) -> Any:
    """The outputs of a compiled op some of whose attrs are functions of two scalars."""
    op_def = opkernel.opdef.global_op_registry().look_up_op_def(op)

    @opkernel.function(jit_compile=single_ops.JIT)
    def run(*tensors: Any) -> Any:
        attrs = {name: named(function, 2) for name, function in functions.items()}
        names = [arg.name for arg in op_def.input_arg if arg.name not in fixed]
        given = dict(zip(names, tensors, strict=True))
        return getattr(raw_ops, op)(**given, **fixed, **attrs)

    return run(*inputs)


def test_dot():
    left = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    right = np.arange(40, dtype=np.float32).reshape(2, 4, 5)
    numbers = message(f1=[2], f2=[1], f3=[0], f4=[0])
    found = compiled("XlaDot", left, right, dimension_numbers=numbers, precision_config="")
    np.testing.assert_array_equal(found, left @ right)


def test_dot_of_small_integers_in_a_wide_type():
    left = np.full((2, 3), 100, np.int8)
    found = compiled(
        "XlaDotV2",
        left,
        left.T.copy().astype(np.int16),
        dimension_numbers=message(f1=[1], f2=[0]),
        precision_config=message(f1=[2, 2]),
        preferred_element_type="int32",
    )
    assert found.tolist() == [[30000, 30000], [30000, 30000]]


@pytest.mark.parametrize("op", ["XlaConv", "XlaConvV2"])
def test_conv(op):
    # lines of 2 channels: [batch, width, channels] and [width, in, out]
    images = np.arange(16, dtype=np.float32).reshape(1, 8, 2)
    kernel = np.arange(12, dtype=np.float32).reshape(3, 2, 2)
    numbers = single(f3=1, f4=2, f8=2, f10=2) + message(f6=[0], f11=[1], f12=[1])
    found = compiled(
        op,
        images,
        kernel,
        window_strides=vector(2),
        padding=np.array([[1, 0]], np.int32),
        lhs_dilation=vector(1),
        rhs_dilation=vector(2),
        feature_group_count=np.int32(1),
        dimension_numbers=numbers,
        precision_config="",
        **({"preferred_element_type": "float"} if op == "XlaConvV2" else {}),
    )
    padded = np.pad(images, ((0, 0), (1, 0), (0, 0)))
    expected = [sum(padded[0, at + 2 * tap] @ kernel[tap] for tap in range(3)) for at in (0, 2, 4)]
    np.testing.assert_array_equal(found, [expected])


def test_einsum():
    found = compiled("XlaEinsum", X, X, equation="ab,cb->ac")
    np.testing.assert_array_equal(found, X @ X.T)


def test_blocks():
    at = vector(-1, 2)
    block = compiled("XlaDynamicSlice", INTEGERS, at, size_indices=vector(1, 2))
    assert block.tolist() == [[2, 3]]
    update = np.array([[9, 9]], np.int32)
    updated = compiled("XlaDynamicUpdateSlice", INTEGERS, update, vector(1, 2))
    assert updated.tolist() == [[1, 2, 3], [4, 9, 9]]
    with pytest.raises(InvalidArgumentError, match="start_indices must be a vector of 2"):
        compiled("XlaDynamicSlice", INTEGERS, vector(1), size_indices=vector(1, 2))


def test_pad():
    padding = {"padding_low": vector(1, -1), "padding_high": vector(0, 2)}
    found = compiled("XlaPad", INTEGERS, np.int32(0), **padding, padding_interior=vector(1, 0))
    assert found.tolist() == [[0, 0, 0, 0], [2, 3, 0, 0], [0, 0, 0, 0], [5, 6, 0, 0]]


@pytest.mark.parametrize("vector_dim", [1, 2])
def test_gather(vector_dim):
    """Rows of a matrix, by vectors of one index; the index vectors stand in a dimension, or are single."""
    indices = np.array([[1], [0], [1]], np.int32)
    indices = indices if vector_dim == 1 else indices.T
    numbers = message(f1=[indices.ndim - 1 if vector_dim == 1 else 2], f2=[0], f3=[0])
    found = compiled(
        "XlaGather",
        X,
        indices,
        slice_sizes=vector(1, 3),
        dimension_numbers=numbers + single(f4=vector_dim),
        indices_are_sorted=False,
    )
    expected = X[[1, 0, 1]] if vector_dim == 1 else X[[1, 0, 1]][None]
    np.testing.assert_array_equal(found, expected)


def test_scatter():
    """Rows are multiplied, one of them twice; a row that is not there changes nothing."""
    numbers = message(f1=[1], f2=[0], f3=[0]) + single(f4=1)
    found = of_scalars(
        "XlaScatter",
        X,
        np.array([[1], [1], [2]], np.int32),
        np.array([[1, 2, 3], [2, 2, 2], [9, 9, 9]], np.float32),
        functions={"update_computation": lambda x, y: raw_ops.Mul(x=x, y=y)},
        dimension_numbers=numbers,
        indices_are_sorted=False,
    )
    np.testing.assert_array_equal(found, [X[0], X[1] * [2, 4, 6]])


def test_reductions():
    def longest(x, y):
        return raw_ops.Maximum(x=x, y=raw_ops.Abs(x=y))

    found = of_scalars(
        "XlaReduce",
        -X,
        np.float32(0),
        functions={"reducer": longest},
        dimensions_to_reduce=[1],
    )
    np.testing.assert_array_equal(found, [3, 6])


def test_a_reduction_draws_no_numbers():
    def drawn(x, y):
        return x + y * raw_ops.RandomUniform(shape=np.zeros(0, np.int32), dtype="float")

    with pytest.raises(FailedPreconditionError, match="generator of random numbers in 'reducer'"):
        of_scalars(
            "XlaReduce", X, np.float32(0), functions={"reducer": drawn}, dimensions_to_reduce=[1]
        )


@pytest.mark.parametrize("op", ["XlaVariadicReduce", "XlaVariadicReduceV2"])
def test_reductions_of_two_tensors(op):
    def both(sum_, product, x, y):
        return sum_ + x, product * y

    names = ("input", "init_value") if op == "XlaVariadicReduce" else ("inputs", "init_values")

    @opkernel.function(jit_compile=True)
    def run(x):
        given = {names[0]: [x, x], names[1]: [np.float32(0), np.float32(1)]}
        return getattr(raw_ops, op)(**given, dimensions_to_reduce=[0], reducer=named(both, 4))

    sums, products = run(X)
    np.testing.assert_array_equal(sums, X.sum(axis=0))
    np.testing.assert_array_equal(products, X.prod(axis=0))


def test_windows():
    found = of_scalars(
        "XlaReduceWindow",
        X,
        np.float32(0),
        functions={"computation": lambda x, y: x + y},
        window_dimensions=vector(1, 2),
        window_strides=vector(1, 1),
        base_dilations=vector(1, 1),
        window_dilations=vector(1, 1),
        padding=np.array([[0, 0], [0, 1]], np.int32),
    )
    np.testing.assert_array_equal(found, [[3, 5, 3], [9, 11, 6]])


def test_the_gradient_of_pooling():
    values = np.array([[1, 5, 2, 7, 3, -4]], np.float32)
    found = of_scalars(
        "XlaSelectAndScatter",
        values,
        np.array([[10, 20, 30]], np.float32),
        np.float32(1),
        functions={
            "select": lambda x, y: raw_ops.GreaterEqual(x=x, y=y),
            "scatter": lambda x, y: x + y,
        },
        window_dimensions=vector(1, 3),
        window_strides=vector(1, 2),
        padding=np.array([[0, 0], [0, 1]], np.int32),
    )
    np.testing.assert_array_equal(found, [[1, 11, 1, 21, 31, 1]])


def test_sorting():
    rows = np.array([[3, np.nan, 1, -0.0, 0], [5, 4, 3, 2, 1]], np.float32)
    np.testing.assert_array_equal(compiled("XlaSort", rows), np.sort(rows))
    keys, values = compiled("XlaKeyValueSort", rows[1], np.arange(5, dtype=np.int32))
    assert keys.tolist() == [1, 2, 3, 4, 5]
    assert values.tolist() == [4, 3, 2, 1, 0]


def test_sorting_by_a_comparator():
    def later(x, y, *_):
        return raw_ops.Greater(x=x, y=y)

    @opkernel.function(jit_compile=True)
    def run(keys, values):
        return raw_ops.XlaVariadicSort(
            inputs=[keys, values], dimension=np.int32(0), comparator=named(later, 4), is_stable=True
        )

    keys = np.array([[2, 0], [1, 0], [2, 5]], np.float32)
    found, values = run(keys, np.arange(6, dtype=np.float32).reshape(3, 2))
    assert found.tolist() == [[2, 5], [2, 0], [1, 0]]
    assert values.tolist() == [[0, 5], [4, 1], [2, 3]]


def test_broadcasting():
    lhs, rhs = compiled("XlaBroadcastHelper", X, X[0], broadcast_dims=vector(1))
    np.testing.assert_array_equal(lhs, X)
    np.testing.assert_array_equal(rhs, X[:1])
    lhs, rhs = compiled("XlaBroadcastHelper", X[:, 0], X, broadcast_dims=vector(0))
    np.testing.assert_array_equal(lhs, X[:, :1])
    with pytest.raises(InvalidArgumentError, match="must increase"):
        compiled("XlaBroadcastHelper", X, X[None], broadcast_dims=vector(1, 0))


def test_what_passes_on():
    for op, fixed in (
        ("XlaSharding", {"sharding": "", "unspecified_dims": []}),
        ("XlaRemoveDynamicDimensionSize", {"dim_index": np.int32(0)}),
    ):
        np.testing.assert_array_equal(compiled(op, X, **fixed), X)

    @opkernel.function(jit_compile=True)
    def run(x):
        first, second = raw_ops.XlaOptimizationBarrier(input=[x, x[0]])
        bound = raw_ops.XlaSetBound(input=raw_ops.Size(input=x), bound=np.int32(9))
        index = raw_ops.DeviceIndex(device_names=["CPU", "GPU"])
        return first, second, bound, index, raw_ops.XlaReplicaId()

    first, second, bound, index, replica = run(X)
    np.testing.assert_array_equal(first, X)
    np.testing.assert_array_equal(second, X[0])
    assert [int(bound), int(index), int(replica)] == [6, 2, 0]


def test_lists_pass_on():
    op_def = opkernel.opdef.global_op_registry().look_up_op_def("_ListToArray")
    types = {"Tin": [DataType.DT_FLOAT] * 2, "T": DataType.DT_FLOAT, "N": 2}
    arguments = [XlaArgument.parameter(DataType.DT_FLOAT, (2, 3))] * 2
    program = XlaCompiler().compile_single_op(node_of(op_def, types), arguments)
    (first, second), _ = program.run([X, -X])
    np.testing.assert_array_equal(first, X)
    np.testing.assert_array_equal(second, -X)


def test_precision_and_packed_numbers():
    narrow = np.array([1.2345, 1e9, -1e-9], np.float32)
    found = compiled("XlaReducePrecision", narrow, exponent_bits=5, mantissa_bits=3)
    np.testing.assert_array_equal(found, np.array([1.25, np.inf, -0.0], np.float32))
    packed = np.array([[0x01020304], [0xFF000080]], np.uint32)
    fixed = {"min_range": -1.0, "max_range": 3.0, "mode": "MIN_COMBINED"}
    found = compiled("XlaDequantize", packed, **fixed, transpose_output=True)
    expected = [[-0.984375, 3], [-0.96875, -1], [-0.953125, -1], [-0.9375, 1.015625]]
    assert found.astype(np.float32).tolist() == expected


def test_decompositions():
    symmetric = np.array([[2, 1], [1, 3]], np.float32)
    fixed = {"max_iter": 100, "epsilon": 1e-6}
    values, vectors = compiled("XlaSelfAdjointEig", symmetric, lower=True, **fixed)
    np.testing.assert_allclose(values, [1.381966, 3.618034], rtol=1e-6)
    np.testing.assert_allclose(symmetric @ vectors, vectors * values, rtol=1e-5, atol=1e-6)
    s, u, v = compiled("XlaSvd", X.T.copy(), precision_config="", **fixed)
    assert (s.shape, u.shape, v.shape) == ((2,), (3, 3), (2, 2))
    np.testing.assert_allclose((u[:, :2] * s) @ v.T, X.T, rtol=1e-5)


def test_conditionals_and_loops():
    @opkernel.function(jit_compile=True)
    def run(x, flag):
        double = named(lambda x: x * np.float32(2), 1)
        increased = named(lambda x: x + np.float32(1), 1)
        is_small = named(lambda x: raw_ops.Less(x=x, y=np.float32(100)), 1)
        (chosen,) = raw_ops.XlaIf(
            cond=flag, inputs=[x], then_branch=double, else_branch=increased, Tout=["float"]
        )
        (grown,) = raw_ops.XlaWhile(input=[x], cond=is_small, body=double)
        return chosen, grown

    assert [float(one) for one in run(np.float32(5), np.bool_(True))] == [10, 160]
    assert [float(one) for one in run(np.float32(5), np.bool_(False))] == [6, 160]


@pytest.mark.parametrize("sharding", ["", "\x08\x04"], ids=["none", "manual"])
def test_shards_of_one_device(sharding):
    attrs = {"manual_sharding": sharding}
    if single_ops.JIT:  # TensorFlow has no kernel of it for the CPU
        np.testing.assert_array_equal(compiled("XlaSpmdFullToShardShape", X, **attrs), X)
    whole = compiled("XlaSpmdShardToFullShape", X, full_shape=[2, 3], **attrs)
    np.testing.assert_array_equal(whole, X)


def test_a_shard_is_not_smaller_than_the_whole_on_one_device():
    with pytest.raises(InternalError, match=r"full_shape \[4,3\] must be the shape of the input"):
        compiled("XlaSpmdShardToFullShape", X, manual_sharding="", full_shape=[4, 3])


@pytest.mark.parametrize(
    ("parts", "dim", "expected"),
    [([2, 1], -1, [3, 4]), ([2, 3], -1, [3, 2]), ([2, 3], 1, [5, 2]), ([1, 1], -1, [5, 4])],
)
def test_the_shape_of_a_shard(parts, dim, expected):
    sharding = "\x08\x03" + message(f3=parts)
    attrs = {"T": opkernel.float32, "manual_sharding": sharding, "dim": dim}
    (found,) = infer_shapes("XlaSpmdFullToShardShape", [[5, 4]], attrs=attrs)
    assert found.as_list() == expected
    with pytest.raises(InvalidArgumentError, match="divides 2 dimensions only"):
        infer_shapes("XlaSpmdFullToShardShape", [[5, 4, 3]], attrs=attrs)


@pytest.mark.parametrize("wrong", ["dimension_numbers", "precision_config"])
def test_a_damaged_message_is_refused(wrong: str) -> None:
    messages: dict[str, Any] = {
        "dimension_numbers": b"\x0a\x01\x01\x12\x01\x00",
        "precision_config": b"",
    }
    messages[wrong] = b"\xff\xff"
    with pytest.raises(InvalidArgumentError, match="Error parsing"):
        raw_ops.XlaDot(lhs=np.ones((2, 3), np.float32), rhs=np.ones((3, 2), np.float32), **messages)
