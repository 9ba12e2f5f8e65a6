"""Full types: what a tensor is beyond its DataType, above all what a variant holds.

A full type is a tree (FullTypeDef): TFT_DATASET[TFT_PRODUCT[TFT_TENSOR[TFT_INT32]]]. An op declares
those of its outputs through a type constructor (`constructors`), with the attrs for variables;
`specialize_type` fills them in for a node; type inference functions (`inference`) follow them from
node to node. The package stands for TensorFlow's namespace `full_type`.
"""

from opkernel.opdef.full_type.constructors import (
    no_op,
    no_outputs,
    nullary,
    unary,
    unary_generic,
    unary_tensor_container,
    variadic_tensor_container,
)
from opkernel.opdef.full_type.inference import (
    batch_tensor,
    container_map,
    decode,
    encode,
    function_call,
    keep_existing,
    map_covariant,
    merge,
    multiary_unstack,
    replicate_input,
    shard_tensor,
    tensor,
    tuple_func,
    unary_container_add,
    unary_container_create,
    unstack_tensor,
)
from opkernel.opdef.full_type.relations import (
    full_type_string,
    get_arg_default_any,
    get_arg_default_unset,
    is_equal,
    is_host_memory_type,
    is_subtype,
)
from opkernel.opdef.full_type.specialize import full_type_of_node, specialize_type
from opkernel.opdef.full_type.type_id import (
    FullTypeId,
    map_dtype_to_child_of_tensor,
    map_dtype_to_tensor,
)

__all__ = [
    "FullTypeId",
    "batch_tensor",
    "container_map",
    "decode",
    "encode",
    "full_type_of_node",
    "full_type_string",
    "function_call",
    "get_arg_default_any",
    "get_arg_default_unset",
    "is_equal",
    "is_host_memory_type",
    "is_subtype",
    "keep_existing",
    "map_covariant",
    "map_dtype_to_child_of_tensor",
    "map_dtype_to_tensor",
    "merge",
    "multiary_unstack",
    "no_op",
    "no_outputs",
    "nullary",
    "replicate_input",
    "shard_tensor",
    "specialize_type",
    "tensor",
    "tuple_func",
    "unary",
    "unary_container_add",
    "unary_container_create",
    "unary_generic",
    "unary_tensor_container",
    "unstack_tensor",
    "variadic_tensor_container",
]
