"""Gradients of Fourier transforms.

Source: TensorFlow python/ops/signal/fft_ops.py, which has those of real transforms of three dimensions not.
"""

from typing import Any

import opkernel.gradients as g
from opkernel.ops.kernel_types import REAL_OF
from opkernel.types import DataType


def _register_complex(suffix: str, rank: int) -> None:
    @g.register_gradient(f"FFT{suffix}")
    def fft_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
        size = g.nodes.Cast(_size(grad, rank), DstT=grad.dtype)
        return g.nodes.Mul(_node("IFFT", suffix)(grad), size)

    @g.register_gradient(f"IFFT{suffix}")
    def ifft_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
        size = g.nodes.Cast(_size(grad, rank), DstT=REAL_OF[grad.dtype])
        scale = g.nodes.Cast(g.nodes.Reciprocal(size), DstT=grad.dtype)
        return g.nodes.Mul(_node("FFT", suffix)(grad), scale)


def _register_real(suffix: str, rank: int) -> None:
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


def _last_sizes(tensor: g.Tensor, rank: int) -> g.Tensor:
    sizes: g.Tensor = g.nodes.StridedSlice(g.shape_of(tensor), [-rank], [0], [1], end_mask=1)
    return sizes


def _size(tensor: g.Tensor, rank: int) -> g.Tensor:
    """The number of elements of the last dimensions."""
    size: g.Tensor = g.nodes.Prod(_last_sizes(tensor, rank), [0])
    return size


def _with_sizes(tensor: g.Tensor, sizes: g.Tensor, rank: int) -> g.Tensor:
    """The tensor with last dimensions of these sizes: zeros are appended, or the end is cut off."""
    now = _last_sizes(tensor, rank)
    missing = g.nodes.Maximum(g.nodes.Sub(sizes, now), 0)
    leading = g.nodes.Sub(g.nodes.Rank(tensor), rank)
    above = g.nodes.Fill(g.nodes.Pack([leading]), 0)
    padding = g.nodes.ConcatV2([above, missing], 0)
    padded = g.nodes.Pad(tensor, g.nodes.Pack([g.nodes.ZerosLike(padding), padding], axis=1))
    kept = g.nodes.ConcatV2([g.nodes.Sub(above, 1), sizes], 0)
    result: g.Tensor = g.nodes.Slice(padded, g.nodes.ZerosLike(kept), kept)
    return result


for _rank, _suffix in ((1, ""), (2, "2D")):
    _register_complex(_suffix, _rank)
    _register_real(_suffix, _rank)
_register_complex("3D", 3)
