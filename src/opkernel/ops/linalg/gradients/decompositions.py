"""Gradients of Qr, Svd, SelfAdjointEigV2 and Eig.

Source: TensorFlow python/ops/linalg_grad.py; Boeddeker et al., On the computation of complex-valued
gradients (2017); Townsend, Differentiating the singular value decomposition (2016); Roberts and Roberts,
QR and LQ decomposition matrix backpropagation (2020).
"""

from typing import Any

import opkernel.gradients as g
from opkernel.errors import UnimplementedError
from opkernel.graph import constant
from opkernel.ops.linalg.gradients.matrix_algebra import (
    adjoint,
    cast,
    diagonal,
    differences,
    from_diagonal,
    halved_diagonal,
    minus,
    mul,
    plus,
    real_part,
    scaled,
    times,
    triangle,
)


def _sizes(op: g.Operation) -> tuple[int, int]:
    """The rows and columns of the input.

    Raises:
        UnimplementedError: they are not known, as TensorFlow refuses, too.
    """
    dims = op.inputs[0].shape.dims
    if dims is None or dims[-2] is None or dims[-1] is None:
        raise UnimplementedError(
            f"The gradient of {op.type} needs matrices of known size; {op.name!r} has {op.inputs[0].shape}"
        )
    return dims[-2], dims[-1]


def _columns(x: Any, begin: int, end: int) -> Any:
    """Some columns of matrices: `x[..., begin:end]`."""
    return g.nodes.StridedSlice(x, [0, begin], [0, end], [1, 1], ellipsis_mask=1)


def _is_complex(tensor: g.Tensor) -> bool:
    return tensor.dtype.is_complex


@g.register_gradient("Qr")
def qr_gradient(op: g.Operation, for_q: g.Tensor, for_r: g.Tensor) -> g.Gradients:
    rows, columns = _sizes(op)
    if op.get_attr("full_matrices") and rows > columns:
        raise UnimplementedError(
            f"The gradient of Qr is not defined for more rows than columns with full_matrices ({op.name!r})"
        )
    q, r = op.outputs
    if rows >= columns:
        return _deep_qr(q, r, for_q, for_r)
    # The columns beyond the square part are q times theirs of r.
    rest, for_rest = _columns(op.inputs[0], rows, columns), _columns(for_r, rows, columns)
    square = _deep_qr(
        q,
        _columns(r, 0, rows),
        plus(for_q, mul(rest, for_rest, adj_y=True)),
        _columns(for_r, 0, rows),
    )
    return g.nodes.ConcatV2([square, mul(q, for_rest)], -1)


def _deep_qr(q: Any, r: Any, for_q: Any, for_r: Any) -> Any:
    """The gradient for at least as many rows as columns."""
    q_part, r_part = mul(q, for_q, adj_x=True), mul(r, for_r, adj_y=True)
    skew = plus(minus(q_part, adjoint(q_part)), minus(r_part, adjoint(r_part)))
    lower = triangle(skew, lower=True)
    result = plus(mul(q, plus(for_r, _over(lower, r))), _over(minus(for_q, mul(q, q_part)), r))
    if not _is_complex(q):
        return result
    # The diagonal of r is real: what moves its phase does not count.
    phases = diagonal(minus(r_part, adjoint(q_part)))
    imaginary = minus(phases, real_part(phases))
    return plus(result, _over(mul(q, adjoint(from_diagonal(imaginary))), r))


def _over(x: Any, r: Any) -> Any:
    """`x @ adjoint(inverse(r))` for an upper triangle r."""
    return adjoint(g.nodes.MatrixTriangularSolve(r, adjoint(x), lower=False))


@g.register_gradient("SelfAdjointEigV2")
def self_adjoint_eig_gradient(op: g.Operation, for_e: g.Tensor, for_v: g.Tensor) -> g.Gradients:
    if op.get_attr("compute_v"):
        e, v = op.outputs
        turned = times(differences(e), mul(v, for_v, adj_x=True))
        middle = plus(from_diagonal(for_e), turned)
    else:
        _, v = g.nodes.SelfAdjointEigV2(op.inputs[0], compute_v=True)
        middle = from_diagonal(for_e)
    whole = mul(v, mul(middle, v, adj_y=True))
    # Only the lower triangle of the input counts.
    return halved_diagonal(triangle(plus(whole, adjoint(whole)), lower=True))


@g.register_gradient("Eig")
def eig_gradient(op: g.Operation, for_e: g.Tensor, for_v: g.Tensor) -> g.Gradients:
    """All eigenvalues of a matrix count as distinct."""
    if op.get_attr("compute_v"):
        e, v = op.outputs
        inner = mul(v, for_v, adj_x=True)
        lengths = from_diagonal(real_part(diagonal(inner)))
        turned = minus(inner, mul(mul(v, v, adj_x=True), lengths))
        middle = plus(from_diagonal(for_e), times(g.conj(differences(e)), turned))
    else:
        _, v = g.nodes.Eig(op.inputs[0], compute_v=True, Tout=op.get_attr("Tout"))
        middle = from_diagonal(for_e)
    result = g.nodes.MatrixSolve(adjoint(v), mul(middle, v, adj_y=True))
    return cast(result, op.inputs[0].dtype)


@g.register_gradient("Svd")
def svd_gradient(op: g.Operation, for_s: g.Tensor, for_u: g.Tensor, for_v: g.Tensor) -> g.Gradients:
    matrix = op.inputs[0]
    if not op.get_attr("compute_uv"):
        _, u, v = g.nodes.Svd(matrix, compute_uv=True)
        return mul(u, mul(from_diagonal(for_s), v, adj_y=True))
    rows, columns = _sizes(op)
    is_full = op.get_attr("full_matrices")
    if is_full and abs(rows - columns) > 1:
        raise UnimplementedError(
            f"The gradient of Svd with full_matrices is defined for sizes that differ by 1 at most; "
            f"{op.name!r} has matrices of {rows} x {columns}"
        )
    s, u, v = op.outputs
    if rows <= columns:
        return _wide_svd(s, u, v, (for_s, for_u, for_v), rows, columns if is_full else rows)
    given = rows if is_full else columns
    return adjoint(_wide_svd(s, v, u, (for_s, for_v, for_u), columns, given))


def _wide_svd(s: Any, u: Any, v: Any, grads: tuple[Any, Any, Any], small: int, given: int) -> Any:
    """The gradient for at most as many rows (`small`) as columns; v has `given` columns."""
    for_s, for_u, for_v = grads
    v1, for_v1 = _columns(v, 0, small), _columns(for_v, 0, small)
    u_part, v_part = mul(u, for_u, adj_x=True), mul(v1, for_v1, adj_x=True)
    apart = differences(g.nodes.Square(s))
    turned_u, turned_v = times(apart, u_part), times(apart, v_part)
    values = from_diagonal(s)
    middle = plus(
        from_diagonal(for_s),
        mul(plus(turned_u, adjoint(turned_u)), values),
        mul(values, plus(turned_v, adjoint(turned_v))),
    )
    result = mul(u, mul(middle, v1, adj_y=True))
    inverse = from_diagonal(_safe_reciprocal(s))
    outside = minus(adjoint(for_v1), mul(adjoint(v_part), v1, adj_y=True))
    if given > small:
        v2, for_v2 = _columns(v, small, given), _columns(for_v, small, given)
        outside = minus(outside, mul(mul(v1, for_v2, adj_x=True), v2, adj_y=True))
    result = plus(result, mul(mul(u, inverse), outside))
    if not _is_complex(u):
        return result
    phases = from_diagonal(diagonal(v_part))
    turn = mul(inverse, minus(adjoint(phases), phases))
    return plus(result, scaled(mul(u, mul(turn, v1, adj_y=True)), 0.5))


def _safe_reciprocal(x: Any) -> Any:
    """`1 / x`, and 0 at 0."""
    return g.nodes.RealDiv(x, g.nodes.AddV2(g.nodes.Square(x), constant(1e-20, x.dtype)))
