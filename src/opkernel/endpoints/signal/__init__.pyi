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

from opkernel.endpoints.signal.frames import frame as frame
from opkernel.endpoints.signal.frames import inverse_mdct as inverse_mdct
from opkernel.endpoints.signal.frames import inverse_stft as inverse_stft
from opkernel.endpoints.signal.frames import inverse_stft_window_fn as inverse_stft_window_fn
from opkernel.endpoints.signal.frames import (
    linear_to_mel_weight_matrix as linear_to_mel_weight_matrix,
)
from opkernel.endpoints.signal.frames import mdct as mdct
from opkernel.endpoints.signal.frames import (
    mfccs_from_log_mel_spectrograms as mfccs_from_log_mel_spectrograms,
)
from opkernel.endpoints.signal.frames import overlap_and_add as overlap_and_add
from opkernel.endpoints.signal.frames import stft as stft
from opkernel.endpoints.signal.spectra import dct as dct
from opkernel.endpoints.signal.spectra import fftshift as fftshift
from opkernel.endpoints.signal.spectra import idct as idct
from opkernel.endpoints.signal.spectra import ifftshift as ifftshift
from opkernel.endpoints.signal.spectra import irfft as irfft
from opkernel.endpoints.signal.spectra import irfft2d as irfft2d
from opkernel.endpoints.signal.spectra import irfft3d as irfft3d
from opkernel.endpoints.signal.spectra import rfft as rfft
from opkernel.endpoints.signal.spectra import rfft2d as rfft2d
from opkernel.endpoints.signal.spectra import rfft3d as rfft3d
from opkernel.endpoints.signal.windows import hamming_window as hamming_window
from opkernel.endpoints.signal.windows import hann_window as hann_window
from opkernel.endpoints.signal.windows import (
    kaiser_bessel_derived_window as kaiser_bessel_derived_window,
)
from opkernel.endpoints.signal.windows import kaiser_window as kaiser_window
from opkernel.endpoints.signal.windows import vorbis_window as vorbis_window

def fft(
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The Fourier transform of the last 1 dimensions."""

def fft2d(
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The Fourier transform of the last 2 dimensions."""

def fft3d(
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The Fourier transform of the last 3 dimensions."""

def ifft(
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The inverse of the Fourier transform of the last 1 dimensions."""

def ifft2d(
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The inverse of the Fourier transform of the last 2 dimensions."""

def ifft3d(
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The inverse of the Fourier transform of the last 3 dimensions."""
