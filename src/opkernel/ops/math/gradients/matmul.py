"""Gradients of products of matrices."""

from typing import Any

import opkernel.gradients as g
from opkernel.ops.math.gradients.product_rule import product_gradients
from opkernel.types import DataType


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
