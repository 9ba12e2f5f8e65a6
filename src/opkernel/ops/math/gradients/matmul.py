"""Gradients of products of matrices.

The gradients of a product of two matrices, either of which may be flipped before.
"""

from typing import Any, Protocol

import opkernel.gradients as g
from opkernel.graph import Tensor
from opkernel.types import DataType


class Product(Protocol):
    """Multiplies matrices; `of` is the operand ("a" or "b") whose gradient the product is."""

    def __call__(self, a: Tensor, b: Tensor, *, flip_a: bool, flip_b: bool, of: str) -> Any:
        """Add the node of a product."""


def product_gradients(
    product: Product, a: Tensor, b: Tensor, grad: Tensor, flipped_a: bool, flipped_b: bool
) -> tuple[Any, Any]:
    """The gradients of `a` and `b` of `product(a, b)`.

    An operand that is flipped has a gradient that is flipped: the product of its gradient is then
    made the other way round.
    """
    if flipped_a:
        for_a = product(b, grad, flip_a=flipped_b, flip_b=True, of="a")
    else:
        for_a = product(grad, b, flip_a=False, flip_b=not flipped_b, of="a")
    if flipped_b:
        for_b = product(grad, a, flip_a=True, flip_b=flipped_a, of="b")
    else:
        for_b = product(a, grad, flip_a=not flipped_a, flip_b=False, of="b")
    return for_a, for_b


@g.register_gradient("MatMul")
def matmul_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    def product(a: g.Tensor, b: g.Tensor, *, flip_a: bool, flip_b: bool, of: str) -> Any:
        return g.nodes.MatMul(a, b, transpose_a=flip_a, transpose_b=flip_b, **{f"grad_{of}": True})

    a, b = (g.conj(tensor) for tensor in op.inputs)
    return product_gradients(
        product, a, b, grad, op.get_attr("transpose_a"), op.get_attr("transpose_b")
    )


@g.register_gradient("SparseMatMul")
def sparse_matmul_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    a, b = op.inputs
    types = {"a": a.dtype, "b": b.dtype}
    sparse = {a.name: op.get_attr("a_is_sparse"), b.name: op.get_attr("b_is_sparse")}
    sparse[grad.name] = grad.op.type == "ReluGrad"

    def product(a: g.Tensor, b: g.Tensor, *, flip_a: bool, flip_b: bool, of: str) -> Any:
        attrs = {"a_is_sparse": sparse[a.name], "b_is_sparse": sparse[b.name]}
        if flip_b:
            b = g.nodes.Transpose(b, [1, 0])
        both = g.nodes.SparseMatMul(a, b, transpose_a=flip_a, **attrs)
        is_wanted = types[of] == DataType.DT_FLOAT
        return both if is_wanted else g.nodes.Cast(both, DstT=types[of])

    return product_gradients(
        product, a, b, grad, op.get_attr("transpose_a"), op.get_attr("transpose_b")
    )
