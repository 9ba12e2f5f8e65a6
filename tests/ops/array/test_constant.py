import numpy as np
import pytest

import opkernel
from opkernel import Session, raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import create_op_kernel
from opkernel.opdef import InferenceContext, NodeDefBuilder, global_op_registry
from opkernel.runtime import CPU
from opkernel.types import DataType, PartialTensorShape

VALUE = np.array([[1, 2], [3, 4]], np.int16)


def const(value):
    builder = NodeDefBuilder("c", "Const").attr("value", value)
    return builder.attr("dtype", DataType.DT_INT16).finalize()


def test_a_constant_knows_its_value_which_nobody_can_change():
    kernel = create_op_kernel(CPU, const(VALUE))
    np.testing.assert_array_equal(kernel.const_tensor, VALUE)
    assert kernel.const_tensor is kernel.const_tensor
    with pytest.raises(ValueError, match="read-only"):
        kernel.const_tensor[0, 0] = 9


def test_a_constant_must_have_the_type_that_it_says():
    with pytest.raises(InvalidArgumentError, match=r"value \(float32\) and dtype \(int16\)"):
        create_op_kernel(CPU, const(VALUE.astype(np.float32)))


def test_a_constant_is_given_out_as_a_copy():
    result = raw_ops.Const(value=VALUE, dtype=DataType.DT_INT16)
    result[0, 0] = 9
    assert VALUE[0, 0] == 1


def test_a_placeholder_must_be_fed():
    node = NodeDefBuilder("x", "Placeholder").attr("dtype", DataType.DT_FLOAT)
    graph_def = opkernel.Graph().as_graph_def()
    graph_def.node.append(node.attr("shape", PartialTensorShape([2])).finalize())
    graph = opkernel.Graph()
    with graph.as_default():
        opkernel.import_graph_def(graph_def, name="")
    with Session(graph) as session:
        assert session.run("x:0", {"x:0": [1, 2]}).tolist() == [1, 2]
        with pytest.raises(
            InvalidArgumentError, match="placeholder tensor 'x' with dtype float and shape"
        ):
            session.run("x:0")


def shape_of_placeholder(shape, graph_def_version):
    node = NodeDefBuilder("x", "Placeholder").attr("dtype", DataType.DT_FLOAT)
    registration = global_op_registry().look_up("Placeholder")
    context = InferenceContext(
        registration.op_def,
        node.attr("shape", PartialTensorShape(shape)).finalize(),
        [],
        graph_def_version=graph_def_version,
    )
    assert registration.shape_inference_fn is not None
    registration.shape_inference_fn(context)
    return str(context.output(0))


def test_in_old_graphs_a_scalar_placeholder_may_have_any_shape():
    assert shape_of_placeholder([], 21) == "?"
    assert shape_of_placeholder([], 22) == "[]"
    assert shape_of_placeholder([2], 21) == "[2]"
