"""Shapes of ops that wrap operations of the XLA compiler.

Axes stand in attrs as serialized messages, such as the DotDimensionNumbers of XlaDot.

Source: TensorFlow compiler/tf2xla/ops/xla_ops.cc, compiler/jit/ops/xla_ops.cc, core/tpu/ops/host_compute_ops.cc,
compiler/xla/xla_data.proto.
"""

from collections import defaultdict
from collections.abc import Sequence

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import (
    DimensionHandle,
    InferenceContext,
    OpShapeInferenceFn,
    ShapeHandle,
    einsum_shape,
    explicit_shape,
    no_outputs,
    reduce_scatter_shape,
    scalar_shape,
    unchanged_shape,
    unknown_shape,
)
from opkernel.opdef.common_shapes.rules import (
    check_input_ranks,
    defined_shape,
    each_output_as_its_input,
    set_outputs,
)
from opkernel.ops.input_checks import require, require_equal
from opkernel.ops.parsing.wire import WireError, read_varint
from opkernel.types import PartialTensorShape


def dimension_numbers(text: str, what: str = "") -> defaultdict[int, list[int]]:
    """The integers of a message by the numbers of their fields; what follows a malformed one is left out.

    Args:
        text: The serialized message, as the value of an attr of strings has it.
        what: What the message is, if a malformed one is an error.

    Raises:
        InvalidArgumentError: the message is malformed, and has a name.
    """
    data = text.encode("utf-8", "surrogateescape")
    fields: defaultdict[int, list[int]] = defaultdict(list)
    position, end = 0, len(data)
    try:
        while position < end:
            tag, position = read_varint(data, position, end)
            value, position = read_varint(data, position, end)
            if tag & 7 != 2:
                fields[tag >> 3].append(value)
                continue
            stop = position + value
            while position < stop:
                value, position = read_varint(data, position, end)
                fields[tag >> 3].append(value)
    except WireError as error:
        if what:
            raise InvalidArgumentError(f"Error parsing {what}: {error}") from None
    return fields


def xla_dot_shape(c: InferenceContext) -> None:
    """Batch dimensions, then those of each operand that are neither batched nor contracted."""
    left, right = c.input(0), c.input(1)
    if left.dims is None or right.dims is None:
        unknown_shape(c)
        return
    axes = dimension_numbers(c.get_attr("dimension_numbers"))
    left_contracted, right_contracted, left_batch, right_batch = (axes[i] for i in (1, 2, 3, 4))
    _check_equal_counts("contracting", left_contracted, right_contracted)
    for i, j in zip(left_contracted, right_contracted, strict=True):
        c.merge(c.dim(left, i), c.dim(right, j))
    _check_equal_counts("batch", left_batch, right_batch)
    dims = [
        c.merge(c.dim(left, i), c.dim(right, j))
        for i, j in zip(left_batch, right_batch, strict=True)
    ]
    used = {0: left_contracted + left_batch, 1: right_contracted + right_batch}
    for side, shape in enumerate((left.dims, right.dims)):
        dims += [dim for i, dim in enumerate(shape) if i not in used[side]]
    c.set_output(0, c.make_shape(dims))


def _check_equal_counts(kind: str, left: list[int], right: list[int]) -> None:
    message = (
        f"Must specify the same number of {kind} dimensions for lhs and rhs. Got: {{}} and {{}}"
    )
    require_equal(len(left), len(right), message)


def _unchanged_rank(c: InferenceContext) -> None:
    shape = c.input(0)
    c.set_output(0, c.unknown_shape_of_rank(c.rank(shape)) if c.rank_known(shape) else shape)


def _dynamic_slice(c: InferenceContext) -> None:
    if not c.rank_known(c.input(2)):
        _unchanged_rank(c)
        return
    require(c.rank(c.input(2)) == 1, "size_indices must be a 1D tensor")
    sizes = c.make_shape_from_shape_tensor(2)
    if c.rank_known(sizes):
        c.set_output(0, sizes)
    else:
        _unchanged_rank(c)


def _pad(c: InferenceContext) -> None:
    shape, value = c.input(0), c.input(1)
    if shape.dims is None:
        _unchanged_rank(c)
        return
    require(c.rank(value) <= 0, f"padding_value input must be scalar, found rank {c.rank(value)}")
    paddings = [c.input_tensor(i) for i in (2, 3, 4)]
    known = [padding for padding in paddings if padding is not None]
    if len(known) < len(paddings):
        _unchanged_rank(c)
        return
    for name, padding in zip(("low", "high", "interior"), known, strict=True):
        message = f"padding_{name} must be a 1D tensor of size {c.rank(shape)}"
        require_equal(padding.shape, (len(shape.dims),), message)
    rows = zip(*[padding.tolist() for padding in known], strict=True)
    dims = [_padded(c, dim, *row) for dim, row in zip(shape.dims, rows, strict=True)]
    c.set_output(0, c.make_shape(dims))


def _padded(
    c: InferenceContext, dim: DimensionHandle, low: int, high: int, interior: int
) -> DimensionHandle:
    require(
        interior >= 0, f"padding_interior must contain only non-negative values, found {interior}"
    )
    if not c.value_known(dim):
        return c.unknown_dim()
    size = dim.value + low + high + interior * max(dim.value - 1, 0)
    require(size >= 0, f"resulting padded dimension has negative size {size}")
    return c.make_dim(size)


def _kept(c: InferenceContext, shape: ShapeHandle, op: str) -> list[DimensionHandle]:
    """The dimensions that the attr `dimensions_to_reduce` does not name."""
    reduced: list[int] = c.get_attr("dimensions_to_reduce")
    dims = shape.dims or ()
    in_range = all(0 <= axis < len(dims) for axis in reduced)
    if len(set(reduced)) != len(reduced) or not in_range:
        raise InvalidArgumentError(f"Invalid dimensions_to_reduce argument to {op}")
    return [dim for i, dim in enumerate(dims) if i not in reduced]


def _reduce(c: InferenceContext) -> None:
    shape = c.input(0)
    if c.rank_known(shape):
        shape = c.unknown_shape_of_rank(len(_kept(c, shape, "XlaReduce")))
    c.set_output(0, shape)


def _variadic_reduce(c: InferenceContext) -> None:
    count = c.get_attr("N")
    for i in range(count):
        for j in range(count):
            c.merge_input(i, c.input(j))
    if not c.rank_known(c.input(0)):
        each_output_as_its_input(c)
        return
    rank = len(_kept(c, c.input(0), "XlaVariadicReduce"))
    set_outputs(c, [c.unknown_shape_of_rank(rank) for _ in range(count)])


def _variadic_reduce_v2(c: InferenceContext) -> None:
    inputs = c.input("inputs")
    shape = inputs[0]
    for other in inputs[1:]:
        shape = c.merge(shape, other)
    result = c.unknown_shape()
    if c.rank_known(shape):
        result = c.make_shape(_kept(c, shape, "XlaVariadicReduceV2"))
    set_outputs(c, [result] * len(inputs))


def _rng_bit_generator(c: InferenceContext) -> None:
    _, state = check_input_ranks(c, 0, 1)
    set_outputs(c, [state, c.make_shape_from_shape_tensor(2)])


def _einsum(c: InferenceContext) -> None:
    equation = c.get_attr("equation")
    require("," in equation, f'Expected one "," in equation. Got: {equation}')
    einsum_shape(c)


def _defined_shape_of(attr: str) -> OpShapeInferenceFn:
    """A shape function: output 0 has the shape of this attr, which must be defined."""
    return lambda c: c.set_output(
        0, c.make_shape_from_partial_shape(defined_shape(c.get_attr(attr)))
    )


_OTHER = 3
"""The type of an OpSharding that divides dimensions among devices."""


def _shard_shape(c: InferenceContext) -> None:
    """The shape of a device's part, as the OpSharding in the attr divides the dimensions."""
    shape = c.input(0)
    sharding = dimension_numbers(c.get_attr("manual_sharding"))
    if shape.dims is None or sharding[1][-1:] != [_OTHER]:
        unchanged_shape(c)
        return
    only, parts = c.get_attr("dim"), sharding[3]
    require(len(parts) >= len(shape.dims), f"manual_sharding divides {len(parts)} dimensions only")
    dims: list[DimensionHandle] = []
    for i, (dim, count) in enumerate(zip(shape.dims, parts, strict=False)):
        is_divided = count != 1 and (only < 0 or only == i) and c.value_known(dim)
        require(count > 0, f"manual_sharding divides dimension {i} into {count} parts")
        dims.append(c.make_dim(-(-c.value(dim) // count)) if is_divided else dim)
    c.set_output(0, c.make_shape(dims))


def _set_shapes(c: InferenceContext, shapes: Sequence[PartialTensorShape]) -> None:
    set_outputs(c, map(c.make_shape_from_partial_shape, shapes[: c.num_outputs()]))


def _custom_call_v2(c: InferenceContext) -> None:
    shapes = [defined_shape(shape) for shape in c.get_attr("result_shapes")]
    require_equal(len(shapes), c.num_outputs(), "Unexpected number of result shapes: {} != {}")
    _set_shapes(c, shapes)


def _host_compute(c: InferenceContext) -> None:
    if c.get_attr("shape_inference_graph").name:
        unknown_shape(c)
        return
    shapes = c.get_attr("shapes")
    message = "_XlaHostCompute has {} outputs but 'shapes' attr has {} elements"
    require_equal(c.num_outputs(), len(shapes), message)
    _set_shapes(c, shapes)


_UNCHANGED = "AllReduce DynamicUpdateSlice ReducePrecision Scatter Sharding Sort"
_UNCHANGED_RANK = "Conv ConvV2 ReduceWindow SelectAndScatter"
_UNKNOWN = (
    "BroadcastHelper Dequantize Gather If Launch LaunchV2 RemoveDynamicDimensionSize "
    "SelfAdjointEig Send SendToHost SetBound SetDynamicDimensionSize Svd While"
)
_INTERNAL_UNKNOWN = (
    "Compile HostComputeMlir RecvAtHost RecvAtHostV2 Run SendFromHost SendFromHostV2"
)

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "AssignVariableXlaConcatND": no_outputs,
    **{f"Xla{name}": unchanged_shape for name in _UNCHANGED.split()},
    **{f"Xla{name}": _unchanged_rank for name in _UNCHANGED_RANK.split()},
    **{f"Xla{name}": unknown_shape for name in _UNKNOWN.split()},
    **{f"_Xla{name}": unknown_shape for name in _INTERNAL_UNKNOWN.split()},
    "XlaCallModule": lambda c: _set_shapes(c, c.get_attr("Sout")),
    "XlaClusterOutput": lambda c: set_outputs(c, [c.input(0)] * c.num_outputs()),
    "XlaCustomCall": _defined_shape_of("shape"),
    "XlaCustomCallV2": _custom_call_v2,
    "XlaDot": xla_dot_shape,
    "XlaDotV2": xla_dot_shape,
    "XlaDynamicSlice": _dynamic_slice,
    "XlaEinsum": _einsum,
    "XlaHostCompute": _host_compute,
    "XlaKeyValueSort": each_output_as_its_input,
    "XlaOptimizationBarrier": each_output_as_its_input,
    "XlaPad": _pad,
    "XlaRecv": _defined_shape_of("shape"),
    "XlaRecvFromHost": explicit_shape,
    "XlaReduce": _reduce,
    "XlaReduceScatter": reduce_scatter_shape,
    "XlaReplicaId": scalar_shape,
    "XlaRngBitGenerator": _rng_bit_generator,
    "XlaSpmdFullToShardShape": _shard_shape,
    "XlaSpmdShardToFullShape": _defined_shape_of("full_shape"),
    "XlaVariadicReduce": _variadic_reduce,
    "XlaVariadicReduceV2": _variadic_reduce_v2,
    "XlaVariadicSort": each_output_as_its_input,
    "_XlaAotOnlyVarHandleOp": scalar_shape,
    "_XlaMerge": unchanged_shape,
}
