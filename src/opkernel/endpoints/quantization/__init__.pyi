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


def dequantize(
    input: _Input,
    min_range: _Input,
    max_range: _Input,
    mode: typing.Literal['MIN_COMBINED', 'MIN_FIRST', 'SCALED'] = 'MIN_COMBINED',
    name: str | None = None,
    axis: int | None = None,
    narrow_range: bool = False,
    dtype: _Type = ...,
) -> _Tensor:
    """The floats that integers stand for in a range."""

def fake_quant_with_min_max_args(
    inputs: _Input,
    min: float = -6,
    max: float = 6,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> _Tensor:
    """Rounds to the nearest of 2 ** num_bits evenly spaced values between min and max."""

def fake_quant_with_min_max_args_gradient(
    gradients: _Input,
    inputs: _Input,
    min: float = -6,
    max: float = 6,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The gradients where the inputs are in the range, 0 elsewhere."""

def fake_quant_with_min_max_vars(
    inputs: _Input,
    min: _Input,
    max: _Input,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> _Tensor:
    """Rounds to the nearest of 2 ** num_bits evenly spaced values between min and max."""

def fake_quant_with_min_max_vars_gradient(
    gradients: _Input,
    inputs: _Input,
    min: _Input,
    max: _Input,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The gradients where the inputs are in the range, 0 elsewhere."""

def fake_quant_with_min_max_vars_per_channel(
    inputs: _Input,
    min: _Input,
    max: _Input,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> _Tensor:
    """Rounds to the nearest of 2 ** num_bits evenly spaced values between min and max."""

def fake_quant_with_min_max_vars_per_channel_gradient(
    gradients: _Input,
    inputs: _Input,
    min: _Input,
    max: _Input,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> _Tensor:
    """As FakeQuantWithMinMaxVarsGradient, for each place of the last dimension."""

def quantize(
    input: _Input,
    min_range: _Input,
    max_range: _Input,
    T: _Type,
    mode: typing.Literal['MIN_COMBINED', 'MIN_FIRST', 'SCALED'] = 'MIN_COMBINED',
    round_mode: typing.Literal['HALF_AWAY_FROM_ZERO', 'HALF_TO_EVEN'] = 'HALF_AWAY_FROM_ZERO',
    name: str | None = None,
    narrow_range: bool = False,
    axis: int | None = None,
    ensure_minimum_range: float = 0.01,
) -> _Tensor:
    """The integers that stand for floats, and the range that they stand in."""

def quantize_and_dequantize(
    input: _Input,
    input_min: _Input,
    input_max: _Input,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: typing.Literal['HALF_TO_EVEN', 'HALF_UP'] = 'HALF_TO_EVEN',
    name: str | None = None,
    narrow_range: bool = False,
    axis: int | None = None,
) -> _Tensor:
    """Round to the values that integers of `num_bits` bits can stand for."""

def quantize_and_dequantize_v2(
    input: _Input,
    input_min: _Input,
    input_max: _Input,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: typing.Literal['HALF_TO_EVEN', 'HALF_UP'] = 'HALF_TO_EVEN',
    name: str | None = None,
    narrow_range: bool = False,
    axis: int | None = None,
) -> _Tensor:
    """Round to the values that integers of `num_bits` bits can stand for."""

def quantized_concat(
    concat_dim: _Input,
    values: collections.abc.Sequence[_Input],
    input_mins: collections.abc.Sequence[_Input],
    input_maxes: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> _Tensor:
    """Concat; all integers become those of one range, which holds the ranges of all `values`."""
