"""Shapes of matrix products and of the addition of biases to them.

Source: TensorFlow core/framework/common_shape_fns.cc.
"""

from opkernel.opdef.common_shapes.elementwise import broadcast_binary_op_output_shape
from opkernel.opdef.shapes.inference_context import InferenceContext
from opkernel.opdef.shapes.shape_handles import ShapeHandle


def matmul_shape(c: InferenceContext) -> None:
    """[m, k] x [k, n] -> [m, n], after the attrs `transpose_a` and `transpose_b`."""
    a, b = c.with_rank(c.input(0), 2), c.with_rank(c.input(1), 2)
    c.set_output(0, _matrix_product(c, a, b, c.get_attr("transpose_a"), c.get_attr("transpose_b")))


def batch_matmul_shape(c: InferenceContext) -> None:
    """[..., m, k] x [..., k, n] -> [..., m, n], with the same leading dimensions."""
    a, b = _matrices(c)
    batch = c.merge(c.subshape(a, 0, -2), c.subshape(b, 0, -2))
    product = _matrix_product(c, a, b, c.get_attr("adj_x"), c.get_attr("adj_y"))
    c.set_output(0, c.concatenate(batch, product))


def batch_matmul_v2_shape(c: InferenceContext) -> None:
    """[..., m, k] x [..., k, n] -> [..., m, n], the leading dimensions broadcast."""
    a, b = _matrices(c)
    product = _matrix_product(c, a, b, c.get_attr("adj_x"), c.get_attr("adj_y"))
    batch = broadcast_binary_op_output_shape(c, c.subshape(a, 0, -2), c.subshape(b, 0, -2))
    c.set_output(0, c.concatenate(batch, product))


def bias_add_shape(c: InferenceContext) -> None:
    """Input 0, its last dimension (for NCHW its second) merged with the length of input 1."""
    channels_first = c.find_attr("data_format") == "NCHW"
    shape = c.with_rank_at_least(c.input(0), 3 if channels_first else 2)
    bias = c.with_rank(c.input(1), 1)
    if not c.rank_known(shape):
        c.set_output(0, c.unknown_shape())
        return
    axis = 1 if channels_first else -1
    c.set_output(0, c.replace_dim(shape, axis, c.merge(c.dim(shape, axis), c.dim(bias, 0))))


def bias_add_grad_shape(c: InferenceContext) -> None:
    """A vector as long as the last dimension (for NCHW the second) of input 0."""
    channels_first = c.find_attr("data_format") == "NCHW"
    shape = c.with_rank_at_least(c.input(0), 3 if channels_first else 2)
    c.set_output(0, c.vector(c.dim(shape, 1 if channels_first else -1)))


def _matrices(c: InferenceContext) -> tuple[ShapeHandle, ShapeHandle]:
    return c.with_rank_at_least(c.input(0), 2), c.with_rank_at_least(c.input(1), 2)


def _matrix_product(
    c: InferenceContext, a: ShapeHandle, b: ShapeHandle, transposes_a: bool, transposes_b: bool
) -> ShapeHandle:
    """[m, n] of the last two dimensions, which may be transposed before."""
    rows, inner_a = c.dim(a, -1 if transposes_a else -2), c.dim(a, -2 if transposes_a else -1)
    inner_b, columns = c.dim(b, -1 if transposes_b else -2), c.dim(b, -2 if transposes_b else -1)
    c.merge(inner_a, inner_b)
    return c.matrix(rows, columns)
