"""MapDefun: a function that is called with each row of its arguments, and whose results are stacked.

Source: TensorFlow core/ops/dataset_ops.cc, core/kernels/data/map_defun_op.{h,cc}.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.kernel import (
    FunctionRunOptions,
    OpKernelConstruction,
    OpKernelContext,
    check_allocation,
)
from opkernel.opdef import InferenceContext, register_op
from opkernel.ops.function_ops import CallingKernel
from opkernel.ops.input_checks import require, require_equal
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType, PartialTensorShape, TensorShape


def map_defun_shape(c: InferenceContext) -> None:
    """[n, result...] of a function called with each of n rows of the arguments."""
    shapes = c.get_attr("output_shapes")
    message = "`output_shapes` must be the same length as `output_types` ({} vs. {})"
    require_equal(len(shapes), c.num_outputs(), message)
    rows = _rows_of_arguments(c)
    for i, shape in enumerate(shapes):
        result = c.make_shape_from_partial_shape(shape)
        c.set_output(i, c.concatenate(c.vector(rows), result))


def _rows_of_arguments(c: InferenceContext) -> int | None:
    rows = None
    for i in range(len(c.get_attr("Targuments"))):
        message = f"Arguments must have rank at least 1. Input {i} has rank of 0."
        require(c.rank(c.input(i)) != 0, message)
        size = c.dim(c.input(i), 0)
        if not c.value_known(size):
            continue
        if rows not in (None, size.value):
            raise InvalidArgumentError("Arguments must have the same dimension 0.")
        rows = size.value
    return rows


MAP_DEFUN = register_op(
    "MapDefun(arguments: Targuments, captured_inputs: Tcaptured) -> output: output_types",
    attrs=[
        "Targuments: list(type) >= 1",
        "Tcaptured: list(type) >= 0 = []",
        "output_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
        "f: func",
        "max_intra_op_parallelism: int = 1",
    ],
    shape_fn=map_defun_shape,
    doc="""
    Calls `f` with each row of `arguments`, and stacks the results.

    arguments: tensors with the same number of rows.
    captured_inputs: further arguments of `f`, the same for each call.
    output: one row for each call.
    """,
)


@register_kernel(MAP_DEFUN)
class MapDefun(CallingKernel):
    """Calls its function row by row."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction, "f")
        self._shapes: list[PartialTensorShape] = construction.get_attr("output_shapes")
        self._count = len(construction.get_attr("Targuments"))
        require(
            len(self._shapes) == len(self.output_types),
            "Length of output_shapes and output_types must match.",
        )

    def compute(self, ctx: OpKernelContext) -> None:
        """Call the function, and set the stacked results.

        Raises:
            InvalidArgumentError: arguments differ in their number of rows, or results in their shape or type.
        """
        arguments, captured = ctx.inputs[: self._count], ctx.inputs[self._count :]
        rows = _number_of_rows(arguments)
        library, handle = self.called(ctx)
        options = FunctionRunOptions(step=ctx.step)
        outputs = [
            _Stacked(index, rows, shape, dtype)
            for index, (shape, dtype) in enumerate(
                zip(self._shapes, self.output_types, strict=True)
            )
        ]
        for row in range(rows):
            ctx.step.check()
            results = library.run(options, handle, [*(_row(a, row) for a in arguments), *captured])
            require(len(results) == len(outputs), "Mismatch in number of function outputs.")
            for output, result in zip(outputs, results, strict=True):
                output.put(row, result)
        ctx.set_output_list("output", [output.tensor() for output in outputs])


def _number_of_rows(arguments: Sequence[Any]) -> int:
    for i, tensor in enumerate(arguments):
        require(
            tensor.ndim,
            f"All inputs must have rank at least 1. Input {i} has a rank of 0.",
        )
        if len(tensor) != len(arguments[0]):
            raise InvalidArgumentError(
                f"All inputs must have the same dimension 0. Input {i} has leading dimension "
                f"{len(tensor)}, while all previous inputs have leading dimension "
                f"{len(arguments[0])}"
            )
    return len(arguments[0])


def _row(tensor: Any, row: int) -> Any:
    """A row as a tensor: of a vector of objects an element would be no tensor."""
    return tensor[row : row + 1].reshape(tensor.shape[1:])


class _Stacked:
    """An output, whose memory is taken when its shape is known."""

    def __init__(self, index: int, rows: int, shape: PartialTensorShape, dtype: DataType) -> None:
        self._index, self._rows, self._shape, self._dtype = index, rows, shape, dtype
        self._rows_so_far: Any = None
        if shape.is_fully_defined():
            self._allocate(shape.as_tensor_shape())

    def _allocate(self, row: Sequence[int]) -> None:
        shape = check_allocation((self._rows, *row), self._dtype)
        self._rows_so_far = np.empty(shape, self._dtype.numpy_dtype)

    def put(self, row: int, result: Any) -> None:
        """Store a result of the function."""
        if result.dtype != self._dtype.numpy_dtype:
            raise InvalidArgumentError(
                "Mismatch in function return type and expected output type for output: "
                f"{self._index}"
            )
        shape = TensorShape(result.shape)
        if not self._shape.is_compatible_with(shape):
            raise InvalidArgumentError(
                f"Mismatch in function retval shape, {shape}, and expected output shape, "
                f"{self._shape}."
            )
        if self._rows_so_far is None:
            self._shape = PartialTensorShape(result.shape)
            self._allocate(result.shape)
        self._rows_so_far[row] = result if result.ndim else result[()]

    def tensor(self) -> Any:
        """The output.

        Raises:
            InternalError: there was no call that would have told the shape.
        """
        if self._rows_so_far is None:
            raise InternalError(f"Missing {self._index}-th output of a function without calls")
        return self._rows_so_far
