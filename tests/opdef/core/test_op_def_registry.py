"""The registered ops by name."""

from opkernel.opdef import (
    OpRegistry,
    get_registered_ops,
    global_op_registry,
    register_op,
    unknown_shape,
)


def test_all_ops_are_there_by_name() -> None:
    ops = get_registered_ops()
    assert ops["MatMul"] is global_op_registry().look_up_op_def("MatMul")
    assert {"TensorListReserve", "ReaderReadV2"} <= set(ops)


def test_names_are_told_without_building_anything() -> None:
    registry = OpRegistry()
    registry.set_loader(None, names=lambda: ("C", "A"), owner=lambda name: __name__)
    register_op("B", inputs=["no spec"], shape_fn=unknown_shape, registry=registry)
    register_op("A", shape_fn=unknown_shape, registry=registry)
    assert registry.names() == ["A", "B", "C"]
