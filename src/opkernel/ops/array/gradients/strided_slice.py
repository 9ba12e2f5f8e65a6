"""Gradients of strided slices."""

import opkernel.gradients as g

_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


@g.register_gradient("StridedSlice")
def strided_slice_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    x, *place = op.inputs
    shape = g.nodes.Shape(x, out_type=place[0].dtype)
    return (
        g.nodes.StridedSliceGrad(shape, *place, grad, **g.attrs_of(op, *_MASKS)),
        None,
        None,
        None,
    )


@g.register_gradient("StridedSliceGrad")
def strided_slice_grad_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    _, *place, _ = op.inputs
    return None, None, None, None, g.nodes.StridedSlice(grad, *place, **g.attrs_of(op, *_MASKS))


@g.register_gradient("TensorStridedSliceUpdate")
def tensor_strided_slice_update_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    _, *place, value = op.inputs
    of_part = g.nodes.StridedSlice(grad, *place, **g.attrs_of(op, *_MASKS))
    of_rest = g.nodes.TensorStridedSliceUpdate(
        grad, *place, g.zeros_like(of_part), **g.attrs_of(op, *_MASKS)
    )
    _, of_value = g.sum_to_operands(of_part, value, None, of_part)
    return of_rest, None, None, None, of_value
