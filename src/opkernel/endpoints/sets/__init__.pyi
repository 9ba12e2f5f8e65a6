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

from opkernel.endpoints.sets.operations import difference as difference
from opkernel.endpoints.sets.operations import intersection as intersection
from opkernel.endpoints.sets.operations import size as size
from opkernel.endpoints.sets.operations import union as union
