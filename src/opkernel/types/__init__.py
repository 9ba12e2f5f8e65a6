"""The types of tensors, their shapes, and their wire format."""

from opkernel.types import dtype_names
from opkernel.types.dtype import REF_OFFSET, DataType, as_dtype
from opkernel.types.dtype_names import *  # noqa: F403  # its __all__ is the list
from opkernel.types.python_values import (
    array_from_python,
    can_become,
    dtype_of_array,
    natural_dtype,
)
from opkernel.types.resource_handle import (
    DtypeAndShape,
    ResourceHandle,
)
from opkernel.types.shape import (
    MAX_DIMENSIONS,
    PartialTensorShape,
    TensorShape,
    shape_proto_debug_string,
)
from opkernel.types.tensor import (
    DEFAULT_LIMIT_BYTES,
    tensor_from_proto,
    tensor_to_proto,
)
from opkernel.types.type_groups import (
    ALL_TYPES,
    COMPLEX_TYPES,
    FLOATING_TYPES,
    INTEGER_TYPES,
    NUMBER_TYPES,
    QUANTIZED_TYPES,
    REAL_AND_QUANTIZED_TYPES,
    REAL_NUMBER_TYPES,
    SIGNED_TYPES,
    UNSIGNED_TYPES,
)
from opkernel.types.variant_value import (
    OpaqueVariant,
    Variant,
    register_variant_decoder,
    variant_from_proto,
)

__all__ = [
    "REF_OFFSET",
    "DataType",
    "as_dtype",
    "array_from_python",
    "can_become",
    "dtype_of_array",
    "natural_dtype",
    "DtypeAndShape",
    "ResourceHandle",
    "MAX_DIMENSIONS",
    "PartialTensorShape",
    "TensorShape",
    "shape_proto_debug_string",
    "DEFAULT_LIMIT_BYTES",
    "tensor_from_proto",
    "tensor_to_proto",
    "ALL_TYPES",
    "COMPLEX_TYPES",
    "FLOATING_TYPES",
    "INTEGER_TYPES",
    "NUMBER_TYPES",
    "QUANTIZED_TYPES",
    "REAL_AND_QUANTIZED_TYPES",
    "REAL_NUMBER_TYPES",
    "SIGNED_TYPES",
    "UNSIGNED_TYPES",
    "OpaqueVariant",
    "Variant",
    "register_variant_decoder",
    "variant_from_proto",
]
__all__ += dtype_names.__all__
