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

from opkernel.endpoints.array import space_to_batch as space_to_batch
from opkernel.endpoints.linalg import l2_normalize as l2_normalize
from opkernel.endpoints.math import approx_max_k as approx_max_k
from opkernel.endpoints.math import approx_min_k as approx_min_k
from opkernel.endpoints.math import in_top_k as in_top_k
from opkernel.endpoints.math import log_softmax as log_softmax
from opkernel.endpoints.math import sigmoid as sigmoid
from opkernel.endpoints.math import softmax as softmax
from opkernel.endpoints.math import softplus as softplus
from opkernel.endpoints.math import softsign as softsign
from opkernel.endpoints.math import tanh as tanh
from opkernel.endpoints.math import top_k as top_k
from opkernel.endpoints.math import zero_fraction as zero_fraction
from opkernel.endpoints.nn.activations import (
    batch_norm_with_global_normalization as batch_norm_with_global_normalization,
)
from opkernel.endpoints.nn.activations import batch_normalization as batch_normalization
from opkernel.endpoints.nn.activations import bias_add as bias_add
from opkernel.endpoints.nn.activations import crelu as crelu
from opkernel.endpoints.nn.activations import dropout as dropout
from opkernel.endpoints.nn.activations import gelu as gelu
from opkernel.endpoints.nn.activations import isotonic_regression as isotonic_regression
from opkernel.endpoints.nn.activations import leaky_relu as leaky_relu
from opkernel.endpoints.nn.activations import silu as silu
from opkernel.endpoints.nn.averages import compute_average_loss as compute_average_loss
from opkernel.endpoints.nn.averages import scale_regularization_loss as scale_regularization_loss
from opkernel.endpoints.nn.convolutions import atrous_conv2d as atrous_conv2d
from opkernel.endpoints.nn.convolutions import conv1d as conv1d
from opkernel.endpoints.nn.convolutions import conv2d as conv2d
from opkernel.endpoints.nn.convolutions import conv3d as conv3d
from opkernel.endpoints.nn.convolutions import convolution as convolution
from opkernel.endpoints.nn.convolutions import depthwise_conv2d as depthwise_conv2d
from opkernel.endpoints.nn.convolutions import dilation2d as dilation2d
from opkernel.endpoints.nn.convolutions import erosion2d as erosion2d
from opkernel.endpoints.nn.convolutions import separable_conv2d as separable_conv2d
from opkernel.endpoints.nn.cross_entropy import log_poisson_loss as log_poisson_loss
from opkernel.endpoints.nn.cross_entropy import (
    sigmoid_cross_entropy_with_logits as sigmoid_cross_entropy_with_logits,
)
from opkernel.endpoints.nn.cross_entropy import (
    softmax_cross_entropy_with_logits as softmax_cross_entropy_with_logits,
)
from opkernel.endpoints.nn.cross_entropy import (
    sparse_softmax_cross_entropy_with_logits as sparse_softmax_cross_entropy_with_logits,
)
from opkernel.endpoints.nn.cross_entropy import (
    weighted_cross_entropy_with_logits as weighted_cross_entropy_with_logits,
)
from opkernel.endpoints.nn.ctc import collapse_repeated as collapse_repeated
from opkernel.endpoints.nn.ctc import ctc_beam_search_decoder as ctc_beam_search_decoder
from opkernel.endpoints.nn.ctc import ctc_greedy_decoder as ctc_greedy_decoder
from opkernel.endpoints.nn.ctc import ctc_loss as ctc_loss
from opkernel.endpoints.nn.ctc import ctc_unique_labels as ctc_unique_labels
from opkernel.endpoints.nn.dilations import with_space_to_batch as with_space_to_batch
from opkernel.endpoints.nn.lookup import compute_accidental_hits as compute_accidental_hits
from opkernel.endpoints.nn.lookup import embedding_lookup as embedding_lookup
from opkernel.endpoints.nn.lookup import embedding_lookup_sparse as embedding_lookup_sparse
from opkernel.endpoints.nn.lookup import nce_loss as nce_loss
from opkernel.endpoints.nn.lookup import (
    safe_embedding_lookup_sparse as safe_embedding_lookup_sparse,
)
from opkernel.endpoints.nn.lookup import sampled_softmax_loss as sampled_softmax_loss
from opkernel.endpoints.nn.pooling import avg_pool as avg_pool
from opkernel.endpoints.nn.pooling import avg_pool1d as avg_pool1d
from opkernel.endpoints.nn.pooling import avg_pool2d as avg_pool2d
from opkernel.endpoints.nn.pooling import avg_pool3d as avg_pool3d
from opkernel.endpoints.nn.pooling import fractional_avg_pool as fractional_avg_pool
from opkernel.endpoints.nn.pooling import fractional_max_pool as fractional_max_pool
from opkernel.endpoints.nn.pooling import max_pool as max_pool
from opkernel.endpoints.nn.pooling import max_pool1d as max_pool1d
from opkernel.endpoints.nn.pooling import max_pool2d as max_pool2d
from opkernel.endpoints.nn.pooling import max_pool3d as max_pool3d
from opkernel.endpoints.nn.pooling import max_pool_with_argmax as max_pool_with_argmax
from opkernel.endpoints.nn.pooling import pool as pool
from opkernel.endpoints.nn.statistics import moments as moments
from opkernel.endpoints.nn.statistics import normalize_moments as normalize_moments
from opkernel.endpoints.nn.statistics import sufficient_statistics as sufficient_statistics
from opkernel.endpoints.nn.statistics import weighted_moments as weighted_moments
from opkernel.endpoints.nn.transposed import atrous_conv2d_transpose as atrous_conv2d_transpose
from opkernel.endpoints.nn.transposed import conv1d_transpose as conv1d_transpose
from opkernel.endpoints.nn.transposed import conv2d_transpose as conv2d_transpose
from opkernel.endpoints.nn.transposed import conv3d_transpose as conv3d_transpose
from opkernel.endpoints.nn.transposed import conv_transpose as conv_transpose
from opkernel.endpoints.random import all_candidate_sampler as all_candidate_sampler
from opkernel.endpoints.random import (
    fixed_unigram_candidate_sampler as fixed_unigram_candidate_sampler,
)
from opkernel.endpoints.random import (
    learned_unigram_candidate_sampler as learned_unigram_candidate_sampler,
)

def depth_to_space(
    input: _Input,
    block_size: int,
    data_format: typing.Literal['NHWC', 'NCHW', 'NCHW_VECT_C'] = 'NHWC',
    name: str | None = None,
) -> _Tensor:
    """Images `input` with parts of the depth moved into blocks of space: undoes SpaceToDepth."""

def depthwise_conv2d_backprop_filter(
    input: _Input,
    filter_sizes: _Input,
    out_backprop: _Input,
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID', 'EXPLICIT'],
    data_format: typing.Literal['NHWC', 'NCHW'] = 'NHWC',
    dilations: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _Tensor:
    """The gradient of DepthwiseConv2dNative by its filter, whose shape is given."""

def depthwise_conv2d_backprop_input(
    input_sizes: _Input,
    filter: _Input,
    out_backprop: _Input,
    strides: collections.abc.Sequence[int],
    padding: typing.Literal['SAME', 'VALID', 'EXPLICIT'],
    data_format: typing.Literal['NHWC', 'NCHW'] = 'NHWC',
    dilations: collections.abc.Sequence[int] = ...,
    name: str | None = None,
) -> _Tensor:
    """The gradient of DepthwiseConv2dNative by its input, whose shape is given."""

def elu(
    features: _Input,
    name: str | None = None,
) -> _Tensor:
    """The features; exp(features) - 1 where they are below 0."""

def l2_loss(
    t: _Input,
    name: str | None = None,
) -> _Tensor:
    """Half the sum of the squares of `t`."""

def local_response_normalization(
    input: _Input,
    depth_radius: int = 5,
    bias: float = 1,
    alpha: float = 1,
    beta: float = 0.5,
    name: str | None = None,
) -> _Tensor:
    """input / (bias + alpha * sum(input ** 2)) ** beta."""

def relu(
    features: _Input,
    name: str | None = None,
) -> _Tensor:
    """max(features, 0)."""

def relu6(
    features: _Input,
    name: str | None = None,
) -> _Tensor:
    """min(max(features, 0), 6)."""

def selu(
    features: _Input,
    name: str | None = None,
) -> _Tensor:
    """scale * features; scale * alpha * (exp(features) - 1) below 0."""

def space_to_depth(
    input: _Input,
    block_size: int,
    data_format: typing.Literal['NHWC', 'NCHW', 'NCHW_VECT_C'] = 'NHWC',
    name: str | None = None,
) -> _Tensor:
    """Images `input` with the places within each block moved into the depth."""
lrn = local_response_normalization
swish = silu
