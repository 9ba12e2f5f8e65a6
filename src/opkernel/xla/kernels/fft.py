"""Fourier transforms of the last one, two or three dimensions.

Source: TensorFlow compiler/tf2xla/kernels/fft_ops.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opkernel.ops.math.fft import check_rank, check_types, cut, lengths_of
from opkernel.types import DataType
from opkernel.xla.jax_numpy import jnp
from opkernel.xla.register_kernel import register_xla_kernel


def _register_complex(op: str, transform: str, rank: int) -> None:
    @register_xla_kernel(op)
    def run(tensor: Any) -> Any:
        check_rank(tensor, rank)
        if not tensor.size:
            return tensor
        return getattr(jnp().fft, transform)(tensor, axes=range(-rank, 0))


def _register_real(op: str, transform: Callable[..., Any], rank: int, *, forward: bool) -> None:
    @register_xla_kernel(op, compile_time_constants=["fft_length"], factory=True)
    def make(*, Treal: DataType, Tcomplex: DataType) -> Callable[..., Any]:
        def run(tensor: Any, fft_length: Any) -> Any:
            check_types(Treal, Tcomplex, forward=forward)
            check_rank(tensor, rank)
            lengths = lengths_of(fft_length, rank)
            return transform(tensor, lengths, (Tcomplex if forward else Treal).numpy_dtype)

        return run


def _rfft(tensor: Any, lengths: list[int], dtype: Any) -> Any:
    part, rank = cut(tensor, lengths), len(lengths)
    half = lengths[-1] // 2 + 1 if lengths[-1] else 0
    if not part.size or not half:
        return jnp().zeros((*tensor.shape[:-rank], *lengths[:-1], half), dtype)
    return jnp().fft.rfftn(part, axes=range(-rank, 0))


def _irfft(tensor: Any, lengths: list[int], dtype: Any) -> Any:
    part, rank = cut(tensor, [*lengths[:-1], lengths[-1] // 2 + 1]), len(lengths)
    if not part.size or not lengths[-1]:
        return jnp().zeros((*tensor.shape[:-rank], *lengths), dtype)
    return jnp().fft.irfftn(part, s=lengths, axes=range(-rank, 0))


for _rank, _suffix in ((1, ""), (2, "2D"), (3, "3D")):
    _register_complex(f"FFT{_suffix}", "fftn", _rank)
    _register_complex(f"IFFT{_suffix}", "ifftn", _rank)
    _register_real(f"RFFT{_suffix}", _rfft, _rank, forward=True)
    _register_real(f"IRFFT{_suffix}", _irfft, _rank, forward=False)
