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

__all__: list[str]
