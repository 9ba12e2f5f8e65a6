"""What an op is: its declaration, its registry, the nodes that use it and the shapes it gives."""

from opkernel.opdef import common_shapes
from opkernel.opdef.attr_value import attr_from_python, attr_to_python, infer_attr_from_python
from opkernel.opdef.attr_value_check import (
    are_attr_values_equal,
    attr_value_has_type,
    attr_value_hash,
    fast_are_attr_values_equal,
    substitute_placeholders,
    validate_attr_value,
)
from opkernel.opdef.attr_value_text import (
    has_placeholder,
    parse_attr_value,
    summarize_attr_value,
)
from opkernel.opdef.common_shapes import *  # noqa: F403  # its __all__ is the list
from opkernel.opdef.declarations import attr_type_of, find_attr, is_list_arg
from opkernel.opdef.deprecation import check_op_deprecation
from opkernel.opdef.inference_context import InferenceContext
from opkernel.opdef.node_def import (
    MAX_LIST_TENSORS,
    add_defaults_to_node_def,
    attach_def,
    get_node_attr,
    in_out_types_for_node,
    input_types_for_node,
    name_ranges_for_node,
    num_outputs,
    output_types_for_node,
    strip_defaults_from_node_def,
    validate_external_node_def_syntax,
    validate_node_def,
)
from opkernel.opdef.node_def_builder import NodeDefBuilder
from opkernel.opdef.op_def_builder import OpDefBuilder, OpRegistrationData
from opkernel.opdef.register_op import OpHandle, register_op
from opkernel.opdef.registry import (
    OpListOpRegistry,
    OpRegistry,
    OpRegistryInterface,
    global_op_registry,
)
from opkernel.opdef.run_shape_fn import run_shape_fn
from opkernel.opdef.shape_handles import (
    UNKNOWN_DIM,
    UNKNOWN_RANK,
    DimensionHandle,
    DimensionOrConstant,
    ShapeAndType,
    ShapeHandle,
)
from opkernel.opdef.summary import (
    format_node_def_for_error,
    format_node_name_for_error,
    summarize_attrs,
    summarize_node_def,
    summarize_op_def,
)
from opkernel.opdef.validate import validate_op_def
from opkernel.opdef.versions import (
    GRAPH_DEF_VERSION,
    GRAPH_DEF_VERSION_MIN_CONSUMER,
    GRAPH_DEF_VERSION_MIN_PRODUCER,
)

__all__ = [
    "GRAPH_DEF_VERSION",
    "GRAPH_DEF_VERSION_MIN_CONSUMER",
    "GRAPH_DEF_VERSION_MIN_PRODUCER",
    "MAX_LIST_TENSORS",
    "UNKNOWN_DIM",
    "UNKNOWN_RANK",
    "DimensionHandle",
    "DimensionOrConstant",
    "InferenceContext",
    "NodeDefBuilder",
    "OpDefBuilder",
    "OpHandle",
    "OpListOpRegistry",
    "OpRegistrationData",
    "OpRegistry",
    "OpRegistryInterface",
    "ShapeAndType",
    "ShapeHandle",
    "add_defaults_to_node_def",
    "are_attr_values_equal",
    "attach_def",
    "attr_from_python",
    "attr_to_python",
    "attr_type_of",
    "attr_value_has_type",
    "attr_value_hash",
    "check_op_deprecation",
    "fast_are_attr_values_equal",
    "find_attr",
    "format_node_def_for_error",
    "format_node_name_for_error",
    "get_node_attr",
    "global_op_registry",
    "has_placeholder",
    "in_out_types_for_node",
    "infer_attr_from_python",
    "input_types_for_node",
    "is_list_arg",
    "name_ranges_for_node",
    "num_outputs",
    "output_types_for_node",
    "parse_attr_value",
    "register_op",
    "run_shape_fn",
    "strip_defaults_from_node_def",
    "substitute_placeholders",
    "summarize_attr_value",
    "summarize_attrs",
    "summarize_node_def",
    "summarize_op_def",
    "validate_attr_value",
    "validate_external_node_def_syntax",
    "validate_node_def",
    "validate_op_def",
]
__all__ += common_shapes.__all__
