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

from opkernel.endpoints.linalg import l2_normalize as l2_normalize
from opkernel.endpoints.math.counting import approx_max_k as approx_max_k
from opkernel.endpoints.math.counting import approx_min_k as approx_min_k
from opkernel.endpoints.math.counting import confusion_matrix as confusion_matrix
from opkernel.endpoints.math.counting import unsorted_segment_mean as unsorted_segment_mean
from opkernel.endpoints.math.counting import unsorted_segment_sqrt_n as unsorted_segment_sqrt_n
from opkernel.endpoints.math.elementwise import abs as abs
from opkernel.endpoints.math.elementwise import accumulate_n as accumulate_n
from opkernel.endpoints.math.elementwise import add as add
from opkernel.endpoints.math.elementwise import angle as angle
from opkernel.endpoints.math.elementwise import conj as conj
from opkernel.endpoints.math.elementwise import divide as divide
from opkernel.endpoints.math.elementwise import erfcinv as erfcinv
from opkernel.endpoints.math.elementwise import imag as imag
from opkernel.endpoints.math.elementwise import is_non_decreasing as is_non_decreasing
from opkernel.endpoints.math.elementwise import is_strictly_increasing as is_strictly_increasing
from opkernel.endpoints.math.elementwise import lbeta as lbeta
from opkernel.endpoints.math.elementwise import log_sigmoid as log_sigmoid
from opkernel.endpoints.math.elementwise import log_softmax as log_softmax
from opkernel.endpoints.math.elementwise import logical_xor as logical_xor
from opkernel.endpoints.math.elementwise import polyval as polyval
from opkernel.endpoints.math.elementwise import real as real
from opkernel.endpoints.math.elementwise import reciprocal_no_nan as reciprocal_no_nan
from opkernel.endpoints.math.elementwise import round as round
from opkernel.endpoints.math.elementwise import scalar_mul as scalar_mul
from opkernel.endpoints.math.elementwise import softmax as softmax
from opkernel.endpoints.math.elementwise import truediv as truediv
from opkernel.endpoints.math.reductions import argmax as argmax
from opkernel.endpoints.math.reductions import argmin as argmin
from opkernel.endpoints.math.reductions import bincount as bincount
from opkernel.endpoints.math.reductions import count_nonzero as count_nonzero
from opkernel.endpoints.math.reductions import reduce_all as reduce_all
from opkernel.endpoints.math.reductions import reduce_any as reduce_any
from opkernel.endpoints.math.reductions import reduce_euclidean_norm as reduce_euclidean_norm
from opkernel.endpoints.math.reductions import reduce_logsumexp as reduce_logsumexp
from opkernel.endpoints.math.reductions import reduce_max as reduce_max
from opkernel.endpoints.math.reductions import reduce_mean as reduce_mean
from opkernel.endpoints.math.reductions import reduce_min as reduce_min
from opkernel.endpoints.math.reductions import reduce_prod as reduce_prod
from opkernel.endpoints.math.reductions import reduce_std as reduce_std
from opkernel.endpoints.math.reductions import reduce_sum as reduce_sum
from opkernel.endpoints.math.reductions import reduce_variance as reduce_variance
from opkernel.endpoints.math.reductions import zero_fraction as zero_fraction

def acos(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The angle in radians whose cosine is `x`."""

def acosh(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The number of 0 or more whose hyperbolic cosine is `x`."""

def add_n(
    inputs: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> _Tensor:
    """The sum of the tensors of `inputs`, which have the same shape."""

def asin(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The angle in radians whose sine is `x`."""

def asinh(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The number whose hyperbolic sine is `x`."""

def atan(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The angle in radians whose tangent is `x`."""

def atan2(
    y: _Input,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The angle of the point (x, y) in radians, between -pi and pi."""

def atanh(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The number whose hyperbolic tangent is `x`."""

def bessel_i0(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The modified Bessel function of the first kind of order 0."""

def bessel_i0e(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """BesselI0 times `exp(-abs(x))`."""

def bessel_i1(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The modified Bessel function of the first kind of order 1."""

def bessel_i1e(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """BesselI1 times `exp(-abs(x))`."""

def betainc(
    a: _Input,
    b: _Input,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The regularised incomplete beta function; scalars stand for tensors of the shape of the others."""

def ceil(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The smallest integer that is not below `x`."""

def cos(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The cosine of `x`, in radians."""

def cosh(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The hyperbolic cosine of `x`."""

def cumprod(
    x: _Input,
    axis: _Input = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The product of the elements of `x` along `axis`, up to each of them."""

def cumsum(
    x: _Input,
    axis: _Input = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The sum of the elements of `x` along `axis`, up to each of them."""

def cumulative_logsumexp(
    x: _Input,
    axis: _Input = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The logarithm of the sum of the exponentials of the elements of `x` along `axis`, up to each of them."""

def digamma(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The derivative of the logarithm of gamma at `x`."""

def divide_no_nan(
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The quotient `x / y`; 0 where `y` is 0."""

def equal(
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """Whether `x == y`."""

def erf(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The error function of `x`."""

def erfc(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """`1 - erf(x)`, exact if that is near 0."""

def erfinv(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The number whose error function is `x`."""

def exp(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """`e ** x`."""

def expm1(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """`e ** x - 1`, exact near 0."""

def floor(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The largest integer that is not above `x`."""

def floordiv(
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The quotient `x / y`, rounded down."""

def floormod(
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The remainder of `x / y` with the quotient rounded down; it has the sign of `y`."""

def greater(
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """Whether `x > y`."""

def greater_equal(
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """Whether `x >= y`."""

def igamma(
    a: _Input,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The lower regularised incomplete gamma function."""

def igammac(
    a: _Input,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The upper regularised incomplete gamma function, 1 less the lower one."""

def in_top_k(
    targets: _Input,
    predictions: _Input,
    k: _Input,
    name: str | None = None,
) -> _Tensor:
    """Whether fewer than `k` classes are predicted more strongly than the target, by example."""

def invert_permutation(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The permutation that undoes the permutation `x`: `y[x[i]] = i`."""

def is_finite(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """Whether `x` is neither infinite nor NaN."""

def is_inf(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """Whether `x` is infinite."""

def is_nan(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """Whether `x` is not a number."""

def less(
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """Whether `x < y`."""

def less_equal(
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """Whether `x <= y`."""

def lgamma(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The logarithm of the absolute value of the gamma function of `x`."""

def log(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The natural logarithm of `x`."""

def log1p(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The natural logarithm of `1 + x`, exact near 0."""

def logical_and(
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """Whether both `x` and `y` are true."""

def logical_not(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """Whether `x` is false."""

def logical_or(
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """Whether `x` or `y` or both are true."""

def maximum(
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The larger of `x` and `y`; NaN if either is."""

def minimum(
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The smaller of `x` and `y`; NaN if either is."""

def multiply(
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The product `x * y`."""

def multiply_no_nan(
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The product `x * y`; 0 where `y` is 0, whatever `x` is."""

def ndtri(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The quantile of the standard normal distribution for probability `x`."""

def negative(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The negative of `x`."""

def nextafter(
    x1: _Input,
    x2: _Input,
    name: str | None = None,
) -> _Tensor:
    """The number of the type that follows `x1` in the direction of `x2`."""

def not_equal(
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """Whether `x != y`."""

def polygamma(
    a: _Input,
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """Derivative number `a` of digamma at `x`."""

def pow(
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """`x ** y`; integers to a negative power are an error."""

def reciprocal(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """`1 / x`."""

def rint(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The integer nearest to `x`; of two, the even one."""

def rsqrt(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """`1 / sqrt(x)`."""

def segment_max(
    data: _Input,
    segment_ids: _Input,
    name: str | None = None,
) -> _Tensor:
    """Max of the rows of `data` of each segment; `segment_ids`, [rows], is sorted."""

def segment_mean(
    data: _Input,
    segment_ids: _Input,
    name: str | None = None,
) -> _Tensor:
    """Mean of the rows of `data` of each segment; `segment_ids`, [rows], is sorted."""

def segment_min(
    data: _Input,
    segment_ids: _Input,
    name: str | None = None,
) -> _Tensor:
    """Min of the rows of `data` of each segment; `segment_ids`, [rows], is sorted."""

def segment_prod(
    data: _Input,
    segment_ids: _Input,
    name: str | None = None,
) -> _Tensor:
    """Prod of the rows of `data` of each segment; `segment_ids`, [rows], is sorted."""

def segment_sum(
    data: _Input,
    segment_ids: _Input,
    name: str | None = None,
) -> _Tensor:
    """Sum of the rows of `data` of each segment; `segment_ids`, [rows], is sorted."""

def sigmoid(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """`1 / (1 + e ** -x)`."""

def sign(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """-1, 0 or 1 by the sign of `x`, NaN for NaN; of a complex number, `x / |x|`."""

def sin(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The sine of `x`, in radians."""

def sinh(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The hyperbolic sine of `x`."""

def sobol_sample(
    dim: _Input,
    num_results: _Input,
    skip: _Input = 0,
    dtype: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """Points of the Sobol sequence of `dim` coordinates, `skip` of them left out first."""

def softplus(
    features: _Input,
    name: str | None = None,
) -> _Tensor:
    """log(exp(features) + 1)."""

def softsign(
    features: _Input,
    name: str | None = None,
) -> _Tensor:
    """features / (abs(features) + 1)."""

def sqrt(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The square root of `x`."""

def square(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The square of `x`."""

def squared_difference(
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """`(x - y) * (x - y)`, the first factor conjugated."""

def subtract(
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The difference `x - y`."""

def tan(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The tangent of `x`, in radians."""

def tanh(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The hyperbolic tangent of `x`."""

def top_k(
    input: _Input,
    k: _Input = 1,
    sorted: bool = True,
    index_type: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """The `k` largest elements of each row, the last dimension of `input`, and their places."""

def unsorted_segment_max(
    data: _Input,
    segment_ids: _Input,
    num_segments: _Input,
    name: str | None = None,
) -> _Tensor:
    """Reduce the parts of `data` of each of `num_segments` segments to one."""

def unsorted_segment_min(
    data: _Input,
    segment_ids: _Input,
    num_segments: _Input,
    name: str | None = None,
) -> _Tensor:
    """Reduce the parts of `data` of each of `num_segments` segments to one."""

def unsorted_segment_prod(
    data: _Input,
    segment_ids: _Input,
    num_segments: _Input,
    name: str | None = None,
) -> _Tensor:
    """Reduce the parts of `data` of each of `num_segments` segments to one."""

def unsorted_segment_sum(
    data: _Input,
    segment_ids: _Input,
    num_segments: _Input,
    name: str | None = None,
) -> _Tensor:
    """Reduce the parts of `data` of each of `num_segments` segments to one."""

def xdivy(
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The quotient `x / y`; 0 where `x` is 0."""

def xlog1py(
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """`x * log1p(y)`; 0 where `x` is 0."""

def xlogy(
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """`x * log(y)`; 0 where `x` is 0."""

def zeta(
    x: _Input,
    q: _Input,
    name: str | None = None,
) -> _Tensor:
    """The Hurwitz zeta function: the sum of `(q + n) ** -x` over all n from 0."""
mod = floormod
