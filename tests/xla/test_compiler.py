"""XlaCompiler: graphs and functions as programs."""

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from opkernel.graph import placeholder
from opkernel.proto import NodeDef
from opkernel.types import DataType
from opkernel.xla import XlaArgument, XlaCompiler

pytestmark = pytest.mark.jax

FLOAT, INT64 = DataType.DT_FLOAT, DataType.DT_INT64
X = np.array([[0.5, -1.0, 2.0], [0.0, 3.0, -0.25]], np.float32)


@pytest.fixture
def graph():
    made = opkernel.Graph()
    with made.as_default():
        yield made


def compiled(graph, feeds, fetches, arguments):
    return XlaCompiler().compile_graph(graph, feeds, fetches, arguments)


def test_a_graph(graph):
    x = placeholder(opkernel.float32, (2, 3), name="x")
    total = raw_ops.Sum(input=raw_ops.Tanh(x=x + np.float32(1)), axis=[1])
    result = compiled(graph, [x], [total], [XlaArgument.parameter(FLOAT, (2, 3))])
    (found,), written = result.run([X])
    np.testing.assert_allclose(found, np.tanh(X + 1).sum(axis=1), rtol=1e-6)
    assert written == []
    assert "stablehlo.tanh" in result.stablehlo()
    assert [(one.dtype, one.shape) for one in result.outputs] == [(FLOAT, (2,))]


def test_what_depends_on_constants_alone_is_no_part_of_the_program(graph):
    x = placeholder(opkernel.float32, (2,), name="x")
    three = raw_ops.Const(value=np.int32(1), dtype=opkernel.int32) + np.int32(2)
    result = compiled(graph, [x], [three, x], [XlaArgument.parameter(FLOAT, (2,))])
    assert result.outputs[0].constant == 3
    assert result.outputs[1].constant is None
    assert "add" not in result.stablehlo()


def test_a_constant_argument_is_known_to_kernels(graph):
    x = placeholder(opkernel.float32, (2, 3), name="x")
    axis = placeholder(opkernel.int32, (), name="axis")
    total = raw_ops.Sum(input=x, axis=axis)
    arguments = [XlaArgument.parameter(FLOAT, (2, 3)), XlaArgument.of_constant(np.int32(0))]
    (found,), _ = compiled(graph, [x, axis], [total], arguments).run([X, None])
    np.testing.assert_array_equal(found, [0.5, 2.0, 1.75])


def test_a_value_that_must_be_known_and_is_not(graph):
    x = placeholder(opkernel.float32, (2, 3), name="x")
    axis = placeholder(opkernel.int32, (), name="axis")
    total = raw_ops.Sum(input=x, axis=axis, name="total")
    arguments = [
        XlaArgument.parameter(FLOAT, (2, 3)),
        XlaArgument.parameter(DataType.DT_INT32, ()),
    ]
    with pytest.raises(InvalidArgumentError, match="must be a compile-time constant") as raised:
        compiled(graph, [x, axis], [total], arguments)
    assert raised.value.node == "total"


def test_wide_integers_stay_wide_and_the_settings_of_jax_stay(graph):
    import jax

    before = jax.config.read("jax_enable_x64")
    x = placeholder(opkernel.int64, (), name="x")
    result = compiled(graph, [x], [x + np.int64(1)], [XlaArgument.parameter(INT64, ())])
    (found,), _ = result.run([np.int64(2**40)])
    assert found == 2**40 + 1
    assert found.dtype == np.int64
    assert jax.config.read("jax_enable_x64") == before
    assert not jax.config.read("jax_enable_x64")


def test_an_op_without_a_kernel(graph):
    x = placeholder(opkernel.float32, (2,), name="x")
    text = raw_ops.AsString(input=x, name="text")
    with pytest.raises(NotFoundError, match="no XLA rule for AsString") as raised:
        compiled(graph, [x], [text], [XlaArgument.parameter(FLOAT, (2,))])
    assert raised.value.node == "text"


def test_strings_are_refused(graph):
    flag = placeholder(opkernel.bool, (2,), name="flag")
    text = raw_ops.Const(value=[b"a", b"b"], dtype=opkernel.string)
    chosen = raw_ops.Select(condition=flag, x=text, y=text)
    with pytest.raises(InvalidArgumentError, match="tensors of type string"):
        compiled(graph, [flag], [chosen], [XlaArgument.parameter(DataType.DT_BOOL, (2,))])


def test_what_is_asserted_is_no_part_of_the_program(graph):
    x = placeholder(opkernel.float32, (), name="x")
    text = placeholder(opkernel.string, (), name="text")
    check = raw_ops.Assert(condition=raw_ops.Less(x=x, y=np.float32(1)), data=[text])
    assert check is not None
    arguments = [XlaArgument.parameter(FLOAT, ()), XlaArgument.parameter(DataType.DT_STRING, ())]
    result = XlaCompiler().compile_graph(graph, [x, text], [x], arguments, [check])
    assert result.run([np.float32(2), b"large"])[0] == [2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "takes 1 arguments, 0 are described"),
        ([XlaArgument.parameter(INT64, (2,))], "is float, and is described as int64"),
    ],
)
def test_arguments_that_do_not_fit(graph, arguments, message):
    x = placeholder(opkernel.float32, (2,), name="x")
    with pytest.raises(InvalidArgumentError, match=message):
        compiled(graph, [x], [x], arguments)


def test_an_input_of_another_shape_than_was_compiled(graph):
    x = placeholder(opkernel.float32, (None,), name="x")
    result = compiled(graph, [x], [raw_ops.Neg(x=x)], [XlaArgument.parameter(FLOAT, (2,))])
    with pytest.raises(
        InvalidArgumentError, match=r"float32\[3\], and it was compiled for float\[2\]"
    ):
        result.run([np.zeros(3, np.float32)])


def test_one_operation_by_itself():
    node = NodeDef(name="node", op="AddV2")
    node.attr["T"].type = FLOAT
    result = XlaCompiler().compile_single_op(node, [XlaArgument.parameter(FLOAT, (2,))] * 2)
    (found,), _ = result.run([np.array([1, 2], np.float32), np.array([10, 20], np.float32)])
    np.testing.assert_array_equal(found, [11, 22])


def test_a_backend_that_does_not_exist():
    with pytest.raises(NotFoundError, match="there are XLA_CPU_JIT, XLA_GPU_JIT"):
        XlaCompiler("XLA_NPU_JIT")


class TestVariables:
    def test_an_assignment_is_a_result(self, graph):
        handle = placeholder(opkernel.resource, (), name="handle")
        x = placeholder(opkernel.float32, (2,), name="x")
        update = raw_ops.AssignAddVariableOp(resource=handle, value=x)
        with graph.control_dependencies([update]):
            after = raw_ops.ReadVariableOp(resource=handle, dtype=opkernel.float32)
        arguments = [XlaArgument.variable(FLOAT, (2,), "v"), XlaArgument.parameter(FLOAT, (2,))]
        result = compiled(graph, [handle, x], [after], arguments)
        (found,), (written,) = result.run(
            [np.array([1, 2], np.float32), np.array([10, 20], np.float32)]
        )
        np.testing.assert_array_equal(found, [11, 22])
        np.testing.assert_array_equal(written, [11, 22])
        (told,) = result.resource_updates
        assert (told.input_index, told.dtype, told.shape, told.modified) == (0, FLOAT, (2,), True)

    def test_one_without_a_value(self, graph):
        handle = placeholder(opkernel.resource, (), name="handle")
        value = raw_ops.ReadVariableOp(resource=handle, dtype=opkernel.float32)
        known = raw_ops.VarIsInitializedOp(resource=handle)
        argument = XlaArgument.variable(FLOAT, name="v", is_initialized=False)
        with pytest.raises(FailedPreconditionError, match="uninitialised variable v"):
            compiled(graph, [handle], [value], [argument])
        assert compiled(graph, [handle], [known], [argument]).run([None])[0] == [False]

    def test_a_value_of_another_type(self, graph):
        handle = placeholder(opkernel.resource, (), name="handle")
        update = raw_ops.AssignVariableOp(resource=handle, value=np.int64(1))
        assert update is not None
        with pytest.raises(InvalidArgumentError, match="cannot change from float to int64"):
            XlaCompiler().compile_graph(
                graph, [handle], [], [XlaArgument.variable(FLOAT, (), "v")], [update]
            )
