"""Gradients of the ops of linear algebra.

The nodes for products, transposes and diagonals of stacks of matrices come first. MatrixSolveLs has its gradient by the
normal equations.

Source: TensorFlow python/ops/linalg_grad.py; Boeddeker et al., On the computation of complex-valued
gradients (2017); Townsend, Differentiating the singular value decomposition (2016); Roberts and Roberts,
QR and LQ decomposition matrix backpropagation (2020); Giles, Collected matrix derivative results (2008); Deadman,
Higham and Ralha, Blocked Schur algorithms for computing the matrix square root (2013).
"""

from functools import reduce
from typing import Any

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.graph import constant
from opkernel.ops.registration import REAL_OF
from opkernel.types import DataType

n = g.nodes
minus, times = n.Sub, n.Mul
diagonal, from_diagonal, with_diagonal = n.MatrixDiagPart, n.MatrixDiag, n.MatrixSetDiag


def mul(x: Any, y: Any, *, adj_x: bool = False, adj_y: bool = False) -> Any:
    """The product of matrices, or of their adjoints."""
    return n.BatchMatMulV2(x, y, adj_x=adj_x, adj_y=adj_y)


def plus(*terms: Any) -> Any:
    """The sum."""
    return reduce(n.AddV2, terms)


def scaled(x: Any, factor: float) -> Any:
    """The product with a number."""
    return n.Mul(x, n.Cast(factor, DstT=x.dtype))


def cast(x: Any, dtype: DataType) -> Any:
    """The tensor as another type; itself if it is of that type."""
    return x if x.dtype == dtype else n.Cast(x, DstT=dtype)


def real_part(x: Any) -> Any:
    """Complex numbers without their imaginary parts; of the same type."""
    if x.dtype not in REAL_OF:
        return x
    return cast(n.Real(x, Tout=REAL_OF[x.dtype]), x.dtype)


def adjoint(x: Any) -> Any:
    """The conjugates of the transposed matrices."""
    rank = n.Rank(x)
    axes = n.Range(0, n.Sub(rank, 2), 1)
    return g.conj(n.Transpose(x, n.ConcatV2([axes, _last_two(rank)], 0)))


def _last_two(rank: Any) -> Any:
    """The last two axes, changed about."""
    return n.Pack([n.Sub(rank, 1), n.Sub(rank, 2)])


def triangle(x: Any, *, lower: bool) -> Any:
    """A triangle with the diagonal; zeros elsewhere."""
    return n.MatrixBandPart(x, -1 if lower else 0, 0 if lower else -1)


def halved_diagonal(x: Any) -> Any:
    """Matrices with half of their diagonals."""
    return with_diagonal(x, scaled(diagonal(x), 0.5))


def differences(values: Any) -> Any:
    """The matrices of `1 / (values[j] - values[i])`: near 0 for equal ones, and 0 on the diagonal."""
    ends = n.Sub(n.ExpandDims(values, -2), n.ExpandDims(values, -1))
    square = n.AddV2(n.Square(ends), constant(1e-20, values.dtype))
    return with_diagonal(n.RealDiv(ends, square), g.zeros_like(values))


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
    return n.StridedSlice(x, [0, begin], [0, end], [1, 1], ellipsis_mask=1)


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
    return n.ConcatV2([square, mul(q, for_rest)], -1)


def _deep_qr(q: Any, r: Any, for_q: Any, for_r: Any) -> Any:
    """The gradient for at least as many rows as columns."""
    q_part, r_part = mul(q, for_q, adj_x=True), mul(r, for_r, adj_y=True)
    skew = plus(minus(q_part, adjoint(q_part)), minus(r_part, adjoint(r_part)))
    lower = triangle(skew, lower=True)
    result = plus(mul(q, plus(for_r, _over(lower, r))), _over(minus(for_q, mul(q, q_part)), r))
    if not q.dtype.is_complex:
        return result
    # The diagonal of r is real: what moves its phase does not count.
    phases = diagonal(minus(r_part, adjoint(q_part)))
    imaginary = minus(phases, real_part(phases))
    return plus(result, _over(mul(q, adjoint(from_diagonal(imaginary))), r))


def _over(x: Any, r: Any) -> Any:
    """`x @ adjoint(inverse(r))` for an upper triangle r."""
    return adjoint(n.MatrixTriangularSolve(r, adjoint(x), lower=False))


@g.register_gradient("SelfAdjointEigV2")
def self_adjoint_eig_gradient(op: g.Operation, for_e: g.Tensor, for_v: g.Tensor) -> g.Gradients:
    if op.get_attr("compute_v"):
        e, v = op.outputs
        turned = times(differences(e), mul(v, for_v, adj_x=True))
        middle = plus(from_diagonal(for_e), turned)
    else:
        _, v = n.SelfAdjointEigV2(op.inputs[0], compute_v=True)
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
        _, v = n.Eig(op.inputs[0], compute_v=True, Tout=op.get_attr("Tout"))
        middle = from_diagonal(for_e)
    result = n.MatrixSolve(adjoint(v), mul(middle, v, adj_y=True))
    return cast(result, op.inputs[0].dtype)


@g.register_gradient("Svd")
def svd_gradient(op: g.Operation, for_s: g.Tensor, for_u: g.Tensor, for_v: g.Tensor) -> g.Gradients:
    matrix = op.inputs[0]
    if not op.get_attr("compute_uv"):
        _, u, v = n.Svd(matrix, compute_uv=True)
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
    apart = differences(n.Square(s))
    turned_u, turned_v = times(apart, u_part), times(apart, v_part)
    values = from_diagonal(s)
    middle = plus(
        from_diagonal(for_s),
        mul(plus(turned_u, adjoint(turned_u)), values),
        mul(values, plus(turned_v, adjoint(turned_v))),
    )
    result = mul(u, mul(middle, v1, adj_y=True))
    near_inverse = n.RealDiv(s, n.AddV2(n.Square(s), constant(1e-20, s.dtype)))  # 0 at 0
    inverse = from_diagonal(near_inverse)
    outside = minus(adjoint(for_v1), mul(adjoint(v_part), v1, adj_y=True))
    if given > small:
        v2, for_v2 = _columns(v, small, given), _columns(for_v, small, given)
        outside = minus(outside, mul(mul(v1, for_v2, adj_x=True), v2, adj_y=True))
    result = plus(result, mul(mul(u, inverse), outside))
    if not u.dtype.is_complex:
        return result
    phases = from_diagonal(diagonal(v_part))
    turn = mul(inverse, minus(adjoint(phases), phases))
    return plus(result, scaled(mul(u, mul(turn, v1, adj_y=True)), 0.5))


@g.register_gradient("MatrixInverse")
def matrix_inverse_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    inverse = op.outputs[0]
    right = mul(grad, inverse, adj_y=True)
    for_input = n.Neg(mul(inverse, right, adj_x=True))
    return adjoint(for_input) if op.get_attr("adjoint") else for_input


@g.register_gradient("MatrixDeterminant")
def matrix_determinant_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    # TensorFlow does not conjugate the determinant.
    return _of_each(times(grad, op.outputs[0]), _inverse_adjoint(op))


@g.register_gradient("LogMatrixDeterminant", not_derivative="the sign counts as constant")
def log_matrix_determinant_gradient(
    op: g.Operation, for_sign: g.Tensor, for_log: g.Tensor
) -> g.Gradients:
    """The sign counts as constant."""
    return _of_each(for_log, _inverse_adjoint(op))


def _inverse_adjoint(op: g.Operation) -> Any:
    return n.MatrixInverse(op.inputs[0], adjoint=True)


def _of_each(factors: Any, matrices: Any) -> Any:
    """Each matrix times its factor."""
    column = n.ExpandDims(n.ExpandDims(factors, -1), -1)
    return times(column, cast(matrices, factors.dtype))


@g.register_gradient("MatrixSolve")
def matrix_solve_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return _of_system(op, grad, n.MatrixSolve)


@g.register_gradient("Cholesky")
def cholesky_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    factor = op.outputs[0]
    middle = triangle(halved_diagonal(mul(factor, grad, adj_x=True)), lower=True)
    left = n.MatrixTriangularSolve(factor, middle, lower=True, adjoint=True)
    both = adjoint(n.MatrixTriangularSolve(factor, adjoint(left), lower=True, adjoint=True))
    return scaled(plus(both, adjoint(both)), 0.5)


@g.register_gradient("MatrixSolveLs", not_derivative="l2_regularizer counts as constant")
def matrix_solve_ls_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    if not op.get_attr("fast"):
        raise InvalidArgumentError(
            f"The gradient of MatrixSolveLs is not defined for fast=False ({op.name!r})"
        )
    rows, columns = _sizes(op)
    gradients = _overdetermined if rows >= columns else _underdetermined
    return *gradients(op, grad), None


def _overdetermined(op: g.Operation, grad: g.Tensor) -> tuple[Any, Any]:
    matrix, rhs, _ = op.inputs
    z = _normal_solution(op, mul(matrix, matrix, adj_x=True), grad)
    both = mul(op.outputs[0], z, adj_y=True)
    for_matrix = minus(mul(rhs, z, adj_y=True), mul(matrix, plus(both, adjoint(both))))
    return for_matrix, mul(matrix, z)


def _underdetermined(op: g.Operation, grad: g.Tensor) -> tuple[Any, Any]:
    matrix, rhs, _ = op.inputs
    gramian = mul(matrix, matrix, adj_y=True)
    for_rhs = _normal_solution(op, gramian, mul(matrix, grad))
    weights = _normal_solution(op, gramian, rhs)
    inside = mul(for_rhs, mul(weights, matrix, adj_x=True))
    outside = mul(weights, minus(grad, mul(matrix, for_rhs, adj_x=True)), adj_y=True)
    return minus(outside, inside), for_rhs


def _normal_solution(op: g.Operation, gramian: Any, rhs: Any) -> Any:
    """The solution of a system with a regularised Gramian matrix."""
    more = n.AddV2(diagonal(gramian), cast(op.inputs[2], gramian.dtype))
    factor = n.Cholesky(with_diagonal(gramian, more))
    half = n.MatrixTriangularSolve(factor, rhs, lower=True)
    return n.MatrixTriangularSolve(factor, half, lower=True, adjoint=True)


@g.register_gradient("MatrixTriangularSolve")
def matrix_triangular_solve_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    for_matrix, for_rhs = _of_system(op, grad, n.MatrixTriangularSolve, "lower")
    matrix, rhs = op.inputs
    return _summed_batches(matrix, rhs, triangle(for_matrix, lower=op.get_attr("lower")), for_rhs)


@g.register_gradient("BandedTriangularSolve")
def banded_triangular_solve_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    matrix, rhs = op.inputs
    for_matrix, for_rhs = _of_system(op, grad, n.BandedTriangularSolve, "lower")
    last = n.Sub(n.StridedSlice(g.shape_of(matrix), [-2], [-1], [1], shrink_axis_mask=1), 1)
    bounds = [n.Neg(last), 0] if op.get_attr("lower") else [0, last]
    bands = n.MatrixDiagPartV3(
        for_matrix, n.Pack(bounds), constant(0, matrix.dtype), align="LEFT_RIGHT"
    )
    return _summed_batches(matrix, rhs, bands, for_rhs)


def _of_system(op: g.Operation, grad: g.Tensor, solve: Any, *attrs: str) -> tuple[Any, Any]:
    """The gradients of whole matrices and of right sides, both broadcast; `solve` takes the op's `attrs`, too."""
    is_adjoint, solution = op.get_attr("adjoint"), op.outputs[0]
    for_rhs = solve(op.inputs[0], grad, **g.attrs_of(op, *attrs), adjoint=not is_adjoint)
    factors = (solution, for_rhs) if is_adjoint else (for_rhs, solution)
    return n.Neg(mul(*factors, adj_y=True)), for_rhs


def _summed_batches(matrix: g.Tensor, rhs: g.Tensor, for_matrix: Any, for_rhs: Any) -> g.Gradients:
    """The gradients, summed along what was broadcast of the leading dimensions."""
    shapes = [g.shape_of(matrix), g.shape_of(rhs)]
    leading = [n.StridedSlice(shape, [0], [-2], [1], begin_mask=1) for shape in shapes]
    axes = n.BroadcastGradientArgs(*leading)
    return [
        n.Reshape(n.Sum(one, along), shape)
        for one, along, shape in zip((for_matrix, for_rhs), axes, shapes, strict=True)
    ]


@g.register_gradient("MatrixSquareRoot")
def matrix_square_root_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """Solves Sylvester's equation `adjoint(root) @ x + x @ adjoint(root) == grad`, all of x as one vector."""
    root = adjoint(op.outputs[0])
    shape = g.shape_of(grad)
    size = n.StridedSlice(shape, [-1], [0], [1], end_mask=1, shrink_axis_mask=1)
    batch = n.StridedSlice(shape, [0], [-2], [1], begin_mask=1)
    unit = n.MatrixDiag(n.Fill(n.Pack([size]), n.Cast(1, DstT=grad.dtype)))
    count = n.Mul(size, size)
    turned = n.Transpose(
        root, n.ConcatV2([n.Range(0, n.Size(batch), 1), _last_two(n.Size(shape))], 0)
    )
    square = n.ConcatV2([batch, n.Pack([count, count])], 0)
    equations = plus(
        n.Reshape(_kronecker(root, unit), square),
        n.Reshape(_kronecker(unit, turned), square),
    )
    column = n.ConcatV2([batch, n.Pack([count, 1])], 0)
    return n.Reshape(n.MatrixSolve(equations, n.Reshape(grad, column)), shape)


def _kronecker(x: Any, y: Any) -> Any:
    """[..., n, m, n, m]: the products of all elements of matrices."""
    left = n.ExpandDims(n.ExpandDims(x, -2), -1)
    right = n.ExpandDims(n.ExpandDims(y, -2), -4)
    return n.Mul(left, right)


@g.register_gradient("TridiagonalMatMul")
def tridiagonal_mat_mul_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    *diagonals, rhs = (g.conj(tensor) for tensor in op.inputs)
    for_rhs = n.TridiagonalMatMul(*_flipped(*diagonals), grad)
    return [*(n.ExpandDims(one, -2) for one in _of_diagonals(grad, rhs)), for_rhs]


@g.register_gradient("TridiagonalSolve")
def tridiagonal_solve_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """As TensorFlow's, that of transposed matrices, even of complex ones."""
    diagonals = n.Unpack(op.inputs[0], num=3, axis=-2)
    for_rhs = n.TridiagonalSolve(
        n.Pack(_flipped(*diagonals), axis=-2),
        grad,
        **g.attrs_of(op, "partial_pivoting", "perturb_singular"),
    )
    products = _of_diagonals(for_rhs, op.outputs[0])
    return n.Neg(n.Pack(products, axis=-2)), for_rhs


def _flipped(above: Any, main: Any, below: Any) -> list[Any]:
    """The diagonals of the transposed matrix."""
    return [_moved(below, -1, axis=-1), main, _moved(above, 1, axis=-1)]


def _of_diagonals(grad: Any, x: Any) -> list[Any]:
    """The gradients by the diagonals of a matrix whose product with `x` has this gradient."""
    rows = _moved(x, -1, axis=-2), x, _moved(x, 1, axis=-2)
    return [n.Sum(n.Mul(grad, row), [-1]) for row in rows]


def _moved(x: Any, by: int, *, axis: int) -> Any:
    """The elements moved along an axis; a zero comes in at the end that becomes free."""
    rank = n.Rank(x)
    at = n.OneHot(n.AddV2(rank, axis), rank, 1, 0)
    none = n.ZerosLike(at)
    before, after = (at, none) if by > 0 else (none, at)
    padded = n.PadV2(x, n.Pack([before, after], axis=1), constant(0, x.dtype))
    return n.Slice(padded, after, g.shape_of(x))
