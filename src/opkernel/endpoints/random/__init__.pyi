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

from opkernel.endpoints.random.distributions import all_candidate_sampler as all_candidate_sampler
from opkernel.endpoints.random.distributions import categorical as categorical
from opkernel.endpoints.random.distributions import (
    fixed_unigram_candidate_sampler as fixed_unigram_candidate_sampler,
)
from opkernel.endpoints.random.distributions import gamma as gamma
from opkernel.endpoints.random.distributions import (
    learned_unigram_candidate_sampler as learned_unigram_candidate_sampler,
)
from opkernel.endpoints.random.distributions import (
    log_uniform_candidate_sampler as log_uniform_candidate_sampler,
)
from opkernel.endpoints.random.distributions import normal as normal
from opkernel.endpoints.random.distributions import poisson as poisson
from opkernel.endpoints.random.distributions import shuffle as shuffle
from opkernel.endpoints.random.distributions import truncated_normal as truncated_normal
from opkernel.endpoints.random.distributions import uniform as uniform
from opkernel.endpoints.random.distributions import (
    uniform_candidate_sampler as uniform_candidate_sampler,
)
from opkernel.endpoints.random.seeds import set_seed as set_seed
from opkernel.endpoints.random.stateless import fold_in as fold_in
from opkernel.endpoints.random.stateless import split as split
from opkernel.endpoints.random.stateless import stateless_binomial as stateless_binomial
from opkernel.endpoints.random.stateless import stateless_categorical as stateless_categorical
from opkernel.endpoints.random.stateless import stateless_gamma as stateless_gamma
from opkernel.endpoints.random.stateless import stateless_normal as stateless_normal
from opkernel.endpoints.random.stateless import (
    stateless_parameterized_truncated_normal as stateless_parameterized_truncated_normal,
)
from opkernel.endpoints.random.stateless import stateless_poisson as stateless_poisson
from opkernel.endpoints.random.stateless import (
    stateless_truncated_normal as stateless_truncated_normal,
)
from opkernel.endpoints.random.stateless import stateless_uniform as stateless_uniform
from opkernel.endpoints.random.states import create_rng_state as create_rng_state
