"""IndexedSlices where graphs take tensors."""

import opkernel
from opkernel.graph import Graph


def test_they_are_control_inputs_by_the_operation_of_their_values() -> None:
    graph = Graph()
    with graph.as_default():
        values = opkernel.constant([1.0, 2.0], name="values")
        slices = opkernel.IndexedSlices(values, opkernel.constant([0, 1]))
        with graph.control_dependencies([slices]):
            inside = graph.create_op("NoOp", [])
    made = graph.create_op("NoOp", [], control_inputs=[slices])
    assert slices.op is values.op
    assert list(inside.control_inputs) == list(made.control_inputs) == [values.op]
