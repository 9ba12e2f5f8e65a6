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


def decode_wav(
    contents: _Input,
    desired_channels: int = -1,
    desired_samples: int = -1,
    name: str | None = None,
) -> _Tensor:
    """The samples of a WAV file, between -1 and 1. More channels than the file has repeat its last one; samples beyond its end are 0."""

def encode_wav(
    audio: _Input,
    sample_rate: _Input,
    name: str | None = None,
) -> _Tensor:
    """A WAV file of samples [samples, channels], which are clipped to -1 and 1."""
