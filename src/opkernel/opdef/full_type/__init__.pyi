from opkernel.opdef.full_type.inference import batch_tensor as batch_tensor
from opkernel.opdef.full_type.inference import container_map as container_map
from opkernel.opdef.full_type.inference import decode as decode
from opkernel.opdef.full_type.inference import encode as encode
from opkernel.opdef.full_type.inference import function_call as function_call
from opkernel.opdef.full_type.inference import keep_existing as keep_existing
from opkernel.opdef.full_type.inference import map_covariant as map_covariant
from opkernel.opdef.full_type.inference import merge as merge
from opkernel.opdef.full_type.inference import multiary_unstack as multiary_unstack
from opkernel.opdef.full_type.inference import replicate_input as replicate_input
from opkernel.opdef.full_type.inference import shard_tensor as shard_tensor
from opkernel.opdef.full_type.inference import tensor as tensor
from opkernel.opdef.full_type.inference import tuple_func as tuple_func
from opkernel.opdef.full_type.inference import unary_container_add as unary_container_add
from opkernel.opdef.full_type.inference import unary_container_create as unary_container_create
from opkernel.opdef.full_type.inference import unstack_tensor as unstack_tensor
from opkernel.opdef.full_type.types import FullTypeId as FullTypeId
from opkernel.opdef.full_type.types import full_type_of_node as full_type_of_node
from opkernel.opdef.full_type.types import full_type_string as full_type_string
from opkernel.opdef.full_type.types import get_arg_default_any as get_arg_default_any
from opkernel.opdef.full_type.types import get_arg_default_unset as get_arg_default_unset
from opkernel.opdef.full_type.types import is_equal as is_equal
from opkernel.opdef.full_type.types import is_host_memory_type as is_host_memory_type
from opkernel.opdef.full_type.types import is_subtype as is_subtype
from opkernel.opdef.full_type.types import (
    map_dtype_to_child_of_tensor as map_dtype_to_child_of_tensor,
)
from opkernel.opdef.full_type.types import map_dtype_to_tensor as map_dtype_to_tensor
from opkernel.opdef.full_type.types import no_op as no_op
from opkernel.opdef.full_type.types import no_outputs as no_outputs
from opkernel.opdef.full_type.types import nullary as nullary
from opkernel.opdef.full_type.types import specialize_type as specialize_type
from opkernel.opdef.full_type.types import unary as unary
from opkernel.opdef.full_type.types import unary_generic as unary_generic
from opkernel.opdef.full_type.types import unary_tensor_container as unary_tensor_container
from opkernel.opdef.full_type.types import (
    variadic_tensor_container as variadic_tensor_container,
)

__all__: list[str]
