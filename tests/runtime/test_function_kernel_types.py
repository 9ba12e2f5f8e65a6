"""What a function kernel of a user gives is of the types that its op declares, or the step fails."""

import numpy as np
import pytest

import opkernel
from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.opdef import register_op, unknown_shape
from opkernel.runtime import Session


def run(kernel, executor_type="", outputs=("y: float",)):
    handle = register_op("TypesTest", inputs=["x: float"], outputs=outputs, shape_fn=unknown_shape)
    opkernel.register_kernel(handle, device="CPU")(kernel)
    graph = opkernel.Graph()
    with graph.as_default():
        x = graph.create_op("Placeholder", attrs={"dtype": opkernel.float32}, name="x").outputs[0]
        op = graph.create_op("TypesTest", [x], name="mine")
        graph.create_op("Neg", [op.outputs[0]], name="next")
    with Session(graph, executor_type=executor_type) as session:
        return session.run([*op.outputs, "next:0"], {x: np.array([1, 2], np.float32)})


def unpacks_too_much(x):
    a, b, c = x
    return a + b + c


@pytest.mark.parametrize("executor_type", ["", "DATAFLOW"])
class TestTypes:
    def test_the_declared_type_passes(self, executor_type):
        assert run(lambda x: x + x, executor_type)[0].tolist() == [2, 4]

    def test_another_type_names_the_node(self, executor_type):
        with pytest.raises(InternalError, match=r"output 0 must be float.* float64.*'mine'"):
            run(lambda x: x.astype(np.float64), executor_type)

    def test_no_array_names_the_node(self, executor_type):
        with pytest.raises(
            InternalError, match=r"output 0 must be float, the kernel set None.*'mine'"
        ):
            run(lambda x: None, executor_type)

    def test_an_error_of_the_kernel_itself_stays_what_it_is(self, executor_type):
        with pytest.raises(InternalError, match=r"AttributeError: 'NoneType' .*'dtype'"):
            run(lambda x: getattr(None, "dtype"), executor_type)  # noqa: B009  # mypy knows it fails
        with pytest.raises(InvalidArgumentError, match=r"ValueError: .*unpack"):
            run(unpacks_too_much, executor_type)

    @pytest.mark.parametrize("given", [None, 5, (), (np.float32(1),), (np.float32(1),) * 3])
    def test_another_number_of_outputs_is_the_fault_of_the_kernel(self, executor_type, given):
        with pytest.raises(InternalError, match=r"output.*'mine'"):
            run(lambda x: given, executor_type, ["y: float", "z: float"])

    def test_each_output_is_checked(self, executor_type):
        outputs = ["y: float", "n: int32"]
        assert run(lambda x: (x, np.int32(x.size)), executor_type, outputs)[1] == 2
        with pytest.raises(InternalError, match="output 1 must be int32"):
            run(lambda x: (x, np.int64(x.size)), executor_type, outputs)


def test_kernels_of_the_catalogue_are_called_with_nothing_between():
    graph = opkernel.Graph()
    with graph.as_default():
        x = graph.create_op("Placeholder", attrs={"dtype": opkernel.float32}, name="x").outputs[0]
        y = graph.create_op("Softmax", [x]).outputs[0]
    assert "check_output" not in Session(graph).plan(y, [x]).source
