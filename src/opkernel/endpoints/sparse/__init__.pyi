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

from opkernel.endpoints.sparse.counting import bincount as bincount
from opkernel.endpoints.sparse.counting import cross as cross
from opkernel.endpoints.sparse.counting import cross_hashed as cross_hashed
from opkernel.endpoints.sparse.elements import map_values as map_values
from opkernel.endpoints.sparse.elements import mask as mask
from opkernel.endpoints.sparse.elements import reset_shape as reset_shape
from opkernel.endpoints.sparse.elements import retain as retain
from opkernel.endpoints.sparse.elements import sampled_addmm as sampled_addmm
from opkernel.endpoints.sparse.functions import add as add
from opkernel.endpoints.sparse.functions import concat as concat
from opkernel.endpoints.sparse.functions import expand_dims as expand_dims
from opkernel.endpoints.sparse.functions import eye as eye
from opkernel.endpoints.sparse.functions import fill_empty_rows as fill_empty_rows
from opkernel.endpoints.sparse.functions import from_dense as from_dense
from opkernel.endpoints.sparse.functions import maximum as maximum
from opkernel.endpoints.sparse.functions import minimum as minimum
from opkernel.endpoints.sparse.functions import reduce_max as reduce_max
from opkernel.endpoints.sparse.functions import reduce_sum as reduce_sum
from opkernel.endpoints.sparse.functions import reorder as reorder
from opkernel.endpoints.sparse.functions import reshape as reshape
from opkernel.endpoints.sparse.functions import slice as slice
from opkernel.endpoints.sparse.functions import softmax as softmax
from opkernel.endpoints.sparse.functions import sparse_dense_matmul as sparse_dense_matmul
from opkernel.endpoints.sparse.functions import split as split
from opkernel.endpoints.sparse.functions import to_dense as to_dense
from opkernel.endpoints.sparse.functions import to_indicator as to_indicator
from opkernel.endpoints.sparse.functions import transpose as transpose
from opkernel.endpoints.sparse.segments import segment_mean as segment_mean
from opkernel.endpoints.sparse.segments import segment_sqrt_n as segment_sqrt_n
from opkernel.endpoints.sparse.segments import segment_sum as segment_sum
from opkernel.endpoints.sparse.tensor import SparseTensor as SparseTensor
