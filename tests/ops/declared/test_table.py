"""Every op of TensorFlow is known, whether or not it has a kernel."""

from opkernel.opdef import global_op_registry
from opkernel.ops.declared import tensorflow_op_defs


def test_an_op_without_a_kernel_is_known():
    op_def = global_op_registry().look_up_op_def("SparseMatrixSparseCholesky")
    assert [arg.name for arg in op_def.input_arg] == ["input", "permutation"]
    assert op_def.attr[0].allowed_values.list.type == [1, 2, 8, 18]


def test_the_table_is_whole():
    assert len(tensorflow_op_defs()) == 1908
    names = {op.name for op in global_op_registry().get_registered_ops()}
    assert names >= set(tensorflow_op_defs())
