"""Updates of rows, and what they begin and end with: Empty, InplaceUpdate, InplaceAdd, InplaceSub, ParallelConcat.

TensorFlow may write into `x`; here the output is always another tensor.
Source: TensorFlow core/ops/array_ops.cc, core/kernels/inplace_ops.cc.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, OpHandle, register_op
from opkernel.opdef.common_shapes import random_shape, unchanged_shape
from opkernel.ops.array.fill import zeros
from opkernel.ops.array.scatter import ScatterAt, set_at
from opkernel.ops.input_checks import require_equal, require_vector
from opkernel.ops.kernel_types import NUMBERS
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType, PartialTensorShape, TensorShape

_PLAIN = (*NUMBERS, DataType.DT_BOOL, DataType.DT_STRING)

EMPTY = register_op(
    "Empty",
    inputs=["shape: int32"],
    outputs=["output: dtype"],
    attrs=["dtype: type", "init: bool = false"],
    is_stateful=True,
    shape_fn=random_shape,
    doc="A tensor of a shape. Its elements are zeros; in TensorFlow they may be anything without `init`.",
)


@register_kernel(EMPTY, types={"dtype": _PLAIN}, host_memory=["shape"], factory=True)
def empty(*, dtype: DataType) -> Callable[[Any], Any]:
    def made(shape: Any) -> Any:
        require_vector(shape, "shape must be a vector of int32, got shape {}")
        return zeros(check_allocation(shape.tolist(), dtype), dtype)

    return made


def _declare(name: str, doc: str) -> OpHandle:
    return register_op(
        name,
        inputs=["x: T", "i: int32", "v: T"],
        outputs=["y: T"],
        attrs=["T: type"],
        shape_fn=unchanged_shape,
        doc=doc,
    )


INPLACE_UPDATE = _declare("InplaceUpdate", "`x` with the rows of `v` at the places `i`.")
INPLACE_ADD = _declare("InplaceAdd", "`x` plus the rows of `v` at the places `i`.")
INPLACE_SUB = _declare("InplaceSub", "`x` minus the rows of `v` at the places `i`.")


def _register(op: OpHandle, types: tuple[DataType, ...], scatter_at: ScatterAt) -> None:
    """An op by the function that combines rows. Places count modulo the number of rows, as in TensorFlow."""

    def make(*, T: DataType) -> Callable[[Any, Any, Any], Any]:
        def updated(x: Any, i: Any, v: Any) -> Any:
            _check_rows(x.shape, i.shape, v.shape)
            if T not in types:
                raise InvalidArgumentError(f"Unsupported data type: {T.string}")
            y = np.array(x, order="C")
            if y.size and v.size:
                scatter_at(y, i % len(y), v)
            return y

        return updated

    make.__name__ = op.name
    register_kernel(op, factory=True)(make)


_register(INPLACE_UPDATE, _PLAIN, set_at)
_register(INPLACE_ADD, NUMBERS, np.add.at)
_register(INPLACE_SUB, NUMBERS, np.subtract.at)


def _check_rows(x: tuple[int, ...], i: tuple[int, ...], v: tuple[int, ...]) -> None:
    if len(i) != 1:
        raise InvalidArgumentError(f"i must be a vector. {TensorShape(i)}")
    both = f"{TensorShape(x)} vs. {TensorShape(v)}"
    require_equal(len(x), len(v), f"x and v shape doesn't match (ranks differ): {both}")
    if not x:
        raise InvalidArgumentError("x and v must have rows: they are scalars")
    for axis in range(1, len(x)):
        if x[axis] != v[axis]:
            raise InvalidArgumentError(f"x and v shape doesn't match at index {axis} : {both}")
    if i[0] != v[0]:
        raise InvalidArgumentError(
            f"i and x shape doesn't match at index 0: {TensorShape(i)} vs. {TensorShape(v)}"
        )


def parallel_concat_shape(c: InferenceContext) -> None:
    """The attr `shape`: inputs with a first dimension of 1, one after the other."""
    shape = c.make_shape_from_partial_shape(c.get_attr("shape"))
    if not c.fully_defined(shape):
        raise InvalidArgumentError("shape attr must be fully defined.")
    merged = c.replace_dim(shape, 0, 1)
    for i in range(c.num_inputs()):
        one = c.input(i)
        if not c.fully_defined(one):
            raise InvalidArgumentError("All input shapes must be fully defined.")
        if c.rank(one) == 0:
            raise InvalidArgumentError(
                f"The rank of all input shapes must be greater than 0, but input {i} had rank 0."
            )
        if c.dim(one, 0).value != 1:
            raise InvalidArgumentError("Size of first dimension must be 1.")
        try:
            merged = c.merge(one, merged)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(
                f"{error.message} From merging shape {i} with other shapes."
            ) from error
    c.set_output(0, shape)


PARALLEL_CONCAT = register_op(
    "ParallelConcat",
    inputs=["values: N * T"],
    outputs=["output: T"],
    attrs=["N: int >= 1", "T: type", "shape: shape"],
    shape_fn=parallel_concat_shape,
    doc="The rows `values`, one after the other. Their shapes must be known when the graph is built.",
    traits="cost=linear",
)


@register_kernel(PARALLEL_CONCAT, types={"T": _PLAIN}, factory=True)
def parallel_concat(*, T: DataType, shape: PartialTensorShape) -> Callable[[list[Any]], Any]:
    sizes = [size for size in shape.as_list() if size is not None] if shape.rank else []
    if not sizes or not shape.is_fully_defined():
        raise InvalidArgumentError(f"shape must be known and have rows; got {shape}")

    def concatenated(values: list[Any]) -> Any:
        for place, value in enumerate(values):
            _check_row(sizes, place, value.shape)
        if len(values) == sizes[0]:
            return np.concatenate(values)
        output = zeros(check_allocation(sizes, T), T)
        output[: len(values)] = np.concatenate(values)  # TensorFlow leaves the other rows open
        return output

    return concatenated


def _check_row(shape: list[int], place: int, row: tuple[int, ...]) -> None:
    """Raise InvalidArgumentError where an input is no row of the output."""
    both = f"{TensorShape(shape)} vs. {TensorShape(row)}"
    require_equal(len(row), len(shape), f"value and update shape doesn't match: {both}")
    if row[1:] != tuple(shape[1:]):
        raise InvalidArgumentError(f"value and update shape doesn't match in the rows: {both}")
    if row[0] != 1:
        raise InvalidArgumentError(f"update shape doesn't match: {TensorShape(row)}")
    if place >= shape[0]:
        raise InvalidArgumentError(f"row {place} is beyond the {shape[0]} rows of the attr shape")
