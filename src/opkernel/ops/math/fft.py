"""Fourier transforms of the last one, two or three dimensions, and gradients.

SciPy (the extra `scipy`) transforms one axis after the other, the last one first, which gives TensorFlow's
bits. NumPy transforms little that it gives the same bits for, and stands in for SciPy.

Source: TensorFlow core/ops/spectral_ops.cc, core/kernels/fft_ops.cc, python/ops/signal/fft_ops.py, which has
those of real transforms of three dimensions not.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from types import ModuleType
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import by_rows, check_allocation
from opkernel.libraries import library_or_none, warn_of_fallback
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes import unchanged_shape_with_rank_at_least
from opkernel.ops.input_checks import require_equal, require_rank_at_least
from opkernel.ops.registration import COMPLEX_OF, REAL_OF, register_kernel
from opkernel.types import DataType

_COMPLEX = "Tcomplex: {complex64, complex128} = DT_COMPLEX64"
_REAL = "Treal: {float, double} = DT_FLOAT"


_FEW = 1 << 15
"""Up to so many numbers NumPy transforms them sooner than SciPy is imported, where it gives the same bits."""


def _transform(name: str, rows: Any, length: int, **sizes: int) -> Any:
    """The transform `name` of rows, of which each has `length` numbers before or after it.

    NumPy transforms float forward in double, but not where it divides by the length, which can be undone for powers of
    2.
    """
    is_single = rows.dtype.char in "fF" and name in ("fft", "rfft")
    if rows.size <= _FEW and not (is_single and length & (length - 1)):
        function = getattr(np.fft, name)
        if not is_single:
            return function(rows, axis=-1, **sizes)
        return function(rows, axis=-1, norm="forward") * np.float32(length)
    return getattr(_fft_library(), name)(rows, axis=-1, **sizes)


@cache
def _fft_library() -> ModuleType:
    found = library_or_none("scipy.fft")
    if found is not None:
        return found
    warn_of_fallback(
        "scipy", "NumPy computes Fourier transforms; the last bits of complex64 differ"
    )
    return np.fft


def _real_transform_shape(c: InferenceContext, rank: int, forward: bool) -> None:
    """Input 0, the last `rank` dimensions as long as input 1 says.

    The last of a forward transform is only the half without negative frequencies.
    """
    shape = c.with_rank_at_least(c.input(0), rank)
    c.with_value(c.dim(c.with_rank(c.input(1), 1), 0), rank)
    lengths = c.input_tensor(1)
    sizes = [None] * rank if lengths is None else lengths.tolist()
    if forward and sizes[-1]:
        sizes[-1] = int(sizes[-1] / 2) + 1  # towards zero, as in C++
    for axis, size in enumerate(sizes, -rank):
        shape = c.replace_dim(shape, axis, size)
    c.set_output(0, shape)


def _along_axes(name: str, tensor: Any, axes: Sequence[int]) -> Any:
    if not tensor.size:
        return tensor.copy()
    for axis in axes:
        tensor = _along(partial(_transform, name, length=tensor.shape[axis]), tensor, axis)
    return tensor


def _along(transform: Callable[..., Any], tensor: Any, axis: int) -> Any:
    """The transform along one axis, for some of the other places at a time."""
    last = np.moveaxis(tensor, axis, -1)
    rows = last.reshape(-1, last.shape[-1])
    found = by_rows(transform, rows)
    return np.moveaxis(found.reshape(*last.shape[:-1], found.shape[-1]), -1, axis)


def check_rank(tensor: Any, rank: int) -> None:
    """Refuse a tensor with fewer dimensions than are transformed."""
    require_rank_at_least(tensor, rank, f"Input must have rank of at least {rank} but got: {{}}")


def lengths_of(fft_length: Any, rank: int) -> list[int]:
    """The lengths of the dimensions of real numbers.

    Raises:
        InvalidArgumentError: there are not `rank`, or one is negative.
    """
    require_equal(fft_length.shape, (rank,), f"fft_length must have shape [{rank}]")
    lengths: list[int] = fft_length.tolist()
    for i, length in enumerate(lengths):
        if length < 0:
            raise InvalidArgumentError(f"fft_length[{i}] must >= 0, but got: {length}")
    return lengths


def check_types(real: DataType, whole: DataType, *, forward: bool) -> None:
    """Refuse complex numbers whose parts are not of the type of the real ones."""
    if COMPLEX_OF[real] is not whole:
        way, types = ("forward", (real, whole)) if forward else ("backward", (whole, real))
        raise InvalidArgumentError(
            f"Wrong types for {way} real FFT: in={types[0].value} out={types[1].value}"
        )


def cut(tensor: Any, lengths: Sequence[int]) -> Any:
    """What the transform takes of the last dimensions: as much as `lengths` say.

    Raises:
        InvalidArgumentError: a dimension that is not empty is shorter.
    """
    first = tensor.ndim - len(lengths)
    for axis, length in enumerate(lengths, first):
        size = tensor.shape[axis]
        if 0 < size < length:
            raise InvalidArgumentError(
                f"Input dimension {axis} must have length of at least {length} but got: {size}"
            )
    return tensor[(..., *[slice(length) for length in lengths])]


def _rfft(tensor: Any, fft_length: Any, rank: int, dtype: DataType) -> Any:
    check_rank(tensor, rank)
    lengths = lengths_of(fft_length, rank)
    part = cut(tensor, lengths)
    half = lengths[-1] // 2 + 1 if lengths[-1] else 0
    shape = (*tensor.shape[:-rank], *lengths[:-1], half)
    if not part.size or not half:
        return np.zeros(check_allocation(shape, dtype), dtype.numpy_dtype)
    found = _along(partial(_transform, "rfft", length=lengths[-1]), part, -1)
    return _along_axes("fft", found, range(-2, -rank - 1, -1))


def _irfft(tensor: Any, fft_length: Any, rank: int, dtype: DataType) -> Any:
    check_rank(tensor, rank)
    lengths = lengths_of(fft_length, rank)
    part = cut(tensor, [*lengths[:-1], lengths[-1] // 2 + 1])
    shape = (*tensor.shape[:-rank], *lengths)
    if not part.size or not lengths[-1]:
        return np.zeros(check_allocation(shape, dtype), dtype.numpy_dtype)
    part = _along_axes("ifft", part, range(-2, -rank - 1, -1))
    length = lengths[-1]
    return _along(partial(_transform, "irfft", length=length, n=length), part, -1)


def _register_complex(name: str, transform: str, rank: int) -> None:
    op = register_op(
        f"{name}(input: Tcomplex) -> output: Tcomplex",
        attrs=[_COMPLEX],
        shape_fn=unchanged_shape_with_rank_at_least(rank),
        doc=f"The {'inverse of the ' * name.startswith('I')}Fourier transform of the last {rank} dimensions.",
    )

    @register_kernel(op)
    def run(tensor: Any) -> Any:
        check_rank(tensor, rank)
        return _along_axes(transform, tensor, range(-1, -rank - 1, -1))


def _register_real(name: str, transform: Callable[..., Any], rank: int, *, forward: bool) -> None:
    given, result = ("Treal", "Tcomplex") if forward else ("Tcomplex", "Treal")
    op = register_op(
        f"{name}(input: {given}, fft_length: int32) -> output: {result}",
        attrs=[_REAL, _COMPLEX],
        shape_fn=partial(_real_transform_shape, rank=rank, forward=forward),
        doc=f"The {'' if forward else 'inverse of the '}Fourier transform of the last {rank} dimensions of "
        "real numbers, without the negative frequencies of the last one.",
    )

    @register_kernel(op, factory=True)
    def make(*, Treal: DataType, Tcomplex: DataType) -> Callable[..., Any]:
        dtype = Tcomplex if forward else Treal

        def run(input: Any, fft_length: Any) -> Any:
            check_types(Treal, Tcomplex, forward=forward)
            return transform(input, fft_length, rank, dtype)

        return run


for _rank, _suffix in ((1, ""), (2, "2D"), (3, "3D")):
    _register_complex(f"FFT{_suffix}", "fft", _rank)
    _register_complex(f"IFFT{_suffix}", "ifft", _rank)
    _register_real(f"RFFT{_suffix}", _rfft, _rank, forward=True)
    _register_real(f"IRFFT{_suffix}", _irfft, _rank, forward=False)


def _register_complex_gradient(suffix: str, rank: int) -> None:
    @g.register_gradient(f"FFT{suffix}")
    def fft_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
        size = g.nodes.Cast(_size(grad, rank), DstT=grad.dtype)
        return g.nodes.Mul(_node("IFFT", suffix)(grad), size)

    @g.register_gradient(f"IFFT{suffix}")
    def ifft_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
        size = g.nodes.Cast(_size(grad, rank), DstT=REAL_OF[grad.dtype])
        scale = g.nodes.Cast(g.nodes.Reciprocal(size), DstT=grad.dtype)
        return g.nodes.Mul(_node("FFT", suffix)(grad), scale)


def _register_real_gradient(suffix: str, rank: int) -> None:
    @g.register_gradient(f"RFFT{suffix}")
    def rfft_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
        """That of a complex transform whose results of negative frequencies nobody takes."""
        tensor, length = op.inputs
        whole = _with_sizes(grad, length, rank)
        inverse = g.nodes.Real(_node("IFFT", suffix)(whole), Tout=tensor.dtype)
        size = g.nodes.Cast(g.nodes.Prod(length, [0]), DstT=tensor.dtype)
        return _with_sizes(g.nodes.Mul(inverse, size), _last_sizes(tensor, rank), rank), None

    @g.register_gradient(f"IRFFT{suffix}")
    def irfft_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
        """Each frequency stands for its negative one, too, but the first, and the last of an even number."""
        tensor, length = op.inputs
        spectrum = _node("RFFT", suffix)(grad, length, Tcomplex=tensor.dtype)
        last = g.nodes.StridedSlice(length, [-1], [0], [1], end_mask=1, shrink_axis_mask=1)
        half = g.nodes.AddV2(g.nodes.FloorDiv(last, 2), 1)
        places = g.nodes.Range(0, half, 1)
        is_alone = g.nodes.LogicalOr(
            g.nodes.Equal(places, 0), g.nodes.Equal(g.nodes.Mul(places, 2), last)
        )
        count = g.nodes.Sub(2, g.nodes.Cast(is_alone, DstT=DataType.DT_INT32))
        size = g.nodes.Cast(g.nodes.Prod(length, [0]), DstT=grad.dtype)
        scale = g.nodes.RealDiv(g.nodes.Cast(count, DstT=grad.dtype), size)
        scaled = g.nodes.Mul(spectrum, g.nodes.Cast(scale, DstT=tensor.dtype))
        return _with_sizes(scaled, _last_sizes(tensor, rank), rank), None


def _node(name: str, suffix: str) -> Any:
    return getattr(g.nodes, f"{name}{suffix}")


def _last_sizes(tensor: g.Tensor, rank: int) -> Any:
    return g.nodes.StridedSlice(g.shape_of(tensor), [-rank], [0], [1], end_mask=1)


def _size(tensor: g.Tensor, rank: int) -> Any:
    """The number of elements of the last dimensions."""
    return g.nodes.Prod(_last_sizes(tensor, rank), [0])


def _with_sizes(tensor: g.Tensor, sizes: g.Tensor, rank: int) -> Any:
    """The tensor with last dimensions of these sizes: zeros are appended, or the end is cut off."""
    now = _last_sizes(tensor, rank)
    missing = g.nodes.Maximum(g.nodes.Sub(sizes, now), 0)
    leading = g.nodes.Sub(g.nodes.Rank(tensor), rank)
    above = g.nodes.Fill(g.nodes.Pack([leading]), 0)
    padding = g.nodes.ConcatV2([above, missing], 0)
    padded = g.nodes.Pad(tensor, g.nodes.Pack([g.nodes.ZerosLike(padding), padding], axis=1))
    kept = g.nodes.ConcatV2([g.nodes.Sub(above, 1), sizes], 0)
    return g.nodes.Slice(padded, g.nodes.ZerosLike(kept), kept)


for _rank, _suffix in ((1, ""), (2, "2D")):
    _register_complex_gradient(_suffix, _rank)
    _register_real_gradient(_suffix, _rank)
_register_complex_gradient("3D", 3)
