"""Shapes of ops on tensor arrays. Handles of version 3 know the shape that all elements have.

Source: TensorFlow core/ops/data_flow_ops.cc.
"""

from opkernel.opdef import (
    InferenceContext,
    OpShapeInferenceFn,
    ShapeAndType,
    ShapeHandle,
    no_outputs,
    scalar_shape,
    unknown_shape,
)
from opkernel.ops.declared.input_ranks import (
    check_handle,
    check_inputs,
    checked,
    checked_no_outputs,
    checked_scalar,
    checked_unknown,
)
from opkernel.ops.declared.rules import fixed_shapes

_HANDLE = (2,)


def _element_shape(c: InferenceContext) -> ShapeHandle | None:
    """The shape of the elements, if the handle knows it."""
    held = c.input_handle_shapes_and_types(0)
    return held[0].shape if held else None


def _create(c: InferenceContext) -> None:
    """A handle and a flow; the handle knows a shape of which all elements are."""
    check_inputs(c, "0")
    c.set_output(0, c.vector(2))
    c.set_output(1, c.scalar())
    shape = c.make_shape_from_partial_shape(c.get_attr("element_shape"))
    if c.fully_defined(shape) or c.get_attr("identical_element_shapes"):
        c.set_output_handle_shapes_and_types(0, [ShapeAndType(shape, c.get_attr("dtype"))])


def _gradient(c: InferenceContext) -> None:
    """The array of gradients has elements like the array."""
    check_inputs(c, "h")
    c.set_output(0, c.vector(2))
    c.set_output(1, c.scalar())
    held = c.input_handle_shapes_and_types(0)
    if held is not None:
        c.set_output_handle_shapes_and_types(0, held)


def _gradient_with_shape(c: InferenceContext) -> None:
    """As `_gradient`, where input 2 holds dimensions that the elements have before theirs."""
    check_inputs(c, "h")
    c.set_output(0, c.vector(2))
    c.set_output(1, c.scalar())
    held = c.input_handle_shapes_and_types(0)
    if not held:
        return
    added = c.dim(c.input(2), 0)
    shape = c.unknown_shape()
    if c.rank_known(held[0].shape) and c.value_known(added):
        shape = c.concatenate(c.unknown_shape_of_rank(added.value), held[0].shape)
    c.set_output_handle_shapes_and_types(0, [ShapeAndType(shape, held[0].dtype)])


def _write(c: InferenceContext) -> None:
    check_inputs(c, "h0.0")
    element = _element_shape(c)
    if element is not None:
        c.merge(element, c.input(2))
    scalar_shape(c)


def _read(c: InferenceContext) -> None:
    check_inputs(c, "h00")
    element = _element_shape(c)
    c.set_output(0, c.unknown_shape() if element is None else element)


def _check_handle_and_indices(c: InferenceContext, flow: int) -> ShapeHandle:
    """The shape of the indices at input 1, after a check of the handle and the flow."""
    c.with_rank(c.input(0), 1)
    indices = c.with_rank(c.input(1), 1)
    check_handle(c, c.input(0))
    c.with_rank(c.input(flow), 0)
    return indices


def _gather(c: InferenceContext) -> None:
    """[indices, element...]; the elements are as the handle or else the attr says."""
    indices = _check_handle_and_indices(c, flow=2)
    element = _element_shape(c)
    if element is None:
        element = c.make_shape_from_partial_shape(c.get_attr("element_shape"))
    c.set_output(0, c.concatenate(indices, element))


def _gather_v2(c: InferenceContext) -> None:
    _check_handle_and_indices(c, flow=2)
    unknown_shape(c)


def _scatter(c: InferenceContext) -> None:
    indices = _check_handle_and_indices(c, flow=3)
    value, _ = c.merge_prefix(c.input(2), indices)
    element = _element_shape(c)
    if element is not None:
        c.merge(element, c.subshape(value, 1))
    scalar_shape(c)


def _scatter_v2(c: InferenceContext) -> None:
    _check_handle_and_indices(c, flow=3)
    scalar_shape(c)


def _concat(c: InferenceContext) -> None:
    check_inputs(c, "h0")
    c.set_output(0, c.unknown_shape())
    c.set_output(1, c.vector(None))


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "TensorArrayClose": no_outputs,
    "TensorArrayCloseV2": checked_no_outputs("h"),
    "TensorArrayCloseV3": checked_no_outputs("h"),
    "TensorArrayConcatV2": _concat,
    "TensorArrayConcatV3": _concat,
    "TensorArrayGatherV2": _gather_v2,
    "TensorArrayGatherV3": _gather,
    "TensorArrayGradV2": checked("h", fixed_shapes(_HANDLE)),
    "TensorArrayGradV3": _gradient,
    "TensorArrayGradWithShape": _gradient_with_shape,
    "TensorArrayReadV2": checked_unknown("h00"),
    "TensorArrayReadV3": _read,
    "TensorArrayScatterV2": _scatter_v2,
    "TensorArrayScatterV3": _scatter,
    "TensorArraySizeV2": checked_scalar("h"),
    "TensorArraySizeV3": checked_scalar("h"),
    "TensorArraySplitV2": checked_scalar("h.10"),
    "TensorArraySplitV3": checked_scalar("h.10"),
    "TensorArrayV2": checked("0", fixed_shapes(_HANDLE)),
    "TensorArrayV3": _create,
    "TensorArrayWriteV2": checked_scalar("h0.0"),
    "TensorArrayWriteV3": _write,
}
for method in (
    *("", "Concat", "Gather", "Grad", "Pack", "Read"),
    *("Scatter", "Size", "Split", "Unpack", "Write"),
):
    SHAPE_FNS[f"TensorArray{method}"] = unknown_shape
