from opkernel.opdef import common_shapes as common_shapes
from opkernel.opdef import full_type as full_type
from opkernel.opdef.api.api_def import ApiDefMap as ApiDefMap
from opkernel.opdef.api.api_def import OpGenOverrideMap as OpGenOverrideMap
from opkernel.opdef.api.api_def import api_def_from_op_def as api_def_from_op_def
from opkernel.opdef.api.api_def import word_wrap as word_wrap
from opkernel.opdef.api.call_parameters import CallParameter as CallParameter
from opkernel.opdef.api.call_parameters import bind_call as bind_call
from opkernel.opdef.api.call_parameters import call_parameters as call_parameters
from opkernel.opdef.api.call_parameters import call_result as call_result
from opkernel.opdef.api.call_parameters import python_name as python_name
from opkernel.opdef.api.python_op_gen import endpoint_stub as endpoint_stub
from opkernel.opdef.api.python_op_gen import op_docstring as op_docstring
from opkernel.opdef.api.python_op_gen import python_text as python_text
from opkernel.opdef.api.python_op_gen import stub_text as stub_text
from opkernel.opdef.common_shapes.arrays import concat_shape as concat_shape
from opkernel.opdef.common_shapes.arrays import concat_v2_shape as concat_v2_shape
from opkernel.opdef.common_shapes.arrays import gather_nd_shape as gather_nd_shape
from opkernel.opdef.common_shapes.arrays import (
    quantized_concat_v2_shape as quantized_concat_v2_shape,
)
from opkernel.opdef.common_shapes.arrays import reduce_scatter_shape as reduce_scatter_shape
from opkernel.opdef.common_shapes.arrays import reduction_shape as reduction_shape
from opkernel.opdef.common_shapes.arrays import scatter_nd_shape as scatter_nd_shape
from opkernel.opdef.common_shapes.arrays import (
    segment_reduction_with_num_segments_shape as segment_reduction_with_num_segments_shape,
)
from opkernel.opdef.common_shapes.arrays import slice_shape as slice_shape
from opkernel.opdef.common_shapes.diagonal import (
    matrix_diag_part_v2_shape as matrix_diag_part_v2_shape,
)
from opkernel.opdef.common_shapes.diagonal import matrix_diag_v2_shape as matrix_diag_v2_shape
from opkernel.opdef.common_shapes.diagonal import (
    matrix_set_diag_v2_shape as matrix_set_diag_v2_shape,
)
from opkernel.opdef.common_shapes.einsum import einsum_shape as einsum_shape
from opkernel.opdef.common_shapes.einsum import parse_einsum_equation as parse_einsum_equation
from opkernel.opdef.common_shapes.elementwise import (
    broadcast_binary_op_output_shape as broadcast_binary_op_output_shape,
)
from opkernel.opdef.common_shapes.elementwise import (
    broadcast_binary_op_output_shape_fn as broadcast_binary_op_output_shape_fn,
)
from opkernel.opdef.common_shapes.elementwise import (
    broadcast_binary_op_shape as broadcast_binary_op_shape,
)
from opkernel.opdef.common_shapes.elementwise import explicit_shape as explicit_shape
from opkernel.opdef.common_shapes.elementwise import explicit_shapes as explicit_shapes
from opkernel.opdef.common_shapes.elementwise import (
    merge_both_inputs_shape_fn as merge_both_inputs_shape_fn,
)
from opkernel.opdef.common_shapes.elementwise import no_outputs as no_outputs
from opkernel.opdef.common_shapes.elementwise import random_shape as random_shape
from opkernel.opdef.common_shapes.elementwise import scalar_shape as scalar_shape
from opkernel.opdef.common_shapes.elementwise import unchanged_shape as unchanged_shape
from opkernel.opdef.common_shapes.elementwise import (
    unchanged_shape_with_rank as unchanged_shape_with_rank,
)
from opkernel.opdef.common_shapes.elementwise import (
    unchanged_shape_with_rank_at_least as unchanged_shape_with_rank_at_least,
)
from opkernel.opdef.common_shapes.elementwise import (
    unchanged_shape_with_rank_at_most as unchanged_shape_with_rank_at_most,
)
from opkernel.opdef.common_shapes.elementwise import unknown_shape as unknown_shape
from opkernel.opdef.common_shapes.linear_algebra import batch_matmul_shape as batch_matmul_shape
from opkernel.opdef.common_shapes.linear_algebra import (
    batch_matmul_v2_shape as batch_matmul_v2_shape,
)
from opkernel.opdef.common_shapes.linear_algebra import bias_add_grad_shape as bias_add_grad_shape
from opkernel.opdef.common_shapes.linear_algebra import bias_add_shape as bias_add_shape
from opkernel.opdef.common_shapes.linear_algebra import matmul_shape as matmul_shape
from opkernel.opdef.common_shapes.nn import avg_pool3d_grad_shape as avg_pool3d_grad_shape
from opkernel.opdef.common_shapes.nn import avg_pool_grad_shape as avg_pool_grad_shape
from opkernel.opdef.common_shapes.nn import avg_pool_shape as avg_pool_shape
from opkernel.opdef.common_shapes.nn import (
    conv2d_backprop_filter_with_bias_shape as conv2d_backprop_filter_with_bias_shape,
)
from opkernel.opdef.common_shapes.nn import (
    conv2d_backprop_input_shape as conv2d_backprop_input_shape,
)
from opkernel.opdef.common_shapes.nn import conv2d_shape as conv2d_shape
from opkernel.opdef.common_shapes.nn import (
    conv2d_shape_with_explicit_padding as conv2d_shape_with_explicit_padding,
)
from opkernel.opdef.common_shapes.nn import conv3d_shape as conv3d_shape
from opkernel.opdef.common_shapes.nn import conv_shape as conv_shape
from opkernel.opdef.common_shapes.nn import (
    depthwise_conv2d_native_shape as depthwise_conv2d_native_shape,
)
from opkernel.opdef.common_shapes.nn import (
    depthwise_conv2d_native_shape_with_explicit_padding as depthwise_conv2d_native_shape_with_explicit_padding,
)
from opkernel.opdef.common_shapes.nn import (
    fused_batch_norm_ex_shape as fused_batch_norm_ex_shape,
)
from opkernel.opdef.common_shapes.nn import (
    fused_batch_norm_grad_ex_shape as fused_batch_norm_grad_ex_shape,
)
from opkernel.opdef.common_shapes.nn import (
    fused_batch_norm_grad_shape as fused_batch_norm_grad_shape,
)
from opkernel.opdef.common_shapes.nn import (
    fused_batch_norm_shape as fused_batch_norm_shape,
)
from opkernel.opdef.common_shapes.nn import (
    fused_batch_norm_v3_shape as fused_batch_norm_v3_shape,
)
from opkernel.opdef.common_shapes.nn import max_pool3d_grad_shape as max_pool3d_grad_shape
from opkernel.opdef.common_shapes.nn import max_pool_grad_shape as max_pool_grad_shape
from opkernel.opdef.common_shapes.nn import max_pool_shape as max_pool_shape
from opkernel.opdef.common_shapes.nn import (
    max_pool_shape_with_explicit_padding as max_pool_shape_with_explicit_padding,
)
from opkernel.opdef.common_shapes.nn import max_pool_v2_shape as max_pool_v2_shape
from opkernel.opdef.common_shapes.nn import pool3d_shape as pool3d_shape
from opkernel.opdef.common_shapes.quantized import (
    fused_quantized_conv2d_shape as fused_quantized_conv2d_shape,
)
from opkernel.opdef.common_shapes.quantized import (
    fused_quantized_depthwise_conv2d_shape as fused_quantized_depthwise_conv2d_shape,
)
from opkernel.opdef.common_shapes.quantized import quantize_v2_shape as quantize_v2_shape
from opkernel.opdef.common_shapes.quantized import (
    quantized_avg_pool_shape as quantized_avg_pool_shape,
)
from opkernel.opdef.common_shapes.quantized import quantized_conv2d_shape as quantized_conv2d_shape
from opkernel.opdef.common_shapes.resources import dataset_iterator_shape as dataset_iterator_shape
from opkernel.opdef.common_shapes.resources import sparse_reduce_shape as sparse_reduce_shape
from opkernel.opdef.common_shapes.resources import validate_sparse_tensor as validate_sparse_tensor
from opkernel.opdef.common_shapes.resources import (
    validate_variable_resource_handle as validate_variable_resource_handle,
)
from opkernel.opdef.common_shapes.windows import ImageDims as ImageDims
from opkernel.opdef.common_shapes.windows import (
    check_format_constraints_on_shape as check_format_constraints_on_shape,
)
from opkernel.opdef.common_shapes.windows import data_format_attr as data_format_attr
from opkernel.opdef.common_shapes.windows import dimensions_from_shape as dimensions_from_shape
from opkernel.opdef.common_shapes.windows import (
    get_windowed_output_size_from_dims as get_windowed_output_size_from_dims,
)
from opkernel.opdef.common_shapes.windows import (
    get_windowed_output_size_from_dims_v2 as get_windowed_output_size_from_dims_v2,
)
from opkernel.opdef.common_shapes.windows import make_shape_from_format as make_shape_from_format
from opkernel.opdef.common_shapes.windows import padding_attrs as padding_attrs
from opkernel.opdef.common_shapes.windows import shape_from_dimensions as shape_from_dimensions
from opkernel.opdef.compat.op_change_impact import NodeInGraph as NodeInGraph
from opkernel.opdef.compat.op_change_impact import impact_of_change as impact_of_change
from opkernel.opdef.compat.op_change_impact import is_hit_by_change as is_hit_by_change
from opkernel.opdef.compat.op_change_impact import nodes_of_graph_def as nodes_of_graph_def
from opkernel.opdef.compat.op_compatibility import CompatibilityRule as CompatibilityRule
from opkernel.opdef.compat.op_compatibility import OpChange as OpChange
from opkernel.opdef.compat.op_compatibility import (
    op_def_added_defaults_unchanged as op_def_added_defaults_unchanged,
)
from opkernel.opdef.compat.op_compatibility import (
    op_def_attr_defaults_unchanged as op_def_attr_defaults_unchanged,
)
from opkernel.opdef.compat.op_compatibility import op_def_compatible as op_def_compatible
from opkernel.opdef.compat.op_differences import attr_def_equal as attr_def_equal
from opkernel.opdef.compat.op_differences import attr_def_hash as attr_def_hash
from opkernel.opdef.compat.op_differences import op_def_equal as op_def_equal
from opkernel.opdef.compat.op_differences import op_def_hash as op_def_hash
from opkernel.opdef.compat.op_differences import op_differences as op_differences
from opkernel.opdef.compat.op_differences import repeated_attr_def_equal as repeated_attr_def_equal
from opkernel.opdef.compat.op_differences import repeated_attr_def_hash as repeated_attr_def_hash
from opkernel.opdef.compat.op_history import OpHistory as OpHistory
from opkernel.opdef.compat.op_history import OpRevision as OpRevision
from opkernel.opdef.compat.op_history import OpSetComparison as OpSetComparison
from opkernel.opdef.compat.op_history import compare_with_history as compare_with_history
from opkernel.opdef.compat.op_history import parse_op_history as parse_op_history
from opkernel.opdef.compat.op_history import read_op_history as read_op_history
from opkernel.opdef.compat.op_history import refused_steps as refused_steps
from opkernel.opdef.compat.op_history import (
    remove_descriptions_from_op_def as remove_descriptions_from_op_def,
)
from opkernel.opdef.compat.op_history import (
    remove_descriptions_from_op_list as remove_descriptions_from_op_list,
)
from opkernel.opdef.compat.op_history import (
    remove_non_deprecation_descriptions_from_op_def as remove_non_deprecation_descriptions_from_op_def,
)
from opkernel.opdef.compat.op_history import write_op_history as write_op_history
from opkernel.opdef.core.attr_value import attr_for_op as attr_for_op
from opkernel.opdef.core.attr_value import attr_from_python as attr_from_python
from opkernel.opdef.core.attr_value import attr_to_python as attr_to_python
from opkernel.opdef.core.attr_value import infer_attr_from_python as infer_attr_from_python
from opkernel.opdef.core.declarations import GRAPH_DEF_VERSION as GRAPH_DEF_VERSION
from opkernel.opdef.core.declarations import (
    GRAPH_DEF_VERSION_MIN_CONSUMER as GRAPH_DEF_VERSION_MIN_CONSUMER,
)
from opkernel.opdef.core.declarations import (
    GRAPH_DEF_VERSION_MIN_PRODUCER as GRAPH_DEF_VERSION_MIN_PRODUCER,
)
from opkernel.opdef.core.declarations import attr_type_of as attr_type_of
from opkernel.opdef.core.declarations import check_op_deprecation as check_op_deprecation
from opkernel.opdef.core.declarations import find_attr as find_attr
from opkernel.opdef.core.declarations import is_list_arg as is_list_arg
from opkernel.opdef.core.device_name import DeviceName as DeviceName
from opkernel.opdef.core.device_name import canonicalize_device_name as canonicalize_device_name
from opkernel.opdef.core.device_name import (
    device_name_to_cpu_device_name as device_name_to_cpu_device_name,
)
from opkernel.opdef.core.inferred_attrs import CallInputs as CallInputs
from opkernel.opdef.core.inferred_attrs import InputValues as InputValues
from opkernel.opdef.core.inferred_attrs import inferred_attr_names as inferred_attr_names
from opkernel.opdef.core.node_def import MAX_LIST_TENSORS as MAX_LIST_TENSORS
from opkernel.opdef.core.node_def import add_defaults_to_node_def as add_defaults_to_node_def
from opkernel.opdef.core.node_def import attach_def as attach_def
from opkernel.opdef.core.node_def import count_data_inputs as count_data_inputs
from opkernel.opdef.core.node_def import get_node_attr as get_node_attr
from opkernel.opdef.core.node_def import in_out_types_for_node as in_out_types_for_node
from opkernel.opdef.core.node_def import input_types_for_node as input_types_for_node
from opkernel.opdef.core.node_def import name_ranges_for_node as name_ranges_for_node
from opkernel.opdef.core.node_def import num_outputs as num_outputs
from opkernel.opdef.core.node_def import output_types_for_node as output_types_for_node
from opkernel.opdef.core.node_def import (
    strip_defaults_from_node_def as strip_defaults_from_node_def,
)
from opkernel.opdef.core.node_def import (
    validate_external_node_def_syntax as validate_external_node_def_syntax,
)
from opkernel.opdef.core.node_def import validate_node_def as validate_node_def
from opkernel.opdef.core.node_def_builder import FakeInput as FakeInput
from opkernel.opdef.core.node_def_builder import NodeDefBuilder as NodeDefBuilder
from opkernel.opdef.core.node_def_builder import fake_input as fake_input
from opkernel.opdef.core.op_def_builder import OpDefBuilder as OpDefBuilder
from opkernel.opdef.core.op_def_builder import OpRegistrationData as OpRegistrationData
from opkernel.opdef.core.op_def_builder import OpShapeInferenceFn as OpShapeInferenceFn
from opkernel.opdef.core.op_def_builder import TypeInferenceFn as TypeInferenceFn
from opkernel.opdef.core.op_lookup import SYSTEM_OPS as SYSTEM_OPS
from opkernel.opdef.core.op_lookup import OpListOpRegistry as OpListOpRegistry
from opkernel.opdef.core.op_lookup import OpRegistryInterface as OpRegistryInterface
from opkernel.opdef.core.op_lookup import UnregisteredOpError as UnregisteredOpError
from opkernel.opdef.core.op_lookup import not_registered as not_registered
from opkernel.opdef.core.op_registry import OpRegistry as OpRegistry
from opkernel.opdef.core.op_registry import get_registered_ops as get_registered_ops
from opkernel.opdef.core.op_registry import global_op_registry as global_op_registry
from opkernel.opdef.core.op_traits import OpTraits as OpTraits
from opkernel.opdef.core.register_op import OpHandle as OpHandle
from opkernel.opdef.core.register_op import register_op as register_op
from opkernel.opdef.core.register_op import register_op_def as register_op_def
from opkernel.opdef.core.validate import are_attr_values_equal as are_attr_values_equal
from opkernel.opdef.core.validate import attr_value_has_type as attr_value_has_type
from opkernel.opdef.core.validate import attr_value_hash as attr_value_hash
from opkernel.opdef.core.validate import (
    fast_are_attr_values_equal as fast_are_attr_values_equal,
)
from opkernel.opdef.core.validate import substitute_placeholders as substitute_placeholders
from opkernel.opdef.core.validate import validate_attr_value as validate_attr_value
from opkernel.opdef.core.validate import validate_op_def as validate_op_def
from opkernel.opdef.shapes.inference_context import InferenceContext as InferenceContext
from opkernel.opdef.shapes.run_shape_fn import UnsetOutputError as UnsetOutputError
from opkernel.opdef.shapes.run_shape_fn import infer_call as infer_call
from opkernel.opdef.shapes.run_shape_fn import run_shape_fn as run_shape_fn
from opkernel.opdef.shapes.shape_algebra import ShapeAlgebra as ShapeAlgebra
from opkernel.opdef.shapes.shape_handles import UNKNOWN_DIM as UNKNOWN_DIM
from opkernel.opdef.shapes.shape_handles import UNKNOWN_RANK as UNKNOWN_RANK
from opkernel.opdef.shapes.shape_handles import DimensionHandle as DimensionHandle
from opkernel.opdef.shapes.shape_handles import DimensionOrConstant as DimensionOrConstant
from opkernel.opdef.shapes.shape_handles import ShapeAndType as ShapeAndType
from opkernel.opdef.shapes.shape_handles import ShapeHandle as ShapeHandle
from opkernel.opdef.text.attr_value_text import has_placeholder as has_placeholder
from opkernel.opdef.text.attr_value_text import parse_attr_value as parse_attr_value
from opkernel.opdef.text.summary import format_node_def_for_error as format_node_def_for_error
from opkernel.opdef.text.summary import format_node_name_for_error as format_node_name_for_error
from opkernel.opdef.text.summary import summarize_attr_value as summarize_attr_value
from opkernel.opdef.text.summary import summarize_attrs as summarize_attrs
from opkernel.opdef.text.summary import summarize_node_def as summarize_node_def
from opkernel.opdef.text.summary import summarize_op_def as summarize_op_def
from opkernel.opdef.text.text_proto import pb_txt_from_multiline as pb_txt_from_multiline
from opkernel.opdef.text.text_proto import pb_txt_to_multiline as pb_txt_to_multiline

__all__: list[str]
