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


def bitwise_and(
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The bits set in `x` and in `y`."""

def bitwise_or(
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The bits set in `x` or in `y`."""

def bitwise_xor(
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The bits set in just one of `x` and `y`."""

def invert(
    x: _Input,
    name: str | None = None,
) -> _Tensor:
    """The bits that are not set in `x`."""

def left_shift(
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The bits of `x` moved up by `y`, which is taken for 0 if negative and for the highest bit's place if beyond."""

def right_shift(
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The bits of `x` moved down by `y`, keeping the sign; `y` is bounded as for LeftShift."""
