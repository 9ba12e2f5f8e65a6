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

from opkernel.endpoints.array.choosing import argsort as argsort
from opkernel.endpoints.array.choosing import boolean_mask as boolean_mask
from opkernel.endpoints.array.choosing import clip_by_global_norm as clip_by_global_norm
from opkernel.endpoints.array.choosing import clip_by_norm as clip_by_norm
from opkernel.endpoints.array.choosing import clip_by_value as clip_by_value
from opkernel.endpoints.array.choosing import gather as gather
from opkernel.endpoints.array.choosing import gather_nd as gather_nd
from opkernel.endpoints.array.choosing import histogram_fixed_width as histogram_fixed_width
from opkernel.endpoints.array.choosing import (
    histogram_fixed_width_bins as histogram_fixed_width_bins,
)
from opkernel.endpoints.array.choosing import searchsorted as searchsorted
from opkernel.endpoints.array.choosing import sort as sort
from opkernel.endpoints.array.choosing import where as where
from opkernel.endpoints.array.layout import broadcast_dynamic_shape as broadcast_dynamic_shape
from opkernel.endpoints.array.layout import broadcast_static_shape as broadcast_static_shape
from opkernel.endpoints.array.layout import concat as concat
from opkernel.endpoints.array.layout import pad as pad
from opkernel.endpoints.array.layout import repeat as repeat
from opkernel.endpoints.array.layout import (
    required_space_to_batch_paddings as required_space_to_batch_paddings,
)
from opkernel.endpoints.array.layout import split as split
from opkernel.endpoints.array.layout import squeeze as squeeze
from opkernel.endpoints.array.layout import stack as stack
from opkernel.endpoints.array.layout import strided_slice as strided_slice
from opkernel.endpoints.array.layout import transpose as transpose
from opkernel.endpoints.array.layout import unstack as unstack
from opkernel.endpoints.array.making import cast as cast
from opkernel.endpoints.array.making import complex as complex
from opkernel.endpoints.array.making import constant as constant
from opkernel.endpoints.array.making import convert_to_tensor as convert_to_tensor
from opkernel.endpoints.array.making import fill as fill
from opkernel.endpoints.array.making import linspace as linspace
from opkernel.endpoints.array.making import meshgrid as meshgrid
from opkernel.endpoints.array.making import one_hot as one_hot
from opkernel.endpoints.array.making import ones as ones
from opkernel.endpoints.array.making import ones_like as ones_like
from opkernel.endpoints.array.making import range as range
from opkernel.endpoints.array.making import saturate_cast as saturate_cast
from opkernel.endpoints.array.making import sequence_mask as sequence_mask
from opkernel.endpoints.array.making import zeros as zeros
from opkernel.endpoints.array.making import zeros_like as zeros_like
from opkernel.endpoints.array.python_functions import numpy_function as numpy_function
from opkernel.endpoints.array.python_functions import py_function as py_function

def batch_to_space(
    input: _Input,
    block_shape: _Input,
    crops: _Input,
    name: str | None = None,
) -> _Tensor:
    """`input` with the batch moved into blocks of space, and cropped: undoes SpaceToBatchND."""

def bitcast(
    input: _Input,
    type: _Type,
    name: str | None = None,
) -> _Tensor:
    """The bytes of `input` read as numbers of `type`. A smaller type adds a last dimension; for a larger one the last dimension must hold just the bytes of one number."""

def broadcast_to(
    input: _Input,
    shape: _Input,
    name: str | None = None,
) -> _Tensor:
    """`input` repeated along its dimensions of size 1, and new ones before them, to `shape`."""

def dynamic_partition(
    data: _Input,
    partitions: _Input,
    num_partitions: int,
    name: str | None = None,
) -> list[_Tensor]:
    """Output i holds the parts of `data` where `partitions`, the leading dimensions, is i."""

def dynamic_stitch(
    indices: collections.abc.Sequence[_Input],
    data: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> _Tensor:
    """A tensor whose row `indices[i][j]` is row j of `data[i]`; of several such the last."""

def ensure_shape(
    x: _Input,
    shape: _Shape,
    name: str | None = None,
) -> _Tensor:
    """`input`, which must have a shape that agrees with `shape`."""

def expand_dims(
    input: _Input,
    axis: _Input,
    name: str | None = None,
) -> _Tensor:
    """`input` with a dimension of size 1 before dimension `dim`; from the end if negative."""

def fingerprint(
    data: _Input,
    method: _Input = 'farmhash64',
    name: str | None = None,
) -> _Tensor:
    """The hash of each row of `data` by `method`, which is farmhash64, as bytes."""

def identity(
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """`input`, unchanged."""

def identity_n(
    input: collections.abc.Sequence[_Input],
    name: str | None = None,
) -> list[_Tensor]:
    """The tensors of `input`, unchanged."""

def rank(
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """The number of dimensions of `input`."""

def realdiv(
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The quotient `x / y`."""

def reshape(
    tensor: _Input,
    shape: _Input,
    name: str | None = None,
) -> _Tensor:
    """The elements of `tensor`, in order, in a tensor of `shape`; one size may be -1."""

def reverse(
    tensor: _Input,
    axis: _Input,
    name: str | None = None,
) -> _Tensor:
    """`tensor` with the order reversed along the dimensions `axis`."""

def reverse_sequence(
    input: _Input,
    seq_lengths: _Input,
    seq_axis: int | None = None,
    batch_axis: int | None = None,
    name: str | None = None,
) -> _Tensor:
    """`input`, of each slice of the batch the first `seq_lengths[i]` elements reversed."""

def roll(
    input: _Input,
    shift: _Input,
    axis: _Input,
    name: str | None = None,
) -> _Tensor:
    """`input` with its elements moved by `shift[i]` along dimension `axis[i]`, around the ends."""

def scatter_nd(
    indices: _Input,
    updates: _Input,
    shape: _Input,
    bad_indices_policy: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """Zeros of `shape` to which `updates` are added at `indices`."""

def shape(
    input: _Input,
    out_type: _Type | None = None,
    name: str | None = None,
) -> _Tensor:
    """The shape of `input`, as a vector."""

def shape_n(
    input: collections.abc.Sequence[_Input],
    out_type: _Type = ...,
    name: str | None = None,
) -> list[_Tensor]:
    """The shape of each tensor of `input`, as a vector."""

def size(
    input: _Input,
    out_type: _Type | None = None,
    name: str | None = None,
) -> _Tensor:
    """The number of elements of `input`."""

def slice(
    input_: _Input,
    begin: _Input,
    size: _Input,
    name: str | None = None,
) -> _Tensor:
    """The block of `input` that starts at `begin` and has shape `size`; -1 is all that is left."""

def space_to_batch_nd(
    input: _Input,
    block_shape: _Input,
    paddings: _Input,
    name: str | None = None,
) -> _Tensor:
    """`input`, padded with zeros, with the places within each block moved into the batch."""

def stop_gradient(
    input: _Input,
    name: str | None = None,
) -> _Tensor:
    """`input`; gradients take it for a constant."""

def tensor_scatter_nd_add(
    tensor: _Input,
    indices: _Input,
    updates: _Input,
    bad_indices_policy: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """`tensor` plus `updates` at `indices`."""

def tensor_scatter_nd_max(
    tensor: _Input,
    indices: _Input,
    updates: _Input,
    bad_indices_policy: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The larger of `tensor` and `updates` at `indices`."""

def tensor_scatter_nd_min(
    tensor: _Input,
    indices: _Input,
    updates: _Input,
    bad_indices_policy: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """The smaller of `tensor` and `updates` at `indices`."""

def tensor_scatter_nd_sub(
    tensor: _Input,
    indices: _Input,
    updates: _Input,
    bad_indices_policy: str | bytes = '',
    name: str | None = None,
) -> _Tensor:
    """`tensor` minus `updates` at `indices`."""

def tensor_scatter_nd_update(
    tensor: _Input,
    indices: _Input,
    updates: _Input,
    name: str | None = None,
) -> _Tensor:
    """`tensor` with `updates` at `indices`; of several for one place the last counts."""

def tile(
    input: _Input,
    multiples: _Input,
    name: str | None = None,
) -> _Tensor:
    """`input` repeated `multiples[i]` times along dimension i."""

def truncatediv(
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """`x / y`, rounded towards 0."""

def truncatemod(
    x: _Input,
    y: _Input,
    name: str | None = None,
) -> _Tensor:
    """The remainder of `x / y` with the quotient rounded towards 0; it has the sign of `x`."""

def unique(
    x: _Input,
    out_idx: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """The elements of `x` that differ, in order, and for each element which it is."""

def unique_with_counts(
    x: _Input,
    out_idx: _Type = ...,
    name: str | None = None,
) -> _Tensor:
    """As Unique; also how often each of the elements appears."""

def unravel_index(
    indices: _Input,
    dims: _Input,
    name: str | None = None,
) -> _Tensor:
    """For each of the `indices` into the elements of a tensor of shape `dims` its coordinates."""

def space_to_batch(
    input: _Input,
    block_shape: _Input,
    paddings: _Input,
    name: str | None = None,
) -> _Tensor:
    """`input`, padded with zeros, with the places within each block moved into the batch."""
