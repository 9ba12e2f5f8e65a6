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

from opkernel.endpoints.losses.functions import binary_crossentropy as binary_crossentropy
from opkernel.endpoints.losses.functions import categorical_crossentropy as categorical_crossentropy
from opkernel.endpoints.losses.functions import categorical_hinge as categorical_hinge
from opkernel.endpoints.losses.functions import cosine_similarity as cosine_similarity
from opkernel.endpoints.losses.functions import hinge as hinge
from opkernel.endpoints.losses.functions import huber as huber
from opkernel.endpoints.losses.functions import kl_divergence as kl_divergence
from opkernel.endpoints.losses.functions import log_cosh as log_cosh
from opkernel.endpoints.losses.functions import mean_absolute_error as mean_absolute_error
from opkernel.endpoints.losses.functions import (
    mean_absolute_percentage_error as mean_absolute_percentage_error,
)
from opkernel.endpoints.losses.functions import mean_squared_error as mean_squared_error
from opkernel.endpoints.losses.functions import (
    mean_squared_logarithmic_error as mean_squared_logarithmic_error,
)
from opkernel.endpoints.losses.functions import poisson as poisson
from opkernel.endpoints.losses.functions import (
    sparse_categorical_crossentropy as sparse_categorical_crossentropy,
)
from opkernel.endpoints.losses.functions import squared_hinge as squared_hinge
