"""Shapes of variables behind resource handles, of dataset iterators and of sparse tensors.

Source: TensorFlow core/framework/common_shape_fns.cc.
"""

from collections.abc import Sequence

from opkernel.errors import InvalidArgumentError
from opkernel.opdef.common_shapes.elementwise import unknown_shape
from opkernel.opdef.shapes.inference_context import InferenceContext
from opkernel.opdef.shapes.shape_handles import ShapeAndType, ShapeHandle
from opkernel.types import MAX_DIMENSIONS, DataType


def validate_variable_resource_handle(c: InferenceContext) -> list[ShapeAndType]:
    """The content of the variable at input 0: at least one entry, unknown if nothing is known.

    Raises:
        InvalidArgumentError: the attr `dtype` is not the variable's.
    """
    held = c.input_handle_shapes_and_types(0)
    if not held:
        return [ShapeAndType(c.unknown_shape(), DataType.DT_INVALID)]
    dtype: DataType = c.get_attr("dtype")
    if held[0].dtype != dtype:
        raise InvalidArgumentError(
            "Trying to read variable with wrong dtype. "
            f"Expected {held[0].dtype.string} got {dtype.string}"
        )
    return list(held)


def dataset_iterator_shape(c: InferenceContext) -> None:
    """Input 0 is a scalar; the outputs have the shapes of the attr `output_shapes`."""
    c.with_rank(c.input(0), 0)
    shapes: Sequence[object] = c.get_attr("output_shapes")
    if len(shapes) != c.num_outputs():
        raise InvalidArgumentError(
            f"`output_shapes` must be the same length as `output_types` "
            f"({len(shapes)} vs. {c.num_outputs()})"
        )
    for i, shape in enumerate(c.get_attr("output_shapes")):
        c.set_output(i, c.make_shape_from_partial_shape(shape))


def validate_sparse_tensor(
    c: InferenceContext, indices: ShapeHandle, values: ShapeHandle, shape: ShapeHandle
) -> None:
    """Check the three tensors of a sparse one: indices [n, r], values [n], shape [r].

    Raises:
        InvalidArgumentError: a rank is wrong, or n or r differ.
    """
    c.with_rank(indices, 2)
    c.with_rank(values, 1)
    c.with_rank(shape, 1)
    in_indices, in_values = c.dim(indices, 0), c.dim(values, 0)
    if _known_to_differ(c, in_indices.value, in_values.value):
        raise InvalidArgumentError(
            f"Number of elements in index ({in_indices}) and values ({in_values}) do not match."
        )
    index_rank, shape_rank = c.dim(indices, 1), c.dim(shape, 0)
    if _known_to_differ(c, index_rank.value, shape_rank.value):
        raise InvalidArgumentError(
            f"Index rank ({index_rank}) and shape rank ({shape_rank}) do not match."
        )


def _known_to_differ(c: InferenceContext, first: int, second: int) -> bool:
    return c.value_known(first) and c.value_known(second) and first != second


def sparse_reduce_shape(c: InferenceContext) -> None:
    """The shape that input 2 holds without the axes that input 3 holds; 1 with `keep_dims`."""
    keep_dims = c.find_attr("keep_dims", False)
    shape, axes = c.input_tensor(2), c.input_tensor(3)
    if shape is None or axes is None or shape.size > MAX_DIMENSIONS:  # more than a tensor has
        unknown_shape(c)
        return
    sizes = shape.reshape(-1).tolist()
    if not sizes:
        raise InvalidArgumentError("Number of dims in shape tensor must not be 0")
    # An axis beyond the last is wrapped and one before the first ignored: the kernel refuses both.
    rank = len(sizes)
    reduced = {(axis + rank) % rank for axis in axes.reshape(-1).tolist() if axis >= -rank}
    kept = [
        1 if i in reduced else size for i, size in enumerate(sizes) if keep_dims or i not in reduced
    ]
    c.set_output(0, c.make_shape(kept))
