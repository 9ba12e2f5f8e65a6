"""What a function kernel of a user gives is of the types that its op declares, or the step fails."""

import numpy as np
import pytest

import opkernel
from opkernel.errors import InternalError, OpError
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


@pytest.mark.parametrize("executor_type", ["", "DATAFLOW"])
class TestTypes:
    def test_the_declared_type_passes(self, executor_type):
        assert run(lambda x: x + x, executor_type)[0].tolist() == [2, 4]

    def test_another_type_names_the_node(self, executor_type):
        with pytest.raises(InternalError, match=r"output 0 must be float.* float64.*'mine'"):
            run(lambda x: x.astype(np.float64), executor_type)

    def test_no_array_names_the_node(self, executor_type):
        with pytest.raises(OpError, match="'mine'"):
            run(lambda x: None, executor_type)

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
    assert "check_type" not in Session(graph).plan(y, [x]).source
