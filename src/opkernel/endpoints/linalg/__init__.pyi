"""Written by tools/generate_stubs.py from table.txt and the files beside this one; do not edit."""

import collections.abc
import typing

import numpy.typing as npt

import opkernel.graph
import opkernel.proto
import opkernel.types

_Tensor: typing.TypeAlias = typing.Any  # an array; in a graph, an opkernel.Tensor
_Input: typing.TypeAlias = (
    npt.ArrayLike
    | opkernel.graph.Tensor
    | opkernel.types.ResourceHandle
    | opkernel.types.Variant
)
_Type: typing.TypeAlias = opkernel.types.DataType | npt.DTypeLike
_Shape: typing.TypeAlias = (
    opkernel.types.TensorShape
    | opkernel.types.PartialTensorShape
    | collections.abc.Sequence[int | None]
    | None
)
_Func: typing.TypeAlias = str | opkernel.proto.NameAttrList

from opkernel.endpoints.linalg.decompositions import cholesky_solve as cholesky_solve
from opkernel.endpoints.linalg.decompositions import eig as eig
from opkernel.endpoints.linalg.decompositions import eigh as eigh
from opkernel.endpoints.linalg.decompositions import eigvals as eigvals
from opkernel.endpoints.linalg.decompositions import eigvalsh as eigvalsh
from opkernel.endpoints.linalg.decompositions import expm as expm
from opkernel.endpoints.linalg.decompositions import logdet as logdet
from opkernel.endpoints.linalg.decompositions import lstsq as lstsq
from opkernel.endpoints.linalg.decompositions import lu_matrix_inverse as lu_matrix_inverse
from opkernel.endpoints.linalg.decompositions import lu_reconstruct as lu_reconstruct
from opkernel.endpoints.linalg.decompositions import lu_solve as lu_solve
from opkernel.endpoints.linalg.decompositions import matrix_rank as matrix_rank
from opkernel.endpoints.linalg.decompositions import pinv as pinv
from opkernel.endpoints.linalg.decompositions import svd as svd
from opkernel.endpoints.linalg.decompositions import tridiagonal_matmul as tridiagonal_matmul
from opkernel.endpoints.linalg.decompositions import tridiagonal_solve as tridiagonal_solve
from opkernel.endpoints.linalg.norms import global_norm as global_norm
from opkernel.endpoints.linalg.norms import l2_normalize as l2_normalize
from opkernel.endpoints.linalg.norms import norm as norm
from opkernel.endpoints.linalg.norms import normalize as normalize
from opkernel.endpoints.linalg.products import adjoint as adjoint
from opkernel.endpoints.linalg.products import einsum as einsum
from opkernel.endpoints.linalg.products import eye as eye
from opkernel.endpoints.linalg.products import matmul as matmul
from opkernel.endpoints.linalg.products import matrix_transpose as matrix_transpose
from opkernel.endpoints.linalg.products import matvec as matvec
from opkernel.endpoints.linalg.products import tensordot as tensordot
from opkernel.endpoints.linalg.products import trace as trace
from opkernel.endpoints.linalg.tridiagonal import eigh_tridiagonal as eigh_tridiagonal

def band_part(
    input: _Input,
    num_lower: _Input,
    num_upper: _Input,
    name: str | None = None,
) -> _Tensor:
    """Matrices with zeros outside of a band around the diagonal; negative: no limit."""

def banded_triangular_solve(
    bands: _Input,
    rhs: _Input,
    lower: bool = True,
    adjoint: bool = False,
    name: str | None = None,
) -> _Tensor:
    """MatrixTriangularSolve for matrices that are given by the bands beside their diagonals."""

def cholesky(
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The lower triangle L with `L @ adjoint(L) == input`; only the lower triangle of the input counts."""

def cross(
    a: _Input,
    b: _Input,
    name: str | None = None,
) -> _Tensor:
    """The cross products of the vectors in the last dimension, of size 3, of `a` and `b`."""

def det(
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The determinants of matrices."""

def diag(
    diagonal: _Input,
    name: str | None = 'diag',
    k: _Input = 0,
    num_rows: _Input = -1,
    num_cols: _Input = -1,
    padding_value: _Input = 0,
    align: typing.Literal['LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'] = 'RIGHT_LEFT',
) -> _Tensor:
    """Matrices with the given diagonals, and with the padding value elsewhere."""

def diag_part(
    input: _Input,
    name: str | None = 'diag_part',
    k: _Input = 0,
    padding_value: _Input = 0,
    align: typing.Literal['LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'] = 'RIGHT_LEFT',
) -> _Tensor:
    """The diagonals of matrices, stacked, and filled up with the padding value."""

def inv(
    input: _Input,
    adjoint: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The inverses of matrices, or of their adjoints."""

def logm(
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The principal logarithms of matrices."""

def lu(
    input: _Input,
    output_idx_type: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """The LU decomposition of matrices, both factors in one, and the permutation of the rows."""

def qr(
    input: _Input,
    full_matrices: bool = False,
    name: str | None = None,
) -> _Tensor:
    """`input == q @ r`, with orthonormal columns of q and an upper triangle r."""

def set_diag(
    input: _Input,
    diagonal: _Input,
    name: str | None = 'set_diag',
    k: _Input = 0,
    align: typing.Literal['LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'] = 'RIGHT_LEFT',
) -> _Tensor:
    """The matrices `input` with other diagonals."""

def slogdet(
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The signs of determinants, and the logarithms of their absolute values."""

def solve(
    matrix: _Input,
    rhs: _Input,
    adjoint: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The x with `matrix @ x == rhs`, or the same of the adjoints of the matrices."""

def sqrtm(
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The principal square roots of matrices; NaN for real matrices whose roots are not real."""

def tensor_diag(
    diagonal: _Input,
    name: str | None = None,
) -> _Tensor:
    """Zeros of twice the rank with `diagonal` where both halves of the index are equal."""

def tensor_diag_part(
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The elements of `input` where both halves of the index are equal."""

def triangular_solve(
    matrix: _Input,
    rhs: _Input,
    lower: bool = True,
    adjoint: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The x with `matrix @ x == rhs`, for triangular matrices or their adjoints."""
