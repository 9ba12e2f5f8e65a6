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

from opkernel.endpoints.ragged.crosses import cross as cross
from opkernel.endpoints.ragged.crosses import cross_hashed as cross_hashed
from opkernel.endpoints.ragged.functions import boolean_mask as boolean_mask
from opkernel.endpoints.ragged.functions import constant as constant
from opkernel.endpoints.ragged.functions import map_flat_values as map_flat_values
from opkernel.endpoints.ragged.functions import range as range
from opkernel.endpoints.ragged.functions import (
    row_splits_to_segment_ids as row_splits_to_segment_ids,
)
from opkernel.endpoints.ragged.functions import (
    segment_ids_to_row_splits as segment_ids_to_row_splits,
)
from opkernel.endpoints.ragged.functions import stack as stack
from opkernel.endpoints.ragged.functions import stack_dynamic_partitions as stack_dynamic_partitions
from opkernel.endpoints.ragged.tensor import RaggedTensor as RaggedTensor
