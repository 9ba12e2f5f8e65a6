"""Gradients of single elements of lists."""

import opkernel.gradients as g
from opkernel.ops.tensor_list.gradients.shapes import element_shape


@g.register_gradient("TensorListPushBack")
def push_back_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    shape = g.nodes.Shape(op.inputs[1])
    return tuple(g.nodes.TensorListPopBack(grad, shape, **g.attrs_of(op, "element_dtype")))


@g.register_gradient("TensorListPopBack")
def pop_back_gradient(
    op: g.Operation, list_grad: g.Tensor | None, grad: g.Tensor | None
) -> g.Gradients:
    """Elements of integers have no gradient, though not much may be known of their list."""
    rest, element = op.outputs
    if list_grad is None:
        list_grad = g.nodes.EmptyTensorList(element_shape(rest), -1, element_dtype=element.dtype)
    if grad is None:
        grad = g.zeros_like(element)
    return g.nodes.TensorListPushBack(list_grad, grad), None


@g.register_gradient("TensorListGetItem")
def get_item_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """A list without other elements."""
    handle, index, _ = op.inputs
    empty = g.nodes.TensorListReserve(
        element_shape(handle), g.nodes.TensorListLength(handle), element_dtype=grad.dtype
    )
    return g.nodes.TensorListSetItem(empty, index, grad), None, None


@g.register_gradient("TensorListSetItem")
def set_item_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    handle, index, item = op.inputs
    for_list = g.nodes.TensorListSetItem(grad, index, g.zeros_like(item))
    if op.get_attr("resize_if_index_out_of_bounds"):
        for_list = g.nodes.TensorListResize(for_list, g.nodes.TensorListLength(handle))
    for_item = g.nodes.TensorListGetItem(grad, index, g.nodes.Shape(item), element_dtype=item.dtype)
    return for_list, None, for_item
