"""The shape of einsum, and the reading of its equation, which the kernel shares.

Source: TensorFlow core/framework/common_shape_fns.cc, core/util/einsum_op_util.cc.
"""

from opkernel.errors import InvalidArgumentError
from opkernel.opdef.common_shapes.elementwise import broadcast_binary_op_output_shape
from opkernel.opdef.shapes.inference_context import InferenceContext
from opkernel.opdef.shapes.shape_handles import DimensionHandle, ShapeHandle

_ELLIPSIS = "..."


def parse_einsum_equation(equation: str) -> tuple[list[str], str]:
    """The subscripts of the inputs and of the output of `ab,bc->ac`.

    Raises:
        InvalidArgumentError: it has no output, or not one or two inputs.
    """
    sides = equation.split("->")
    if len(sides) != 2:
        raise InvalidArgumentError(f"Expecting exactly one '->' in einsum equation: {equation}")
    inputs = sides[0].split(",")
    if len(inputs) > 2:
        raise InvalidArgumentError(
            f"Expecting 1 or 2 input subscripts in equation '{equation}' but got: {len(inputs)}"
        )
    return inputs, sides[1]


def einsum_shape(c: InferenceContext) -> None:
    """The dimensions that the attr `equation` names; an ellipsis stands for the broadcast ones."""
    equation = c.get_attr("equation")
    inputs, output = parse_einsum_equation(equation)
    if c.num_inputs() not in (1, 2):
        raise InvalidArgumentError(f"Expected either 1 or 2 inputs but got: {c.num_inputs()}")
    if c.num_inputs() != len(inputs):
        raise InvalidArgumentError(
            f"Expected {len(inputs)} inputs for equation {equation} but got: {c.num_inputs()}"
        )
    dims: dict[str, DimensionHandle] = {}
    shapes = [_read_input(c, c.input(i), labels, dims) for i, labels in enumerate(inputs)]
    ellipsis = shapes[0]
    if len(shapes) == 2:
        ellipsis = broadcast_binary_op_output_shape(c, shapes[0], shapes[1])
    c.set_output(0, _output_shape(c, equation, output, dims, ellipsis))


def _read_input(
    c: InferenceContext, shape: ShapeHandle, labels: str, dims: dict[str, DimensionHandle]
) -> ShapeHandle:
    """Note the dimension of every label, and return the shape that the ellipsis stands for."""
    has_ellipsis = _has_ellipsis(labels)
    before, _, after = labels.partition(_ELLIPSIS)
    count = len(before) + len(after)
    shape = c.with_rank_at_least(shape, count) if has_ellipsis else c.with_rank(shape, count)
    for place, label in (*enumerate(before), *enumerate(after, -len(after))):
        dim = c.dim(shape, place)
        dims[label] = c.merge(dims[label], dim) if label in dims else dim
    if not has_ellipsis:
        return c.scalar()
    if not c.rank_known(shape):
        return c.unknown_shape()
    return c.subshape(shape, len(before), c.rank(shape) - len(after))


def _output_shape(
    c: InferenceContext,
    equation: str,
    labels: str,
    dims: dict[str, DimensionHandle],
    ellipsis: ShapeHandle,
) -> ShapeHandle:
    has_ellipsis = _has_ellipsis(labels)
    if not has_ellipsis:
        ellipsis = c.with_rank_at_most(ellipsis, 0)
    elif ellipsis.dims is None:
        return c.unknown_shape()
    for label in labels.replace(_ELLIPSIS, ""):
        if label not in dims:
            raise InvalidArgumentError(
                f"Einsum output subscripts for equation '{equation}' has label '{label}' "
                "which is not present in the input subscripts"
            )
    before, _, after = labels.partition(_ELLIPSIS)
    middle = (ellipsis.dims or ()) if has_ellipsis else ()
    return c.make_shape([*[dims[x] for x in before], *middle, *[dims[x] for x in after]])


def _has_ellipsis(labels: str) -> bool:
    periods = labels.count(".")
    if periods not in (0, 3):
        raise InvalidArgumentError(
            f"Expected at most one ellipsis (...), but found {periods} periods (.) in the "
            f"input subscript: {labels}"
        )
    if periods == 3 and _ELLIPSIS not in labels:
        raise InvalidArgumentError(f"Periods found outside of ellipsis in subscript: {labels}")
    return periods == 3
