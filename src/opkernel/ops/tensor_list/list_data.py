"""Shape inference of lists: the type of the elements, and the facts that their shapes share.

It travels as the one ShapeAndType that a handle holds.
Source: TensorFlow core/ops/list_ops.cc.
"""

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, ShapeAndType, ShapeHandle, full_type
from opkernel.opdef.common_shapes.elementwise import keep_contents
from opkernel.opdef.full_type import FullTypeId

list_type = full_type.unary_tensor_container(FullTypeId.TFT_ARRAY, "element_dtype")
"""Declares the op's first output to be a list of tensors of `element_dtype`."""


def list_data(c: InferenceContext, index: int = 0) -> ShapeAndType | None:
    """The known facts of the list at an input; None if there are none."""
    held = c.input_handle_shapes_and_types(index)
    return held[0] if held is not None and len(held) == 1 else None


def check_list_dtype(c: InferenceContext) -> ShapeAndType | None:
    """The known facts about the list at input 0.

    Raises:
        InvalidArgumentError: its elements are not of the type that the op works on.
    """
    data, element_dtype = list_data(c), c.get_attr("element_dtype")
    if data is not None and data.dtype != element_dtype:
        raise InvalidArgumentError(
            f"Expected list with element dtype {element_dtype.string} but got list with element "
            f"dtype {data.dtype.string}"
        )
    return data


def read_shape(c: InferenceContext, shape_input: int) -> ShapeHandle:
    """The shape of elements that are read from the list at input 0.

    Raises:
        InvalidArgumentError: the list has elements of another type or shape.
    """
    data = check_list_dtype(c)
    element_shape = c.make_shape_from_shape_tensor_treat_scalar_as_unknown_shape(shape_input)
    return element_shape if data is None else c.merge(data.shape, element_shape)


def set_list_data(c: InferenceContext, element_shape: ShapeHandle) -> None:
    """Say that output 0, of `list_type`, holds lists of tensors of this shape."""
    data = ShapeAndType(element_shape, c.get_attr("element_dtype"), c.ret_types().args[0])
    c.set_output_handle_shapes_and_types(0, [data])


def set_new_list(c: InferenceContext, shape_input: int) -> ShapeHandle:
    """Set output 0 to a list of tensors of the shape that an input holds; that shape."""
    c.set_output(0, c.scalar())
    element_shape = c.make_shape_from_shape_tensor_treat_scalar_as_unknown_shape(shape_input)
    set_list_data(c, element_shape)
    return element_shape


def pass_list_on(c: InferenceContext) -> None:
    """Set output 0 to a list like that of input 0."""
    c.set_output(0, c.scalar())
    keep_contents(c)
